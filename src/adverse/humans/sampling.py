"""Which images a participant sees next, so that in the end every visual change was judged equally often.

Nobody sees two versions of one image, not even its original and a changed one. Changed images go to the
transformation with the fewest answers and there into the emptiest bin of visual change; originals go where
changed versions still lack an answer on the original. All that is drawn comes from the seed, the participant
and the number of the batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.humans.answers import BINS, bin_of
from adverse.humans.records import Person, Role, State, off_time
from adverse.humans.study_file import HumanStudy
from adverse.seeds import generator

OPEN = 0.5
"""What a trial counts that is given out but not answered: it may never be."""


class Picture(NamedTuple):
    """An image that can be shown: its id, and which category it is; empty where nobody knows."""

    id: str
    truth: str


class PlannedTrial(NamedTuple):
    """A trial to be made; `wanted` is the visual change to look for."""

    image: Picture
    role: Role
    transformation: str = ""
    wanted: float = 0.0


def plan_batch(
    state: State, person: Person, pictures: Sequence[Picture], study: HumanStudy
) -> list[PlannedTrial]:
    """Choose the trials of the participant's next batch; empty where no unseen image is left."""
    number = len(person.batches)
    rng = generator(study.seed, "batch", person.id, str(number))
    seen = {trial.image for trial in person.trials}
    unseen = [pictures[k] for k in rng.permutation(len(pictures)) if pictures[k].id not in seen]
    known = [picture for picture in unseen if picture.truth]
    if number == 0 and study.qualification.items:
        return [PlannedTrial(picture, "qualification") for picture in known[: study.qualification.items]]
    size = min(study.batch, len(unseen))
    sanity = known[: min(study.sanity.items, size)]
    rest = [picture for picture in unseen if picture not in sanity]
    originals = round((size - len(sanity)) * study.originals)
    as_original, as_changed = _uses(state)
    rest.sort(key=lambda picture: as_original[picture.id] - as_changed[picture.id])  # stable: ties stay drawn
    first = rest[:originals]
    others = sorted(rest[originals:], key=lambda picture: as_changed[picture.id])
    chosen = others[: size - len(sanity) - len(first)]
    planned = [
        *(PlannedTrial(picture, "sanity") for picture in sanity),
        *(PlannedTrial(picture, "original") for picture in first),
        *_changes(state, chosen, study, rng),
    ]
    return [planned[k] for k in rng.permutation(len(planned))]


def population(state: State, transformation: str) -> NDArray[np.float64]:
    """Return how well each bin of visual change is populated for a transformation.

    A bin that was aimed at and missed counts as tried, so that what cannot be reached is not tried for ever.
    """
    filled = np.zeros(BINS)
    for trial in state.trials.values():
        if trial.role != "changed" or trial.transformation != transformation:
            continue
        answer = state.answers.get(trial.id)
        if answer is not None and off_time(trial, answer):
            continue
        weight = OPEN if answer is None else 1.0
        got, aimed = bin_of(np.array([trial.dv, trial.wanted]))
        filled[got] += weight
        if aimed != got:
            filled[aimed] += weight
    return filled


def _changes(
    state: State, pictures: Sequence[Picture], study: HumanStudy, rng: np.random.Generator
) -> list[PlannedTrial]:
    filled = {name: population(state, name) for name in study.transformations}
    planned = []
    for picture in pictures:
        name = min(study.transformations, key=lambda one: float(filled[one].sum()))
        emptiest = np.flatnonzero(filled[name] == filled[name].min())
        chosen = int(rng.choice(emptiest))
        filled[name][chosen] += OPEN
        planned.append(PlannedTrial(picture, "changed", name, round(float(chosen + rng.random()) / BINS, 6)))
    return planned


def _uses(state: State) -> tuple[Counter[str], Counter[str]]:
    """Count how often each image was given out, as it is and changed."""
    as_original: Counter[str] = Counter()
    as_changed: Counter[str] = Counter()
    for trial in state.trials.values():
        if trial.role == "original":
            as_original[trial.image] += 1
        elif trial.role == "changed":
            as_changed[trial.image] += 1
    return as_original, as_changed
