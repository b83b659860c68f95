"""The files of detections: only rows that a cell names are read, also of files that lack a newer column."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from adverse.store.durable import write_file
from adverse.store.folder import RunFolder
from adverse.store.queries import DetectionFiles
from adverse.store.records import SCHEMA, table_bytes


def files_of(
    path: Path, units: dict[str, list[tuple[str, str, str]]], *, older: tuple[str, ...]
) -> DetectionFiles:
    """Write files by name, each of rows (frame, setting, pixels); `older` ones have no positions."""
    folder = RunFolder(path)
    folder.create()
    for file, rows in units.items():
        frame, setting, pixels = (list(column) for column in zip(*rows, strict=True))
        known = {"frame": frame, "setting": setting, "pixels": pixels, "sut": ["s"] * len(rows)}
        known["positions_m"] = [[[1.0, 2.0, 3.0]]] * len(rows)
        table = pa.table([pa.array(known.get(f.name, [None] * len(rows)), f.type) for f in SCHEMA], SCHEMA)
        write_file(
            folder.detections / file, table_bytes(table.drop(["positions_m"] if file in older else []))
        )
    cells = {"setting": ["a", "b", "a", "b"], "sut": ["s"] * 4, "file": ["1", "1", "2", "2"]}
    write_file(folder.cells, table_bytes(pa.table(cells)))
    return DetectionFiles(folder)


UNITS = {
    "1": [("x", "a", "p"), ("x", "b", "p"), ("z", "a", "q"), ("z", "gone", "r")],
    "2": [("y", "a", "p"), ("y", "b", "p")],
}
"""The last row of the first file is of a cell that no longer counts, and of other pixels."""


@pytest.mark.parametrize("older", [(), ("1",), ("2",), ("1", "2")])
def test_every_row_of_the_cells_is_read_whichever_file_lacks_a_column(
    tmp_path: Path, older: tuple[str, ...]
) -> None:
    files = files_of(tmp_path / "run", UNITS, older=older)
    table = files.select("d.frame, d.setting, d.positions_m IS NULL AS lacks", tail="ORDER BY ALL")
    assert table is not None
    wanted = [
        (frame, setting, file in older)
        for file, rows in UNITS.items()
        for frame, setting, _ in rows
        if setting != "gone"
    ]
    assert [tuple(row.values()) for row in table.to_pylist()] == sorted(wanted)


def test_frames_lead_to_their_files_alone(tmp_path: Path) -> None:
    files = files_of(tmp_path / "run", UNITS, older=())
    for frames, wanted in (["y"], {"2"}), (["x", "z"], {"1"}), (["z", "y"], {"1", "2"}), (["none"], set()):
        assert set(files.cells_of(frames=frames)["file"].to_pylist()) == wanted
    assert set(files.cells_of(frames=["y"], settings=["b"])["setting"].to_pylist()) == {"b"}


def test_two_images_of_a_frame_count_only_where_cells_name_both(tmp_path: Path) -> None:
    assert files_of(tmp_path / "one", UNITS, older=()).frames_of_two_images() == []
    mixed = UNITS | {"2": [("y", "a", "p"), ("y", "b", "other")]}
    assert files_of(tmp_path / "two", mixed, older=()).frames_of_two_images() == ["y"]


@pytest.mark.parametrize(
    ("second", "told"),
    [
        ([("y", "a", "p"), ("y", "b", "p")], []),
        ([("y", "b", "p")], ["s, a: 2 rows, 0 of them not planned, of 2 of the 3 planned frames"]),
        (
            [("x", "a", "p"), ("y", "b", "p")],
            ["s, a: 3 rows, 0 of them not planned, of 2 of the 3 planned frames"],
        ),
        (
            [("other", "a", "p"), ("y", "b", "p")],
            ["s, a: 3 rows, 1 of them not planned, of 2 of the 3 planned frames"],
        ),
        (
            [("y", "a", "p"), ("z", "b", "p")],
            ["s, b: 2 rows, 1 of them not planned, of 1 of the 2 planned frames"],
        ),
    ],
    ids=["right", "one lacks", "one twice", "one of another run", "validation under a mutation"],
)
def test_rows_are_those_of_the_planned_frames_each_once(
    tmp_path: Path, second: list[tuple[str, str, str]], told: list[str]
) -> None:
    files = files_of(tmp_path / "run", UNITS | {"2": second}, older=())
    frames = {"frame": ["x", "y", "z"], "split": ["test", "test", "validation"]}
    write_file(files.folder.frames, table_bytes(pa.table(frames)))
    assert files.misfiled(["a", "b"], ["s"]) == told


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        ([("x", "a"), ("z", "a"), ("y", "a"), ("x", "b"), ("y", "b")], []),
        (
            [("x", "a"), ("z", "a"), ("x", "b"), ("y", "b"), ("z", "b")],
            [
                "s, a: 3 rows, 1 of them not planned, of 2 of the 2 planned frames",
                "s, b: 2 rows, 0 of them not planned, of 2 of the 3 planned frames",
            ],
        ),
    ],
    ids=["right", "under another setting"],
)
def test_rows_are_those_that_a_search_chose(
    tmp_path: Path, chosen: list[tuple[str, str]], told: list[str]
) -> None:
    files = files_of(tmp_path / "run", UNITS, older=())
    frame, setting = (list(column) for column in zip(*chosen, strict=True))
    selection = pa.table({"frame": frame, "setting": setting, "sut": ["s"] * len(chosen)})
    write_file(files.folder.selection, table_bytes(selection))
    assert files.misfiled(["a", "b"], ["s"]) == told
