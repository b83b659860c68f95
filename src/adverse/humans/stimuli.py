"""The pictures of the experiment, and which of them a participant sees next.

Originals, changed versions of a wanted visual change, and noise masks are made when they are needed, from the
study's seed, and are the same whenever they are made again; the last ones are kept in memory. Nothing is
written to disk.

In the end every visual change is to be judged equally often. Nobody sees two versions of one image, not even
its original and a changed one. Changed images go to the transformation with the fewest answers and there into
the emptiest bin of visual change; originals go where changed versions still lack an answer on the original.
All that is drawn comes from the seed, the participant and the number of the batch.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.content import digest
from adverse.data.formats import read_format
from adverse.data.images import image_bytes
from adverse.errors import StudyError, suggestion
from adverse.humans.answers import BINS, bin_of
from adverse.humans.records import Participant, Role, State, answers_with_reason, off_time
from adverse.humans.study_file import Contains, HumanStudy, HumanStudyFile
from adverse.plugins import bind
from adverse.seeds import generator
from adverse.types import Dataset, Frame, Image
from adverse.visual.strength import find_strength

OPEN = 0.5
"""What a trial counts that is given out but not answered: it may never be."""


class StudyImage(NamedTuple):
    """An image that can be shown: its id, and which category it is; empty where nobody knows."""

    id: str
    truth: str


class PlannedTrial(NamedTuple):
    """A trial to be made; `wanted` is the visual change to look for."""

    image: StudyImage
    role: Role
    transformation: str = ""
    wanted: float = 0.0


def plan_batch(
    state: State, person: Participant, pictures: Sequence[StudyImage], study: HumanStudy
) -> list[PlannedTrial]:
    """Choose the trials of the participant's next batch; empty where no unseen image is left."""
    number = len(person.batches)
    rng = generator(study.seed, "batch", person.id, str(number))
    seen = {trial.image for trial in person.trials}
    unseen = [pictures[k] for k in rng.permutation(len(pictures)) if pictures[k].id not in seen]
    labelled = [picture for picture in unseen if picture.truth]
    if number == 0 and study.qualification.items:
        return [PlannedTrial(picture, "qualification") for picture in labelled[: study.qualification.items]]
    size = min(study.batch, len(unseen))
    sanity = labelled[: min(study.sanity.items, size)]
    rest = [picture for picture in unseen if picture not in sanity]
    originals = round((size - len(sanity)) * study.originals)
    if study.judgments is not None:
        repeated = _repeated(state, rest, study, size - len(sanity), originals)
        planned = [*(PlannedTrial(picture, "sanity") for picture in sanity), *repeated]
        used = {plan.image.id for plan in planned}
        rest = [picture for picture in rest if picture.id not in used]
        originals -= sum(plan.role == "original" for plan in repeated)
        size -= len(repeated)
    else:
        planned = [PlannedTrial(picture, "sanity") for picture in sanity]
    as_original, as_changed = _uses(state)
    rest.sort(key=lambda picture: as_original[picture.id] - as_changed[picture.id])  # stable: ties stay drawn
    first = rest[:originals]
    others = sorted(rest[originals:], key=lambda picture: as_changed[picture.id])
    chosen = others[: size - len(sanity) - len(first)]
    planned += [
        *(PlannedTrial(picture, "original") for picture in first),
        *_changes(state, chosen, study, rng),
    ]
    return [planned[k] for k in rng.permutation(len(planned))]


