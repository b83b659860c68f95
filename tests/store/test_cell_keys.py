"""Packed cells and their index against tuples and a dict; tables in pieces against one table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adverse.store import records
from adverse.store.cell_keys import CellIndex, PackedCells, packed_keys
from adverse.store.records import table_bytes, tables_bytes

KEYS = [f"{head}{'0' * 15}{tail}" + "0" * 15 for head in "01f" for tail in "01f"]
"""Some share their first half, some their second; some end in zero bytes."""


def packed(cells: Sequence[tuple[str, int, int]]) -> PackedCells[tuple[str, int, int]]:
    keys = bytes.fromhex("".join(key for key, _, _ in cells))
    return PackedCells(keys, tuple((a, b) for _, a, b in cells), lambda *cell: cell)


@given(units=st.lists(st.lists(st.sampled_from(KEYS), max_size=6), max_size=6))
def test_the_index_is_a_dict_in_which_the_last_unit_wins(units: list[list[str]]) -> None:
    wanted = {key: number for number, keys in enumerate(units) for key in keys}
    index = CellIndex(packed_keys(keys) for keys in units)
    assert index.units_of(packed_keys(KEYS)).tolist() == [wanted.get(key, -1) for key in KEYS]
    assert index.units() == sorted(set(wanted.values()))
    assert bool(index) == bool(wanted)


def test_packed_cells_are_a_tuple() -> None:
    plain = [(key, number % 3, number) for number, key in enumerate(KEYS)]
    cells = packed(plain)
    assert tuple(cells) == tuple(plain)
    assert cells == tuple(plain)
    assert [cells[at] for at in (0, -1)] == [tuple(cells)[at] for at in (0, -1)]
    assert cells[1:3] == tuple(cells)[1:3] != cells[2:4]
    mask = np.arange(len(plain)) % 2 == 0
    assert cells.where(mask) == tuple(cells)[::2]
    assert cells.hex_keys() == KEYS
    assert cells.numbers().tolist() == [list(pair) for _, *pair in plain]
    with pytest.raises(ValueError, match="16 bytes of keys for 2 cells"):
        PackedCells(bytes(16), ((0, 0), (0, 1)), lambda *cell: cell)


def test_keys_that_are_no_digests_are_known_by_theirs() -> None:
    index = CellIndex([packed_keys(["key 1"])])
    assert index.units_of(packed_keys(["key 1", "key 2"])).tolist() == [0, -1]


@pytest.mark.parametrize("rows", [0, 1, 7, 8, 23])
def test_a_table_in_pieces_is_the_same_bytes(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table(
        {"a": [f"{number % 5}" for number in range(rows)]}, schema=pa.schema([("a", pa.string())])
    )
    if rows <= 7:  # one row group, so Arrow's own size is as good
        assert tables_bytes([table.slice(0, 3), table.slice(3)], table.schema) == table_bytes(table)
    monkeypatch.setattr(records, "GROUP_ROWS", 8)
    whole = pa.BufferOutputStream()
    pq.write_table(table, whole, compression="zstd", row_group_size=8)
    pieces = [table.slice(start, 3) for start in range(0, rows, 3)]
    assert tables_bytes(pieces, table.schema) == whole.getvalue().to_pybytes()
