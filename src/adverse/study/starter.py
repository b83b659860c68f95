"""A first study from a data path and a model path: what follows from them, and what had to be assumed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import yaml

from adverse.data.check import FROM_PAIRS, DataCheck, check
from adverse.data.formats import LAST, Guess, guess, read_format
from adverse.data.images import write_image
from adverse.errors import StudyError
from adverse.plugins import Plugin, Registry, bind
from adverse.study.input_trials import LabelledImages, Showing, convention, labelled_images, try_out
from adverse.study.needs import missing_truth
from adverse.study.plan import INSTANCE_MASKS
from adverse.study.recordings import EVERY, cut_into_logs, frames_left_out, linked
from adverse.study.spec import INSTANCE_SEGMENTATION
from adverse.suts.ask import ask, task_of
from adverse.suts.build import build
from adverse.suts.decoders import DECODERS
from adverse.suts.fetched import fetch, in_a_study, real_model, real_models
from adverse.suts.guess import GuessedModel, class_map, guess_onnx
from adverse.suts.score_cuts import declared_cuts
from adverse.text import counted
from adverse.types import Dataset, Detections, Frame, Image, LabelMap

SHOWN = 4
TILE = (480, 360)
SURE = 0.3
"""Scores from which a detection is drawn."""
TRUTH_COLOUR, FOUND_COLOUR = (255, 255, 255), (255, 176, 0)
ONNX, CLASS_FOLDERS = ".onnx", "class-folders"
SPARSE = 0.5
"""Depth at a smaller share of the pixels is that of laser returns."""
NAMED_CLASSES = 6
OTHER_DATA = (
    "Give data that have them (docs/data-formats.md; of several annotation files, name the one to read), "
    "or a detector."
)
TRUTH_SCORE = 0.5
"""From which clean answers stand in for annotations, unless somebody says otherwise."""


@dataclass(frozen=True)
class Starter:
    """A study as text, what it assumes, and what to look at before trusting it."""

    text: str
    assumed: tuple[str, ...]
    picture: Image | None
    legend: str
    """What the colours of the picture mean."""


def starter(data: Path, model: Path | None, folder: Path, registry: Registry) -> Starter:
    """Write a study for a data set and a model, to be kept in `folder`."""
    guessed, given, dataset, assumed = _read(data, model, registry)
    options = bind(guessed.format, given, where=str(data), base=Path.cwd())
    checked = check(dataset, registry.all("mutation"))
    tried: list[str] = []
    if model is None:
        sut, system = _without_model(dataset, assumed), None
    else:
        sut, system = _with_model(model, folder, dataset, registry, assumed, tried)
    task: str = "detection" if system is None else task_of(system) or "detection"
    if (error := missing_truth(task, dataset, fix=OTHER_DATA)) is not None:
        raise error
    if task == "detection" and _gives_masks(sut):
        missing = _missing_masks(guessed.format, options, dataset, where=str(data))
        task = "detection" if missing else INSTANCE_SEGMENTATION
        assumed.append(f"the model gives masks: {missing or 'they are judged (task)'}")
    study: dict[str, Any] = {
        "name": _name(data),
        "seed": 1,
        "data": {
            "format": guessed.format.name,
            **_relative(given, folder),
        },
        "suts": [sut],
    }
    unlabelled = not checked.labelled and task == "detection"
    if unlabelled:
        _stand_in(study, assumed)
    study |= _of_task(task)
    if task in ("detection", INSTANCE_SEGMENTATION):
        target = _known_target(system, sut, assumed) if unlabelled else _target(dataset, assumed)
        study["targets"] = [target]
        if left := _also_known(dataset, system, sut, target):
            assumed.append(
                f"only {target} is judged (targets); data and model also share {_few(left)}: "
                "add them to targets if they count"
            )
        usable = ("", FROM_PAIRS) if _all_in_pairs(dataset) else ("",)
        study["levels"] = [able.name for able in checked.levels if able.able and able.reason in usable] or [
            "image"
        ]
        if not unlabelled:
            assumed += _left_out(checked)
        if linked(dataset):
            study["metrics"] = ["flicker", "longest_gap", "time_to_first"]
    if "loop" not in study.get("levels", ()):  # where a robot drives, a log is a drive
        study["data"] |= cut_into_logs(dataset, assumed)
    study["mutations"] = ["first-look"]
    _add_depth(study, checked, dataset, assumed)
    legend = "detections are orange" if unlabelled else "ground truth is white, detections are orange"
    return Starter(_text(study, assumed, tried, checked), tuple(assumed), _picture(dataset, system), legend)


def _of_task(task: str) -> dict[str, Any]:
    """Return the keys of a study that only a task other than detection needs."""
    kept = {"keep_label_maps": True} if task == "segmentation" else {}  # report and explorer draw its answers
    return {} if task == "detection" else {"task": task, **kept}


def _read(
    data: Path, model: Path | None, registry: Registry
) -> tuple[Guess, dict[str, Any], Dataset, list[str]]:
    """Return how data are read, with which options, what they hold, and what was assumed of them."""
    guessed = guess(data, registry.all("dataset"))
    given: dict[str, Any] = {"root": str(data), **guessed.options}
    dataset = _read_with(guessed, given, data)
    assumed = [f"the data are read as {guessed.format.name}"]
    assumed += [f"they were found at {guessed.elsewhere}"] if guessed.elsewhere else []
    if guessed.format.name == LAST and not dataset.categories and _classifies(model):
        guessed, given = Guess(registry.get("dataset", CLASS_FOLDERS), {}), {"root": str(data)}
        dataset = _read_with(guessed, given, data)
        assumed = [f"the data are read as {CLASS_FOLDERS}: the model is a classifier, and there are no boxes"]
    if fewer := frames_left_out(dataset, guessed.format.options):
        total, given = _count(dataset), {**given, **fewer}
        dataset = _read_with(guessed, given, data)
        assumed.append(
            f"one frame in {fewer[EVERY]} is looked at, {_count(dataset)} of {total} (every), so that a "
            "first run takes minutes"
        )
    return guessed, given, dataset, assumed


def _read_with(guessed: Guess, given: Mapping[str, Any], data: Path) -> Dataset:
    options = bind(guessed.format, given, where=str(data), base=Path.cwd())
    return read_format(guessed.format, options, where=str(data))


def _count(dataset: Dataset) -> int:
    return sum(len(log.frames) for log in dataset.logs)


def _classifies(model: Path | None) -> bool:
    """Tell whether a model, a file or one of the catalogue, classifies images.

    >>> _classifies(Path("efficientnet-lite0")), _classifies(Path("deeplabv3")), _classifies(None)
    (True, False, False)
    """
    if model is not None and (real := real_models().get(str(model))) is not None:
        return real.task == "classification"
    return (
        model is not None
        and model.suffix.lower() == ONNX
        and guess_onnx(model, ()).options["decoder"] == "classification"
    )


def _left_out(checked: DataCheck) -> list[str]:
    """Return which levels the data do not support, and why."""
    reasons: dict[str, list[str]] = {}
    for able in checked.levels:
        if able.reason and able.reason != FROM_PAIRS:
            reasons.setdefault(able.reason, []).append(able.name)
    return [f"{', '.join(names)} left out of levels: {why}" for why, names in reasons.items()]


def _gives_masks(sut: Mapping[str, Any]) -> bool:
    decoder = DECODERS.get(sut.get("decoder", ""))
    return decoder is not None and decoder.masks


def _missing_masks(reader: Plugin, options: Mapping[str, Any], dataset: Dataset, *, where: str) -> str | None:
    """Return why the masks of a model cannot be judged on the data; None if they can."""
    if INSTANCE_MASKS not in reader.options:
        return f"the format {reader.name} has none, so boxes are judged (task: detection)"
    masked = read_format(reader, {**options, INSTANCE_MASKS: True}, where=where)
    before, after = ([frame.fault for log in data.logs for frame in log.frames] for data in (dataset, masked))
    lost = sum(old is None and new is not None for old, new in zip(before, after, strict=True))
    if lost:
        few = f"{lost} of {len(after)} images have objects without one"
        return f"{few}, so boxes are judged (task: detection)"
    return None


def _all_in_pairs(dataset: Dataset) -> bool:
    """Return whether depth of every frame can be computed from a stereo pair."""
    frames = [frame for log in dataset.logs for frame in log.frames]
    return all(frame.right is not None and frame.camera and frame.camera.baseline_m for frame in frames)


def _add_depth(study: dict[str, Any], checked: DataCheck, dataset: Dataset, assumed: list[str]) -> None:
    """Add mutations by depth where there is depth, or stereo pairs or laser returns to compute it from."""
    known = checked.depth.known_share
    if checked.depth.frames == checked.images:
        study["mutations"].append("first-look-depth")
        if known is not None and known < SPARSE:
            study["depth"] = {"from": "laser"}
            assumed.append(
                f"depth is known at {known:.1%} of the pixels: laser returns, completed to dense depth"
            )
        elif known is not None and known < 1:
            study["invalid_depth"] = "nearest"
            share = f"{known:.1%} of the pixels"
            assumed.append(f"depth is known at {share}; elsewhere it is taken from the nearest that is known")
        return
    if _all_in_pairs(dataset):
        study["mutations"].append("first-look-depth")
        study["depth"] = {"from": "stereo"}
        assumed.append("there is no depth: it is computed from the stereo pairs")


def _with_model(
    model: Path, folder: Path, dataset: Dataset, registry: Registry, assumed: list[str], tried: list[str]
) -> tuple[dict[str, Any], Any]:
    if str(model) in real_models():
        return _with_real_model(str(model), dataset, registry, assumed)
    if model.suffix.lower() != ONNX:
        raise StudyError(
            "only ONNX models can be inspected",
            where=str(model),
            got=model.suffix or "no ending",
            wanted=f".onnx, or one of {', '.join(real_models())}",
            fix="Leave it out, and name the model by hand: docs/suts.md has an example of each kind.",
        )
    names = dataset.categories or tuple(dict.fromkeys(dataset.pixel_classes.values()))
    network = guess_onnx(model, names)
    assumed += network.assumed
    section = {"name": _name(model), "adapter": "onnx", "model": str(model), **network.options}
    assumed += declared_cuts({"model": model})
    plugin = registry.get("sut", "onnx")

    def shown(way: Showing) -> Any:
        given = {"model": str(model), **network.options, **way.options()}
        return build(plugin, bind(plugin, given, where=str(model), base=Path.cwd()), default_class="person")

    way = _way_to_show(network, dataset, shown, assumed, tried)
    section |= way.options()
    system = shown(way)
    there = (
        tuple(dict.fromkeys(dataset.pixel_classes.values())) if task_of(system) == "segmentation" else names
    )
    renamed = class_map(network.classes, there)
    if renamed:
        section["class_map"] = renamed
        assumed.append("class_map: " + ", ".join(f"its {a} is our {b}" for a, b in list(renamed.items())[:6]))
    return {**section, **_relative({"model": str(model)}, folder)}, system


def _with_real_model(
    name: str, dataset: Dataset, registry: Registry, assumed: list[str]
) -> tuple[dict[str, Any], Any]:
    """Return the section of a model out of the catalogue, which is downloaded if it is not here."""
    model = real_model(name)
    section = model.section(name, in_a_study(fetch(name)))
    assumed.append(f"{name} was trained on {model.trained}; licence of the weights: {model.licence}")
    plugin = registry.get("sut", section["adapter"])
    options = {key: value for key, value in section.items() if key in plugin.options}
    system = build(plugin, bind(plugin, options, where=name, base=Path.cwd()), default_class="person")
    renamed = class_map(system.classes, dataset.categories)
    if renamed:
        section["class_map"] = renamed
        assumed.append("class_map: " + ", ".join(f"its {a} is our {b}" for a, b in list(renamed.items())[:6]))
    return section, system


def _way_to_show(
    network: GuessedModel,
    dataset: Dataset,
    shown: Callable[[Showing], Any],
    assumed: list[str],
    tried: list[str],
) -> Showing:
    """Return how images are shown to the model: as its metadata say, as does best on the data, or a guess."""
    decoder = network.options["decoder"]
    usual = convention("" if network.letterboxed else decoder, floats=network.floats)
    if network.letterboxed:
        assumed.append(f"images are shown as {usual}: its metadata are those of a YOLO export")
        return usual
    labelled = labelled_images(dataset) if decoder in DECODERS else LabelledImages([], [], [])
    if not labelled.images:
        why = (
            "There are no labelled boxes to try it on"
            if decoder in DECODERS
            else "Only detectors are tried out"
        )
        assumed.append(
            f"GUESSED: images are shown as {usual}. {why}, and a wrong way raises no error: the model only "
            "finds less. Check resize:, channels:, scale:, mean: and std: against the model's own example"
        )
        return usual
    renamed = class_map(network.classes, dataset.categories)
    names = [renamed.get(name, name) for name in network.classes] if network.named else []
    category_of = {
        label: dataset.categories.index(name)
        for label, name in enumerate(names)
        if name in dataset.categories
    }
    chosen = try_out(shown, usual, labelled, category_of)
    assumed.append(chosen.why)
    tried += chosen.tried
    return chosen.showing


def _without_model(dataset: Dataset, assumed: list[str]) -> dict[str, Any]:
    assumed.append("no model was given: OpenCV's HOG stands in for it, a weak detector of people")
    section: dict[str, Any] = {"name": "hog", "adapter": "opencv-hog"}
    renamed = class_map(["person"], dataset.categories)
    return {**section, "class_map": renamed} if renamed else section


def _target(dataset: Dataset, assumed: list[str]) -> str:
    """Return the class that counts: people where there are any, else what there is most of."""
    person = (
        "person"
        if "person" in dataset.categories
        else class_map(["person"], dataset.categories).get("person")
    )
    if person is not None:
        return person
    counts = Counter(
        dataset.categories[label]
        for log in dataset.logs
        for frame in log.frames
        for label in frame.truth.labels.tolist()
    )
    name = counts.most_common(1)[0][0] if counts else next(iter(dataset.categories), "person")
    assumed.append(f"there are no people in the data: what counts is {name}")
    return name


def _known_target(system: Any, sut: Mapping[str, Any], assumed: list[str]) -> str:
    """Return the class that counts where nothing is annotated: people, or the first that the model knows."""
    known = _found_classes(system, sut)
    target = "person" if "person" in known or not known else next(iter(known))
    others = len(known) - 1
    if others > 0:
        assumed.append(f"only {target} is judged (targets); the model knows {others} more classes")
    return target


def _also_known(dataset: Dataset, system: Any, sut: Mapping[str, Any], target: str) -> list[str]:
    """Return the classes that both the data and the model have, but for the one that counts."""
    found = _found_classes(system, sut)
    return [name for name in dataset.categories if name in found and name != target]


def _found_classes(system: Any, sut: Mapping[str, Any]) -> Collection[str]:
    """Return what a system can find, in the study's words; HOG, where there is none, finds people."""
    renamed = sut.get("class_map", {})
    return dict.fromkeys(renamed.get(name, name) for name in getattr(system, "classes", ("person",)))


