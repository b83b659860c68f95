"""The banner says what is known: certain costs first, and of too few logs that they tell nothing."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from adverse.analysis.headline import Condition, Headline, Survival
from adverse.analysis.results import Summary
from adverse.curves.interval import Interval
from adverse.report.banner import Chip, cost_banner, recall_falls, verdict_banner
from adverse.report.first_screen import _cautions
from adverse.report.survival import Limit, _clean_words, _parts, limits_of
from adverse.requirements.rules import Rule
from adverse.requirements.verdicts import Outcome, Verdict


def kept(share: float, low: float | None, high: float | None) -> Survival:
    interval = {"low": low, "high": high, "status": "ok", "why": "fewer than 3 logs" if low is None else ""}
    return Survival(share, share, interval, "ok", None)


def head(**conditions: dict[str, Survival]) -> Headline:
    made = [Condition(name, name, 1, by_sut) for name, by_sut in conditions.items()]
    return Headline("image/ROC_B", {"a": 0.9, "b": 0.8}, tuple(made), ())


def test_the_worst_are_all_named_and_of_them_the_certain_ones_come_first() -> None:
    found = cost_banner(
        head(
            fog={"a": kept(0.0, 0.0, 1.0), "b": kept(0.5, 0.4, 0.6)},
            mud={"a": kept(0.3, 0.2, 0.4), "b": kept(0.4, 0.0, 0.7)},
            rain={"a": kept(0.1, 0.0, 0.95), "b": kept(0.2, None, None)},
            haze={"a": kept(1.0, 0.5, 1.0), "b": kept(0.998, 0.9, 1.0)},
            dusk={"a": kept(0.2, 0.1, 0.3)._replace(status="incomplete")},
            dirt={"a": kept(0.9, 0.8, 0.95)},
        ),
        40,
    )
    assert [(chip.mark, chip.words, chip.detail) for chip in found.chips] == [
        ("", "dusk", "a keeps 20%? (10 to 30)"),
        ("", "mud", "a keeps 30% (20 to 40)"),
        ("?", "fog", "a keeps 0% (0 to 100)"),
        ("?", "rain", "a keeps 10% (0 to 95)"),
    ]
    few = cost_banner(head(mud={"a": kept(0.3, 0.2, 0.4)}, haze={"a": kept(1.0, 0.5, 1.0)}), 40)
    assert [chip.words for chip in few.chips] == ["mud"], "what loses nothing is not listed"


def test_a_certain_cost_is_named_however_many_cannot_be_told() -> None:
    untold = {name: {"a": kept(0.0, 0.0, 1.0)} for name in ("fog", "mud", "rain", "snow", "dusk")}
    found = cost_banner(head(**untold, dirt={"a": kept(0.5, 0.4, 0.6)}), 40)
    assert [chip.words for chip in found.chips] == ["dirt", "fog", "mud", "rain"]


def test_too_few_logs_are_said_to_tell_nothing() -> None:
    nothing = {"a": kept(0.0, 0.0, 1.0), "b": kept(0.1, 0.0, 0.9)}
    chip, *others = cost_banner(head(fog=nothing, mud=nothing, rain=nothing), 4).chips
    assert chip.words == "Too few logs to tell: 4 logs"
    scarce = nothing["a"]._replace(interval={**(nothing["a"].interval or {}), "logs": 16})
    (chip,) = cost_banner(head(fog={"a": scarce}), 33).chips
    assert chip.words == "Too few logs to tell: 16 of 33 logs", "those that show somebody, or nobody"
    assert chip.detail == "fog: a keeps 0% (0 to 100); add logs"
    assert [other.words for other in others] == ["mud", "rain"]
    assert cost_banner(head(), 4).chips == ()
    harmless = {"a": kept(1.0, 0.51, 1.0)}
    chips = cost_banner(head(fog=nothing, haze=harmless), 4).chips
    assert [chip.mark for chip in chips] == ["?"], "what is harmless is not what breaks it"


def test_where_the_clean_area_is_0_recall_tells_what_is_lost() -> None:
    none = Survival(0.0, None, None, "ok", None)
    blind = replace(head(fog={"a": none}), clean={"a": 0.0})
    lost = Chip("", "fog", "a: clean area is 0, recall falls from 1.00 to 0.46", "")
    assert cost_banner(blind, 40, [lost]).chips == (lost,)


def test_where_every_image_failed_the_banner_says_that() -> None:
    counts = {"a": {"fault": 4, "ok": 0}, "b": {"fault": 4, "ok": 0}}
    troubles = [{"status": "fault", "sut": sut, "reason": "boom", "settings": ["identity"]} for sut in counts]
    run: Any = SimpleNamespace(suts=[SimpleNamespace(name=sut) for sut in counts], mutations=[])
    summary = Summary({"counts": counts, "troubles": troubles})
    assert [chip.words for chip in recall_falls(summary, run)] == ["Every system failed on every image"]


def test_what_figures_do_not_show_stands_beside_them() -> None:
    well = {"planned": 20, "ok": 20, "attempts": 30}
    well |= dict.fromkeys(("fault", "retried", "outages", "nondeterministic", "failed_attempts"), 0)
    counts = {"a": well | {"retried": 9, "failed_attempts": 9}, "b": well | {"outages": 10}, "c": well}
    about_a, about_b = _cautions(Summary({"counts": counts}))
    assert about_a == "a is flaky: 9 of 30 attempts failed and were retried (30.0%)"
    assert about_b.startswith("b was unavailable: 10 of 40 requests")
    many = {f"s{number}": counts["b"] for number in range(9)}
    assert _cautions(Summary({"counts": many}))[-1] == "5 more of this kind"
    lost = replace(head(), incomplete=frozenset("a"))
    assert _clean_words(lost, "a", well) == "0.90?, incomplete: frames could not be used"
    assert _clean_words(lost, "b", well) == "0.80"
    sure = replace(head(), clean_intervals={"b": {"low": 0.7, "high": 0.9, "status": "ok", "why": ""}})
    assert _clean_words(sure, "b", well) == "0.80 (0.70 to 0.90)"


@pytest.mark.parametrize(
    ("level", "lines"),
    [
        ("image/ROC_B", [(0.4, {"fog"}), (0.5, {"fog", "rain"})]),
        ("image/ROC_A", [(0.4, {"fog"}), (0.5, {"fog", "rain"})]),
        ("loop/annotated", [(0.5, {"fog", "rain"})]),
        ("", [(0.5, {"fog", "rain"})]),
    ],
)
def test_a_chart_has_the_limits_of_rules_where_they_apply(
    level: str, lines: list[tuple[float, set[str]]]
) -> None:
    """`level: image` is of all its rows; one about fog is drawn beside fog alone, of mild ones there."""
    rules = [
        Rule(measure="robustness", level="image", setting="fog", at_least=0.4),
        Rule(measure="robustness", level="image/ROC_B", setting="AnyMild", at_least=0.8),
        Rule(measure="robust_area", level="image/ROC_B", setting="Any", at_least=0.7),
        Rule(measure="share", setting="Any", at_least=0.5),
    ]
    one = Survival(0.5, 0.6, None, "ok", None)
    conditions = tuple(
        Condition(name, name, 1, {"a": one._replace(worst_setting=name)}) for name in ("fog", "rain")
    )
    found = Headline(level, {"a": 0.9}, conditions, ())
    assert limits_of(rules, found, frozenset()) == [(share, frozenset(where)) for share, where in lines]
    if level == "image/ROC_B":
        (*_, mild) = limits_of(rules[1:2], found, frozenset({"rain"}))
        assert mild == (0.8, frozenset({"rain"}))
        assert _parts(mild, conditions, [1.0, 0.0]) == ((-0.5, 0.5),)
        assert _parts(Limit(0.5, frozenset({"fog", "rain"})), conditions, [1.0, 0.0]) == ()


def test_a_rule_without_a_name_is_called_what_it_is_about() -> None:
    words = "the lower bound of robustness of a at image/ROC_B under fog is at least 0.8"
    named = Verdict("no worse in fog", words, 0.8, 0.7, None, Outcome.FAIL, sut="a")
    plain = Verdict(words, words, 0.8, 0.7, None, Outcome.FAIL, sut="a")
    chips = [verdict_banner([verdict]).chips[0].words for verdict in (named, plain)]
    assert chips == ["no worse in fog", "robustness at image/ROC_B under fog"]


def test_a_pass_that_the_interval_leaves_open_is_said_to_be_of_the_value() -> None:
    wide = Interval(0.63, 0.52, 0.73, 0.95, "Korn-Graubard", 36, "ok")
    by_value = Verdict("recall", "recall of a is at least 0.6", 0.6, 0.63, wide, Outcome.PASS, sut="a")
    chips = [
        verdict_banner([verdict]).chips[0].detail
        for verdict in (
            by_value,
            replace(by_value, required=0.5),
            replace(by_value, outcome=Outcome.INCONCLUSIVE),
        )
    ]
    assert chips == [
        "0.63 (0.52 to 0.73), rule 0.6 for the value alone",
        "0.63 (0.52 to 0.73), rule 0.5",
        "0.63 (0.52 to 0.73), rule 0.6",
    ]


def test_a_named_rule_over_many_mutations_is_one_chip_with_the_one_that_decides() -> None:
    """Of three mutations and two SUTs one is furthest below; a rule without name stands alone."""

    def verdict(name: str, measured: float, *, sut: str = "a", rule: str = "found") -> Verdict:
        words = f"recall of {sut}{name} is at least 0.9"
        outcome = Outcome.PASS if measured >= 0.9 else Outcome.FAIL
        return Verdict(
            f"{rule}: {sut}{name}" if rule else words, words, 0.9, measured, None, outcome, sut=sut
        )

    judged = [
        verdict(" on clean images", 0.95),
        verdict(" under fog", 0.8),
        verdict(" under rain(strength=2)", 0.4),
        verdict(" under fog", 0.6, sut="b"),
        verdict(" under fog", 0.7, rule=""),
    ]
    banner = verdict_banner(judged)
    assert banner.outcome == "FAIL"
    assert {(chip.words, chip.detail) for chip in banner.chips} == {
        ("found", "a 0.4, rule 0.9; the worst of 3: rain(strength=2); FAIL for 2 of 2"),
        ("recall under fog", "0.7, rule 0.9"),
    }
    assert banner.more == 0
    judged[2:4] = [verdict(" under rain(strength=2)", 0.85), verdict(" under fog", 0.3, sut="b")]
    assert verdict_banner(judged).chips[0].detail == "b 0.3, rule 0.9; FAIL for 2 of 2"
