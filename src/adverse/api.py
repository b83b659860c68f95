"""What Python programs call: run a study, open a finished run, read a data set.

Each does what the command line does, and refuses what it refuses; detectors may be Python objects too.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from adverse import plugins
from adverse.analysis.headline import headline_levels
from adverse.analysis.results import Summary, analyze, read_summary
from adverse.data.formats import guess, guessed_options, read_format
from adverse.errors import AdverseError, StoreError, suggestion
from adverse.remote_files import is_url
from adverse.report.chart import Chart
from adverse.report.tradeoffs import curves_chart
from adverse.store.finished_run import finished
from adverse.store.folder import RunFolder
from adverse.store.read import Store
from adverse.store.replica import working_copy
from adverse.store.run import Run
from adverse.strict_yaml import YamlFile, read_yaml
from adverse.study.engines import Engine, Silent, Stop
from adverse.study.engines.local import InlineEngine, LocalEngine
from adverse.study.run import run_study
from adverse.study.spec import study_with
from adverse.suts.python_callable import says_what_it_is
from adverse.text import CLEAN, setting_id, shown
from adverse.types import Dataset

if TYPE_CHECKING:
    from pandas import DataFrame

COLUMNS = (
    *("sut", "level", "setting", "group", "robust_area", "robustness"),
    *("mean_iou", "pixel_accuracy", "top1", "top5", "share", "status"),
)
"""What a notebook shows of a row, where it has it."""
ROWS_SHOWN = 20
INTERVAL = pa.struct(
    [
        *((name, pa.float64()) for name in ("low", "high", "confidence")),
        *(("method", pa.string()), ("logs", pa.int64()), ("status", pa.string()), ("why", pa.string())),
    ]
)
COUNTS_BY_NAME, FIGURES_BY_NAME = ("logs_left_out",), ("scores", "per_class")
"""Columns of `to_arrow` that map names to numbers."""
GIVEN = Path("the study given to adverse.run")
"""Where errors in a study given as plain data are."""
FORMATS = {".parquet": pyarrow.parquet.read_table, ".csv": pyarrow.csv.read_csv}


def run(
    study: Path | str | Mapping[str, Any],
    out: Path | str,
    *,
    detectors: Mapping[str, Any] | None = None,
    workers: int = 0,
    fresh: bool = False,
) -> FinishedRun:
    """Run a study file, or a study given as plain data, into the folder or URL `out`; return the run.

    `detectors` maps names to Python objects: `detect(images) -> list[Detections]`, or a function from images
    to (boxes, scores, labels). They run in this process (`workers=0`), unprotected. Give an object, or a
    function, a string `fingerprint` that changes with its weights, and its answers are reused when the study
    runs again. Without one it is asked about everything again, with a warning.

    Paths in a study given as plain data are relative to the current folder. A SUT that failed on every image
    gives a warning; `trusted` says whether all figures can be relied on.
    """
    source = YamlFile(GIVEN, dict(study), {}) if isinstance(study, Mapping) else read_yaml(Path(study))
    file = study_with(source, detectors or {})
    if is_url(out):
        with working_copy(Path(out), writing=True, new=True, note=_unheard) as copy:
            return run(study, copy, detectors=detectors, workers=workers, fresh=fresh)
    path = Path(out)
    engine: Engine = LocalEngine(workers, path / "logs") if workers and not detectors else InlineEngine()
    asked_again = [] if fresh or not RunFolder(path).manifest.exists() else _unknown(detectors or {})
    outcome = run_study(file, path, engine, watch=Silent(), stop=Stop(), fresh=fresh)
    if outcome.problem is not None:
        raise outcome.problem
    for sut in asked_again:
        warnings.warn(
            f"{sut} was asked about every image again: nothing tells whether it is what ran here before. "
            "Fix: give the object or function a fingerprint, a text that changes with its weights and "
            'settings, such as detector.fingerprint = "weights-3".',
            stacklevel=2,
        )
    summary = analyze(path, registry=outcome.plan.registry)
    for sut, fault in summary.failed_everywhere.items():
        warnings.warn(f"{sut} failed on every image, so it has no usable figures: {fault}", stacklevel=2)
    return FinishedRun(path, summary=summary)


def _unknown(detectors: Mapping[str, Any]) -> list[str]:
    return [name for name, detector in detectors.items() if not says_what_it_is(detector)]


def open_run(path: Path | str) -> FinishedRun:
    """Open the folder of a finished run, or a copy of it if it is a URL.

    Every file that its results rest on is hashed first. An unfinished run raises `IncompleteError`, a changed
    file `StoreError`, as in the commands that read a run.
    """
    if is_url(path):
        with working_copy(Path(path), note=_unheard) as copy:
            return open_run(copy)
    return FinishedRun(Path(path), store=finished(Path(path)))


def _unheard(_text: str) -> None:
    pass


def read_dataset(path: Path | str, /, format: str | None = None, **options: Any) -> Dataset:  # noqa: A002
    """Read a data set; `options` are those of its format, as in a study's `data` section.

    Without `format` it is recognised by its files, as `adverse data check` does. Images are not decoded until
    a frame's `image()` is called.
    """
    registry, place = plugins.load(), Path(path)
    if format is None:
        reader, recognised, _ = guess(place, registry.all("dataset"))
    else:
        reader = registry.get("dataset", format, where="format")
        recognised = guessed_options(reader, place, options)
    given = {name: os.fspath(value) if isinstance(value, Path) else value for name, value in options.items()}
    bound = plugins.bind(reader, {**recognised, **given}, where="read_dataset")
    return read_format(reader, bound, where=str(path))


class FinishedRun:
    """A finished run and its results. Made by `adverse.run` and `adverse.open_run`."""

    def __init__(self, path: Path, *, store: Store | None = None, summary: Summary | None = None) -> None:
        self.path = path
        self._store_given = store
        self._summary_given = summary

    @cached_property
    def run(self) -> Run:
        """What was run: settings, SUTs, levels, baseline, splits, versions."""
        return self._store.run

    @cached_property
    def summary(self) -> Summary:
        """What summary.json holds: `summary.data`, and questions about it."""
        return self._summary_given or read_summary(self._store)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The figures, one row for each SUT, level and setting; docs/results.md lists the keys."""
        return self.summary.rows

    @property
    def trusted(self) -> bool:
        """Whether every figure is there, rests on all planned frames, and every SUT works."""
        return self.summary.trusted

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables behind the figures, for `table`."""
        return tuple(sorted(self._table_files()))

    def table(self, name: str) -> pa.Table:
        """Return a table of results/ by name, `curves`, `outcomes`, ..., as it was written by this run."""
        files = self._table_files()
        if name not in files:
            raise StoreError(
                f"the run has no table {name!r}", where=str(self.path), fix=suggestion(name, files)
            )
        path = self._store.result(files[name])
        return FORMATS[Path(files[name]).suffix](path)

    def detections(self, sut: str, setting: str | None = None) -> pa.Table:
        """Return one row for each frame: what a SUT detected under a setting (the baseline by default)."""
        names, ids = self._store.suts, [entry.id for entry in self.run.settings]
        chosen = self.run.baseline.id if setting is None else setting
        for noun, value, available in (("SUT", sut, names), ("setting", chosen, ids)):
            if value not in available:
                raise StoreError(
                    f"the run has no {noun} {value!r}", where=str(self.path), fix=suggestion(value, available)
                )
        return self._store.detections(sut, chosen)

    def chart(self, level: str | None = None, setting: str | None = None) -> Chart:
        """Return safety against efficiency of all SUTs; a notebook shows it, `.svg()` and `.data()` give it.

        By default at the level that the report begins with, on clean frames; `setting` may be "worst case",
        "worst mild case" or the id of a mutation.
        """
        chosen = level or next(iter(headline_levels(self.summary)), "")
        return curves_chart(
            self._store, self.summary, chosen, setting_id(setting or CLEAN, self._store.groups)
        )

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table; a column is null where a row has no such key."""
        rows = self.rows
        names = dict.fromkeys(name for row in rows for name in row)
        return pa.table({name: _column(name, [row.get(name) for row in rows]) for name in names})

    def to_pandas(self) -> DataFrame:
        """Return the rows as a pandas data frame. pandas is not a dependency: install it yourself."""
        try:
            import pandas as pd  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise AdverseError(
                "to_pandas needs pandas, which is not installed", fix="pip install pandas"
            ) from error
        return pd.DataFrame(self.rows)

    def __repr__(self) -> str:
        return f"<FinishedRun {str(self.path)!r}: {len(self.rows)} rows>"

    def _repr_html_(self) -> str:
        """Return a small table for notebooks; names are escaped."""
        rows = [{**row, **row.get("scores", {})} for row in self.rows]
        names = [name for name in COLUMNS if any(name in row for row in rows)]
        head = "".join(f"<th>{name}</th>" for name in names)
        body = "".join(
            f"<tr>{''.join(f'<td>{_cell(row.get(name))}</td>' for name in names)}</tr>"
            for row in rows[:ROWS_SHOWN]
        )
        more = len(rows) - ROWS_SHOWN
        rest = f"; {more} more rows" if more > 0 else ""
        return (
            f"<table><caption>{escape(shown(self.path))}{rest}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )

    @cached_property
    def _store(self) -> Store:
        return self._store_given or finished(self.path)

    def _table_files(self) -> dict[str, str]:
        """Return the file of each table; where Parquet and CSV hold the same name, the Parquet one."""
        files = sorted(self._store.folder.results.glob("*.*"), key=lambda file: file.suffix)
        return {file.stem: file.name for file in files if file.suffix in FORMATS}


def _column(name: str, values: list[Any]) -> pa.Array:
    """Return values as an Arrow column, of the same type in every run."""
    if name.endswith("_interval"):
        return pa.array(values, INTERVAL)
    if name in COUNTS_BY_NAME or name in FIGURES_BY_NAME:
        kind = pa.int64() if name in COUNTS_BY_NAME else pa.float64()
        return pa.array(
            [None if value is None else list(value.items()) for value in values], pa.map_(pa.string(), kind)
        )
    column = pa.array(values)
    return column.cast(pa.float64()) if pa.types.is_null(column.type) else column


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if isinstance(value, float) else escape(shown(value))
