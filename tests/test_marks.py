"""A mutation is added by one file: what it says of itself is what every part of the product knows of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from adverse import mutations, plugins
from adverse.cli.app import app
from adverse.errors import PluginError
from adverse.marks import Hazard, Strength
from adverse.mutations import contract
from adverse.mutations.hazards import hazard_coverage
from adverse.plugins import Registry
from adverse.types import Image
from adverse.visual.strength import find_strength
from visual.photos import drawn

DRIZZLE = """
import numpy as np
from adverse import Hazard, Strength, mutation

@mutation(
    hazards=(Hazard("object", "wetness", "more", "the scene is wet", "amount", above=2),),
    strength=Strength("amount", 0, 9, power=2),
)
def drizzle(image, *, amount: float):
    "Darken, as wet things are."
    return np.rint(image / (1 + amount)).astype(np.uint8)
"""
ENTRY = ("object", "wetness", "more")


@pytest.fixture
def with_drizzle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """The built-in mutations and one more, whose file lies beside theirs."""
    (tmp_path / "drizzle.py").write_text(DRIZZLE)
    monkeypatch.setattr(mutations, "__path__", [*mutations.__path__, str(tmp_path)])
    plugins.installed.cache_clear()
    plugins.built_in.cache_clear()
    yield plugins.load()
    plugins.installed.cache_clear()
    plugins.built_in.cache_clear()
    sys.modules.pop("adverse.mutations.drizzle", None)
    vars(mutations).pop("drizzle", None)


def test_one_file_adds_a_built_in_mutation(with_drizzle: Registry) -> None:
    plugin = with_drizzle.get("mutation", "drizzle")
    assert [finding.check for finding in contract.check(plugin) if not finding.ok] == []
    image = np.full((4, 4), 100, np.uint8)
    assert mutations.apply(image, "drizzle(amount=1)").tolist() == [[50] * 4] * 4

    listed = json.loads(CliRunner().invoke(app, ["list", "mutations", "--json"]).stdout)
    assert next(entry for entry in listed if entry["name"] == "drizzle")["hazard"] == " / ".join(ENTRY)

    coverage = hazard_coverage(["drizzle(amount=3)", "drizzle(amount=1)"], with_drizzle)
    assert [(row.entry, row.settings) for row in coverage.exercised] == [(ENTRY, ("drizzle(amount=3)",))]
    idle = {row.entry: row.mutations for row in hazard_coverage(["identity"], with_drizzle).rows}
    assert idle[ENTRY] == ("drizzle",)

    found = find_strength(drawn(), "drizzle", 0.3, backend="vifp", registry=with_drizzle)
    assert found.option == "amount"
    assert found.reached


def test_a_plug_in_file_says_the_same_and_one_that_does_not_is_not_said(tmp_path: Path) -> None:
    file = tmp_path / "drizzle.py"
    quiet = (
        "from adverse import mutation\n@mutation\ndef quiet(image):\n    'Copy.'\n    return image.copy()\n"
    )
    file.write_text(DRIZZLE + quiet)
    plugins.load()
    registry = plugins.load([file])
    coverage = hazard_coverage(["drizzle(amount=3)", "quiet"], registry)
    assert [row.entry for row in coverage.exercised] == [ENTRY]
    assert coverage.not_said == ("quiet",)
    assert registry.get("mutation", "drizzle").strength == Strength("amount", 0, 9, power=2)
    assert "drizzle" not in {plugin.name for plugin in plugins.load().all("mutation")}


def copied(image: Image, *, amount: float = 0) -> Image:
    return image + np.uint8(amount)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: plugins.mutation(strength=Strength("amuont", 0, 1))(copied), "did you mean 'amount'"),
        (
            lambda: plugins.mutation(hazards=(Hazard("medium", "x", "no", "y", "amuont"),))(copied),
            "hazard names an option that it does not have",
        ),
        (lambda: plugins.mutation(hazards=Hazard("medium", "x", "no", "y"))(copied), "tuple of Hazard"),  # type: ignore[call-overload]
        (lambda: Hazard("medum", "x", "no", "y"), "unknown location.*did you mean 'medium'"),
        (lambda: Hazard("medium", "x", "mor", "y"), "unknown guide word.*did you mean 'more'"),
        (lambda: Strength("amount", 1, 1), "goes nowhere"),
        (lambda: Strength("amount", 0, float("nan")), "goes nowhere"),
        (lambda: Strength("amount", 0, 1, power=0), "a number above 0"),
    ],
)
def test_what_cannot_be_is_refused_where_it_is_written(make: Callable[[], object], said: str) -> None:
    with pytest.raises(PluginError, match=f"(?is){said}"):
        make()


def test_a_misspelt_option_is_shown_at_its_line(tmp_path: Path) -> None:
    file = tmp_path / "misspelt.py"
    file.write_text(DRIZZLE.replace('Strength("amount"', 'Strength("amuont"'))
    with pytest.raises(PluginError, match=r"misspelt\.py, line 5.*strength names an option.*'amuont'"):
        plugins.load([file])


def test_a_list_fits_a_screen_and_names_everything() -> None:
    """Suites of many stand together; their beginning lists them one by one."""
    names = [
        entry["name"] for entry in json.loads(CliRunner().invoke(app, ["list", "mutations", "--json"]).stdout)
    ]
    text = CliRunner().invoke(app, ["list", "mutations"]).stdout
    assert len(text.splitlines()) <= 30
    assert max(map(len, text.splitlines())) <= 80
    for name in names:
        assert name.rpartition(".")[2] in text
    suite = CliRunner().invoke(app, ["list", "mutations", "c."]).stdout
    assert [line.split()[0] for line in suite.splitlines()] == [n for n in names if n.startswith("c.")]
