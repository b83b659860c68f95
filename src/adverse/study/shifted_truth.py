"""Answers on clean frames that fit the truth of neighbouring frames: annotations that are some frames off.

Such data make a good SUT look like one that finds nothing, and every figure is wrong. It can be seen only
when a SUT has been asked; of recorded predictions it is found before the run.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow.parquet as pq

from adverse.mutations.settings import BASELINE
from adverse.store.folder import RunFolder
from adverse.store.journal import FinishedCells
from adverse.study.job import PlannedCell, WorkUnit
from adverse.study.plan import StudyPlan
from adverse.study.units import frames_of
from adverse.suts.build import is_recorded
from adverse.suts.recorded_rows import Floats
from adverse.suts.recorded_shift import BEST_BOXES, COMPARED, shifted_truth

SHIFTED = "truth and images may be shifted against each other"
FIX = "Check which annotation belongs to which image: a frame may be missing in one of the two"


def shift_warnings(folder: RunFolder, plan: StudyPlan, finished: FinishedCells) -> list[str]:
    """Return a warning for each live detector whose answers fit other frames, by the finished cells."""
    if plan.job.task != "detection" or plan.file.study.truth is not None:
        return []
    lines = []
    for index, task in enumerate(plan.job.suts):
        if not is_recorded(plan.registry.get("sut", task.adapter)):
            found = dict(_clean_boxes(folder, plan, finished, index))
            shift = shifted_truth(found, list(frames_of(plan.dataset))) if found else None
            if shift is not None:
                lines.append(f"{SHIFTED}: by the answers of SUT {task.name!r} to clean frames {shift}. {FIX}")
    return lines


def _clean_boxes(
    folder: RunFolder, plan: StudyPlan, finished: FinishedCells, sut: int
) -> Iterator[tuple[str, Floats]]:
    """Yield the surest boxes of a SUT for clean frames with true objects, spread over the finished ones."""
    with_objects = {frame.id for frame in frames_of(plan.dataset) if len(frame.truth.boxes)}
    baseline = next(n for n, setting in enumerate(plan.job.settings) if setting.id == BASELINE)
    file_of: dict[str, str] = {}
    for unit in plan.units:
        shown = [frame.id for frame in unit.frames if frame.id in with_objects]
        cell = _cell_of(unit, baseline, sut) if shown else None
        holder = None if cell is None else finished.get(cell.key)
        if holder is not None:
            file_of |= dict.fromkeys(shown, holder.file)
    frames = list(file_of)
    spread = np.linspace(0, len(frames) - 1, min(COMPARED, len(frames)))
    wanted = {frames[int(at)] for at in spread}
    only = [("setting", "==", BASELINE), ("sut", "==", plan.job.suts[sut].name), ("status", "==", "ok")]
    for name in dict.fromkeys(file_of[frame] for frame in frames if frame in wanted):
        rows = pq.read_table(folder.detections / name, columns=["frame", "boxes", "scores"], filters=only)
        for row in rows.to_pylist():
            if row["frame"] in wanted:
                best = np.argsort(-np.array(row["scores"]), kind="stable")[:BEST_BOXES]
                yield row["frame"], np.array(row["boxes"], np.float64).reshape(-1, 4)[best]


def _cell_of(unit: WorkUnit, setting: int, sut: int) -> PlannedCell | None:
    """Return the cell of a setting and a SUT; the baseline's come first, so it is found soon."""
    return next((cell for cell in unit.cells if (cell.setting, cell.sut) == (setting, sut)), None)
