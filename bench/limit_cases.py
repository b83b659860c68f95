"""How often a search on a real run gives the sweep's answer: searches replayed on a run that has every step.

adverse run sweep.yaml --out sweep        # mutations: the same entries as limits: conditions
python bench/limit_cases.py sweep
python bench/limit_cases.py demo/run --limits limits.yaml --html limits.html    # a section of its own
"""

from __future__ import annotations

import argparse
from pathlib import Path

import yaml

from adverse import plugins
from adverse.report.limits import render_limits
from adverse.requirements.conditions import conditions_of
from adverse.requirements.limits import (
    Search,
    evaluation,
    limit_rules,
    read_limits,
    rule_name,
    searches,
)
from adverse.requirements.limits_run import StudyLimits
from adverse.requirements.run_figures import RunFigures
from adverse.store.finished_run import finished
from adverse.study.spec import written_study


def swept_limit(search: Search, figures: RunFigures) -> int | None:
    """Return the last step before the first at which the rule does not hold, looking at every step."""
    for step, setting in enumerate(["identity", *(one.id for one in search.condition.settings)]):
        rule = search.rule.model_copy(update={"setting": setting, "sut": (search.sut,)})
        if not evaluation(rule, next(iter(figures.figures(rule)))).holds:
            return step - 1 if step else None
    return len(search.condition.settings)


def main() -> None:
    """Print every case, and how many agree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--limits", type=Path, help="the limits: section, instead of the study's")
    parser.add_argument("--html", type=Path, help="also write the page that adverse limits would")
    given = parser.parse_args()
    store = finished(given.run)
    study, registry = written_study(store.folder.study), plugins.load()
    own = given.limits and yaml.safe_load(given.limits.read_text())["limits"]
    section = read_limits(own or study.limits, where="limits")
    conditions = conditions_of(section, store.run.mutations, registry, where="limits")
    figures = RunFigures(store)
    print("| SUT | condition | rule | search | sweep | settings run | of |")
    print("|---|---|---|---|---|---|---|")
    same = count = asked = 0
    rules = limit_rules(section, where="limits")
    every = list(searches(conditions, rules, store.suts, store.run.seed))
    for key in dict.fromkeys((one.sut, one.condition.name) for one in every):
        together = [one for one in every if (one.sut, one.condition.name) == key]
        ran = {together[0].condition.settings[-1].id}
        while more := {setting for one in together for setting in one.advance(figures.figures, ran)}:
            if not more <= set(store.groups):
                raise SystemExit("the run lacks steps of a condition")
            ran |= more
        asked += len(ran)
        for search in together:
            result, wanted = search.limit().result, swept_limit(search, figures)
            found, swept = (search.condition.words(step) for step in (result.limit, wanted))
            cells = (*key, rule_name(search.rule), found, swept, len(ran))
            print("| " + " | ".join(map(str, cells)) + f" | {len(search.condition.settings)} |")
            same, count = same + (result.limit == wanted), count + 1
    count_of_pairs = len({(one.sut, one.condition.name) for one in every})
    print(f"\n{same} of {count} agree; {asked / count_of_pairs:.2f} settings in the mean")
    if given.html:
        limits = tuple(search.limit() for search in every)
        whole = StudyLimits(study.name, tuple(conditions), tuple(rules), limits, (), asked)
        given.html.write_text(render_limits(whole))


if __name__ == "__main__":
    main()
