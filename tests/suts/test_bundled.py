"""The models that come with the package: small, carded, and used like any other."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnxruntime
import pytest
import yaml

from adverse import plugins
from adverse.cli import main
from adverse.data.worlds.orchard import orchard_log
from adverse.data.worlds.rendering import Rendered, render
from adverse.data.worlds.scripts import stereo_camera
from adverse.data.worlds.street import street_log
from adverse.errors import SutError
from adverse.seeds import generator
from adverse.suts import bundled
from adverse.suts.bundled import MODELS, SEGMENTER, copy_models, model
from adverse.types import Detections, Detector

LIMIT_BYTES = 3_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    copy_models(folder / "models")
    return folder


def bundled_detector(name: str, folder: Path) -> Detector:
    section = MODELS[name].section(name, "models")
    options = {key: value for key, value in section.items() if key not in ("name", "adapter", "trained_on")}
    plugin = plugins.load().get("sut", section["adapter"])
    built: Detector = plugin.function(**plugins.bind(plugin, options, where="suts", base=folder))
    return built


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_small_has_a_card_and_answers_through_its_adapter(name: str, folder: Path) -> None:
    path = folder / "models" / MODELS[name].file
    assert path.stat().st_size < LIMIT_BYTES
    card = path.with_suffix(".md").read_text()
    assert "Synthetic" in card
    assert hashlib.sha256(path.read_bytes()).hexdigest() in card
    detector = bundled_detector(name, folder)
    assert detector.classes == ("person",)
    noise = np.random.default_rng(0).integers(0, 255, (240, 320, 3), np.uint8)
    one, two, again = detector.detect([noise, noise[:, ::-1].copy(), noise])
    assert one.same(again)
    assert not one.same(two) or len(one) == len(two) == 0


class Areas(NamedTuple):
    """What a card says of one setting."""

    roc_a: float
    roc_b: float
    loop: float


def card_areas(name: str) -> dict[str, Areas]:
    """Return the areas of every setting in a model's card."""
    card = resources.files(bundled) / MODELS[name].file.replace(".onnx", ".md").replace(".json", ".md")
    lines = card.read_text().splitlines()
    first = lines.index("| setting | ROC_A | ROC_B | closed loop |") + 2
    rows = [line.strip("| ").split(" | ") for line in lines[first:]]
    return {row[0]: Areas(*(float(value) for value in row[1:])) for row in rows}


NETWORKS = [name for name, model in MODELS.items() if model.adapter == "onnx"]


ADVERSE = ("gaussian_blur(sigma_px=2)", "haze(visibility_m=97.8)", "channel_dropout(channel=G)")


@pytest.mark.parametrize("name", NETWORKS)
def test_a_card_shows_a_network_that_works_and_that_the_world_can_spoil(name: str) -> None:
    areas = card_areas(name)
    clean = areas["identity"]
    assert 0.8 < clean.roc_b < 1
    assert clean.loop > 0.85
    for setting in ADVERSE:
        assert areas[setting].roc_b < clean.roc_b


def test_the_networks_differ_in_kind_of_clean_frames_of_adverse_ones_and_one_between() -> None:
    areas = {name: card_areas(name) for name in NETWORKS}
    clean, between, adverse = "two-stage", "anchor", "centre"  # by what they were trained on
    un_mutated = {name: areas[name]["identity"] for name in NETWORKS}
    assert un_mutated[clean].roc_b >= 0.95
    assert min(one.roc_b for one in un_mutated.values()) >= 0.9
    assert max(un_mutated[between].roc_b, un_mutated[adverse].roc_b) < un_mutated[clean].roc_b - 0.03
    assert un_mutated[clean].roc_a > un_mutated[between].roc_a > un_mutated[adverse].roc_a
    for setting in ADVERSE:
        found = [areas[name][setting].roc_b for name in (clean, between, adverse)]
        assert found == sorted(found)
    without_green = {name: areas[name]["channel_dropout(channel=G)"].loop for name in NETWORKS}
    assert max(without_green[clean], without_green[between]) < 0.5
    assert without_green[adverse] > 0.8


