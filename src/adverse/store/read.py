"""A run folder as arrays: all that the quick half ever reads.

Whoever makes or shows numbers opens the folder with `finished`, which refuses a run that is not finished or
not as it was written. Parquet files are read through DuckDB, one SUT at a time, in the order of the frames
table, so that nothing downstream depends on how the work was cut or in which order it finished.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adverse.content import ChangedError
from adverse.errors import IncompleteError, StoreError
from adverse.store.folder import FORMAT, RunFolder, read_seals
from adverse.store.records import SCHEMA
from adverse.store.run import Run, differences, run_of
from adverse.store.seals import broken_seal, state_of, verify, write_derived
from adverse.types import Task

OK, FAULT, QUARANTINED = 0, 1, 2
STATUSES = ("ok", "fault", "quarantined")


@dataclass(frozen=True, eq=False)
class Frames:
    """The frames of a run, in order; `log` indexes `logs`, `test` marks the test split."""

    ids: tuple[str, ...]
    logs: tuple[str, ...]
    log: NDArray[np.int64]
    test: NDArray[np.bool_]
    poses: NDArray[np.float64]
    """world_from_camera (F,4,4); NaN where it is not known."""
    cameras: NDArray[np.float64]
    """fx fy cx cy width height baseline_m (F,7); NaN where it is not known."""
    time_s: NDArray[np.float64]
    """When each was taken (F,), from any beginning of its log; NaN where it is not known."""


@dataclass(frozen=True, eq=False)
class TruthTable:
    """True objects of some classes, sorted by frame; `frame` indexes Frames, `labels` those classes."""

    frame: NDArray[np.int64]
    boxes: NDArray[np.float64]
    labels: NDArray[np.int64]
    ignore: NDArray[np.bool_]
    positions_m: NDArray[np.float64]
    """Annotated world positions (T,3); NaN where there is none."""
    place: NDArray[np.int64]
    """Which of its frame's true objects it is, in the order of the data set."""
    area: NDArray[np.float64]
    """Pixels that it covers, as annotated or, where that is not told, those of its box."""
    crowd: NDArray[np.bool_]
    """Ignored ones that are a region of many; where the format knows no such thing, all ignored ones."""


@dataclass(frozen=True, eq=False)
class Answers:
    """What one SUT said under one setting: a row for each frame that was planned.

    `frame` indexes Frames; `status` is OK, FAULT or QUARANTINED; the detections of row r are
    `offsets[r]:offsets[r+1]`, of the classes asked for only.
    """

    frame: NDArray[np.int64]
    status: NDArray[np.int8]
    offsets: NDArray[np.int64]
    boxes: NDArray[np.float32]
    scores: NDArray[np.float32]
    labels: NDArray[np.int64]
    depths_m: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class PixelCounts:
    """What a segmenter came to under one setting: a row for each frame that was planned.

    `counts` (F, C, C + 1) are pixels by true and predicted class; the last column is what is no class.
    """

    frame: NDArray[np.int64]
    status: NDArray[np.int8]
    counts: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ranked:
    """What a classifier said under one setting: the best classes of each frame, best first."""

    frame: NDArray[np.int64]
    status: NDArray[np.int8]
    best: list[list[str]]


