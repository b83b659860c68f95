"""The numbers of the detectors' training that their cards tell."""

from __future__ import annotations

LOGS, PER_LOG = 2400, 3
"""Train logs of the orchard, and frames of each."""
SEED = 7
CYCLES = {
    "anchor": ((4000, 2500), (3000, 4500)),
    "centre": ((4000, 2500), (2000, 3000)),
    "two-stage": ((1500, 2500),),
}
"""How many steps of each network see crops, and how many whole frames; in one or two cycles."""
RATES = (2e-3, 1.5e-3)
"""The highest learning rate of each cycle."""
START = {"two-stage": "centre"}
"""A network whose backbone starts as that of another one."""
CROPS_BATCH, WHOLE_BATCH = 16, 4
ADVERSE = {"anchor": 0.0, "centre": 0.7, "two-stage": 0.2}
"""The networks, and the share of their pictures that are taken under adverse conditions."""
ROUNDS, LOOKED = 3, 250
"""Rounds of the HOG's training, and frames without people that each searches for false alarms."""
NETWORK = (
    f"training/train.py {{name}}: {LOGS} train logs of {PER_LOG} frames, {{share}}; {{start}}AdamW,"
    f" {{steps}} (batches of {CROPS_BATCH} and {WHOLE_BATCH}), half of the frames without people; a moving"
    f" average of the weights; seed {SEED}"
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
    steps = ", then ".join(f"{crops} steps of crops and {whole} of frames" for crops, whole in CYCLES[name])
    return NETWORK.format(name=name, share=spoilt if share else "as they are", start=start, steps=steps)
