"""The banner of a report: the verdict on the run, or without rules what costs most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adverse.analysis.headline import Condition, Headline, Survival, setting_names
from adverse.analysis.results import Summary
from adverse.report.survival import doubt_mark
from adverse.report.verdicts import MARKS, TONES, worst_first
from adverse.requirements.gate import BOUNDS, CheckedRule, rules_of
from adverse.requirements.verdicts import Outcome, Verdict
from adverse.store.run import Run
from adverse.text import counted, shown

CHIPS = 4
"""Rules, or conditions, that the banner names."""
UNCHECKED = "NO RULES"
LONGEST_RULE = 120
LOSES_NOTHING = 0.995
"""A share from here on is shown as 100 %."""


@dataclass(frozen=True)
class Chip:
    """A rule and what came of it, or a condition and what it costs."""

    mark: str
    words: str
    detail: str
    tone: str


@dataclass(frozen=True)
class Banner:
    """The verdict on the run; without rules, what costs most."""

    outcome: str
    tone: str
    chips: tuple[Chip, ...]
    more: int


def verdict_banner(judged: Sequence[Verdict]) -> Banner:
    """Return the worst verdict of all, and the rules that decide, the worst first; a rule is one chip."""
    rules: dict[tuple[str, float | None], list[tuple[Verdict, str, int]]] = {}
    for name, rule in rules_of(judged):
        verdict = rule.folded
        rules.setdefault((_rule_name(verdict, name), verdict.required), []).append(
            (verdict, name, len(rule.verdicts))
        )
    chips = {}
    for (words, _), mine in rules.items():
        worst = CheckedRule(tuple(verdict for verdict, *_ in mine)).decides
        chips[worst] = _rule_chip(words, worst, mine)
    order = worst_first(list(chips))
    shown_first = tuple(chips[verdict] for verdict in order[:CHIPS])
    return Banner(str(order[0].outcome), TONES[order[0].outcome], shown_first, max(0, len(order) - CHIPS))


def _rule_chip(words: str, worst: Verdict, mine: Sequence[tuple[Verdict, str, int]]) -> Chip:
    """Return a rule by the verdict that decides, of which SUT that is, and how many fare no better."""
    name, count = next((name, count) for verdict, name, count in mine if verdict is worst)
    detail = _measured(worst)
    if len(mine) > 1 and worst.sut:
        detail = f"{shown(worst.sut)} {detail}"
    if count > 1:
        under = worst.name.removeprefix(name).strip().removeprefix("under ").removeprefix("on ")
        detail += f"; the worst of {count}: {shown(under, longest=LONGEST_RULE)}"
    if len(mine) > 1:
        alike = sum(verdict.outcome is worst.outcome for verdict, *_ in mine)
        detail += f"; {worst.outcome} for {alike} of {len(mine)}"
    return Chip(MARKS[worst.outcome], words, detail, TONES[worst.outcome])


def _rule_name(verdict: Verdict, name: str) -> str:
    """Return what a rule is called whatever the SUT: its name, or what it is about without its limit."""
    if name == verdict.requirement:
        return _rule_words(name.replace(f" of {verdict.sut}", "", 1) if verdict.sut else name)
    named, _, _ = name.partition(f": {verdict.sut}") if verdict.sut else (name, "", "")
    return shown(named, longest=LONGEST_RULE)


def _rule_words(words: str) -> str:
    """Return what a rule without a name is about; its limit stands below."""
    for bound in BOUNDS.values():
        words = words.removeprefix(bound)
    return shown(words.rpartition(" is at ")[0] or words, longest=LONGEST_RULE)


def _measured(verdict: Verdict) -> str:
    if verdict.measured is None:
        return shown(verdict.reason, longest=LONGEST_RULE)
    text = f"{verdict.measured:.3g}"
    if verdict.interval is not None and (inner := verdict.interval.text(".3g")):
        text += f" ({inner})"
    return text if verdict.required is None else f"{text}, rule {verdict.required:.3g}{_by_value(verdict)}"


def _by_value(verdict: Verdict) -> str:
    """Say where a verdict rests on the value alone, as the interval holds the limit."""
    found, required = verdict.interval, verdict.required
    if verdict.outcome is Outcome.INCONCLUSIVE or found is None or required is None:
        return ""
    if found.low is None or found.high is None or not found.low < required < found.high:
        return ""
    return " for the value alone"


Cost = tuple[Condition, str, Survival]


def cost_banner(head: Headline, logs: int, falls: Sequence[Chip] = ()) -> Banner:
    """Return the conditions that cost most, with the SUT that each leaves least; none that costs nothing.

    Of those the certain ones come first, the others are marked. `falls` are told in place of shares where no
    SUT has any, as the clean figures are 0.
    """
    costs: list[Cost] = [
        (condition, *min(mine, key=lambda pair: (pair[1].share, pair[1].most)))
        for condition in head.conditions
        if (mine := _known_shares(condition))
    ]
    if not costs and head.conditions and not any(head.clean.values()):
        return Banner(UNCHECKED, "", tuple(falls)[:CHIPS], 0)
    costs = sorted(
        (cost for cost in costs if (cost[2].share or 0.0) < LOSES_NOTHING),
        key=lambda cost: (cost[2].share, cost[2].most),
    )
    chosen = costs[:CHIPS]
    certain = [cost for cost in costs if cost[2].tells and cost[2].most < LOSES_NOTHING]
    if certain and not any(cost in chosen for cost in certain):
        chosen = [*chosen[:-1], certain[0]]
    chosen.sort(key=lambda cost: not cost[2].tells)
    chips = [_cost_chip(*cost) for cost in chosen]
    if costs and not certain and not costs[0][2].tells:
        condition, sut, one = costs[0]
        example = f"{condition.words}: {shown(sut)} keeps {_kept(one)}"
        behind = int((one.interval or {}).get("logs", logs))  # those with somebody, or without, if fewer
        doubt = Chip(
            "?",
            f"Too few logs to tell: {f'{behind} of ' if behind < logs else ''}{counted(logs, 'log')}",
            f"{example}; add logs",
            "doubt",
        )
        chips = [doubt, *(_cost_chip(*cost) for cost in costs[1:CHIPS])]
    return Banner(UNCHECKED, "", tuple(chips), 0)


def _known_shares(condition: Condition) -> list[tuple[str, Survival]]:
    """Return what the SUTs keep under a condition; without those that have no interval, if others have."""
    mine = [(sut, one) for sut, one in condition.by_sut.items() if one.share is not None]
    return [pair for pair in mine if (pair[1].interval or {"low": 0})["low"] is not None] or mine


def _cost_chip(condition: Condition, sut: str, one: Survival) -> Chip:
    mark, tone = ("", "") if one.tells else ("?", "doubt")
    return Chip(mark, condition.words, f"{shown(sut)} keeps {_kept(one)}", tone)


def recall_falls(summary: Summary, run: Run) -> list[Chip]:
    """Return how far recall falls under each setting, the furthest first; where it never does, that."""
    names, rows = setting_names(run), summary.data.get("plain_metrics", ())
    recalls = {(str(row["sut"]), str(row["setting"])): row.get("recall") for row in rows}
    falls = []
    for (sut, setting), after in recalls.items():
        before = recalls.get((sut, run.baseline.id))
        if setting in names and before is not None and after is not None and after < before:
            words = f"{shown(sut)}: clean area is 0, recall falls from {before:.2f} to {after:.2f}"
            falls.append((before - after, Chip("", names[setting], words, "")))
    falls.sort(key=lambda fall: -fall[0])
    nothing = Chip("?", "The clean figure is 0", "what survives of nothing cannot be told", "doubt")
    if len(summary.failed_everywhere) == len(run.suts):
        words = f"{shown(run.suts[0].name)} failed" if len(run.suts) == 1 else "Every system failed"
        return [Chip("✗", f"{words} on every image", "no figure is a result", "bad")]
    if recalls and all(recall is None for recall in recalls.values()):
        why = f"no {' or '.join(map(shown, run.targets))} is annotated on the test images"
        nothing = Chip("?", "There is no clean figure", why, "doubt")
    return [chip for _, chip in falls] or [nothing]


def _kept(one: Survival) -> str:
    text = f"{one.share:.0%}{doubt_mark(one)}"
    if one.interval is None:
        return text
    if one.interval["low"] is None:
        return f"{text} (no interval: {shown(one.interval['why'], longest=60)})"
    return f"{text} ({100 * one.interval['low']:.0f} to {100 * one.interval['high']:.0f})"
