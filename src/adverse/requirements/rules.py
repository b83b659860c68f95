"""The rules that a run is held to, as their file says them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from adverse.errors import StudyError, suggestion
from adverse.plugins import built_in
from adverse.strict_yaml import Where, YamlFile, read_yaml, tuples, validated
from adverse.text import CLEAN, setting_id

PAGE = "docs/gate.md"
KIND = "rules"
PERCENT = ("P", "mPC", "rPC")
"""In percent, as the literature and `adverse bench-table` have them; everything else is from 0 to 1."""
COUNTS = ("faults", "quarantined")
RATES = ("fault_rate", "outage_rate")
"""Shares of requests."""
REQUIREMENTS = "requirements"
LIMIT = "limit"
"""How far a condition may go: up to a setting at least, by a rule of the study's limits."""
MARGIN = "margin"
"""The share of those found on clean images that are found at every strength up to a setting."""
AGREEMENT = "agreement"
"""What recall is called where clean answers stand in for annotations."""
PLAIN = ("recall", "precision", "f1", "ap50", "ap", "false_positives_per_image")
"""Plain detection metrics, at the study's operating point."""
CLOSED_LOOP = ("violations", "stops_in_time")
"""Shares of the logs that show somebody, at the study's operating point."""
RELATION_VIOLATIONS = "relation_violations"
"""The share of the checks of a metamorphic relation that fail."""
METRIC = "metric"
"""One of the study's metrics: `flicker`, `longest_gap`, or that of a plug-in."""
BY_SETTING = ("adr", *PLAIN, AGREEMENT, *CLOSED_LOOP, RELATION_VIOLATIONS, METRIC)
"""Without a worst case over mutations, so that `Any` means under each of them; each has one direction that
makes sense."""
LOWER_IS_BETTER = ("false_positives_per_image", "violations", RELATION_VIOLATIONS, *RATES)
NEEDS: dict[str, tuple[str, ...]] = {
    "robust_area": ("level", "setting"),
    "area": ("level", "setting"),
    "robustness": ("level", "setting"),
    "mean_area": ("level",),
    "mean_robustness": ("level",),
    "expected_area": ("level",),
    **dict.fromkeys(BY_SETTING, ("setting",)),
    RELATION_VIOLATIONS: ("relation", "setting"),
    METRIC: ("metric", "setting"),
    **dict.fromkeys(("mean_iou", "pixel_accuracy", "top1", "top5", "share"), ("setting",)),
    LIMIT: ("setting", "of"),
    MARGIN: ("setting",),
    **dict.fromkeys((*PERCENT, *COUNTS, *RATES, REQUIREMENTS), ()),
}
"""The measures, and the keys that each one needs."""
MORE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(PERCENT, ("metric",)),
    **dict.fromkeys(CLOSED_LOOP, ("level", "conditions")),
}
WORDS = {
    "robust_area": "worst-case area",
    "area": "area of the setting alone,",
    "mean_area": "mean area over mutations",
    "mean_robustness": "mean robustness over mutations",
    "expected_area": "expected area",
    "adr": "ADR",
    RELATION_VIOLATIONS: "share of violations",
    MARGIN: "share of those found on clean images that stay found,",
    "f1": "F1",
    "false_positives_per_image": "false positives per image",
    "ap50": "AP50",
    "ap": "AP",
    "violations": "share of logs in which the robot moves inside a safety radius,",
    "stops_in_time": "share of logs in which the robot stops in time,",
    "mean_iou": "mean IoU",
    "pixel_accuracy": "pixel accuracy",
    "top1": "top-1 accuracy",
    "top5": "top-5 accuracy",
    "share": "share of the clean score",
    "faults": "number of images that fail even after retries",
    "fault_rate": "share of attempts that failed, retried ones included,",
    "outage_rate": "share of requests that found no server or memory,",
    "quarantined": "number of frames that could not be used",
}
COUNTING = {
    "fault_rate": "Write measure: faults, at_most: 0 (no image without an answer in the end), or add bound: "
    "point (no failed attempt in this run).",
    "outage_rate": "Add bound: point (every request of this run found its server).",
}
"""What to write instead of a rate that is at most 0."""
MEANING = {REQUIREMENTS: "every requirement passes", LIMIT: "the rule holds up to the setting at least"}
"""What rules without a number mean."""
ROUNDING = 1e-9
Bound = Literal["lower", "upper", "point"]


