"""The numbers of the detectors' training that their cards tell."""

from __future__ import annotations

from typing import Literal

LOGS, PER_LOG = 8000, 2
"""Train logs of the orchard, and frames of each."""
SEED = 7
CYCLES = {
    "anchor": ((0, 4500),),
    "centre": ((1500, 6000),),
    "two-stage": ((2000, 5500),),
}
"""How many steps of each network see crops, and how many whole frames; in one or more cycles."""
RATES = {"anchor": (8e-4,), "centre": (1e-3,), "two-stage": (2e-3,)}
"""The highest learning rate of each cycle."""
START = {"two-stage": "anchor"}
"""A network that starts with the backbone of another one that was exported."""
CROPS_BATCH, WHOLE_BATCH = 16, 4
ADVERSE: dict[str, tuple[float, Literal["mild", "any"]]] = {
    "anchor": (0.35, "mild"),
    "centre": (0.7, "any"),
    "two-stage": (0.0, "mild"),
}
"""The networks, the share of their pictures that are taken under adverse conditions, and which."""
HOG_LOGS, HOG_PER_LOG = 2400, 3
ROUNDS, LOOKED = 3, 250
"""Rounds of the HOG's training, and frames without people that each searches for false alarms."""
_ANCHOR = f"after 26000 steps on frames as they are, the last 12000 on {LOGS} train logs of {PER_LOG} frames"
FIRST = {
    "anchor": f"its weights {_ANCHOR}",
    "centre": "its weights after 11500 steps on 2400 train logs of 3 frames",
    "two-stage": f"the backbone of anchor {_ANCHOR}",
}
"""What the bundled networks started with: those that were bundled before."""
KINDS = {
    "mild": "a little blur, haze or noise",
    "any": "blur, haze, noise, darkness, a lost channel or spots on the lens",
}
NETWORK = (
    f"training/train.py {{name}} --start: {LOGS} train logs of {PER_LOG} frames, {{share}}; starts with"
    f" {{first}}; AdamW, {{steps}} (batches of {CROPS_BATCH} and {WHOLE_BATCH}), half of the frames without"
    f" people; a moving average of the weights{{mean}}; seed {SEED}{{earlier}}"
)
EARLIER = {
    "centre": "; the frames are those of the orchard before two people kept apart and only those from 25"
    " pixels and 65 % visible on were asked for"
}
"""What is to be said of the frames of a network that was trained before the orchard was what it is."""
HOG = (
    f"training/hog.py: {HOG_LOGS} train logs of {HOG_PER_LOG} frames; a linear SVM for each view, held to"
    f" the spread of windows anywhere, {ROUNDS} rounds with the false alarms on {LOOKED} frames; seed {SEED}"
)


def told(name: str) -> str:
    """Return the recipe of a detector in words."""
    if name not in ADVERSE:
        return HOG
    part, strength = ADVERSE[name]
    share = f"{part:.0%} of them with {KINDS[strength]}" if part else "as they are"
    steps = ", then ".join(
        f"{crops} steps of crops and {whole} of frames" if crops else f"{whole} steps of frames"
        for crops, whole in CYCLES[name]
    )
    mean = ", the mean of what the cycles ended with" if len(CYCLES[name]) > 1 else ""
    return NETWORK.format(
        name=name, share=share, first=FIRST[name], steps=steps, mean=mean, earlier=EARLIER.get(name, "")
    )
