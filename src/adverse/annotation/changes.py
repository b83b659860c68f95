"""What a person annotates, as changes: each on the disk before it is acknowledged, each can be undone.

The state is what the data set says, followed by every change of the journal in order. An object has an id
over the frames of its log, and one annotation in each frame that shows it. Every annotation knows the
version, the number of changes, that touched it last: who changes what another has changed since is refused.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from adverse.errors import AdverseError, StoreError
from adverse.store.journal import Journal
from adverse.types import Dataset, Frame

By = Literal["data", "hand", "tracker"]
Kind = Literal["edit", "undo", "redo"]
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Annotation:
    """One object in one frame: its box (x0, y0, x1, y1), class, and the point that tells where it is.

    `right_x` is the point's partner in the right image; `depth_m` is given instead where depth is that of a
    depth map. `fine` is the partner by the pixels right at the point and its standard deviation. `row` is
    where in the frame's ground truth the data set has it.
    """

    box: Box
    label: str
    ignore: bool = False
    box_by: By = "hand"
    point: tuple[float, float] | None = None
    right_x: float | None = None
    depth_m: float | None = None
    score: float | None = None
    fine: tuple[float, float] | None = None
    point_by: By = "hand"
    row: int | None = None

    @property
    def located(self) -> bool:
        """Whether a point tells where it is."""
        return self.point is not None

    def without_point(self) -> Annotation:
        """Return it without its point."""
        return replace(self, point=None, right_x=None, depth_m=None, score=None, fine=None, point_by="hand")

    def plain(self) -> dict[str, Any]:
        """Return it as plain data, without what it does not have."""
        return {
            name: value for name, value in asdict(self).items() if value is not None and value is not False
        }

    @staticmethod
    def parse(data: Mapping[str, Any]) -> Annotation:
        """Return what `plain` returned."""
        fields = dict(data)
        fields["box"] = tuple(fields["box"])
        fields.pop("hold", None)  # earlier versions kept another measure of it
        for name in ("point", "fine"):
            if name in fields:
                fields[name] = tuple(fields[name])
        return Annotation(**fields)


class Edit(NamedTuple):
    """What one object is in one frame from now on; None: it is not there."""

    frame: int
    id: int
    after: Annotation | None


@dataclass(frozen=True)
class Change:
    """What was done at once, to one log; changes of one group are undone together."""

    log: str
    words: str
    edits: tuple[Edit, ...]
    kind: Kind = "edit"
    group: str = ""
    count: int = 1
    """How many changes an undo takes back, or a redo makes again: one line of the journal, all or none."""


class Changes(Journal[Change]):
    """All changes, in the order they were made; on the disk before they are acknowledged."""

    what = "journal of annotations"

    def __init__(self, path: Path) -> None:
        try:
            super().__init__(path)
        except StoreError as error:
            fix = "Restore the folder of annotations from a copy."
            raise StoreError(error.what, where=error.where, got=error.got, fix=fix) from error

    def parse(self, data: Any) -> Change:
        """Return the change that a line holds."""
        edits = tuple(
            Edit(int(frame), int(number), None if after is None else Annotation.parse(after))
            for frame, number, after in data["edits"]
        )
        return Change(data["log"], data["words"], edits, data["kind"], data["group"], data.get("count", 1))

    def plain(self, entry: Change) -> dict[str, Any]:
        """Return what a line holds of a change."""
        edits = [
            (edit.frame, edit.id, None if edit.after is None else edit.after.plain()) for edit in entry.edits
        ]
        return {
            "log": entry.log,
            "words": entry.words,
            "kind": entry.kind,
            "group": entry.group,
            **({"count": entry.count} if entry.count != 1 else {}),
            "edits": edits,
        }


Key = tuple[int, int]
"""Frame and id."""


class StaleError(AdverseError):
    """Somebody else has changed the same since."""


@dataclass
class LogState:
    """The annotations of one log: by frame and id, with the version that touched each last."""

    frames: Sequence[Frame]
    annotations: dict[Key, Annotation] = field(default_factory=dict)
    versions: dict[Key, int] = field(default_factory=dict)
    done: list[tuple[int, Change, tuple[Edit, ...]]] = field(default_factory=list)
    """What can be undone: the version, the change, and the edits that take it back."""
    undone: list[tuple[int, Change, tuple[Edit, ...]]] = field(default_factory=list)

    def take(self, change: Change, version: int) -> None:
        """Follow a change."""
        back = tuple(Edit(edit.frame, edit.id, self.annotations.get(edit[:2])) for edit in change.edits)
        for edit in change.edits:
            if edit.after is None:
                self.annotations.pop((edit.frame, edit.id), None)
            else:
                self.annotations[edit.frame, edit.id] = edit.after
            self.versions[edit.frame, edit.id] = version
        if change.kind == "undo":
            del self.done[-change.count :]
            self.undone.append((version, change, back))
            return
        if change.kind == "redo":
            del self.undone[-change.count :]
        else:
            self.undone.clear()
        self.done.append((version, change, back))

    def next_id(self) -> int:
        """Return an id that no object of this log ever had."""
        return max((number for _, number in {*self.annotations, *self.versions}), default=0) + 1

    def of_object(self, number: int) -> dict[int, Annotation]:
        """Return the annotations of an object, by frame, in order."""
        everything = list(self.annotations.items())  # at once: another thread may be adding to it
        mine = [(frame, what) for (frame, one), what in everything if one == number]
        return dict(sorted(mine, key=lambda pair: pair[0]))


class State:
    """The annotations of a data set: what it says itself, and all changes since."""

    def __init__(self, dataset: Dataset, journal: Changes) -> None:
        self.journal = journal
        self.logs = {
            log.id: LogState(log.frames, given_annotations(log.frames, dataset.categories))
            for log in dataset.logs
        }
        for version, change in enumerate(journal.entries, start=1):
            self.logs[change.log].take(change, version)

    @property
    def version(self) -> int:
        """How many changes there were."""
        return len(self.journal.entries)

    def make(self, change: Change, seen: Mapping[Key, int] | None = None) -> int:
        """Keep a change on the disk, follow it, and return the new version.

        `seen` are the versions of what is changed that whoever changes it has seen; StaleError where one is
        newer.
        """
        log = self.logs[change.log]
        newer = [key for key, version in (seen or {}).items() if log.versions.get(key, 0) != version]
        if newer:
            frame, number = newer[0]
            raise StaleError(
                f"object {number} in frame {frame + 1} was changed in another window since",
                fix="This window now shows what it is; do it again, or take yours.",
            )
        self.journal.append(change)
        log.take(change, self.version)
        return self.version

    def undo(self, log_id: str, top: int, *, again: bool = False) -> int:
        """Take back the last change of a log and all of its group, or make it again; return the version.

        `top` is the version of the change that whoever asks believes to be the last; StaleError where it is
        not.
        """
        log = self.logs[log_id]
        stack = log.undone if again else log.done
        if not stack or stack[-1][0] != top:
            raise StaleError(
                "there is nothing to redo"
                if again and not stack
                else "there is nothing to undo"
                if not stack
                else "another window has changed this log since",
                fix="This window now shows what it is.",
            )
        last = stack[-1][1]
        taken = [stack[-1]]
        if last.group:
            rest = itertools.takewhile(lambda entry: entry[1].group == last.group, reversed(stack[:-1]))
            taken += rest
        edits = {edit[:2]: edit for _, _, back in taken for edit in back}  # the last of them decides
        kind: Kind = "redo" if again else "undo"
        return self.make(Change(log_id, last.words, tuple(edits.values()), kind, last.group, len(taken)))


def given_annotations(frames: Iterable[Frame], categories: Sequence[str]) -> dict[Key, Annotation]:
    """Return what a data set says of the frames of a log; a second object of one id gets one of its own."""
    frames = list(frames)
    fresh = itertools.count(
        max((int(frame.truth.ids.max()) for frame in frames if len(frame.truth.ids)), default=0) + 1
    )
    given: dict[Key, Annotation] = {}
    for at, frame in enumerate(frames):
        truth = frame.truth
        for row, number in enumerate(truth.ids.tolist()):
            key = (at, number) if (at, number) not in given else (at, next(fresh))
            x0, y0, x1, y1 = (float(value) for value in truth.boxes[row])
            if math.isfinite(x0 + y0 + x1 + y1) and x1 > x0 and y1 > y0:
                given[key] = Annotation(
                    (x0, y0, x1, y1),
                    categories[int(truth.labels[row])],
                    bool(truth.ignore[row]),
                    box_by="data",
                    row=row,
                )
    return given