def _repeated(
    state: State, unseen: Sequence[StudyImage], study: HumanStudy, size: int, originals: int
) -> list[PlannedTrial]:
    """Return versions that others have judged, but fewer than `judgments` of them: those come first.

    The ones with the most judgments lead, so that a version is done before the next is begun.
    """
    pictures = {picture.id: picture for picture in unseen}
    excluded = {
        trial.id for _, trial, why in answers_with_reason(state, study) if why not in ("", "unanswered")
    }
    judged: dict[PlannedTrial, float] = {}
    for trial in state.trials.values():
        if trial.image in pictures and trial.role in ("original", "changed") and trial.id not in excluded:
            version = PlannedTrial(pictures[trial.image], trial.role, trial.transformation, trial.wanted)
            judged[version] = judged.get(version, 0) + (1 if trial.id in state.answers else OPEN)
    planned: list[PlannedTrial] = []
    left = {"original": originals, "changed": size - originals}
    for version, count in sorted(judged.items(), key=lambda entry: -entry[1]):
        fresh = all(version.image != plan.image for plan in planned)
        if count < (study.judgments or 0) and left[version.role] > 0 and fresh:
            planned.append(version)
            left[version.role] -= 1
    return planned


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
    state: State, pictures: Sequence[StudyImage], study: HumanStudy, rng: np.random.Generator
) -> list[PlannedTrial]:
    filled = {name: population(state, name) for name in study.transformations}
    planned = []
    for picture in pictures:
        name = min(study.transformations, key=lambda transformation: float(filled[transformation].sum()))
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


MOST_BYTES = 128 * 2**20
"""PNG files kept in memory."""
PNG = Path("stimulus.png")
DARKEST = 1e-12


class Stimulus(NamedTuple):
    """A picture as a PNG file, its size, and how much it differs from the original."""

    png: bytes
    width: int
    height: int
    dv: float


class Stimuli:
    """Makes the pictures of a study; may be asked from several threads."""

    def __init__(self, file: HumanStudyFile, *, most_bytes: int = MOST_BYTES) -> None:
        self.file = file
        self.study = file.study
        self._frames, self.pictures = _pictures(file)
        self._kept: OrderedDict[tuple[str, ...], Stimulus] = OrderedDict()
        self._bytes = 0
        self._most = most_bytes
        self._lock = threading.Lock()

    @property
    def files(self) -> dict[str, tuple[str, Path]]:
        """The category and the file of each image, by its id."""
        return {picture.id: (picture.truth, self._frames[picture.id].image.path) for picture in self.pictures}

    def original(self, image: str) -> Stimulus:
        """Return an image as it is, made to fit the study's size."""
        return self._cached(("original", image), lambda: _stimulus(self._fitted(image), 0.0))

    def changed(self, image: str, transformation: str, wanted: float) -> Stimulus:
        """Return an image changed by as near to the wanted visual change as can be."""

        def make() -> Stimulus:
            search = find_strength(
                self._fitted(image),
                transformation,
                wanted,
                seed=self.study.seed,
                key=image,
                backend=self.study.visual_change,
                registry=self.file.registry,
            )
            return _stimulus(search.image, search.visual_change)

        return self._cached(("changed", image, transformation, repr(wanted)), make)

    def mask(self, trial: str, width: int, height: int) -> Stimulus:
        """Return noise with the spectrum of natural images (1/f), which ends what the eye still holds."""
        return self._cached(
            ("mask", trial), lambda: _stimulus(_noise(self.study.seed, trial, width, height), 0.0)
        )

    def _fitted(self, image: str) -> Image:
        pixels = self._frames[image].image()
        height, width = pixels.shape[:2]
        scale = self.study.size_px / max(height, width)
        if scale >= 1:
            return pixels
        size = (max(round(width * scale), 1), max(round(height * scale), 1))
        return cv2.resize(pixels, size, interpolation=cv2.INTER_AREA).astype(np.uint8, copy=False)

    def _cached(self, key: tuple[str, ...], make: Callable[[], Stimulus]) -> Stimulus:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make()
        with self._lock:
            if key not in self._kept:
                self._kept[key] = made
                self._bytes += len(made.png)
            while self._bytes > self._most and len(self._kept) > 1:
                self._bytes -= len(self._kept.popitem(last=False)[1].png)
        return made


