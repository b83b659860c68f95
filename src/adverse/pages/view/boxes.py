"""What a detector said about one frame, judged: every box, and the sensitivity from which it counts.

Boxes are judged in the image plane, as the image level does (IoU of at least one half, the surest first).
That does not depend on the threshold, so a box needs one number: the place of the first sensitivity at which
it counts. The page shows and hides boxes by it and computes nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adverse.analysis.context import Seen, TruePlaces
from adverse.levels.image import Judged
from adverse.levels.match import FALSE, HIT
from adverse.levels.sensitivity import first_level
from adverse.pages.view.opened import Grid, Opened
from adverse.pages.view.picks import Pick
from adverse.pages.view.words import counted, metres
from adverse.report.words import shown

KINDS = {HIT: "hit", FALSE: "false"}
IGNORED = "ignored"
NAMES = {"hit": "hit", "false": "false alarm", IGNORED: "not judged", "true": "really there"}
NEVER = "never"


def frame_boxes(run: Opened, pick: Pick, setting: str, frame: int) -> dict[str, Any]:
    """Return the detections (`found`) and true objects (`true`) of a frame, each with its `since`.

    `since` is a place among the sensitivities; as many as there are of them means never. `steps` are the
    counts in words, each with the place from which it holds.
    """
    judged, grid = run.judged(pick.sut, setting, pick.log), run.grid(pick.sut)
    seen = run.seen(pick.sut, setting, pick.log) if run.context(pick.log).levels else None
    mine = np.flatnonzero(judged.answers.frame[judged.row] == frame)
    since = first_level(judged.answers.scores[mine], grid.thresholds)
    found = [
        _found(run, judged, seen, int(at)) | _counts(grid, int(start))
        for at, start in zip(mine, since, strict=True)
        if start < len(grid.levels)
    ]
    places = next(iter(run.context(pick.log).truths.values()), None)
    true = _true(
        run, places, dict(zip(judged.truth[mine].tolist(), since.tolist(), strict=True)), frame, grid
    )
    return {"found": found, "true": true, "steps": _steps(found, true, grid)}


def _found(run: Opened, judged: Judged, seen: Seen | None, at: int) -> dict[str, Any]:
    answers = judged.answers
    kind = KINDS.get(int(judged.outcome[at]), IGNORED)
    label, score = run.store.targets[int(answers.labels[at])], float(answers.scores[at])
    one: dict[str, Any] = {"kind": kind, "label": label, "box": _placed(answers.boxes[at]), "score": score}
    if seen is not None:
        one |= {"range_m": metres(seen.places.range_m[at]), "along_m": metres(seen.distance_m[at])}
    return one | {"score_words": f"{score:.4f}", "words": f"{NAMES[kind]}: {shown(label)}, score {score:.4f}"}


def _counts(grid: Grid, since: int) -> dict[str, Any]:
    """Return the place of the first sensitivity at which a box counts, and that in words."""
    words = f"{grid.levels[since]:.3g}" if since < len(grid.levels) else NEVER
    return {"since": since, "since_words": words}


def _true(
    run: Opened, places: TruePlaces | None, hit: dict[int, int], frame: int, grid: Grid
) -> list[dict[str, Any]]:
    """Return the true objects; `hit` is the place of the sensitivity from which each is found."""
    truth = run.store.truth
    true = []
    for row in np.flatnonzero(truth.frame == frame).tolist():
        kind = IGNORED if truth.ignore[row] else "true"
        label = run.store.targets[int(truth.labels[row])]
        one: dict[str, Any] = {"kind": kind, "label": label, "box": _placed(truth.boxes[row])}
        if places is not None:
            one |= {"range_m": metres(places.places.range_m[row]), "along_m": metres(places.distance_m[row])}
        words = f"{NAMES[kind]}: {shown(label)}"
        true.append(one | _counts(grid, hit.get(row, len(grid.levels))) | {"words": words})
    return true


def _steps(found: list[dict[str, Any]], true: list[dict[str, Any]], grid: Grid) -> list[tuple[int, str]]:
    people = [one["since"] for one in true if one["kind"] == "true"]
    false = [one["since"] for one in found if one["kind"] == "false"]
    steps = []
    for k in sorted({0, *people, *false} - {len(grid.levels)}):
        hits = sum(start <= k for start in people)
        alarms = sum(start <= k for start in false)
        words = ", ".join(
            (counted(hits, "hit"), counted(len(people) - hits, "miss"), counted(alarms, "false alarm"))
        )
        steps.append((k, words))
    return steps


def _placed(box: NDArray[Any]) -> list[float]:
    """Return a box x0 y0 x1 y1 as x, y, width and height."""
    x0, y0, x1, y1 = (float(value) for value in box)
    return [x0, y0, x1 - x0, y1 - y0]
