"""The numbers of the detectors' training that their cards tell."""

from __future__ import annotations

LOGS, PER_LOG = {"anchor": 2600, "centre": 8000, "two-stage": 2600}, 2
"""Train logs of the orchard for each network, and frames of each log."""
SEED = 7
CYCLES = {
    "anchor": ((0, 1800),),
    "centre": ((1500, 6000),),
    "two-stage": ((0, 1600),),
}
"""How many steps of each network see crops, and how many whole frames; in one or more cycles."""
RATES = {"anchor": (1e-3,), "centre": (1e-3,), "two-stage": (6e-4,)}
"""The highest learning rate of each cycle."""
CROPS_BATCH, WHOLE_BATCH = 16, 4
ADVERSE = {"anchor": (0.2, 0.4), "centre": (0.0, 0.7), "two-stage": (0.0, 0.0)}
"""The networks, and which shares of their pictures are taken under mild and under any adverse conditions."""
HOG_LOGS, HOG_PER_LOG = 2400, 3
ROUNDS, LOOKED = 3, 250
"""Rounds of the HOG's training, and frames without people that each searches for false alarms."""
_CLEAN = "26000 steps on frames as they are"
FIRST = {
    "anchor": f"its weights after {_CLEAN}, and 4500 steps with 35 % of them under mild conditions",
    "centre": "its weights after 11500 steps on 2400 train logs of 3 frames",
    "two-stage": f"its weights after 7500 steps on frames as they are, from anchor's backbone after {_CLEAN}",
}
"""What the bundled networks started with: those that were bundled before."""
KINDS = (
    "a little blur, haze or noise",
    "blur, haze, noise, darkness, a lost channel or spots on the lens",
)
NETWORK = (
    f"training/train.py {{name}} --start: {{logs}} train logs of {PER_LOG} frames, {{share}}; starts with"
    f" {{first}}; AdamW, {{steps}} (batches of {CROPS_BATCH} and {WHOLE_BATCH}), half of the frames without"
    f" people; a moving average of the weights{{mean}}; seed {SEED}{{earlier}}"
)
MEAN = ", and the mean of where it ended and what it started with (training/mean.py)"
MEANS = {"anchor": MEAN, "two-stage": MEAN}
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
    shares = [
        f"{part:.0%} of them with {kind}" for part, kind in zip(ADVERSE[name], KINDS, strict=True) if part
    ]
    share = ", ".join(shares) or "as they are"
    steps = ", then ".join(
        f"{crops} steps of crops and {whole} of frames" if crops else f"{whole} steps of frames"
        for crops, whole in CYCLES[name]
    )
    mean = ", the mean of what the cycles ended with" if len(CYCLES[name]) > 1 else MEANS.get(name, "")
    return NETWORK.format(
        name=name,
        logs=LOGS[name],
        share=share,
        first=FIRST[name],
        steps=steps,
        mean=mean,
        earlier=EARLIER.get(name, ""),
    )
