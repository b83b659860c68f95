"""At the path level both tolerances are evaluated over every threshold."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from adverse.analysis.detections import sut_detections
from adverse.analysis.results import analyze
from adverse.curves import area
from adverse.levels.context import level_input, run_context
from adverse.levels.path import path
from adverse.store.finished_run import finished
from synthetic_run import Size, write_run


def test_areas_at_both_tolerances_are_those_over_every_threshold(tmp_path: Path) -> None:
    write_run(tmp_path / "run", Size(2, 3, 16, 24, 2, bootstrap=0))
    rows = {
        (row["sut"], row["level"], row["setting"]): row
        for row in analyze(tmp_path / "run", workers=1).rows
        if row["level"].startswith("path/")
    }
    store = finished(tmp_path / "run")
    context = run_context(store)
    compared = 0
    for sut in store.suts:
        detections = sut_detections(store, sut)
        for setting, matched in detections.settings.items():
            scores = np.unique(np.append(matched.answers.scores, np.float32(np.inf)))[::-1]
            given = level_input(context, matched, scores, detections.counted(setting))
            for kind, events in path(given).items():
                row = rows[sut, f"path/{kind}", setting]
                for name, part in (("area", events), ("area_at_0", events.with_hits("at_0"))):
                    counts = part.outcomes(len(scores))
                    wanted = area(counts.safety(), counts.efficiency(store.run.fpr_max))
                    assert wanted - 0.001 < row[name] < wanted + 1e-9
                    compared += 1
                assert row["area_at_0"] < row["area"]
    assert compared == 2 * 3 * 2 * 2
