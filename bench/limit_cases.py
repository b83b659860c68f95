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
    every = list(searches(conditions, limit_rules(section, where="limits"), store.suts, store.run.seed))
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


if __name__ == "__main__":
    main()