def _pictures(file: HumanStudyFile) -> tuple[dict[str, Frame], list[StudyImage]]:
    study = file.study
    where = file.where("data")
    plugin = file.registry.get("dataset", study.data.format, where=file.where("data", "format"))
    also = type(study.data).model_fields
    options = bind(plugin, study.data.options, where=where, base=file.path.parent, also=also)
    dataset = read_format(plugin, options, where=where)
    _refuse_unknown_classes(file, dataset)
    frames = {
        frame.id: frame
        for log in dataset.logs
        if log.split == "test"
        for frame in log.frames
        if frame.fault is None and _category(frame, dataset, file) is not None
    }
    pictures = [StudyImage(name, _category(frame, dataset, file) or "") for name, frame in frames.items()]
    needed = study.qualification.items + study.sanity.items
    labelled = sum(bool(picture.truth) for picture in pictures)
    if needed and labelled < needed + 1:
        raise StudyError(
            "too few images have a known category",
            where=where,
            got=f"{labelled} of {len(pictures)} images",
            wanted=f"more than {needed}, for qualification and sanity items",
            fix="Say under truth: which classes of the data belong to which category, or set "
            "qualification: {items: 0, right: 0} and sanity: {items: 0}.",
        )
    if len(pictures) < study.batch:
        raise StudyError(
            "there are fewer images than one batch needs",
            where=where,
            got=f"{len(pictures)} images",
            wanted=f"at least {study.batch}: nobody sees two versions of one image",
            fix="Add images, or make batch: smaller.",
        )
    return frames, pictures


def _refuse_unknown_classes(file: HumanStudyFile, dataset: Dataset) -> None:
    """Refuse a class under contains: or truth: that the data do not have: no image would ever be of it."""
    study = file.study
    named: list[tuple[tuple[str, str], list[str]]] = [
        (("truth", category), classes) for category, classes in study.truth.items()
    ]
    if study.contains is not None:
        named.append((("contains", "classes"), study.contains.classes))
    for place, classes in named:
        for name in classes:
            if name not in dataset.categories:
                raise StudyError(
                    f"the data have no class {name!r}",
                    where=file.where(*place),
                    fix=suggestion(name, dataset.categories),
                )


def _category(frame: Frame, dataset: Dataset, file: HumanStudyFile) -> str | None:
    """Return the category of an image, empty where nobody knows, None where it belongs to no category."""
    contains = file.study.contains
    if contains is not None:
        return _by_boxes(frame, dataset, contains)
    if frame.category is None:
        return ""
    name = dataset.categories[frame.category]
    if not file.study.truth:
        return name if name in file.study.categories else None
    return next((category for category, classes in file.study.truth.items() if name in classes), None)


def _by_boxes(frame: Frame, dataset: Dataset, contains: Contains) -> str | None:
    """Return whether an image contains an object of the classes; None where that is not clear."""
    wanted = [number for number, name in enumerate(dataset.categories) if name in contains.classes]
    truth = frame.truth
    there = np.isin(truth.labels, wanted)
    if not there.any():
        return contains.otherwise
    clear = there & ~truth.ignore
    if contains.smallest and clear.any():
        height, width = frame.image().shape[:2]
        sides = truth.boxes[:, 2:] - truth.boxes[:, :2]
        clear &= sides.prod(axis=1) >= contains.smallest * height * width
    return contains.category if clear.any() else None


def _stimulus(image: Image, dv: float) -> Stimulus:
    return Stimulus(image_bytes(image, PNG), image.shape[1], image.shape[0], dv)


def _noise(seed: int, trial: str, width: int, height: int) -> Image:
    rng = generator(seed, "mask", trial)
    across = np.fft.fftfreq(width)[None, :]
    down = np.fft.fftfreq(height)[:, None]
    frequency = np.hypot(across, down)
    frequency[0, 0] = np.inf
    spectrum = np.fft.fft2(rng.normal(size=(3, height, width))) / frequency
    plain = np.real(np.fft.ifft2(spectrum))
    spread = np.maximum(plain.std(axis=(1, 2), keepdims=True), DARKEST)
    pixels = np.clip(127.5 + 48 * plain / spread, 0, 255)
    return np.ascontiguousarray(np.rint(pixels).astype(np.uint8).transpose(1, 2, 0))


def trial_id(participant: str, batch: int, place: int) -> str:
    """Return the id of a trial; it tells nothing about what is shown.

    >>> trial_id("a", 0, 1) != trial_id("a", 1, 0)
    True
    """
    return digest("trial", participant, str(batch), str(place), size=10)
