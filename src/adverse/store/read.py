"""A run folder as arrays: all that the quick half ever reads.

Code that makes or shows numbers opens the folder with `finished` (`finished_run.py`), which refuses a run
that is not finished or not as it was written. Parquet files are read through DuckDB, one SUT at a time, in
the order of the frames table, so that nothing downstream depends on how the work was cut or in which order
it finished.
"""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adverse.content import digest
from adverse.errors import AdverseError, StoreError
from adverse.store.folder import RunFolder, refuse_other_format
from adverse.store.queries import DetectionFiles
from adverse.store.records import DEPTH_QUANTILES, FAILURE, SCHEMA
from adverse.store.run import Run, differences, run_of
from adverse.store.seal_list import read_seals
from adverse.store.seals import (
    broken_seal,
    made_by,
    state_of,
    state_of_all_suts,
    states_of_suts,
    write_derived,
)
from adverse.store.tables import (
    STATUSES,
    Answers,
    Frames,
    PixelCounts,
    RankedClasses,
    TruthTable,
    answered_depths_m,
    answered_truth,
    answers_in_order,
    confusion_counts,
    place_in_group,
    positions,
    vectors,
)
from adverse.types import Task

DATA = ("format", "options", "fingerprint", "annotations")
"""What the manifest says of the data; the same in both of two runs, they are of the same data."""
CONFIDENCE = 0.95


