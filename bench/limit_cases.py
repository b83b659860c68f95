"""How often a search on a real run gives the sweep's answer: searches replayed on a run that has every step.

adverse run sweep.yaml --out sweep        # mutations: the same entries as limits: conditions
python bench/limit_cases.py sweep
"""

from __future__ import annotations

import argparse
from pathlib import Path

from adverse import plugins
from adverse.requirements.conditions import conditions_of
from adverse.requirements.limits import (
    Search,
    evaluation,
    limit_rules,
    read_limits,
    rule_name,
    searches,
)
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
    store = finished(parser.parse_args().run)
    study, registry = written_study(store.folder.study), plugins.load()
    section = read_limits(study.limits, where="limits")
    conditions = conditions_of(section, store.run.mutations, registry, where="limits")
    figures = RunFigures(store)
    print("| SUT | condition | rule | search | sweep | settings run | of |")
    print("|---|---|---|---|---|---|---|")
    same = count = asked = 0
    for search in searches(conditions, limit_rules(section, where="limits"), store.suts, store.run.seed):
        if search.advance(figures.figures, store.groups):
            raise SystemExit("the run lacks steps of a condition")
        result, wanted = search.limit().result, swept_limit(search, figures)
        found, swept = (search.condition.words(step) for step in (result.limit, wanted))
        rule = rule_name(search.rule)
        cells = (search.sut, search.condition.name, rule, found, swept, result.evaluations)
        print("| " + " | ".join(map(str, cells)) + f" | {len(search.condition.settings)} |")
        same, count, asked = same + (result.limit == wanted), count + 1, asked + result.evaluations
    print(f"\n{same} of {count} agree; {asked / count:.2f} settings in the mean")


if __name__ == "__main__":
    main()