class Store:
    """Reads a run; whoever makes or shows numbers gets it from `finished`, which looks at the files first."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self._manifest = folder.read_manifest()
        if self._manifest.get("format") != FORMAT:
            raise StoreError(
                "the run was made by another version of adverse",
                where=str(folder.manifest),
                got=f"format {self._manifest.get('format')}",
                wanted=f"format {FORMAT}",
                fix="Run the study again in the same folder: what is still good is used again.",
            )
        if not folder.cells.exists():
            raise StoreError(
                "the run has not got far enough to be looked at",
                where=str(folder.path),
                fix="Run the study again: it goes on where it stopped.",
            )
        self._cells = pq.read_table(folder.cells)
        self._read: dict[str, tuple[int, int, int]] = {}

    @cached_property
    def state(self) -> str:
        """What the run is now, as what is worked out from it is sealed with."""
        return state_of(self.folder, self._manifest)

    def result(self, name: str) -> Path | None:
        """Return a file of the results, as it was written from this state of the run; None: never written."""
        path = self.folder.results / name
        key = f"{self.folder.results.name}/{name}"
        now = path.stat() if path.exists() else None
        seen = None if now is None else (now.st_ino, now.st_size, now.st_mtime_ns)
        if seen is None or self._read.get(name) != seen:
            broken = broken_seal(self.folder, key, read_seals(self.folder).get(key), self.state)
            if broken is not None:
                raise broken
        if seen is None:
            return None
        self._read[name] = seen
        return path

    def write(self, files: Mapping[str, bytes]) -> list[Path]:
        """Write files worked out from this state of the run, by path below its folder, and seal them."""
        write_derived(self.folder, self.state, files)
        return [self.folder.path / name for name in files]

    @cached_property
    def run(self) -> Run:
        """What was run, on what, and how it is to be judged."""
        return run_of(self._manifest, where=str(self.folder.manifest))

    def changes_since(self, earlier: Store) -> list[str]:
        """Say what is different from an earlier run."""
        return differences(earlier._manifest, self._manifest)

    @property
    def targets(self) -> tuple[str, ...]:
        """The class names that count."""
        return self.run.targets

    @property
    def categories(self) -> tuple[str, ...]:
        """All class names of the data set."""
        return self.run.data.categories

    @property
    def suts(self) -> list[str]:
        """The names of the SUTs, in the order of the study."""
        return [sut.name for sut in self.run.suts]

    @property
    def groups(self) -> dict[str, str]:
        """The group of each setting by its id, in the order of the study; the first is the baseline."""
        return {setting.id: setting.group for setting in self.run.settings}

    @cached_property
    def frames(self) -> Frames:
        """The frames of the validation and test split."""
        table = pq.read_table(self.folder.frames)
        log = table["log"].combine_chunks().dictionary_encode()
        return Frames(
            tuple(table["frame"].to_pylist()),
            tuple(log.dictionary.to_pylist()),
            log.indices.to_numpy().astype(np.int64),
            pc.equal(table["split"], "test").to_numpy(),
            _vectors(table["world_from_camera"], 16).reshape(-1, 4, 4),
            _vectors(table["camera"], 7),
            pc.fill_null(table["time_s"], np.nan).to_numpy(),
        )

    @cached_property
    def truth(self) -> TruthTable:
        """The true objects of the targets."""
        return self.truth_of(self.targets)

    def truth_of(self, classes: tuple[str, ...]) -> TruthTable:
        """Return the true objects of the given classes."""
        table = pq.read_table(self.folder.truth)
        labels = _positions(table["label"], classes)
        place = _place_in_group(_positions(table["frame"], self.frames.ids))[labels >= 0]
        table = table.filter(pa.array(labels >= 0))
        frame = _positions(table["frame"], self.frames.ids)
        boxes = table["box"].combine_chunks().flatten().to_numpy().reshape(-1, 4)
        ignore = table["ignore"].to_numpy()
        area = pc.fill_null(table["area"], np.nan).to_numpy()
        crowd = pc.coalesce(table["crowd"], table["ignore"]).to_numpy()
        order = np.argsort(frame, kind="stable")
        return TruthTable(
            frame[order],
            boxes[order],
            labels[labels >= 0][order],
            ignore[order],
            _vectors(table["position_m"], 3)[order],
            place[order],
            np.where(np.isnan(area), (boxes[:, 2:] - boxes[:, :2]).prod(axis=1), area)[order],
            crowd[order],
        )

    @cached_property
    def truth_ids(self) -> NDArray[np.int64]:
        """The number of each true object of the targets; that of its track, in data that tell who is who."""
        table = pq.read_table(self.folder.truth, columns=["frame", "id", "label"])
        table = table.filter(pa.array(_positions(table["label"], self.targets) >= 0))
        order = np.argsort(_positions(table["frame"], self.frames.ids), kind="stable")
        ids: NDArray[np.int64] = table["id"].to_numpy()[order]
        return ids

    def truth_depths_m(self) -> NDArray[np.float32]:
        """Return the depth of each true object as the Localizer sees it; NaN where that is not known."""
        return self._truth_depths_m

    @cached_property
    def _truth_depths_m(self) -> NDArray[np.float32]:
        baseline = self.run.baseline.id
        cells = self._cells.filter(pc.equal(self._cells["setting"], baseline))
        cells = cells.filter(pc.equal(cells["sut"], self.suts[0]))
        table = self._select("d.frame, d.truth_depths", cells, "WHERE d.truth_depths IS NOT NULL")
        depths = np.full(len(self.truth.frame), np.nan, np.float32)
        if table is None:
            return depths
        rows = _positions(table["frame"], self.frames.ids).tolist()
        by_frame = dict(zip(rows, table["truth_depths"].to_pylist(), strict=True))
        for row, (frame, place) in enumerate(zip(self.truth.frame, self.truth.place, strict=True)):
            if int(frame) in by_frame:
                depths[row] = by_frame[int(frame)][place]
        return depths

    def answers(
        self,
        sut: str,
        *,
        classes: tuple[str, ...] | None = None,
        settings: Iterable[str] | None = None,
        frames: Sequence[str] | None = None,
    ) -> dict[str, Answers]:
        """Return what a SUT said about the targets, or the given classes, by setting; of some frames only."""
        wanted = list(self.groups if settings is None else settings)
        cells = self._cells.filter(pc.equal(self._cells["sut"], sut))
        cells = cells.filter(pc.is_in(cells["setting"], value_set=pa.array(wanted, pa.string())))
        if frames is not None:
            cells = self._with_frames(cells, frames)
        table = self._select("d.frame, d.setting, d.status, d.boxes, d.scores, d.labels, d.depths", cells, "")
        if table is None:
            return {}
        if frames is not None:
            table = table.filter(pc.is_in(table["frame"], value_set=pa.array(frames, pa.string())))
        setting = table["setting"].combine_chunks()
        wanted_classes = self.targets if classes is None else classes
        return {name: self._answers(table.filter(pc.equal(setting, name)), wanted_classes) for name in wanted}

    def detections(self, sut: str, setting: str) -> pa.Table:
        """Return what a SUT said under a setting, of all classes: frame, status, boxes, scores, labels."""
        cells = self._cells.filter(pc.equal(self._cells["sut"], sut))
        cells = cells.filter(pc.equal(cells["setting"], setting))
        columns = ("frame", "status", "boxes", "scores", "labels")
        table = self._select(", ".join(f"d.{name}" for name in columns), cells, "")
        if table is None:
            return pa.table({name: pa.array([], pa.null()) for name in columns})
        return table.take(pa.array(np.argsort(_positions(table["frame"], self.frames.ids), kind="stable")))

    @property
    def task(self) -> Task:
        """What the SUTs of the run do."""
        return self.run.task

    @property
    def pixel_classes(self) -> tuple[str, ...]:
        """The pixel classes that are judged, each once."""
        return tuple(dict.fromkeys(self.run.data.pixel_classes.values()))

    @cached_property
    def categories_shown(self) -> tuple[str | None, ...]:
        """What each frame shows, in data for classifiers."""
        return tuple(pq.read_table(self.folder.frames, columns=["category"])["category"].to_pylist())

    def pixel_counts(self, sut: str) -> dict[str, PixelCounts]:
        """Return what a segmenter came to, by setting."""
        return {setting: self._pixel_counts(table) for setting, table in self._rows(sut, "confusion")}

    def ranked(self, sut: str) -> dict[str, Ranked]:
        """Return what a classifier said, by setting."""
        by_setting = {}
        for setting, table in self._rows(sut, "ranked"):
            best = [row or [] for row in table["ranked"].to_pylist()]
            by_setting[setting] = Ranked(*self._frame_and_status(table), best)
        return by_setting

    def _rows(self, sut: str, column: str) -> Iterator[tuple[str, pa.Table]]:
        """Yield one table for each setting, in the order of the frames."""
        cells = self._cells.filter(pc.equal(self._cells["sut"], sut))
        table = self._select(f"d.frame, d.setting, d.status, d.{column}", cells, "")
        if table is None:
            return
        for setting in self.groups:
            mine = table.filter(pc.equal(table["setting"], setting))
            order = np.argsort(_positions(mine["frame"], self.frames.ids), kind="stable")
            yield setting, mine.take(pa.array(order)).combine_chunks()

    def _frame_and_status(self, table: pa.Table) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
        status = _positions(table["status"], STATUSES).astype(np.int8)
        return _positions(table["frame"], self.frames.ids), status

    def _pixel_counts(self, table: pa.Table) -> PixelCounts:
        columns = (*self.pixel_classes, "")
        lists = table["confusion"].combine_chunks()
        row = np.repeat(np.arange(len(lists)), pc.fill_null(pc.list_value_length(lists), 0).to_numpy())
        entries = lists.flatten()
        counts = np.zeros((len(lists), len(columns) - 1, len(columns)), np.int64)
        true = _positions(entries.field("true"), self.pixel_classes)
        predicted = _positions(entries.field("predicted"), columns)
        counts[row, true, predicted] = entries.field("pixels").to_numpy()
        return PixelCounts(*self._frame_and_status(table), counts)

    def told(self, sut: str, settings: Iterable[str]) -> pa.Table:
        """Return frame, setting, status, reason and what the mutation told, under some settings."""
        columns = ("frame", "setting", "status", "reason", "told")
        cells = self._cells.filter(pc.equal(self._cells["sut"], sut))
        cells = cells.filter(pc.is_in(cells["setting"], value_set=pa.array(list(settings), pa.string())))
        order = "ORDER BY d.setting, d.frame"
        table = self._select(", ".join(f"d.{name}" for name in columns), cells, order)
        return pa.table({name: pa.array([], pa.null()) for name in columns}) if table is None else table

    def label_maps(self, sut: str) -> dict[str, dict[str, bytes | None]]:
        """Return the label maps that a segmenter gave, as PNG, by setting and frame; None where it failed."""
        return {
            setting: dict(zip(table["frame"].to_pylist(), table["label_map"].to_pylist(), strict=True))
            for setting, table in self._rows(sut, "label_map")
        }

    def counts(self) -> list[dict[str, Any]]:
        """Return how many rows of each SUT and setting came to which status, with one reason each.

        `unstable` counts the frames that were asked about twice and answered differently; `attempts`,
        `failed_attempts` and `outages` are sums, `retried` the failed attempts before an answer.
        """
        table = self._select(
            """d.sut, d.setting, d.status, count(*) AS n, min(d.frame) AS frame, min(d.reason) AS reason,
            count(*) FILTER (NOT d.repeats) AS unstable, sum(d.attempts)::BIGINT AS attempts,
            sum(d.failed_attempts)::BIGINT AS failed_attempts, sum(d.outages)::BIGINT AS outages,
            coalesce(sum(d.failed_attempts) FILTER (d.status = 'ok'), 0)::BIGINT AS retried""",
            self._cells,
            "GROUP BY ALL ORDER BY ALL",
        )
        return [] if table is None else list(table.to_pylist())

    def pixel_hashes(self, frames: Sequence[str]) -> dict[str, str]:
        """Return the hash of the pixels before mutation of those of some frames that were looked at."""
        cells = self._cells.filter(pc.equal(self._cells["setting"], self.run.baseline.id))
        cells = self._with_frames(cells, frames)
        table = self._select("DISTINCT d.frame, d.pixels", cells, "WHERE d.pixels IS NOT NULL")
        return {} if table is None else {row["frame"]: row["pixels"] for row in table.to_pylist()}

    def frames_of_two_images(self) -> list[str]:
        """Return the frames whose rows do not all have the same hash of the pixels before mutation."""
        table = self._select(
            "d.frame", self._cells, "GROUP BY d.frame HAVING count(DISTINCT d.pixels) > 1 ORDER BY d.frame"
        )
        return [] if table is None else list(table["frame"].to_pylist())

    def record(self, sut: str, setting: str, frame: str) -> dict[str, Any] | None:
        """Return all that was kept of one answer of a segmenter or classifier; None if it was not asked."""
        cells = self._cells.filter(pc.equal(self._cells["sut"], sut))
        cells = cells.filter(pc.equal(cells["setting"], setting))
        columns = "d.status, d.reason, d.label_map, d.ranked, d.ranked_scores"
        cells = self._with_frames(cells, [frame])
        table = self._select(columns, cells, "WHERE d.frame = $frame", frame=frame)
        return table.to_pylist()[0] if table is not None and table.num_rows else None

    def lowest_scores(self) -> dict[str, dict[str, float]]:
        """Return the lowest score of each SUT that detected anything, and of how many detections."""
        table = self._select(
            "d.sut, min(list_min(d.scores)) AS lowest, sum(len(d.scores)) AS detections",
            self._cells,
            "WHERE len(d.scores) > 0 GROUP BY ALL ORDER BY ALL",
        )
        rows = [] if table is None else table.to_pylist()
        return {row["sut"]: {"lowest": row["lowest"], "detections": int(row["detections"])} for row in rows}

    def notes(self) -> dict[str, int]:
        """Return what decoding normalised, and on how many frames."""
        table = self._select(
            "d.notes, count(DISTINCT d.frame) AS n",
            self._cells,
            "WHERE d.notes IS NOT NULL GROUP BY ALL ORDER BY ALL",
        )
        return {} if table is None else {row["notes"]: row["n"] for row in table.to_pylist()}

    def troubles(self) -> pa.Table:
        """Return every row that did not end well: SUT, setting, frame, status, reason."""
        columns = ("sut", "setting", "frame", "status", "reason")
        table = self._select(
            ", ".join(f"d.{name}" for name in columns), self._cells, "WHERE d.status <> 'ok' ORDER BY ALL"
        )
        return pa.table({name: pa.array([], pa.string()) for name in columns}) if table is None else table

    def retries(self) -> pa.Table:
        """Return every row that was answered only when asked again: what it took, and why it failed first."""
        columns = ("sut", "setting", "frame", "attempts", "failed_attempts", "outages", "retried")
        table = self._select(
            ", ".join(f"d.{name}" for name in columns),
            self._cells,
            "WHERE d.retried IS NOT NULL AND d.status = 'ok' ORDER BY ALL",
        )
        if table is not None:
            return table
        return pa.table({name: pa.array([], SCHEMA.field(name).type) for name in columns})

    @cached_property
    def _spans(self) -> dict[str, tuple[str, str]]:
        """The first and last frame id, by their text, of every file of detections that tells."""
        place = SCHEMA.get_field_index("frame")
        spans: dict[str, tuple[str, str]] = {}
        for file in dict.fromkeys(self._cells["file"].to_pylist()):
            try:
                groups = pq.read_metadata(self.folder.detections / file)
            except (OSError, pa.ArrowException):
                continue  # who reads the file itself says what is wrong with it
            statistics = [groups.row_group(n).column(place).statistics for n in range(groups.num_row_groups)]
            if statistics and all(column is not None and column.has_min_max for column in statistics):
                spans[file] = (
                    min(column.min for column in statistics),
                    max(column.max for column in statistics),
                )
        return spans

    def _with_frames(self, cells: pa.Table, frames: Sequence[str]) -> pa.Table:
        """Return the cells whose files can hold one of some frames: few of many, where logs are long."""
        wanted = sorted(frames)
        kept = [
            file
            for file in dict.fromkeys(cells["file"].to_pylist())
            if file not in self._spans or _between(wanted, *self._spans[file])
        ]
        return cells.filter(pc.is_in(cells["file"], value_set=pa.array(kept, pa.string())))

    def _select(self, columns: str, cells: pa.Table, tail: str, **named: str) -> pa.Table | None:
        """Query the rows of the given cells; None when there are no cells."""
        files = sorted(set(cells["file"].to_pylist()))
        if not files:
            return None
        try:
            with duckdb.connect() as connection:
                connection.execute("SET enable_progress_bar = false")  # it would print between our lines
                connection.register("cells", cells)
                paths = [str(self.folder.detections / name) for name in files]
                sql = f"""SELECT {columns} FROM read_parquet($paths, filename = true) d
                    SEMI JOIN cells c ON c.setting = d.setting AND c.sut = d.sut
                                      AND c.file = parse_filename(d.filename) {tail}"""  # noqa: S608 - ours
                return connection.sql(sql, params={"paths": paths, **named}).to_arrow_table()
        except duckdb.Error as error:
            raise StoreError(
                "the detections cannot be read",
                where=str(self.folder.detections),
                got=str(error).partition("\n")[0],
                fix=f"Run adverse verify {self.folder.path} to find the damaged file.",
            ) from error

    def _answers(self, table: pa.Table, classes: tuple[str, ...]) -> Answers:
        frame = _positions(table["frame"], self.frames.ids)
        order = np.argsort(frame, kind="stable")
        table = table.take(pa.array(order)).combine_chunks()
        lists = table["scores"].combine_chunks()
        counts = pc.list_value_length(lists).to_numpy()
        labels = _positions(table["labels"].combine_chunks().flatten(), classes)
        kept = labels >= 0
        row = np.repeat(np.arange(len(counts)), counts)[kept]
        boxes = table["boxes"].combine_chunks().flatten().flatten().to_numpy().reshape(-1, 4)
        return Answers(
            frame=frame[order],
            status=_positions(table["status"], STATUSES).astype(np.int8),
            offsets=np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(counts)))]).astype(
                np.int64
            ),
            boxes=boxes[kept],
            scores=lists.flatten().to_numpy()[kept],
            labels=labels[kept],
            depths_m=table["depths"].combine_chunks().flatten().to_numpy()[kept],
        )


def _between(ordered: Sequence[str], first: str, last: str) -> bool:
    """Tell whether one of some sorted names lies between two others."""
    at = bisect_left(ordered, first)
    return at < len(ordered) and ordered[at] <= last


def _vectors(column: Any, width: int) -> NDArray[np.float64]:
    """Return a column of lists as (N, width); NaN where a list is missing."""
    rows = [[np.nan] * width if value is None else value for value in column.to_pylist()]
    return np.array(rows, np.float64).reshape(-1, width)


def _place_in_group(group: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each entry how many of the same group stand before it."""
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], group[order], side="left")
    place = np.empty(len(group), np.int64)
    place[order] = np.arange(len(group)) - starts
    return place


