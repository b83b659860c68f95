"""What the first screen says is what the results say, for one level, the worst of each mutation first."""

from __future__ import annotations

import io
import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from adverse.analysis.choices import best_sut
from adverse.analysis.headline import (
    Condition,
    consequence_levels,
    headline,
    headline_levels,
    setting_names,
    stop_costs,
    stopping,
)
from adverse.analysis.loop import _lost_stops
from adverse.analysis.results import Summary, read_summary
from adverse.analysis.score import ANY
from adverse.report.answer import choices
from adverse.report.brief import _mutation_room, brief_lines, brief_table, stop_lines, stop_sentences
from adverse.report.table import Cell, Column, Table
from adverse.store.finished_run import finished
from adverse.types import Setting, Step


def test_shares_are_those_of_the_rows_the_most_harmful_first(driven: Path) -> None:
    store = finished(driven)
    summary = read_summary(store)
    level = headline_levels(summary)[0]
    assert level.startswith("located/")
    head = headline(summary, store.run, level)
    rows = {(row["sut"], row["setting"]): row for row in summary.rows if row["level"] == level}
    for condition in (*head.conditions, *head.worst):
        for sut, one in condition.by_sut.items():
            assert one.share == rows[sut, condition.name]["robustness"]
    kept = [
        np.mean([one.share for one in condition.by_sut.values() if one.share is not None])
        for condition in head.conditions
    ]
    assert kept == sorted(kept)


def test_stops_are_counted_from_the_logs(driven: Path) -> None:
    store = finished(driven)
    stops = stopping(read_summary(store), store.run)
    assert stops is not None
    loop = json.loads((driven / "results" / "summary.json").read_text())["loop"]
    for line in stops.lines:
        (row,) = (
            row
            for row in loop
            if (row["level"], row["sut"], row["setting"], row["sensitivity"])
            == (stops.level, stops.sut, line.setting, stops.sensitivity)
        )
        np.testing.assert_allclose(line.stopped, row["safety"] * row["logs"])
    assert [line.stopped for line in stops.lines[1:]] == sorted(
        (line.stopped for line in stops.lines[1:]), reverse=True
    )


def test_stops_the_choice_and_the_film_are_told_at_one_level(driven: Path) -> None:
    """Of two truths it is where people really were; of one level per truth, the last that drives."""
    store = finished(driven)
    summary = read_summary(store)
    stops = stopping(summary, store.run)
    assert stops is not None
    assert stops.level == consequence_levels(summary)[0] == stop_costs(summary, store.run)[0].level
    assert stop_lines(summary, store.run)[0].startswith(f"stops in time ({stops.level}, at ")
    assert f"at {stops.level}" in choices(summary, store.run)[1]