def _stand_in(study: dict[str, Any], assumed: list[str]) -> None:
    """Add that clean answers stand in for annotations."""
    study["truth"] = {"from": "clean", "score": TRUTH_SCORE}
    assumed.append(
        "the data are not annotated: the system's own answers on clean frames, from a score of "
        f"{TRUTH_SCORE} on, stand in (truth). Figures are agreement with them and say nothing of what it "
        "misses on clean frames; a stronger model can be named instead: truth: NAME"
    )


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED_CLASSES} more" if len(names) > NAMED_CLASSES else ""
    return ", ".join(names[:NAMED_CLASSES]) + more


def _text(study: Mapping[str, Any], assumed: Sequence[str], tried: Sequence[str], checked: DataCheck) -> str:
    """Return the study as YAML, with what was assumed and what else there is as comments."""
    plain = yaml.safe_dump(
        dict(study), sort_keys=False, default_flow_style=None, allow_unicode=True, width=110
    )
    size = f"{counted(checked.images, 'image')} in {counted(checked.logs, 'log')}"
    head = [
        f"# {size}. Check what was assumed, then: adverse run",
        *(f"# - {line}" for line in assumed),
        *(["# Ways to show images to the model, by AP50 over all classes in one order:"] if tried else []),
        *(f"#   {line}" for line in tried),
        "",
    ]
    tail = [
        "# More to try (adverse list batteries; docs/study-file.md):",
        "#   mutations: [coco-c]       15 corruptions x 5 severities, for adverse bench-table",
        "#   mutations: [field-2021]   blur, haze and defocus by depth, dead channels",
    ]
    return "\n".join([*head, plain.rstrip(), "", *tail]) + "\n"