def _offsets(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _positions(column: Any, values: tuple[str, ...]) -> NDArray[np.int64]:
    """Return the position of each entry in `values`, -1 where it is not there."""
    positions = pc.index_in(column, value_set=pa.array(values, pa.string()))
    if isinstance(positions, pa.ChunkedArray):
        positions = positions.combine_chunks()
    filled: NDArray[np.int64] = pc.fill_null(positions, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return filled


def finished(path: Path, *, results: bool = True) -> Store:
    """Open a finished run, or raise: for a file that changed, a run that is not finished, an older state.

    Every file that results are made from is hashed, once. So is what was worked out from them, which must
    also be of the state that the run is in now; without `results`, for those who make it anew, it may be not.
    """
    folder = RunFolder(path)
    manifest = folder.read_manifest()
    if manifest["status"] == "incomplete" and manifest["changed"]:
        changed = {Path(name): sha256 for name, sha256 in manifest["changed"].items()}
        raise ChangedError(changed, where=path)
    if manifest["status"] != "complete":
        outages = manifest.get("outages", {}).items()
        unasked = [f"SUT {sut!r} could not be asked about {facts['images']} images" for sut, facts in outages]
        raise IncompleteError(
            "the run is not finished, and half of it would give half-true numbers",
            where=str(path),
            got=", ".join(unasked) or _older_results(folder),
            fix="Run the study again with the same command: it goes on where it stopped.",
        )
    for problem in verify(folder, inputs=False, results=results).problems:
        raise problem  # what was changed by hand must not be sealed anew under our name
    store = Store(folder)
    _refuse_mixed(store)
    return store


def _older_results(folder: RunFolder) -> str | None:
    """Say of results that are there that they are not of this run."""
    there = (folder.results / "summary.json").exists()
    return "results that were made before the run was started again" if there else None


def _refuse_mixed(store: Store) -> None:
    """Raise where results of one frame come from different pixels: their difference says nothing."""
    mixed = store.frames_of_two_images()
    if mixed:
        raise StoreError(
            "answers about one frame are about two images",
            where=f"{store.folder.path}, frame {mixed[0]!r}",
            got=f"{len(mixed)} frame{'s' if len(mixed) > 1 else ''} with more than one hash of the pixels",
            wanted="all settings and SUTs of a frame on the same image",
            fix="Run the study again with --fresh.",
        )