def test_what_the_film_shows_has_a_line_of_its_own(driven: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = finished(driven)
    summary = read_summary(store)
    monkeypatch.setattr("adverse.analysis.headline.MOST_STOPS", 1)
    stops = stopping(summary, store.run)
    assert stops is not None
    for setting in store.run.mutations:
        told = stopping(summary, store.run, shown=(stops.sut, setting.id))
        assert told is not None
        assert [line.setting for line in told.lines] == [store.run.baseline.id, setting.id]
        other = stopping(summary, store.run, shown=("another", setting.id))
        assert other == stops


def test_costs_are_stops_that_are_lost_the_most_costly_first(driven: Path) -> None:
    store = finished(driven)
    summary = read_summary(store)
    loop = json.loads((driven / "results" / "summary.json").read_text())["loop"]
    costs = stop_costs(summary, store.run)
    assert [one.stopped for one in costs] == sorted((one.stopped for one in costs), reverse=True)
    for one in costs:
        stopped = {
            row["setting"]: round(row["safety"] * row["logs"])
            for row in loop
            if (row["sut"], row["level"], row["sensitivity"]) == (one.sut, one.level, one.sensitivity)
        }
        clean = stopped.pop(store.run.baseline.id)
        assert one.stopped == clean
        assert [cost.lost for cost in one.costs] == sorted(
            (clean - count for count in stopped.values()), reverse=True
        )
    assert stop_lines(summary, store.run)[1].startswith(f"  {costs[0].sut} {costs[0].stopped} of ")
    data = deepcopy(summary.data)
    data["counts"][costs[0].sut] |= {"fault": 1, "ok": 0}
    fault = {"status": "fault", "sut": costs[0].sut, "reason": "boom", "settings": [store.run.baseline.id]}
    data["troubles"].append(fault)
    assert stop_costs(Summary(data), store.run) == costs[1:], "who failed everywhere has no stops to count"


def test_lost_stops_are_counted_over_logs_driven_both_times() -> None:
    truths = np.array([[1, 1, 1, 0], [1, 1, 0, 1]])
    hits = np.array([[[1], [1], [1], [0]], [[0], [1], [0], [1]]])
    compared = [SimpleNamespace(truths=n, hits=h) for n, h in zip(truths, hits, strict=True)]
    one: Any = SimpleNamespace(compared=compared)
    assert _lost_stops(one, 0) == {"stops_lost": 1, "logs_compared": 2}


def test_a_log_that_was_not_driven_is_no_lost_stop(driven: Path) -> None:
    """The mutation left out some logs: 1 of the 2 driven both times is lost, not all that clean has more."""
    store = finished(driven)
    data = deepcopy(read_summary(store).data)
    setting = store.run.mutations[0].id
    for row in data["loop"]:
        row |= {"stops_lost": 0, "logs_compared": row["logs"]}
        if row["setting"] == setting:
            row |= {"logs": 2, "safety": 0.5, "stops_lost": 1, "logs_compared": 2}
    summary = replace(read_summary(store), data=data)
    for one, line in zip(stop_costs(summary, store.run), stop_sentences(summary, store.run), strict=True):
        assert (one.costs[0].lost, one.costs[0].logs, one.untested) == (1, 2, 1)
        assert line.endswith(f"clean; {one.costs[0].words} -1 of 2; 1 not driven in all logs.")


def test_the_choice_names_who_is_best_with_a_probability(run: Path) -> None:
    store = finished(run)
    summary = read_summary(store)
    level = summary.rows[-1]["level"]
    clean, worst = (best_sut(summary, level, name) for name in (store.run.baseline.id, ANY))
    assert clean is not None
    assert worst is not None
    lines = choices(summary, store.run)
    assert lines[0].startswith("best on clean frames: ")
    assert clean.sut in lines[0]
    assert "when it matters" in lines[1] or "of any use" in lines[1]
    areas = [row["area"] for row in summary.rows if (row["level"], row["setting"]) == (level, ANY)]
    assert ("of any use" in lines[1]) == (max(areas) == 0)
    (row,) = (
        row
        for row in summary.rows
        if (row["sut"], row["level"], row["group"]) == (clean.sut, level, "baseline")
    )
    assert f"area {row['area']:.3f}" in lines[0]


def test_who_is_best_when_it_matters_is_told_in_closed_loop(driven: Path) -> None:
    """The table shows what perception loses; whom to choose for the worst case is asked for the stops."""
    store = finished(driven)
    summary = read_summary(store)
    assert headline_levels(summary)[0] == "located/annotated"
    assert consequence_levels(summary)[0] == "loop/annotated"
    assert sorted(consequence_levels(summary)) == sorted(headline_levels(summary))
    clean, worst = choices(summary, store.run)
    assert "at located/annotated" in clean
    assert "at loop/annotated" in worst


def test_who_was_trained_with_what_is_tested_is_said_with_the_choice(driven: Path) -> None:
    store = finished(driven)
    seen = store.run.mutations[0].steps[0].mutation
    first, *others = store.run.suts
    taught = replace(store.run, suts=(replace(first, trained_on=(seen, "never_tried")), *others))
    count = sum(seen in {step.mutation for step in setting.steps} for setting in taught.mutations)
    told = f"trained on what is tested: {first.name} with {count} of {len(taught.mutations)} mutations"
    summary = read_summary(store)
    assert choices(summary, taught) == [*choices(summary, store.run), told]


def test_a_level_at_which_the_best_are_equal_gives_way_to_the_one_before(run: Path) -> None:
    store = finished(run)
    data = deepcopy(read_summary(store).data)
    first, last = (data["rows"][place]["level"] for place in (0, -1))
    for row in data["rows"]:
        if row["level"] == last:
            row["area"] = 1.0
    assert f"at {first})" in choices(Summary(data), store.run)[0]
    for row in data["rows"]:
        row["area"] = 1.0
    assert "are equal" in choices(Summary(data), store.run)[0]
    for row in data["rows"]:
        row["area"] = 0.0 if row["setting"] == ANY else row["area"]
    assert "the worst case of all mutations: leaves no SUT of any use" in choices(Summary(data), store.run)


def test_the_level_of_the_table_comes_first_and_one_that_can_tell_second(run: Path) -> None:
    store = finished(run)
    data = deepcopy(read_summary(store).data)
    levels = list(dict.fromkeys(row["level"] for row in data["rows"]))
    first, last = levels[0], levels[-1]
    suts = [sut.name for sut in store.run.suts]
    clean = store.run.baseline.id

    def ranked(chances: dict[str, float], spread: float = 0.1) -> str:
        for row in data["rows"]:
            row["area"], row["area_interval"] = 0.9 - spread * suts.index(row["sut"]), None
        data["rankings"] = [
            {
                "level": level,
                "condition": clean,
                "why": "",
                "places": [{"sut": suts[0], "value": 0.9, "best": chance, "ahead": chance}],
            }
            for level, chance in chances.items()
        ]
        return choices(Summary(data), store.run)[0]

    shown_first, unsure = headline_levels(read_summary(store))[0], dict.fromkeys(levels, 0.6)
    other = last if shown_first != last else first
    lead = f"best on clean frames: cannot be told; {suts[0]} leads, probability 60% (area 0.900 at "
    lead += f"{shown_first})"
    assert ranked(unsure) == lead
    assert ranked({**unsure, other: 0.97}) == lead  # a 95 % interval of the difference may hold 0
    assert ranked({**unsure, other: 0.98}) == f"{lead}; at {other} {suts[0]}, probability 98%"
    told = ranked({**unsure, shown_first: 0.98})
    assert told == f"best on clean frames: {suts[0]}, probability 98% (area 0.900 at {shown_first})"
    spread = 0.0449 / (len(suts) - 1)
    everyone = "both" if len(suts) == 2 else f"all {len(suts)}"
    close = f"no great difference ({everyone} have areas of 0.855 or more at {shown_first}); {suts[0]} leads"
    assert ranked({**unsure, other: 0.94}, spread).endswith(f"{close} at {other}, probability 94%")
    assert "no great difference" not in ranked({**unsure, other: 0.98}, spread)
    assert "no great difference" not in ranked(
        unsure, 0.0499 / (len(suts) - 1)
    )  # 0.05 of 0.9 is more than 5 %


def test_the_terminal_ends_in_thirty_lines(driven: Path) -> None:
    store = finished(driven)
    summary = read_summary(store)
    table = brief_table(summary, store.run)
    assert len(table.rows) + len(table.groups) + 6 + len(brief_lines(summary, store.run, table)) + 3 <= 30


@pytest.mark.parametrize(
    ("count", "pattern"),
    [
        *((count, "detector {:02}") for count in (1, 2, 3, 4, 6, 7, 12, 30)),
        (12, "detector-{:02}-of_the_new_kind"),
    ],
)
def test_clean_figures_have_their_intervals_in_eighty_columns(
    run: Path, monkeypatch: pytest.MonkeyPatch, count: int, pattern: str
) -> None:
    """However many SUTs there are, no figure is broken over lines; each that is shown has both ends."""
    store = finished(run)
    summary = read_summary(store)
    level = headline_levels(summary)[0]
    one = headline(summary, store.run, level)
    names = [pattern.format(number) for number in range(count)]
    unsure = {"low": None, "high": None, "status": "refused", "why": "", "logs": 2}
    ends = {"low": 0.25, "high": 0.75, "status": "few logs", "why": "", "confidence": 0.95}
    clean = {name: (number + 1) / 1000 for number, name in enumerate(names)}

    def copies(condition: Condition) -> Condition:
        kept = condition.by_sut["keen"]._replace(share=1.0, interval=unsure)
        return replace(condition, by_sut=dict.fromkeys(names, kept))

    many = replace(
        one,
        clean=clean,
        clean_intervals=dict.fromkeys(names, ends),
        conditions=tuple(map(copies, one.conditions)),
        worst=tuple(map(copies, one.worst)),
    )
    summary.data["counts"].update(dict.fromkeys(names, summary.data["counts"]["keen"]))
    monkeypatch.setattr("adverse.report.brief.headline", lambda *_: many)
    table = brief_table(summary, store.run)
    sink = io.StringIO()
    Console(width=80, file=sink).print(table.terminal())
    lines = sink.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    text = " ".join(lines)
    shown = names[:14]
    assert all(f"{clean[name]:.3f}" in text for name in shown)
    assert text.count("~0.25") == len(shown)
    assert text.count("0.75") == len(shown)
    assert len(lines) <= 23
    assert ("and 16 more SUTs" in text) == (count == 30)
    if count > 6:
        assert len({line.split("│")[1] for line in lines if "│" in line}) == len(shown), (
            "no two look the same"
        )


def test_words_of_five_names_stay_whole_in_eighty_columns() -> None:
    names = ["ssd-mobilenet-v3", "yolov4-tiny", "efficientnet-lite0", "mobilenet-ssd-voc", "FastestDet"]
    mutation = "x" * _mutation_room(names)
    columns = (Column("mutation", no_wrap=True), *map(Column, names))
    table = Table("brief", "", columns, ((Cell(mutation), *(Cell(1.0, "100%") for _ in names)),))
    sink = io.StringIO()
    Console(width=80, file=sink).print(table.terminal())
    text = sink.getvalue()
    assert max(map(len, text.splitlines())) == 80
    assert all(word in text for name in names for word in name.split("-"))


def test_of_nothing_nothing_can_survive_and_that_is_said(run: Path) -> None:
    store = finished(run)
    table = brief_table(read_summary(store), store.run)
    blind = [column.heading for column in table.columns].index("blind")
    said = {row[blind].text for row in table.rows}
    assert "clean is 0" in said
    assert "ok" not in said


def test_settings_are_named_by_what_differs_between_them(driven: Path) -> None:
    run = finished(driven).run

    def named(*options: dict[str, float]) -> list[str]:
        settings = [
            Setting(str(number), (Step("defocus", one),), "mild", frozenset())
            for number, one in enumerate(options)
        ]
        return list(setting_names(replace(run, settings=(run.baseline, *settings))).values())

    near, far = {"focus_m": 1.0, "kappa": 2.8}, {"focus_m": 5.0, "kappa": 2.8}
    assert named(near, far) == ["defocus focus 1 m", "defocus focus 5 m"]
    assert named(near) == ["defocus focus 1 m, blur 2.8"]
    assert named(near, {"focus_m": 5.0, "kappa": 1.4})[0] == "defocus focus 1 m, blur 2.8"
