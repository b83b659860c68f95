"""A study from Python: the same as `adverse run`, with detectors that may be Python objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from adverse.analysis.results import Summary, analyze
from adverse.strict_yaml import read_yaml
from adverse.study.engines import Engine, Stop
from adverse.study.engines.inline import InlineEngine
from adverse.study.engines.local import LocalEngine
from adverse.study.run import run_study
from adverse.study.spec import study_from


def run(
    study: Path | str | Mapping[str, Any],
    out: Path | str,
    *,
    detectors: Mapping[str, Any] | None = None,
    workers: int = 0,
    fresh: bool = False,
) -> Summary:
    """Run a study file, or a study given as plain data, into the folder `out`, and return its summary.

    `detectors` maps names to Python objects: `detect(images) -> list[Detections]`, or a function from images
    to (boxes, scores, labels). They run in this process (`workers=0`), unprotected. Give an object a string
    `fingerprint` that changes with its weights, and what it has answered is used again.
    """
    if isinstance(study, Mapping):
        data, folder = study, Path.cwd()
    else:
        data, folder = read_yaml(Path(study)).data, Path(study).resolve().parent
    file = study_from(data, folder, detectors)
    path = Path(out)
    engine: Engine = LocalEngine(workers, path / "logs") if workers and not detectors else InlineEngine()
    ran = run_study(file, path, engine, watch=_Silent(), stop=Stop(), fresh=fresh)
    if ran.problem is not None:
        raise ran.problem
    return analyze(path, registry=ran.plan.registry)


class _Silent:
    def note(self, text: str) -> None:
        pass

    def begin(self, total: int, done: int) -> None:
        pass

    def advance(self, statuses: Counter[str]) -> None:
        pass

    def end(self) -> None:
        pass