class Store:
    """Reads a run; code that makes or shows numbers gets it from `finished`, which checks the files first."""

    def __init__(
        self, folder: RunFolder, *, state: str | None = None, detections: DetectionFiles | None = None
    ) -> None:
        self.folder = folder
        self._state = state
        self._manifest = folder.read_manifest()
        refuse_other_format(folder, self._manifest)
        if not folder.cells.exists():
            raise StoreError(
                "the run has no results yet",
                where=str(folder.path),
                fix="Run the study again: it resumes where it stopped.",
            )
        self._detections = detections or DetectionFiles(folder)
        self._read: dict[str, tuple[int, int, int]] = {}
        self._logs: frozenset[str] | None = None
        self._shown: tuple[frozenset[str], frozenset[str]] | None = None
        self.several_looks = False
        """Whether it stopped early, so that settings and SUTs have logs up to looks of their own."""
        self.confidence = CONFIDENCE
        """That of the intervals of all figures."""
        self.tolerated: tuple[AdverseError, ...] = ()
        """What was wrong with files that whoever opened the run is about to make again."""

    def of_logs(
        self,
        logs: Collection[str],
        *,
        confidence: float,
        shown: tuple[Collection[str], Collection[str]] | None = None,
        several_looks: bool = False,
    ) -> Store:
        """Return the run as if its test split had some logs only, for intervals at another confidence.

        No file of detections may hold frames of two logs, as in runs that were cut log by log. `shown` are
        the settings and SUTs that it is to have; without it all.
        """
        part = copy.copy(self)
        part.several_looks = several_looks
        part.restrict(frozenset(logs), confidence, shown)
        return part

    def restrict(
        self,
        logs: frozenset[str],
        confidence: float,
        shown: tuple[Collection[str], Collection[str]] | None,
    ) -> None:
        """Forget what was read of other test logs; of a copy that nobody has seen yet."""
        for name in list(self.__dict__):
            if isinstance(getattr(type(self), name, None), cached_property):
                del self.__dict__[name]
        self._logs, self.confidence = logs, confidence
        self._shown = None if shown is None else (frozenset(shown[0]), frozenset(shown[1]))
        self._detections = self._detections.of_frames(self.frames.ids)

    @cached_property
    def _frame_rows(self) -> pa.Table:
        """The frames as frames.parquet holds them: all, or the validation frames and those of some logs."""
        table = pq.read_table(self.folder.frames)
        if self._logs is None:
            return table
        mine = pc.is_in(table["log"], value_set=pa.array(sorted(self._logs), pa.string()))
        return table.filter(pc.or_(pc.not_equal(table["split"], "test"), mine))

    @cached_property
    def state(self) -> str:
        """The state of the run, which everything computed from it is sealed with."""
        return self._state or state_of(self.folder, self._manifest)

    @property
    def shared_state(self) -> str:
        """The hash of what the figures of every single SUT are made from, apart from any SUT."""
        return state_of_all_suts(self._manifest)

    @cached_property
    def sut_states(self) -> dict[str, str]:
        """By SUT, the hash of what its figures are made from besides that."""
        return states_of_suts(self.folder, self._manifest)

    def result(self, name: str) -> Path | None:
        """Return a file of the results, as it was written from this state of the run; None: never written."""
        path = self.folder.results / name
        key = f"{self.folder.results.name}/{name}"
        now = path.stat() if path.exists() else None
        seen = None if now is None else (now.st_ino, now.st_size, now.st_mtime_ns)
        if seen is None or self._read.get(name) != seen:
            seal = read_seals(self.folder).get(key)
            broken = broken_seal(self.folder, key, seal, self.state, made_by(self.folder, key))
            if broken is not None:
                raise broken
        if seen is None:
            return None
        self._read[name] = seen
        return path

    def write(self, files: Mapping[str, bytes]) -> list[Path]:
        """Write files computed from this state of the run, by path below its folder, and seal them."""
        write_derived(self.folder, self.state, files)
        return [self.folder.path / name for name in files]

    @cached_property
    def run(self) -> Run:
        """What was run, on what, and how it is to be evaluated."""
        run = run_of(self._manifest, where=str(self.folder.manifest))
        return run if self._shown is None else run.part(*self._shown)

    @property
    def whole_run(self) -> Run:
        """The same with all settings and SUTs of the study, whatever part of it this is."""
        return run_of(self._manifest, where=str(self.folder.manifest))

    def changes_since(self, earlier: Store) -> list[str]:
        """Say what is different from an earlier run."""
        return differences(earlier._manifest, self._manifest)

    def same_data(self, other: Store) -> bool:
        """Tell whether both runs hold the same frames and truth of the same files, wherever these lie."""
        if all(self._manifest["data"][key] == other._manifest["data"][key] for key in DATA):
            return True
        first, second = (sorted(store.folder.read_inputs().values()) for store in (self, other))
        return first == second and self._frames_and_truth() == other._frames_and_truth()

    def _frames_and_truth(self) -> str:
        tables = (pq.read_table(path) for path in (self.folder.frames, self.folder.truth))
        return digest(*(repr(row) for table in tables for row in table.to_pylist()))

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
        table = self._frame_rows
        log = table["log"].combine_chunks().dictionary_encode()
        return Frames(
            tuple(table["frame"].to_pylist()),
            tuple(log.dictionary.to_pylist()),
            log.indices.to_numpy().astype(np.int64),
            pc.equal(table["split"], "test").to_numpy(),
            vectors(table["world_from_camera"], 16).reshape(-1, 4, 4),
            vectors(table["camera"], 7),
            pc.fill_null(table["time_s"], np.nan).to_numpy(),
        )

    @cached_property
    def truth_rows(self) -> pa.Table:
        """All true objects as truth.parquet holds them; in a label-free run what stands in for them."""
        table = pq.read_table(self.folder.truth)
        if self._logs is not None:
            table = table.filter(pc.is_in(table["frame"], value_set=pa.array(self.frames.ids, pa.string())))
        source = self.run.truth
        if source is None:
            return table
        return answered_truth(self.detections(source.sut, self.run.baseline.id), source.score, table.schema)

    @cached_property
    def truth_known(self) -> NDArray[np.bool_]:
        """The frames (F,) whose truth is known: all, but where it is an answer that did not come."""
        known = np.ones(len(self.frames.ids), np.bool_)
        if self.run.truth is not None:
            answers = self.detections(self.run.truth.sut, self.run.baseline.id)
            failed = answers.filter(pc.not_equal(answers["status"], "ok"))
            known[positions(failed["frame"], self.frames.ids)] = False
        return known

    @cached_property
    def truth(self) -> TruthTable:
        """The true objects of the targets."""
        return self.truth_of(self.targets)

    def truth_of(self, classes: tuple[str, ...]) -> TruthTable:
        """Return the true objects of the given classes."""
        table = self.truth_rows
        labels = positions(table["label"], classes)
        place = place_in_group(positions(table["frame"], self.frames.ids))[labels >= 0]
        table = table.filter(pa.array(labels >= 0))
        frame = positions(table["frame"], self.frames.ids)
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
            vectors(table["position_m"], 3)[order],
            place[order],
            np.where(np.isnan(area), (boxes[:, 2:] - boxes[:, :2]).prod(axis=1), area)[order],
            crowd[order],
            tuple(table["mask"].take(pa.array(order)).to_pylist()) if self.run.masks else None,
            table["id"].to_numpy()[order],
        )

    @cached_property
    def mask_sizes(self) -> tuple[tuple[int, int] | None, ...]:
        """The (height, width) of each frame's masks; None where there are none."""
        sizes = self._frame_rows["mask_size"].to_pylist()
        return tuple(None if size is None else (size[0], size[1]) for size in sizes)

    @cached_property
    def voids(self) -> tuple[bytes | None, ...]:
        """The pixels of each frame in which nothing is evaluated, as a mask; None where there are none."""
        return tuple(self._frame_rows["void"].to_pylist())

    @cached_property
    def truth_ids(self) -> NDArray[np.int64]:
        """The number of each true object of the targets; that of its track, in data that tell who is who."""
        ids: NDArray[np.int64] = self._targets()["id"].to_numpy()
        return ids

    @cached_property
    def truth_attributes(self) -> dict[str, tuple[str, ...]]:
        """What else is annotated of the true objects of the targets, by name; "" where one has no value."""
        table = self._targets()
        if "attributes" not in table.column_names:
            return {}  # a run from before attributes were kept
        told = [dict(value or ()) for value in table["attributes"].to_pylist()]
        names = sorted({name for value in told for name in value})
        return {name: tuple(value.get(name, "") for value in told) for name in names}

    def _targets(self) -> pa.Table:
        """Return the true objects of the targets as they are kept, in the order of the frames."""
        table = self.truth_rows
        table = table.filter(pa.array(positions(table["label"], self.targets) >= 0))
        order = np.argsort(positions(table["frame"], self.frames.ids), kind="stable")
        return table.take(pa.array(order))

    def truth_depths_m(self) -> NDArray[np.float32]:
        """Return the depth of each true object as the Localizer sees it; NaN where that is not known."""
        return self._truth_depths_m

    @cached_property
    def _truth_depths_m(self) -> NDArray[np.float32]:
        source, baseline = self.run.truth, [self.run.baseline.id]
        if source is None:
            cells, kept = self._detections.cells_of(sut=self.suts[0], settings=baseline), "d.truth_depths"
        else:  # the answers that stand in for true objects were located themselves
            cells, kept = self._detections.cells_of(sut=source.sut, settings=baseline), "d.depths"
        columns = f"d.frame, {kept} AS depths, d.boxes, d.scores"
        table = self._detections.select(columns, cells, f"WHERE {kept} IS NOT NULL")
        depths = np.full(len(self.truth.frame), np.nan, np.float32)
        if table is None:
            return depths
        rows = positions(table["frame"], self.frames.ids).tolist()
        found = table["depths"].to_pylist() if source is None else answered_depths_m(table, source.score)
        by_frame = dict(zip(rows, found, strict=True))
        for row, (frame, place) in enumerate(zip(self.truth.frame, self.truth.place, strict=True)):
            if int(frame) in by_frame:
                depths[row] = by_frame[int(frame)][place]
        return depths

    def truth_depth_quantiles_m(
        self, settings: Iterable[str]
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return quantiles of depth inside true boxes (N,Q), and of how many pixels each box has them (N,).

        They are recorded under `settings` that go by depth, all alike, by every SUT that saw the mutated
        image, so those of the first that has any are read; NaN and 0 where nothing is. In a label-free run
        nothing is: they are of annotated boxes, where there are any, and not of the answers in their stead.
        """
        quantiles = np.full((len(self.truth.frame), DEPTH_QUANTILES), np.nan, np.float32)
        pixels = np.zeros(len(self.truth.frame), np.int64)
        if self.run.truth is not None:
            return quantiles, pixels
        for setting, sut in itertools.product(settings, self.suts):
            table = self._detections.select(
                "d.frame, d.truth_depth_quantiles, d.truth_depth_pixels",
                self._detections.cells_of(sut=sut, settings=[setting]),
                "WHERE d.truth_depth_quantiles IS NOT NULL",
            )
            if table is None or not table.num_rows:
                continue
            count = pc.list_value_length(table["truth_depth_pixels"]).to_numpy()
            number = pc.list_flatten(table["truth_depth_pixels"]).to_numpy()
            every = pc.list_flatten(pc.list_flatten(table["truth_depth_quantiles"])).to_numpy()
            first = np.full(len(self.frames.ids), -1, np.int64)
            first[positions(table["frame"], self.frames.ids)] = np.cumsum(count) - count
            rows = np.flatnonzero(first[self.truth.frame] >= 0)
            at = first[self.truth.frame[rows]] + self.truth.place[rows]
            quantiles[rows], pixels[rows] = every.reshape(-1, DEPTH_QUANTILES)[at], number[at]
            break
        return quantiles, pixels

    def answers(
        self,
        sut: str,
        *,
        classes: tuple[str, ...] | None = None,
        settings: Iterable[str] | None = None,
        frames: Sequence[str] | None = None,
        masks: bool = False,
    ) -> dict[str, Answers]:
        """Return a SUT's detections of the targets, or the given classes, by setting; of some frames only.

        With `masks`, those too; the masks of a frame must be of its true size.
        """
        wanted = list(self.groups if settings is None else settings)
        cells = self._detections.cells_of(sut=sut, settings=wanted, frames=frames)
        columns = ["frame", "setting", "status", "boxes", "scores", "labels", "depths", "positions_m"]
        columns += ["mask_size", "masks"] if masks else []
        table = self._detections.select(", ".join(f"d.{name}" for name in columns), cells, "")
        if table is None and frames is None:
            return {}
        if table is None:  # a log that a run that stopped early did not come to
            table = SCHEMA.empty_table().select(columns)
        if frames is not None:
            table = table.filter(pc.is_in(table["frame"], value_set=pa.array(frames, pa.string())))
        setting = table["setting"].combine_chunks()
        wanted_classes = self.targets if classes is None else classes
        return {name: self._answers(table.filter(pc.equal(setting, name)), wanted_classes) for name in wanted}

    def detections(self, sut: str, setting: str) -> pa.Table:
        """Return a SUT's detections under a setting, of all classes.

        Frame, status, boxes, scores, labels, and where the SUT itself says that they are: positions_m.
        """
        cells = self._detections.cells_of(sut=sut, settings=[setting])
        columns = ["frame", "status", "boxes", "scores", "labels", "positions_m"]
        columns += ["mask_size", "masks"] if self.run.masks else []
        table = self._detections.select(", ".join(f"d.{name}" for name in columns), cells)
        if table is None:
            return pa.table({name: pa.array([], pa.null()) for name in columns})
        return table.take(pa.array(np.argsort(positions(table["frame"], self.frames.ids), kind="stable")))

    @property
    def task(self) -> Task:
        """What the SUTs of the run do."""
        return self.run.task

    @property
    def pixel_classes(self) -> tuple[str, ...]:
        """The pixel classes that are evaluated, each once."""
        return tuple(dict.fromkeys(self.run.data.pixel_classes.values()))

    @cached_property
    def categories_shown(self) -> tuple[str | None, ...]:
        """What each frame shows, in data for classifiers."""
        return tuple(self._frame_rows["category"].to_pylist())

    def pixel_counts(self, sut: str) -> dict[str, PixelCounts]:
        """Return the confusion counts of a segmenter, by setting."""
        return {setting: self._pixel_counts(table) for setting, table in self._rows(sut, "confusion")}

    def statuses(self, sut: str) -> dict[str, tuple[NDArray[np.int64], NDArray[np.int8]]]:
        """Return the frames of each setting, as indexes, and how each ended."""
        return {setting: self._frame_and_status(table) for setting, table in self._rows(sut)}

    def ranked(self, sut: str) -> dict[str, RankedClasses]:
        """Return the ranked classes of a classifier, by setting."""
        by_setting = {}
        for setting, table in self._rows(sut, "ranked", "ranked_scores"):
            best, scores = ([row or [] for row in table[name].to_pylist()] for name in table.column_names[3:])
            by_setting[setting] = RankedClasses(*self._frame_and_status(table), best, scores)
        return by_setting

    def _rows(self, sut: str, *columns: str) -> Iterator[tuple[str, pa.Table]]:
        """Yield one table for each setting, in the order of the frames."""
        cells = self._detections.cells_of(sut=sut)
        wanted = ", ".join(f"d.{name}" for name in ("frame", "setting", "status", *columns))
        table = self._detections.select(wanted, cells)
        if table is None:
            return
        for setting in self.groups:
            mine = table.filter(pc.equal(table["setting"], setting))
            order = np.argsort(positions(mine["frame"], self.frames.ids), kind="stable")
            yield setting, mine.take(pa.array(order)).combine_chunks()

    def _frame_and_status(self, table: pa.Table) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
        status = positions(table["status"], STATUSES).astype(np.int8)
        return positions(table["frame"], self.frames.ids), status

    def _pixel_counts(self, table: pa.Table) -> PixelCounts:
        return PixelCounts(*self._frame_and_status(table), confusion_counts(table, self.pixel_classes))

    def mutation_details(self, sut: str, settings: Iterable[str]) -> pa.Table:
        """Return frame, setting, status, reason and the details of the mutation, under some settings."""
        columns = ("frame", "setting", "status", "reason", "details")
        cells = self._detections.cells_of(sut=sut, settings=settings)
        order = "ORDER BY d.setting, d.frame"
        table = self._detections.select(", ".join(f"d.{name}" for name in columns), cells, order)
        return pa.table({name: pa.array([], pa.null()) for name in columns}) if table is None else table

    def label_maps(self, sut: str) -> dict[str, dict[str, bytes | None]]:
        """Return the label maps that a segmenter gave, as PNG, by setting and frame; None where it failed."""
        return {
            setting: dict(zip(table["frame"].to_pylist(), table["label_map"].to_pylist(), strict=True))
            for setting, table in self._rows(sut, "label_map")
        }

    def counts(self) -> list[dict[str, Any]]:
        """Return how many rows of each SUT and setting have which status, with one reason each.

        `unstable` counts the frames that were run twice with different answers, `ordered` those of them where
        the different answer came again at once: it depends on the images before. `attempts`,
        `failed_attempts` and `outages` are sums, `retried` the failed ones answered when sent again.
        """
        table = self._detections.select(
            """d.sut, d.setting, d.status, count(*) AS n, min(d.frame) AS frame, min(d.reason) AS reason,
            count(*) FILTER (NOT d.repeats) AS unstable,
            count(*) FILTER (NOT d.repeats AND d.repeats_at_once) AS ordered,
            sum(d.attempts)::BIGINT AS attempts, sum(d.failed_attempts)::BIGINT AS failed_attempts,
            sum(d.outages)::BIGINT AS outages,
            coalesce(sum(len(list_filter(d.failures, lambda f:
                f.answered AND f.kind NOT IN ('connection', 'machine')))), 0)::BIGINT AS retried""",
            tail="GROUP BY ALL ORDER BY ALL",
        )
        return [] if table is None else list(table.to_pylist())

    def unrepeated_mutations(self) -> dict[str, int]:
        """Return the settings by plug-ins that did not give the same pixels again, and on how many frames.

        Again within one unit, or for the SUTs that were asked later.
        """
        tail = """WHERE d.mutated IS NOT NULL GROUP BY ALL
            HAVING count(DISTINCT d.mutated) > 1 OR bool_or(NOT d.mutation_repeats) ORDER BY ALL"""
        table = self._detections.select("d.setting, d.frame", tail=tail)
        return {} if table is None else dict(Counter(table["setting"].to_pylist()))

    def attempts(self, sut: str) -> pa.Table:
        """Return how many requests a SUT got, how many failed and how many did not reach it, by image."""
        columns = "d.frame, d.setting, d.attempts, d.failed_attempts, d.outages"
        return self._detections.select(columns, self._detections.cells_of(sut=sut)) or pa.table({})

    def pixel_hashes(self, frames: Sequence[str]) -> dict[str, str]:
        """Return the hash of the pixels before mutation of those of some frames that were looked at."""
        cells = self._detections.cells_of(settings=[self.run.baseline.id], frames=frames)
        table = self._detections.select("DISTINCT d.frame, d.pixels", cells, "WHERE d.pixels IS NOT NULL")
        return {} if table is None else {row["frame"]: row["pixels"] for row in table.to_pylist()}

    def frames_of_two_images(self) -> list[str]:
        """Return the frames whose rows do not all have the same hash of the pixels before mutation."""
        return self._detections.frames_of_two_images()

    def record(self, sut: str, setting: str, frame: str) -> dict[str, Any] | None:
        """Return all that was kept of one answer of a segmenter or classifier; None if there is none."""
        cells = self._detections.cells_of(sut=sut, settings=[setting], frames=[frame])
        columns = "d.status, d.reason, d.label_map, d.ranked, d.ranked_scores"
        table = self._detections.select(columns, cells, "WHERE d.frame = $frame", frame=frame)
        return table.to_pylist()[0] if table is not None and table.num_rows else None

    def lowest_scores(self) -> dict[str, dict[str, float]]:
        """Return the lowest score of each SUT that detected anything, and of how many detections."""
        table = self._detections.select(
            "d.sut, min(list_min(d.scores)) AS lowest, sum(len(d.scores)) AS detections",
            tail="WHERE len(d.scores) > 0 GROUP BY ALL ORDER BY ALL",
        )
        rows = [] if table is None else table.to_pylist()
        return {row["sut"]: {"lowest": row["lowest"], "detections": int(row["detections"])} for row in rows}

    def placements(self) -> dict[str, dict[str, int]]:
        """Return how many detections of the targets each SUT gave, and for how many it reports a position."""
        counted = "len(list_filter(d.labels, lambda label: list_contains($targets, label)))"
        table = self._detections.select(
            f"""d.sut, coalesce(sum({counted}), 0)::BIGINT AS detections,
            coalesce(sum({counted}) FILTER (d.positions_m IS NOT NULL), 0)::BIGINT AS reported""",
            tail="GROUP BY ALL ORDER BY ALL",
            targets=list(self.targets),
        )
        rows = [] if table is None else table.to_pylist()
        return {row["sut"]: {"detections": row["detections"], "reported": row["reported"]} for row in rows}

    def notes(self) -> dict[str, int]:
        """Return what decoding normalised, and on how many frames."""
        table = self._detections.select(
            "d.notes, count(DISTINCT d.frame) AS n",
            tail="WHERE d.notes IS NOT NULL GROUP BY ALL ORDER BY ALL",
        )
        return {} if table is None else {row["notes"]: row["n"] for row in table.to_pylist()}

    def troubles(self) -> pa.Table:
        """Return every row that did not end well: SUT, setting, frame, status, reason."""
        columns = ("sut", "setting", "frame", "status", "reason")
        table = self._detections.select(
            ", ".join(f"d.{name}" for name in columns),
            tail="WHERE d.status <> 'ok' ORDER BY ALL",
        )
        return pa.table({name: pa.array([], pa.string()) for name in columns}) if table is None else table

    def failed_attempts(self) -> pa.Table:
        """Return every request that failed or did not reach its SUT, by the first image that it held.

        Its kind and message, how many images it held, and whether they were answered when sent again.
        """
        columns = dict.fromkeys(("sut", "setting", "frame"), pa.string())
        columns |= {field.name: field.type for field in FAILURE}
        table = self._detections.select(
            "d.sut, d.setting, d.frame, unnest(d.failures, recursive := true)",
            tail="WHERE d.failures IS NOT NULL ORDER BY ALL",
        )
        if table is not None:
            return table
        return pa.table({name: pa.array([], kind) for name, kind in columns.items()})

    def _answers(self, table: pa.Table, classes: tuple[str, ...]) -> Answers:
        sizes = dict(zip(self.frames.ids, self.mask_sizes, strict=True)) if self.run.masks else {}
        return answers_in_order(table, self.frames.ids, classes, sizes, where=str(self.folder.path))
