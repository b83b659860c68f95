"""Frames of segmenters and classifiers: what can be shown of their answers, and plain words for the rest."""

from __future__ import annotations

import colorsys
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.analysis.tasks import segmentation_scores
from adverse.pages.view.opened import Opened

NOT_KEPT = (
    "The run did not keep the segmenter's label maps, so they cannot be laid over the frame. "
    "Set keep_label_maps: true in the study and run it again."
)
PALETTE = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7", "#000000")
"""Okabe and Ito's, for the first labels; those beyond take hues as far apart as can be."""
LABELS = 256
TITLE = "this frame's scores, IoU by class"
GOLDEN = 0.618034


def frame_answer(run: Opened, sut: str, setting: str, frame: int) -> dict[str, Any]:
    """Return the answer about one frame as rows of words, and whether there is a label map to lay over it."""
    record = run.store.record(sut, setting, run.store.frames.ids[frame])
    if record is None:
        return {"title": "", "rows": [], "labels": False, "note": "The SUT was not asked about this frame."}
    if run.store.task == "classification":
        return _classified(run, record, frame)
    return _segmented(run, sut, setting, frame, record)


def label_picture(run: Opened, sut: str, setting: str, frame: int) -> bytes | None:
    """Return a kept label map in colours as PNG; None if there is none."""
    record = run.store.record(sut, setting, run.store.frames.ids[frame])
    if record is None or record["label_map"] is None:
        return None
    labels = np.asarray(cv2.imdecode(np.frombuffer(record["label_map"], np.uint8), cv2.IMREAD_UNCHANGED))
    return bytes(cv2.imencode(".png", _colours()[labels.astype(np.int64) % LABELS][..., ::-1])[1].tobytes())


def label_names(run: Opened, sut: str) -> list[dict[str, str]]:
    """Return the names of a segmenter's labels, where its options tell them, with their colours."""
    if run.store.task != "segmentation":
        return []
    told = run.store.run.sut(sut).options.get("classes")
    names = told if isinstance(told, list) else []
    colours = ["#" + bytes(colour).hex() for colour in _colours()]
    return [{"name": str(name), "colour": colours[n % LABELS]} for n, name in enumerate(names)]


def _classified(run: Opened, record: dict[str, Any], frame: int) -> dict[str, Any]:
    truth = run.store.categories_shown[frame] or ""
    best = list(zip(record["ranked"] or [], record["ranked_scores"] or [], strict=True))
    rows = [{"name": name, "value": f"{score:.3f}", "right": name == truth} for name, score in best]
    return {"title": "the best classes", "rows": rows, "labels": False, "note": f"It shows: {truth}"}


def _segmented(run: Opened, sut: str, setting: str, frame: int, record: dict[str, Any]) -> dict[str, Any]:
    counts = run.pixel_counts(sut)[setting]
    scores, per_class = segmentation_scores(counts, counts.frame == frame, run.store.pixel_classes)
    rows = [
        {"name": name.replace("_", " "), "value": f"{value:.3f}", "right": None}
        for name, value in (*scores.items(), *per_class.items())
        if value is not None
    ]
    kept = record["label_map"] is not None
    return {"title": TITLE, "rows": rows, "labels": kept, "note": "" if kept else NOT_KEPT}


def _colours() -> NDArray[np.uint8]:
    """Return the colour of every label (256, 3), RGB."""
    first = [[int(colour[n : n + 2], 16) for n in (1, 3, 5)] for colour in PALETTE]
    rest = [colorsys.hsv_to_rgb(n * GOLDEN % 1, 0.55, 0.9) for n in range(LABELS - len(first))]
    return np.array([*first, *(np.array(rest) * 255).round().tolist()]).astype(np.uint8)
