"""The models that come with the package: small, carded, and used like any other."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
import yaml

from adverse import plugins
from adverse.cli import main
from adverse.errors import SutError
from adverse.suts.bundled import MODELS, copy_models, model

LIMIT_BYTES = 2_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    copy_models(folder / "models")
    return folder


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_small_has_a_card_and_answers_through_its_adapter(name: str, folder: Path) -> None:
    path = folder / "models" / MODELS[name].file
    assert path.stat().st_size < LIMIT_BYTES
    card = path.with_suffix(".md").read_text()
    assert "Synthetic" in card
    assert hashlib.sha256(path.read_bytes()).hexdigest() in card
    section = MODELS[name].section(name, "models")
    options = {key: value for key, value in section.items() if key not in ("name", "adapter")}
    plugin = plugins.load().get("sut", section["adapter"])
    detector = plugin.function(**plugins.bind(plugin, options, where="suts", base=folder))
    assert detector.classes == ("person",)
    noise = np.random.default_rng(0).integers(0, 255, (240, 320, 3), np.uint8)
    one, two, again = detector.detect([noise, noise[:, ::-1].copy(), noise])
    assert one.same(again)
    assert not one.same(two) or len(one) == len(two) == 0


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