def _picture(dataset: Dataset, system: Any) -> Image | None:
    """Draw what the system says about four frames beside what is true; None without a system."""
    if system is None or task_of(system) not in ("detection", "segmentation"):
        return None
    frames = [frame for log in dataset.logs for frame in log.frames if frame.fault is None]
    best = sorted(frames, key=lambda frame: -min(len(frame.truth.boxes), 5))[: SHOWN * 5]
    chosen = best[:: max(1, len(best) // SHOWN)][:SHOWN]
    tiles = []
    for frame in chosen:
        image: Image = frame.image()
        (answer,) = ask(system, [image], name="model")
        tiles.append(_tile(image, frame, answer))
    blank = np.zeros((TILE[1], TILE[0], 3), np.uint8)
    tiles += [blank] * (SHOWN - len(tiles))
    return np.vstack([np.hstack(tiles[:2]), np.hstack(tiles[2:])])


def _tile(image: Image, frame: Frame, answer: Any) -> Image:
    drawn = np.ascontiguousarray(image)
    thick = max(1, image.shape[1] // 320)
    for box in frame.truth.boxes:
        _draw(drawn, box, TRUTH_COLOUR, thick)
    if isinstance(answer, Detections):
        for box in answer.boxes[answer.scores >= SURE]:
            _draw(drawn, box, FOUND_COLOUR, thick)
    elif isinstance(answer, LabelMap):
        hues = (answer.labels.astype(np.int64) * 47 % 180).astype(np.uint8)
        full = np.full_like(hues, 200)
        colours = cv2.cvtColor(np.stack([hues, full, full], axis=-1), cv2.COLOR_HSV2RGB)
        drawn = cv2.addWeighted(drawn, 0.5, colours, 0.5, 0).astype(np.uint8)
    scale = min(TILE[0] / image.shape[1], TILE[1] / image.shape[0])
    small = cv2.resize(drawn, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    tile = np.zeros((TILE[1], TILE[0], 3), np.uint8)
    tile[: small.shape[0], : small.shape[1]] = small[: TILE[1], : TILE[0]]
    return tile


def _draw(image: Image, box: Any, colour: tuple[int, int, int], thick: int) -> None:
    x0, y0, x1, y1 = (round(float(value)) for value in box)
    cv2.rectangle(image, (x0, y0), (x1 - 1, y1 - 1), colour, thick)


def write_starter(made: Starter, study: Path, picture: Path) -> None:
    """Write the study and its picture; a study that is there already is never written over."""
    try:
        with study.open("x", encoding="utf-8") as file:
            file.write(made.text)
    except FileExistsError as error:
        raise StudyError(
            "the study file exists already",
            where=str(study),
            fix="Give another name with --out, or move the old one away.",
        ) from error
    except OSError as error:
        raise StudyError(
            "the study cannot be written",
            where=str(study),
            got=error.strerror or str(error),
            fix="Choose a folder that exists and that you may write to.",
        ) from error
    if made.picture is not None:
        write_image(picture, made.picture)


def _relative(options: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return options with the paths among them seen from the study's folder."""
    return {
        key: os.path.relpath(value, folder) if key in ("root", "model") else value
        for key, value in options.items()
    }


def _name(path: Path) -> str:
    name = "".join(
        char if char.isascii() and (char.isalnum() or char in "._- ") else "-" for char in path.stem
    )
    return name.strip("._- ")[:100] or "study"
