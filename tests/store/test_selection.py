"""What a search asked for is read back as it was written."""

from __future__ import annotations

from pathlib import Path

from adverse.store.folder import RunFolder
from adverse.store.selection import Batch, Selection, read_batches, selection_table


def test_batches_are_read_back_in_their_order(tmp_path: Path) -> None:
    batches = (
        Batch(("b", "a"), (("identity", "net"), ("haze(visibility_m=9)", "net"))),
        Batch(("c",), (("identity", "net"),)),
    )
    folder = RunFolder(tmp_path)
    assert read_batches(folder) == []
    others = [("val", "net")]
    folder.selection.write_bytes(selection_table(Selection("until", batches), "identity", others))
    assert read_batches(folder) == list(batches)
    folder.selection.write_bytes(b"damaged")
    assert read_batches(folder) == []
