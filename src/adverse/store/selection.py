"""The part of the grid of frames, settings and SUTs that a run is made of, where that is not all of it.

A search runs only what its answers ask for: more strengths on frames where somebody is still found, more logs
for rules that are not settled. What was asked for is written down before it is run, batch by batch, so that
the folder can be verified against it, and a search that was stopped goes on where it was. Settings of such a
run were run on different frames, chosen by what was found on others: only who knows how may make figures of
it, and `finished` refuses it to all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adverse.store.folder import RunFolder
from adverse.store.records import table_bytes

SelectionKind = Literal["margins", "until"]
SELECTED = pa.schema(
    [
        ("batch", pa.int32()),
        *((name, pa.dictionary(pa.int32(), pa.string())) for name in ("frame", "setting", "sut")),
    ]
)
"""A row for each frame, setting and SUT that is to be run; batches are numbered from 0."""


class Batch(NamedTuple):
    """Test frames that are run together, each under some settings by some SUTs: (setting, SUT)."""

    frames: tuple[str, ...]
    cells: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Selection:
    """What a search asked for so far; `facts` is what the manifest says of it besides."""

    kind: SelectionKind
    batches: tuple[Batch, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)


def selection_table(selection: Selection, baseline: str, others: Iterable[tuple[str, str]]) -> bytes:
    """Return the table of a selection; `others` are validation frames and their SUTs, run un-mutated."""
    rows: dict[str, list[Any]] = {name: [] for name in SELECTED.names}
    for number, batch in enumerate(selection.batches):
        for frame in batch.frames:
            for setting, sut in batch.cells:
                for name, value in zip(SELECTED.names, (number, frame, setting, sut), strict=True):
                    rows[name].append(value)
    for frame, sut in others:
        for name, value in zip(SELECTED.names, (-1, frame, baseline, sut), strict=True):
            rows[name].append(value)
    return table_bytes(pa.table(rows, schema=SELECTED))


def read_batches(folder: RunFolder) -> list[Batch]:
    """Return the batches that a folder was last asked for; none where there are none, or they are damaged."""
    try:
        table = pq.read_table(folder.selection)
    except (OSError, pa.ArrowException):
        return []
    numbers = table["batch"].to_numpy()
    batches = []
    for number in range(int(numbers.max(initial=-1)) + 1):
        mine = table.take(pa.array(np.flatnonzero(numbers == number)))
        frame, setting, sut = (mine[name].to_pylist() for name in ("frame", "setting", "sut"))
        batches.append(
            Batch(tuple(dict.fromkeys(frame)), tuple(dict.fromkeys(zip(setting, sut, strict=True))))
        )
    return batches
