"""One unit of work, on whatever machine: frames in, the Parquet bytes of its records out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adverse import plugins
from adverse.study.asking import Queue
from adverse.study.keeping import Loaded
from adverse.study.plan import Job, Unit
from adverse.study.prepare import Prepared
from adverse.study.stages import LOAD_LIMIT_S, NOTHING_TO_AVOID, Avoid, Stage
from adverse.study.store.records import Record, to_parquet
from adverse.suts.build import build, is_recorded, watches_itself
from adverse.suts.isolated import isolated

Key = tuple[str, str, str]


class Worker:
    """Does units and keeps its SUTs loaded between them. `tell` hears of every step before it is taken."""

    def __init__(
        self, job: Job, tell: Callable[[Stage], None], *, memory_limit_mb: int | None = None
    ) -> None:
        self.job = job
        self.memory_limit_mb = memory_limit_mb
        self.tell = tell
        self.registry = plugins.load(job.plugin_files)
        self._suts: dict[tuple[int, bool], Loaded] = {}

    def do(
        self, unit: Unit, *, isolate: frozenset[int] = frozenset(), avoid: Avoid = NOTHING_TO_AVOID
    ) -> bytes:
        """Return the records of a unit; `isolate` names the SUTs to run in a process of their own.

        Setting by setting, so that a batch holds frames of one setting and does not depend on which other
        cells the unit has.
        """
        records: dict[Key, Record] = {}

        def keep(record: Record) -> None:
            records[record.frame, record.setting, record.sut] = record

        suts = {index: self.sut(index, alone=index in isolate) for index in {c.sut for c in unit.cells}}
        frames = [
            Prepared(frame, self.job, self.registry, avoid=avoid, tell=self.tell) for frame in unit.frames
        ]
        for index in sorted({cell.setting for cell in unit.cells}):
            setting = self.job.settings[index]
            asked = [suts[cell.sut] for cell in unit.cells if cell.setting == index]
            queues = [Queue(sut, twice=unit.twice, tell=self.tell, keep=keep) for sut in asked]
            looking = any(sut.looks for sut in asked)
            for frame in frames:
                version = frame.version(setting) if looking else frame.unseen(setting)
                for queue in queues:
                    queue.add(version)
            for queue in queues:
                queue.flush()
        order = [
            (frame.id, self.job.settings[cell.setting].id, self.job.suts[cell.sut].name)
            for frame in unit.frames
            for cell in unit.cells
        ]
        return to_parquet([records[key] for key in order])

    def close(self) -> None:
        """Let go of the SUTs that hold something."""
        for loaded in self._suts.values():
            closing = getattr(loaded.sut, "close", None)
            if callable(closing):
                closing()

    def sut(self, index: int, *, alone: bool) -> Loaded:
        """Return a SUT, loaded on first use; `alone` in a process of its own."""
        known = self._suts.get((index, alone))
        if known is not None:
            return known
        task = self.job.suts[index]
        plugin = self.registry.get("sut", task.adapter)
        guarded = watches_itself(plugin)
        alone = alone and not guarded and not is_recorded(plugin)
        suspect, limit_s = (None, None) if alone or guarded else (index, LOAD_LIMIT_S)
        self.tell(Stage(f"loading SUT {task.name!r}", sut=suspect, limit_s=limit_s))
        default_class = self.job.targets[0]
        if alone:
            sut: Any = isolated(
                task.adapter,
                task.options,
                self.job.plugin_files,
                name=task.name,
                timeout_s=task.timeout_s,
                memory_limit_mb=task.memory_limit_mb or self.memory_limit_mb,
                default_class=default_class,
            )
        else:
            sut = build(plugin, task.options, name=task.name, default_class=default_class)
        self._suts[index, alone] = Loaded(index, sut, self.job, isolated=alone or guarded)
        return self._suts[index, alone]
