"""docs/suts.md says what the code does: every adapter, every option, and study lines that are accepted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import yaml

from adverse import plugins
from adverse.suts.ask import ask
from adverse.suts.build import build
from adverse.types import Detector

TEXT = (Path(__file__).parents[2] / "docs" / "suts.md").read_text("utf-8")
OF_THE_STUDY = frozenset({"name", "adapter", "timeout_s", "memory_limit_mb"})


def sections() -> dict[str, str]:
    parts = re.split(r"^## (.+)$", TEXT, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def shown(language: str, text: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize("adapter", plugins.load().all("sut"), ids=lambda plugin: plugin.name)
def test_every_adapter_and_every_option_is_described(adapter: plugins.Plugin) -> None:
    section = sections()[adapter.name]
    first_cells = " ".join(re.findall(r"^\| (.*?) \|", section, re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", first_cells)) >= set(adapter.options)
    assert f"](#{adapter.name})" in TEXT


@pytest.mark.parametrize("block", shown("yaml", TEXT))
def test_the_study_lines_are_accepted(block: str, tmp_path: Path) -> None:
    for entry in yaml.safe_load(block)["suts"]:
        if entry["adapter"] == "mine":
            continue  # the plug-in of the example, tested below
        plugin = plugins.load().get("sut", entry["adapter"])
        options: dict[str, Any] = {k: v for k, v in entry.items() if k not in OF_THE_STUDY}
        assert plugins.bind(plugin, options, where=entry["name"], base=tmp_path) is not None


def test_the_plug_in_of_the_example_works(tmp_path: Path) -> None:
    section = sections()["Your own, in Python"]
    (tmp_path / "my_detector.py").write_text(shown("python", section)[0], "utf-8")
    (tmp_path / "w.bin").write_bytes(b"weights")
    (entry,) = yaml.safe_load(shown("yaml", section)[0])["suts"]
    plugin = plugins.load([tmp_path / "my_detector.py"]).get("sut", entry["adapter"])
    given = {key: value for key, value in entry.items() if key not in OF_THE_STUDY}
    built = build(plugin, plugins.bind(plugin, given, where="suts", base=tmp_path), default_class="person")
    assert hasattr(built, "detect")
    assert len(ask(cast("Detector", built), [np.zeros((30, 30, 3), np.uint8)], name="ours")[0]) == 1
