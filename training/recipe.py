"""The numbers of the detectors' training that their cards tell."""

from __future__ import annotations

LOGS, PER_LOG = 960, 5
"""Train logs of the orchard, and frames of each."""
SEED = 7
CROPS = {"anchor": 2400, "centre": 1800, "two-stage": 2400}
WHOLE = 600
"""How many steps see crops, and how many whole frames."""
CROPS_BATCH, WHOLE_BATCH = 16, 8
ROUNDS, LOOKED = 3, 250
"""Rounds of the HOG's training, and frames without people that each searches for false alarms."""
NETWORK = (
    f"training/train.py {{name}}: {LOGS} train logs of {PER_LOG} frames; AdamW, {{crops}} steps of"
    f" {CROPS_BATCH} crops, then {WHOLE} of {WHOLE_BATCH} frames, half of them without people; seed {SEED}"
)
HOG = (
    f"training/hog.py: {LOGS} train logs of {PER_LOG} frames; a linear SVM for each view, held to the spread"
    f" of windows anywhere, {ROUNDS} rounds with the false alarms on {LOOKED} frames; seed {SEED}"
)


def told(name: str) -> str:
    """Return the recipe of a detector in words."""
    return NETWORK.format(name=name, crops=CROPS[name]) if name in CROPS else HOG
