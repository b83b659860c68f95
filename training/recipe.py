"""The numbers of the detectors' training that their cards tell."""

from __future__ import annotations

LOGS, PER_LOG = 1000, 4
"""Train logs of the orchard, and frames of each."""
SEED = 7
STEPS = {"anchor": (4000, 2500), "centre": (4000, 2500), "two-stage": (1500, 2000)}
"""How many steps of each network see crops, and how many whole frames."""
START = {"two-stage": "anchor"}
"""A network whose backbone starts as that of another one."""
CROPS_BATCH, WHOLE_BATCH = 16, 4
ADVERSE = {"anchor": 0.0, "centre": 0.6, "two-stage": 0.2}
"""The networks, and the share of their pictures that are taken under adverse conditions."""
ROUNDS, LOOKED = 3, 250
"""Rounds of the HOG's training, and frames without people that each searches for false alarms."""
NETWORK = (
    f"training/train.py {{name}}: {LOGS} train logs of {PER_LOG} frames, {{share}}; {{start}}AdamW,"
    f" {{crops}} steps of {CROPS_BATCH} crops, then {{whole}} of {WHOLE_BATCH} frames, half of them without"
    f" people; a moving average of the weights; seed {SEED}"
)
HOG = (
    f"training/hog.py: {LOGS} train logs of {PER_LOG} frames; a linear SVM for each view, held to the spread"
    f" of windows anywhere, {ROUNDS} rounds with the false alarms on {LOOKED} frames; seed {SEED}"
)


def told(name: str) -> str:
    """Return the recipe of a detector in words."""
    if name not in ADVERSE:
        return HOG
    share = ADVERSE[name]
    spoilt = f"{share:.0%} of them with blur, haze, noise, darkness, a lost channel or spots on the lens"
    start = f"the backbone of {START[name]} to start with; " if name in START else ""
    crops, whole = STEPS[name]
    clean = "as they are"
    return NETWORK.format(name=name, share=spoilt if share else clean, start=start, crops=crops, whole=whole)
