"""Metamorphic relations: each against a slow reference, through a study, and its contract."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

import adverse
from adverse import plugins
from adverse.analysis.relations import weaker_settings
from adverse.cli.app import app
from adverse.errors import MutationError, PluginError, StudyError
from adverse.mutations.settings import parse
from adverse.relations.contract import check_relation, made_up_relation_input
from adverse.relations.relation import Checks, RelationInput, evaluate_relation
from adverse.requirements.gate import check_run
from adverse.store.finished_run import finished
from adverse.types import Detections
from pictures import three_squares, write_logs

LOGS, FRAMES, SCORE = 5, 6, 0.5
WIDTH = 96
SETTINGS = ("mirror", "brightness(scale=0.8)", "brightness(scale=0.6)", "brightness(scale=0.4)")
drawn = functools.partial(three_squares, gray=30, darker=(35, 5))


class Odd:
    """Finds bright squares, but is odd: blind at the right edge and to some brightnesses, now and then."""

    classes = ("person",)
    fingerprint = "odd 1"

    def detect(self, images: list[NDArray[np.uint8]]) -> list[Detections]:
        return [self._one(image) for image in images]

    def _one(self, image: NDArray[np.uint8]) -> Detections:
        gray = image.mean(axis=2)
        found: list[list[float]] = []
        scores = []
        columns = (gray > 1.15 * gray[0, 0]).any(axis=0)
        edges = np.flatnonzero(np.diff(np.concatenate([[0], columns.astype(int), [0]])))
        for x0, x1 in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            rows = np.flatnonzero((gray[:, x0:x1] > 1.15 * gray[0, 0]).any(axis=1))
            level = float(gray[rows[0], x0])
            if x0 % 7 == 3 or x1 > 86 or 130 < level < 150:
                continue
            found.append([x0, int(rows[0]), x1, int(rows[-1]) + 1])
            scores.append(0.3 + level / 400)
        return Detections(np.array(found, float).reshape(-1, 4), scores)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("relations")
    write_logs(root / "data", LOGS, FRAMES, drawn)
    path = root / "study.yaml"
    path.write_text(
        "{name: related, data: {format: folder, root: data}, suts: [{name: odd, adapter: python}],\n"
        f" truth: {{from: clean, score: {SCORE}}}, robustness: {{bootstrap: 200}},\n"
        f" mutations: {json.dumps(SETTINGS)},\n"
        " relations: [same_objects, mirrored, monotone_loss, steady]}\n"
    )
    adverse.run(path, root / "run", detectors={"odd": Odd()}, workers=0)
    return root / "run"


Boxes = dict[str, list[tuple[float, list[float]]]]


def _answers(run: Path, setting: str) -> Boxes:
    rows = finished(run).detections("odd", setting).to_pylist()
    return {
        row["frame"]: [
            (score, box) for score, box in zip(row["scores"], row["boxes"], strict=True) if score >= SCORE
        ]
        for row in rows
    }


def _iou(a: list[float], b: list[float]) -> float:
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    both = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1])
    return width * height / (both - width * height)


def _hit(box: list[float], others: list[tuple[float, list[float]]]) -> bool:
    return any(_iou(box, other) >= 0.5 for _, other in others)  # squares never lie on each other here


def _kept(clean: Boxes, changed: Boxes) -> tuple[int, int]:
    lost = sum(not _hit(box, changed[frame]) for frame, boxes in clean.items() for _, box in boxes)
    new = sum(not _hit(box, clean[frame]) for frame, boxes in changed.items() for _, box in boxes)
    return lost + new, sum(map(len, clean.values())) + new


def _back(clean: Boxes, weaker: Boxes, changed: Boxes) -> tuple[int, int]:
    objects = [(frame, box) for frame, boxes in clean.items() for _, box in boxes]
    back = sum(_hit(box, changed[frame]) and not _hit(box, weaker[frame]) for frame, box in objects)
    return back, len(objects)


def _unsteady(answers: Boxes) -> tuple[int, int]:
    """Follow each of the three squares, which never leave their part of the image, over the frames."""
    wrong = whole = 0
    for log, number in itertools.product(range(LOGS), range(3)):
        low, high = 4 + 30 * number, 30 + 30 * number
        seen = [
            any(low <= box[0] and box[2] <= high for _, box in answers[f"log{log}/{frame}"])
            for frame in range(FRAMES)
        ]
        for a, b in itertools.pairwise(np.flatnonzero(seen).tolist()):
            assert b - a <= 3, "a longer gap would be another track"
        there = np.flatnonzero(seen)
        if len(there):
            inside = seen[there[0] + 1 : there[-1]]
            wrong, whole = wrong + len(inside) - sum(inside), whole + len(inside)
    return wrong, whole


def test_rates_are_those_of_slow_references(run: Path) -> None:
    store = finished(run)
    clean = _answers(run, store.run.baseline.id)
    answers = {name: _answers(run, name) for name in SETTINGS}
    wanted: dict[tuple[str, str], tuple[int, int]] = {("mirrored", "mirror"): _kept(clean, answers["mirror"])}
    for name in SETTINGS[1:]:
        wanted["same_objects", name] = _kept(clean, answers[name])
    for weaker, name in itertools.pairwise(SETTINGS[1:]):
        wanted["monotone_loss", name] = _back(clean, answers[weaker], answers[name])
    for name, boxes in {store.run.baseline.id: clean, **answers}.items():
        wanted["steady", name] = _unsteady(boxes)
    summary = json.loads((run / "results" / "summary.json").read_text())
    found = {
        (row["relation"], row["setting"]): (row["violated"], row["checks"]) for row in summary["relations"]
    }
    assert found == wanted
    for name in ("mirrored", "same_objects", "monotone_loss", "steady"):
        assert any(part for (one, _), (part, _) in wanted.items() if one == name), f"{name} never fails here"
    for row in summary["relations"]:
        low, high = row["relation_violations_interval"]["low"], row["relation_violations_interval"]["high"]
        assert low <= row["relation_violations"] <= high
        assert high > 0, "none seen in few logs is not none"


def test_answers_under_a_mirror_are_kept_where_things_are(run: Path) -> None:
    answers = _answers(run, "mirror")
    for frame, boxes in answers.items():
        log, number = int(frame[3]), int(frame.partition("/")[2])
        mirrored = Odd().detect([drawn(log, number)[:, ::-1]])[0]
        back = [[WIDTH - x1, y0, WIDTH - x0, y1] for x0, y0, x1, y1 in mirrored.boxes.tolist()]
        kept = [box for box, score in zip(back, mirrored.scores.tolist(), strict=True) if score >= SCORE]
        assert sorted(box for _, box in boxes) == sorted(kept)


def test_the_terminal_says_where_each_fails_most_and_the_page_shows_it(run: Path) -> None:
    result = CliRunner().invoke(app, ["analyze", str(run)])
    assert result.exit_code == 0, result.output
    for name in ("mirrored", "same_objects", "monotone_loss", "steady"):
        assert f"- {name}: violated in " in result.output
    page = (run / "report.html").read_text()
    part = page[page.index('id="relations"') : page.index('id="slices"')]
    for name in ("mirrored", "same_objects", "monotone_loss", "steady"):
        assert f"<strong>{name.replace('_', ' ')}</strong> is violated by odd" in part
    assert part.count("data:image/jpeg") >= 8
    assert 'class="meant"' in part
    assert "mirrored</strong> is violated by odd under mirror" in part
    assert "then under mirror (turned back)" in part
    rows = json.loads((run / "results" / "summary.json").read_text())["violations"]
    steady = next(row for row in rows if row["relation"] == "steady")
    log, _, number = steady["frame"].partition("/")
    assert steady["beside_frame"] == f"{log}/{int(number) - 1}"
    loss = next(row for row in rows if row["relation"] == "monotone_loss")
    assert loss["beside_setting"] == SETTINGS[SETTINGS.index(loss["setting"]) - 1]


RULES = {
    "{relation: mirrored, setting: mirror, at_most: 0.9}": ("PASS", ""),
    "{relation: steadfast, setting: Any, at_most: 0.9, sut: odd}": ("INCONCLUSIVE", "did not check it"),
    "{relation: mirrored, setting: mirror, at_most: 0.001}": ("FAIL", ""),
    "{relation: mirrored, setting: 'jpeg(quality=5)', at_most: 0.9}": ("INCONCLUSIVE", "no such mutation"),
    "{relation: steadfast, setting: Any, at_most: 0.9}": ("INCONCLUSIVE", "did not check it"),
}


def test_the_gate_holds_a_run_to_relations(run: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    lines = [rule.replace("{", "{measure: relation_violations, ", 1) for rule in RULES]
    rules.write_text("rules:\n" + "".join(f"  - {line}\n" for line in lines))
    for verdict, (outcome, reason) in zip(check_run(run, rules), RULES.values(), strict=True):
        assert verdict.outcome.value == outcome
        assert reason in verdict.reason


def test_a_rule_without_a_relation_is_refused(run: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("rules:\n  - {measure: relation_violations, setting: Any, at_most: 0.1}\n")
    with pytest.raises(StudyError, match="relation_violations needs relation:"):
        check_run(run, rules)


def test_settings_are_ordered_by_strength_on_each_side_of_no_change() -> None:
    registry = plugins.load()
    texts = [
        *("brightness(scale=2)", "brightness(scale=0.5)", "brightness(scale=1.5)", "brightness(scale=0.8)"),
        *("haze(visibility_m=100)", "haze(visibility_m=900)", "c.fog(severity=1)", "c.fog(severity=5)"),
        *(
            "jpeg(quality=10)",
            "jpeg(quality=80)",
            "salt_pepper(fraction=0.1)",
            "salt_pepper(fraction=0.2) @ log",
        ),
        *("defocus(focus_m=1, kappa=2)", "defocus(focus_m=2, kappa=1)", "defocus(focus_m=1, kappa=1)"),
    ]
    weaker = weaker_settings([parse(text, registry) for text in texts], registry)
    assert {name: others for name, others in weaker.items() if others} == {
        "brightness(scale=2)": ("brightness(scale=1.5)",),
        "brightness(scale=0.5)": ("brightness(scale=0.8)",),
        "haze(visibility_m=100)": ("haze(visibility_m=900)",),
        "c.fog(severity=5)": ("c.fog(severity=1)",),
        "jpeg(quality=10)": ("jpeg(quality=80)",),
        "defocus(focus_m=1, kappa=2)": ("defocus(focus_m=1, kappa=1)",),
    }


@pytest.mark.parametrize("relation", plugins.load().all("relation"), ids=lambda plugin: plugin.name)
def test_ours_keep_the_contract(relation: plugins.Plugin) -> None:
    assert [str(one.error) for one in check_relation(relation) if not one.ok] == []


def test_steadiness_is_not_checked_where_frames_are_far_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    given, steady = made_up_relation_input(), plugins.load().get("relation", "steady")
    for step_s, checked in ((0.5, True), (0.51, False), (float("nan"), True)):
        times_s = (np.arange(len(given.frames.ids)) * step_s).astype(np.float64)
        monkeypatch.setattr(
            RelationInput, "frames", replace(made_up_relation_input().clean.frames, time_s=times_s)
        )
        assert (evaluate_relation(steady, given) is not None) == checked


def _all_frames(given: RelationInput) -> Checks:
    count = len(given.frames.ids)
    return Checks(np.arange(count), np.zeros((count, 4)), np.ones(count, bool), np.zeros(count))


def _by_storage(given: RelationInput) -> Checks:
    answers = given.clean.answers
    rows = np.flatnonzero(np.diff(answers.offsets))
    first = answers.boxes[answers.offsets[rows]].astype(float)  # of each frame the one that is stored first
    return Checks(answers.frame[rows], first, np.ones(len(rows), bool), np.zeros(len(rows)))


def _writes(given: RelationInput) -> Checks:
    given.clean.answers.scores[:] = 0
    return Checks.none()


@pytest.mark.parametrize(
    ("function", "check"),
    [
        (_all_frames, "frames that do not count do not matter"),
        (_by_storage, "the order of detections does not matter"),
        (_writes, "its input is left as it is"),
        (lambda given: [], "no detections"),  # noqa: ARG005
        (lambda given: given.clean.nothing, "no detections"),
        (lambda given: Checks.none()._replace(weight=np.zeros(3)), "no detections"),  # noqa: ARG005
    ],
)
def test_what_breaks_the_contract_is_found(function: Callable[[Any], Any], check: str) -> None:
    marked = plugins.relation(title="broken", name="broken")(function)
    findings = check_relation(marked.__adverse__)  # type: ignore[attr-defined]
    assert check in [one.check for one in findings if not one.ok]


def test_checks_must_be_numbers() -> None:
    nan = plugins.relation(title="nan", name="nan")(
        lambda given: Checks(given.clean.answers.frame[:1], np.full((1, 4), np.nan), [True], [0.0])  # type: ignore[arg-type]
    )
    with pytest.raises(PluginError, match="NaN or infinite"):
        evaluate_relation(nan.__adverse__, made_up_relation_input())  # type: ignore[attr-defined]


def test_what_moves_things_is_refused_where_boxes_would_stay() -> None:
    with pytest.raises(MutationError, match="mirror moves what is in the image"):
        adverse.transforms.Transform("mirror")