def approach() -> list[Rendered]:
    """Return the last frames of a few test logs: one or two people, some metres ahead."""
    made = []
    for number in (0, 1, 2, 3):
        name = f"test/positive{number:03d}"
        script = orchard_log(1, name, "positive")
        scene = script.scene()
        for part in (0.6, 0.8):
            time_s = script.drive.duration_s * part
            noise = generator(1, name, str(part))
            made.append(render(scene, stereo_camera(320, 240), script.drive.pose(time_s), time_s, noise))
    return made


@pytest.mark.parametrize("name", MODELS)
def test_a_model_finds_most_people_nearby_and_loses_them_without_light(name: str, folder: Path) -> None:
    detector = bundled_detector(name, folder)
    wanted, found, dark = 0, 0, 0
    for seen in approach():
        answers = detector.detect([seen.image, (seen.image // 40).astype(np.uint8)])
        for thing in seen.things:
            if thing.visible[3] - thing.visible[1] >= 40 and thing.pixels > 0.6 * thing.full_pixels:
                wanted += 1
                found += hit(answers[0], thing.visible)
                dark += hit(answers[1], thing.visible)
    assert wanted >= 6
    assert found > (0.8 if name in NETWORKS else 0.5) * wanted  # a sliding window is weaker
    assert dark < found


def hit(answer: Detections, box: tuple[float, ...]) -> bool:
    """Return whether one of the three best detections is the box, by IoU."""
    for x0, y0, x1, y1 in answer.boxes[:3].tolist():
        both = max(min(x1, box[2]) - max(x0, box[0]), 0) * max(min(y1, box[3]) - max(y0, box[1]), 0)
        union = (x1 - x0) * (y1 - y0) + (box[2] - box[0]) * (box[3] - box[1]) - both
        if both / union >= 0.5:
            return True
    return False


def test_a_network_leaves_nothing_in_the_cache_that_another_run_could_change(folder: Path) -> None:
    # ONNX Runtime keeps a database of telemetry there; what a SUT opens is part of what results rest on
    made = "import sys; from pathlib import Path; from adverse.suts.onnx import open_session"
    cache = folder / "cache"
    cache.mkdir()
    env = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    code = f"{made}; open_session(Path(sys.argv[1]))"
    model_file = folder / "models" / MODELS["centre"].file
    subprocess.run(
        [sys.executable, "-c", code, str(model_file)],
        env={**env, "XDG_CACHE_HOME": str(cache)},
        check=True,
    )
    assert not list(cache.rglob("*"))


def test_the_segmenter_labels_the_street_as_its_card_says(folder: Path) -> None:
    path = folder / "models" / SEGMENTER
    assert path.stat().st_size < LIMIT_BYTES
    card = path.with_suffix(".md").read_text()
    assert hashlib.sha256(path.read_bytes()).hexdigest() in card
    lines = card.splitlines()
    first = next(row for row, line in enumerate(lines) if line.startswith("| channel")) + 2
    labels = np.array([int(line.split("|")[2]) for line in lines[first:]])
    script = street_log(1, "test/positive005", "positive")
    seen = render(
        script.scene(), stereo_camera(320, 240), script.drive.pose(2.0), 2.0, generator(1, "street")
    )
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    pixels = (seen.image.astype(np.float32) / 255).transpose(2, 0, 1)[None]
    (logits,) = session.run(["logits"], {"images": pixels})
    assert logits.shape == (1, len(labels), 120, 160)
    assert (labels[logits[0].argmax(axis=0)] == seen.labels[::2, ::2]).mean() > 0.9


def test_an_unknown_model_is_named() -> None:
    with pytest.raises(SutError, match="ancor"):
        model("ancor")


def test_the_command_copies_them_and_says_how_to_use_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["models", "copy", str(tmp_path / "models")])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    study = yaml.safe_load(said[said.index("suts:") :])
    for section in study["suts"]:
        assert (tmp_path / section["model"]).exists()
