"""The page of the grid: thumbnails of a selection, a page at a time, each with what became of it in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any
from urllib.parse import urlencode

from adverse.pages.view.pick import number_in
from adverse.pages.view.selection import EVERYBODY, Selection, Selections
from adverse.pages.view.session import ExploredRun
from adverse.text import counted, setting_text, shown

PER_PAGE = 60
SHOW_WORDS = {
    "all": "everything",
    "lost": "lost: found clean, missed now",
    "missed": "missed",
    "hit": "hit",
    "false": "false positive",
    "trouble": "fault, or left out",
}
SORT_WORDS = {
    "loss": "largest loss",
    "change": "smallest visible change",
    "score": "lowest score",
    "false": "surest false positive",
    "order": "order of the data set",
}
UNMEASURED = "To sort by visible change, set measure: visual_change in the study and run it again."


def grid_page(run: ExploredRun, selections: Selections, query: Mapping[str, str]) -> dict[str, Any]:
    """Return one page of a selection."""
    selection = selections.picked(query)
    rows = selections.of(selection)
    pages = max(1, -(-len(rows) // PER_PAGE))
    page = number_in("page", query, pages - 1, lambda: 0)
    start = page * PER_PAGE
    tiles = [
        _tile(run, selections, selection, start + n, row) for n, row in enumerate(rows.rows(start, PER_PAGE))
    ]
    return {
        "study": run.summary.data["study"],
        "task": run.store.task,
        "pick": {**asdict(selection), "page": page},
        "choices": {
            "sut": run.suts,
            "mutation": selections.mutations,
            "show": [{"name": name, "words": SHOW_WORDS[name]} for name in selections.shows],
            "slice": [EVERYBODY, *selections.slices],
            "sort": [{"name": name, "words": SORT_WORDS[name]} for name in selections.sorts],
        },
        "count": len(rows),
        "total": rows.total,
        "pages": pages,
        "words": _words(len(rows), rows.total, start, len(tiles)),
        "threshold_words": _threshold_words(run, selection.sut),
        "note": None if selections.measured or len(selections.settings) < 2 else UNMEASURED,
        "tiles": tiles,
    }


def walk(run: ExploredRun, selections: Selections, query: Mapping[str, str]) -> dict[str, Any] | None:
    """Return where a frame stands in the selection that it was picked from; None if it was from none."""
    if not query.get("n"):
        return None
    selection = selections.picked(query)
    rows = selections.of(selection)
    if not len(rows):
        return None
    n = number_in("n", query, len(rows) - 1, lambda: 0)
    here = _view(run, selections, selection, n, rows.rows(n, 1)[0])

    def beside(place: int) -> str | None:
        row = rows.rows(place, 1) if 0 <= place < len(rows) else []
        return _address(run, selections, selection, place, row[0]) if row else None

    words = [SHOW_WORDS[selection.show].partition(":")[0], f"under {setting_text(selection.mutation)}"]
    if selection.slice != EVERYBODY:
        words.append(shown(selection.slice))
    return {
        "n": n,
        "count": len(rows),
        "pick": asdict(selection),
        "words": f"{', '.join(words)}; {SORT_WORDS[selection.sort]} first"
        if selection.sort != "order"
        else ", ".join(words),
        "previous": beside(n - 1),
        "next": beside(n + 1),
        "here": {**here, "address": f"/explore?{selection.query(**here)}"},
        "away": any(query.get(name, "") != str(here[name]) for name in ("log", "frame", "right")),
        "grid": f"/grid?{selection.query(page=n // PER_PAGE)}#tile-{n}",
    }


def _tile(
    run: ExploredRun, selections: Selections, selection: Selection, place: int, row: Mapping[str, Any]
) -> dict[str, Any]:
    frame, setting = row["frame"], selections.settings[row["setting"]]
    frames = run.store.frames
    name = {"log": frames.logs[frames.log[frame]], "frame": int(run.places[frame]), "setting": setting}
    return {
        **row,
        "n": place,
        "frame": frames.ids[frame],
        "setting": setting,
        "log": name["log"],
        "log_frame": name["frame"],
        "words": _row_words(run.store.task, row),
        "address": _address(run, selections, selection, place, row),
        "thumbnail": f"/thumbnail.jpg?{urlencode({**name, 'sut': selection.sut})}",
    }


def _address(
    run: ExploredRun, selections: Selections, selection: Selection, place: int, row: Mapping[str, Any]
) -> str:
    """Return the address of the frame page of a row, which knows the selection it came from."""
    return f"/explore?{selection.query(**_view(run, selections, selection, place, row))}"


def _view(
    run: ExploredRun, selections: Selections, selection: Selection, place: int, row: Mapping[str, Any]
) -> dict[str, str | int]:
    """Return what the frame page of a row shows."""
    frames, setting = run.store.frames, selections.settings[row["setting"]]
    view: dict[str, str | int] = {
        "left": run.baseline,
        "right": setting,
        "log": frames.logs[frames.log[row["frame"]]],
        "frame": int(run.places[row["frame"]]),
        "n": place,
    }
    return view | {"k": run.operating_level(selection.sut)} if run.detection else view


def _threshold_words(run: ExploredRun, sut: str) -> str | None:
    if not run.detection:
        return None
    point = run.summary.data["sensitivity"][sut]["operating_point"]
    if point["score"] is None:
        what = "Every" if point["resolved"] else "No"
        return f"{what} detection of {shown(sut)} counts at its operating point."
    return f"A detection of {shown(sut)} counts from score {point['score']:.4f}, its operating point."


def _words(count: int, total: int, start: int, here: int) -> str:
    if not count:
        return f"none of {total:,} pictures"
    of = f"{count:,} of {total:,} pictures" if count < total else f"{count:,} pictures"
    return of if here == count else f"{of}, {start + 1:,} to {start + here:,} shown"


def _row_words(task: str, row: Mapping[str, Any]) -> str:
    """Say what became of a frame under a mutation."""
    if row["status"] != "ok":
        return "the SUT failed" if row["status"] == "fault" else "left out of the results"
    if task == "segmentation":
        if row["lowest"] is None:
            return "mean IoU not defined"
        return f"mean IoU {row['lowest']:.3f}" + (f", {-row['fall']:+.3f}" if row["fall"] else "")
    if task == "classification":
        return "right" if row["hits"] else "wrong, right before" if row["lost"] else "wrong"
    parts = [f"{row['hits']} of {row['objects']} found" if row["objects"] else "nobody here"]
    if row["lost"]:
        parts.append(f"{row['lost']} lost")
    if row["false_positives"]:
        parts.append(counted(row["false_positives"], "false positive"))
    return ", ".join(parts)
