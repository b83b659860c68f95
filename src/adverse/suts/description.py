"""Score cuts that are written in the description of a model: found, and lowered to the adapter's own.

OpenCV drops what a Darknet [yolo] layer scores below 0.2 unless its `thresh` says otherwise, and what a
DetectionOutput layer scores below its `confidence_threshold`. A curve cannot go below such a cut. Greedy NMS
by falling score does not let a weaker box change a stronger one, so lowering a cut adds detections and alters
none.
"""

from __future__ import annotations

import re

REGIONS = ("yolo", "region")
"""Sections of a Darknet description that end a network; `thresh` in them is a training option of Darknet's,
0.6 in YOLOv2, which OpenCV takes for a score."""
NUMBER = rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
CONFIDENCE = {
    ".prototxt": re.compile(rb"(\bconfidence_threshold\s*:\s*)(" + NUMBER + rb")"),
    ".pbtxt": re.compile(
        rb"(\bkey\s*:\s*[\"']confidence_threshold[\"']\s*value\s*:?\s*\{\s*f\s*:\s*)(" + NUMBER + rb")"
    ),
}
"""The cut of a DetectionOutput layer in the text formats of Caffe and of TensorFlow."""


def uncut(description: bytes, kind: str, score_threshold: float) -> bytes:
    r"""Return a description (.cfg, .prototxt, .pbtxt) whose layers drop no score from `score_threshold` on.

    >>> uncut(b"[net]\nwidth=4\n[yolo]\nthresh=.2\nclasses=2", ".cfg", 0.001)
    b'[net]\nwidth=4\n[yolo]\nthresh=0\nclasses=2'
    >>> uncut(b"nms_threshold: 0.45 confidence_threshold: 0.25", ".prototxt", 0.001)
    b'nms_threshold: 0.45 confidence_threshold: 0.001'
    """
    if kind == ".cfg":
        return _uncut_regions(description)

    def lowered(found: re.Match[bytes]) -> bytes:
        own = found.group(2)
        return found.group(1) + (own if float(own) <= score_threshold else b"%g" % score_threshold)

    return CONFIDENCE[kind].sub(lowered, description)


def _uncut_regions(description: bytes) -> bytes:
    lines, in_region = [], False
    for line in description.split(b"\n"):
        text = line.strip()
        if text.startswith(b"["):
            in_region = text.strip(b"[] \t").decode("latin-1") in REGIONS
            lines += [line, b"thresh=0"] if in_region else [line]
        elif not (in_region and text.partition(b"=")[0].strip() == b"thresh"):
            lines.append(line)
    return b"\n".join(lines)