class Rule(BaseModel):
    """One rule: a measure, of what, and its limit."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    measure: str
    name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    sut: tuple[str, ...] = ()
    level: str | None = None
    setting: str | None = None
    conditions: dict[str, Annotated[float, Field(ge=0, le=1)]] | None = None
    metric: str | None = None
    of: str | None = None
    relation: str | None = None
    at_least: Annotated[float, Field(allow_inf_nan=False)] | None = None
    at_most: Annotated[float, Field(allow_inf_nan=False)] | None = None
    bound: Bound | None = None

    @field_validator("sut", mode="before")
    @classmethod
    def _suts(cls, value: Any) -> Any:
        if isinstance(value, list | tuple) and not value:
            raise ValueError("at least one SUT; leave sut: out to mean all of them")
        if isinstance(value, str):
            return (value,)
        return tuple(value) if isinstance(value, list) else value

    @field_validator("setting")
    @classmethod
    def _setting(cls, setting: str | None) -> str | None:
        return setting if setting is None or setting == CLEAN else setting_id(setting)

    @field_validator("measure")
    @classmethod
    def _measure(cls, measure: str) -> str:
        if measure not in NEEDS:
            raise ValueError(f"there is no measure {measure!r}. {suggestion(measure, NEEDS)}")
        return measure

    @property
    def limit(self) -> float | None:
        """The number that decides, whichever way."""
        return self.at_most if self.at_least is None else self.at_least

    @property
    def judged_by(self) -> Bound:
        """The value that must keep the limit: the cautious end of the interval by default."""
        if self.bound is not None:
            return self.bound
        if self.measure in COUNTS:
            return "point"
        return "upper" if self.at_least is None else "lower"

    @property
    def words(self) -> str:
        """What is measured, in words."""
        words = (self.metric or METRIC) if self.measure == METRIC else WORDS.get(self.measure, self.measure)
        return f"{words} of {self.relation}" if self.relation else words


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    rules: Annotated[tuple[Rule, ...], Field(min_length=1)]


def read_rules(
    path: Path, *, levels: Collection[str] = (), settings: Collection[str] = ()
) -> tuple[Rule, ...]:
    """Read and check a file of rules, or raise StudyError naming the line.

    `levels` are those of the run, which may have some that are not built in; `settings` are the ids of its
    mutations, which a rule may also name in words.
    """
    source = read_yaml(path, kind=KIND, example=f"{PAGE} shows one")
    if not isinstance(source.data, dict):
        raise StudyError(
            "a rules file is a mapping",
            where=str(path),
            got=type(source.data).__name__,
            wanted="rules: and a list of rules below it",
            fix=f"Begin with the line rules: as {PAGE} shows.",
        )
    rules = validated(_File, source, tuples(source.data), fields_at=_fields_at, page=PAGE, kind="rule").rules
    ours = list(_built_in_levels())
    others = [name for name in levels if name not in ours]
    for number, rule in enumerate(rules):
        if rule.level is not None and rule.level not in ours and rule.level.partition("/")[0] not in others:
            raise StudyError(
                f"there is no level {rule.level!r}",
                where=source.where(("rules", number, "level")),
                fix=suggestion(rule.level, [*ours, *others]),
            )
        _check(source, number, rule)
    return tuple(_by_id(rule, settings) for rule in rules)


def _by_id(rule: Rule, settings: Collection[str]) -> Rule:
    """Return a rule whose mutations are named by their ids."""
    named: dict[str, Any] = {}
    if rule.setting is not None and rule.setting != CLEAN:
        named["setting"] = setting_id(rule.setting, settings)
    if rule.conditions is not None:
        named["conditions"] = {
            name if name == CLEAN else setting_id(name, settings): chance
            for name, chance in rule.conditions.items()
        }
    return rule.model_copy(update=named) if named else rule


def refuse_unevaluated(rules: Iterable[Rule], levels: Sequence[str], *, where: str) -> None:
    """Raise for a rule about a level that a study does not evaluate, before images are spent on it."""
    for number, rule in enumerate(rules, start=1):
        wanted = "loop" if rule.measure in CLOSED_LOOP else (rule.level or "").partition("/")[0]
        if wanted and wanted not in levels:
            raise StudyError(
                f"the study does not evaluate level {wanted}, which {rule.measure} is read at",
                where=f"{where}, rule {number}",
                got=f"levels: [{', '.join(levels)}]",
                fix=f"Add {wanted} to levels: in the study, or take the rule out.",
            )


def _built_in_levels() -> Iterator[str]:
    for level in built_in("level"):
        yield level.name
        yield from (f"{level.name}/{variant}" for variant in (level.level.variants if level.level else ()))


def _fields_at(place: Where) -> list[str]:
    return list(Rule.model_fields) if len(place) > 1 else list(_File.model_fields)


def _check(source: YamlFile, number: int, rule: Rule) -> None:
    """Raise where the keys of a rule do not fit each other."""
    needed = NEEDS[rule.measure]
    if rule.conditions is not None and rule.measure in CLOSED_LOOP:
        needed = ()
        _check_conditions(source, number, rule)
    for key in ("level", "setting", "metric", "relation", "conditions", "of"):
        there = getattr(rule, key) is not None
        if key in needed and not there:
            fix = f"Add {key}: {_example(key)}."
            raise StudyError(f"{rule.measure} needs {key}:", where=source.where(("rules", number)), fix=fix)
        if there and key not in (*needed, *MORE.get(rule.measure, ())):
            allowed = [*needed, *MORE.get(rule.measure, ()), "name", "sut", "at_least", "at_most", "bound"]
            raise StudyError(
                f"{rule.measure} takes no {key}",
                where=source.where(("rules", number, key)),
                fix=f"Remove {key}:; {rule.measure} takes {', '.join(allowed)}.",
            )
    _check_limit(source, number, rule)


def _check_conditions(source: YamlFile, number: int, rule: Rule) -> None:
    """Raise where conditions and their chances make no whole, or a mutation is named beside them."""
    chances = rule.conditions or {}
    where = source.where(("rules", number, "conditions"))
    if rule.setting is not None:
        raise StudyError(
            f"{rule.measure} takes setting: or conditions:, not both",
            where=where,
            fix="Make two rules of it: one under the mutation, one to be expected of the conditions.",
        )
    if abs(sum(chances.values()) - 1) > ROUNDING:
        raise StudyError(
            "the chances of the conditions do not sum to 1",
            where=where,
            got=f"{sum(chances.values()):g}",
            fix="Write all conditions, such as conditions: {clean: 0.8, haze(visibility_m=200): 0.2}.",
        )


def _example(key: str) -> str:
    examples = {
        "level": "path",
        "setting": "worst case, worst mild case, clean or the id of a mutation",
        "of": "the name of a rule of limits:",
        "relation": "the name of one of the study's relations, as same_objects",
        METRIC: "the name of one of the study's metrics, as longest_gap",
    }
    return examples.get(key, "...")


def _check_limit(source: YamlFile, number: int, rule: Rule) -> None:
    limits = [name for name in ("at_least", "at_most") if getattr(rule, name) is not None]
    where = source.where(("rules", number))
    if rule.measure in (REQUIREMENTS, LIMIT):
        asked = rule.sut and rule.measure == REQUIREMENTS
        wrong = [*limits, *(["bound"] if rule.bound else []), *(["sut"] if asked else [])]
        if wrong:
            fix = f"Take {wrong[0]}: out; it means that {MEANING[rule.measure]}."
            raise StudyError(f"{rule.measure} has no {wrong[0]}", where=where, fix=fix)
        return
    if len(limits) != 1:
        raise StudyError(
            "a rule has one limit",
            where=where,
            got=" and ".join(limits) or "none",
            wanted="at_least: or at_most:",
            fix="Add at_least: 0.8, for example." if not limits else "Make two rules of it.",
        )
    _check_direction(source, number, rule, limits[0])
    end = {"at_least": "lower", "at_most": "upper"}[limits[0]]
    if rule.bound not in (None, "point", end):
        raise StudyError(
            f"bound {rule.bound} does not fit {limits[0]}",
            where=source.where(("rules", number, "bound")),
            wanted=f"{end} or point",
            fix=f"Write bound: {end}, or leave it out.",
        )
    low, high, unit = _range(rule)
    if not low <= (rule.limit or 0.0) <= high:
        raise StudyError(
            f"{limits[0]} is not a valid limit for {rule.measure}",
            where=source.where(("rules", number, limits[0])),
            got=f"{rule.limit:g}",
            wanted=unit,
            fix=f"Give it {unit}.",
        )
    if rule.measure in RATES and rule.limit == 0 and rule.judged_by != "point":
        raise StudyError(
            f"no number of requests can show that {rule.measure} is 0",
            where=source.where(("rules", number, limits[0])),
            got="0, which the upper bound of an interval never is",
            wanted="a rate above 0, or a count",
            fix=COUNTING[rule.measure],
        )


def _range(rule: Rule) -> tuple[float, float, str]:
    """Return what a limit lies between, and that in words."""
    if rule.measure in PERCENT:
        return 1.0 if rule.limit else 0.0, 1000.0, "in percent, as 50"
    if rule.measure in COUNTS:
        return 0.0, 1e12, "a number of them, as 0"
    if rule.measure == "false_positives_per_image":
        return 0.0, 1e6, "a number for each image, as 0.1"
    if rule.measure == METRIC:
        return -math.inf, math.inf, "a number"
    return 0.0, 1.0, "from 0 to 1"


def _check_direction(source: YamlFile, number: int, rule: Rule, limit: str) -> None:
    """Raise where a limit would demand that a metric be bad."""
    if rule.measure not in (*BY_SETTING, *RATES, MARGIN):
        return
    lower = rule.measure in LOWER_IS_BETTER
    if rule.measure == METRIC:
        marks = {plugin.name: plugin.metric for plugin in built_in("metric")}
        mark = marks.get(rule.metric or "")
        if mark is None:  # of a plug-in: the run knows
            return
        lower = mark.lower_is_better
    wanted, better = ("at_most", "lower") if lower else ("at_least", "higher")
    if limit != wanted:
        raise StudyError(
            f"{limit} is the wrong way round for {rule.metric or rule.measure}",
            where=source.where(("rules", number, limit)),
            wanted=f"{wanted}: {better} is better",
            fix=f"Write {wanted}: {rule.limit:g}.",
        )
