"""Train the bundled HOG + linear classifier: python training/hog.py. Needs no PyTorch.

Windows around people against windows from anywhere else, a linear SVM (hinge loss, Adam), and then twice
more with the false alarms of the last round added (Dalal and Triggs 2005, section 5).
"""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from scenes import Frames, frames

BUNDLED = Path(__file__).parents[1] / "src" / "adverse" / "suts" / "bundled"
LOGS, PER_LOG = 240, 6
SEED = 7
WINDOW, BLOCK, STRIDE, CELL, BINS = (32, 64), (8, 8), (4, 4), (4, 4), 9
PERSON = (0.5, 0.8)
"""The part of a window's width and height that a person fills."""
COPIES, SHIFT = 4, 2 / 64
"""Each person is shown so often, moved by up to half the step of the sliding window, in window heights."""
ROUNDS, EPOCHS = 3, 25
Floats = NDArray[np.float32]


def main() -> None:
    """Train, write the weights, and say how it went."""
    cv2.setNumThreads(1)
    data = frames("orchard", "train", LOGS, PER_LOG)
    rng = np.random.default_rng(SEED)
    hog = cv2.HOGDescriptor(WINDOW, BLOCK, STRIDE, CELL, BINS)
    people = np.concatenate([_people(hog, data, row, rng) for row in range(len(data.images))])
    empty = [row for row in range(len(data.images)) if not (data.boxes[row, :, 2] > 0).any()]
    others = np.concatenate([_anywhere(hog, data.images[row], rng) for row in empty])
    for number in range(ROUNDS):
        weights = _fitted(people, others, rng)
        if number < ROUNDS - 1:
            hog.setSVMDetector(weights.astype(np.float32))
            found = [_false_alarms(hog, data.images[row]) for row in empty]
            others = np.concatenate([others, *found])
        sure = people @ weights[:-1] + weights[-1] > 0
        print(f"round {number + 1}: {len(others)} others, {sure.mean():.2f} of {len(people)} people found")
    shape = {"window": WINDOW, "block": BLOCK, "stride": STRIDE, "cell": CELL, "bins": BINS, "person": PERSON}
    model = {**shape, "weights": [round(float(value), 6) for value in weights]}
    BUNDLED.mkdir(parents=True, exist_ok=True)
    (BUNDLED / "orchard-hog.json").write_text(json.dumps(model))


def _people(hog: cv2.HOGDescriptor, data: Frames, row: int, rng: np.random.Generator) -> Floats:
    made = []
    for (x0, y0, x1, y1), skip in zip(data.boxes[row], data.ignore[row], strict=True):
        if x1 > 0 and not skip and y1 - y0 > 24 and x0 > 0 and x1 < 319 and y1 < 239:
            tall = (y1 - y0) / PERSON[1]
            for copy in range(COPIES):
                x, y = (np.array([x0 + x1, y0 + y1]) / 2 + rng.uniform(-1, 1, 2) * SHIFT * tall).tolist()
                crop = _crop(data.images[row], x, y, tall * rng.uniform(0.95, 1.06))
                shown = np.ascontiguousarray(crop[:, ::-1]) if copy % 2 else crop
                made.append(hog.compute(shown).reshape(-1))
    return np.array(made, np.float32).reshape(-1, hog.getDescriptorSize())


def _anywhere(hog: cv2.HOGDescriptor, image: NDArray[np.uint8], rng: np.random.Generator) -> Floats:
    places = zip(
        rng.uniform(10, 310, 6), rng.uniform(60, 200, 6), np.exp(rng.uniform(3.4, 5.2, 6)), strict=True
    )
    return np.array([hog.compute(_crop(image, *place)).reshape(-1) for place in places], np.float32)


def _false_alarms(hog: cv2.HOGDescriptor, image: NDArray[np.uint8]) -> Floats:
    doubled = cv2.resize(image, None, fx=2, fy=2)
    windows, scores = hog.detectMultiScale(
        doubled, hitThreshold=-0.2, winStride=(8, 8), scale=1.15, groupThreshold=0
    )
    best = np.argsort(-np.asarray(scores).reshape(-1))[:12]
    crops = [
        _crop(doubled, x + w / 2, y + h / 2, h) for x, y, w, h in np.asarray(windows).reshape(-1, 4)[best]
    ]
    return np.array([hog.compute(crop).reshape(-1) for crop in crops], np.float32).reshape(
        -1, hog.getDescriptorSize()
    )


def _crop(image: NDArray[np.uint8], x: float, y: float, tall: float) -> NDArray[np.uint8]:
    scale = WINDOW[1] / tall
    move = np.array([[scale, 0, WINDOW[0] / 2 - scale * x], [0, scale, WINDOW[1] / 2 - scale * y]])
    smooth = cv2.GaussianBlur(image, (0, 0), max(0.45 / scale - 0.4, 0.01)) if scale < 0.7 else image
    return cv2.warpAffine(smooth, move, WINDOW, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)


def _fitted(people: Floats, others: Floats, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the weights and the bias of a linear SVM."""
    values = np.concatenate([people, others])
    sides = np.concatenate([np.ones(len(people)), -np.ones(len(others))])
    share = np.where(sides > 0, len(others) / len(people), 1.0) ** 0.5
    weights = np.zeros(values.shape[1] + 1)
    first, second, step = np.zeros_like(weights), np.zeros_like(weights), 0
    for epoch in range(EPOCHS):
        order = rng.permutation(len(values))
        for rows in np.array_split(order, max(len(order) // 256, 1)):
            step += 1
            wrong = sides[rows] * (values[rows] @ weights[:-1] + weights[-1]) < 1
            pull = -(sides[rows] * share[rows] * wrong) / len(rows)
            slope = np.append(pull @ values[rows], pull.sum()) + 1e-4 * weights
            first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
            rate = 0.01 * (1 - epoch / EPOCHS)
            weights -= rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    return weights


if __name__ == "__main__":
    main()
