"""How much of a battery people tolerate: counted by hand, with the nearest images on either side."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser
from typer.testing import CliRunner

from adverse import plugins
from adverse.cli.app import app
from adverse.data.images import images_below, write_image
from adverse.errors import DataError, StudyError
from adverse.humans.thresholds import FORMAT, FORMAT_VERSION, Threshold, checksum
from adverse.mutations.settings import apply_setting, expand
from adverse.report.coverage import coverage_lines, coverage_table, family_chart, highest_share
from adverse.requirements.coverage import SettingCoverage, coverage, histogram, thresholds_of
from adverse.types import Image
from adverse.visual import Backend, Reference, visual_change
from browsing import barriers_of
from visual.photos import drawn

REGISTRY = plugins.load()
IMAGES = [(f"{seed}.png", drawn(seed=seed)) for seed in range(3)]
SETTINGS = [
    setting
    for severity in (1, 5)
    for name in ("c.contrast", "c.spatter")
    for setting in expand(f"{name}(severity={severity})", REGISTRY, where="test")
]


def test_shares_are_counted_image_by_image() -> None:
    limits = thresholds_of(SETTINGS, 0.7, "correctness", "vifp")
    rows = coverage(IMAGES, SETTINGS, limits, REGISTRY, seed=3)
    for setting, row in zip(SETTINGS, rows, strict=True):
        changes = []
        for name, image in IMAGES:
            changed = apply_setting(image, setting, REGISTRY, seed=3, key=name)
            changes.append(visual_change(image, changed, backend="vifp"))
        assert row.visual_change == pytest.approx(changes)
        assert row.share == sum(change <= 0.7 for change in changes) / 3
        for example, wanted in (
            (row.inside, max((c for c in changes if c <= 0.7), default=None)),
            (row.outside, min((c for c in changes if c > 0.7), default=None)),
        ):
            assert (example.visual_change if example else None) == (
                None if wanted is None else pytest.approx(wanted)
            )
    assert {row.severity for row in rows} == {"1", "5"}
    mild, severe = rows[0].share, rows[2].share
    assert mild == 1
    assert severe == 0


def test_the_share_of_the_original_is_computed_once_an_image(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def reference(image: Image, *, backend: Backend) -> Reference:
        made.append(backend)
        return Reference(image, backend=backend)

    monkeypatch.setattr("adverse.requirements.coverage.Reference", reference)
    limits = thresholds_of(SETTINGS[:1], 0.7, "correctness", "vifp")
    coverage(IMAGES, SETTINGS, limits, REGISTRY)
    assert made == ["vifp", "vif"] * len(IMAGES)


def test_thresholds_are_those_of_the_nearest_transformation_and_no_others() -> None:
    limits = thresholds_of(SETTINGS, "published", "correctness")
    assert {setting: limit.value for setting, limit in limits.items()} == {
        "c.contrast(severity=1)": 0.77,
        "c.contrast(severity=5)": 0.77,
    }
    with pytest.raises(StudyError, match="measured with vif"):
        thresholds_of(SETTINGS, "published", "correctness", "vifp")
    with pytest.raises(StudyError, match="neither a number"):
        thresholds_of(SETTINGS, "nowhere.json", "correctness")
    composed = expand("c.contrast(severity=1) + c.fog(severity=1)", REGISTRY, where="test")
    assert thresholds_of(composed, 0.5, "correctness") == {}


def test_the_axes_name_the_backend_and_hold_the_highest_bar() -> None:
    rows = [SettingCoverage("c.fog(severity=1)", "c.fog", "1", None, "vifp", [0.1, 0.12, 0.4, 0.7, 0.9])]
    assert highest_share(rows) == 0.4
    (panel,) = family_chart("c.fog", rows, highest_share(rows)).panels
    assert panel.x.label == "visual change by vifp, in steps of 0.05"
    assert panel.y.ends == (0, 0.4)
    assert highest_share([SettingCoverage("c.fog(severity=1)", "c.fog", "1", None)]) == 0.2


def test_what_cannot_be_measured_is_said() -> None:
    flat = [("flat.png", np.full((96, 96, 3), 90, np.uint8)), *IMAGES[:1]]
    rows = coverage(flat, SETTINGS[:2], thresholds_of(SETTINGS[:2], 0.7, "correctness"), REGISTRY)
    assert [(len(row.visual_change), len(row.refused)) for row in rows] == [(1, 1)] * 2
    words = "1 image could not be measured (flat.png: the reference image is constant"
    assert any(words in line for line in coverage_lines(rows))


def test_the_outline_of_a_histogram_holds_every_value() -> None:
    x, y = histogram([0.0, 0.04, 0.5, 1.0], bins=10)
    assert y[::2] == [0.5, 0, 0, 0, 0, 0.25, 0, 0, 0, 0.25]
    assert x[0] == 0
    assert x[-1] == 1


def test_the_command_and_the_page(tmp_path: Path, browser: Browser) -> None:
    (tmp_path / "photos").mkdir()
    for name, image in IMAGES:
        write_image(tmp_path / "photos" / name, image)
    page = tmp_path / "coverage.html"
    command = ["humans", "coverage", "c.contrast(severity=3)", str(tmp_path / "photos"), "--images", "2"]
    done = CliRunner().invoke(app, [*command, "--page", str(page)])
    assert done.exit_code == 0, done.output
    assert "of 2 images" in done.output
    (row,) = json.loads(CliRunner().invoke(app, [*command, "--json", "--thresholds", "0.5"]).stdout)
    assert (row["tolerated_to"], row["images"], row["backend"]) == (0.5, 2, "vif")
    tab = browser.new_page()
    complaints: list[str] = []
    tab.on("console", lambda message: complaints.append(message.text))
    tab.goto(page.as_uri())
    assert complaints == []
    assert tab.locator("figure img").count() in (1, 2)
    assert tab.get_by_text("tolerated up to 0.77").count() >= 1
    tab.close()
    assert barriers_of(browser, page) == []
    assert len(images_below(tmp_path / "photos", 9)) == 3
    with pytest.raises(DataError, match="no images"):
        images_below(tmp_path / "nothing", 2)


def test_a_threshold_that_is_no_drop_is_not_used_silently() -> None:
    limits = {
        setting.id: Threshold("t.jpeg", "prediction", 0.02, 0.02, "vifp", "x", better=True)
        for setting in SETTINGS
    }
    rows = coverage(IMAGES[:1], SETTINGS[:1], limits, REGISTRY)
    assert any("t_p 0.02 is no drop: people do better there" in line for line in coverage_lines(rows))


def test_without_a_drop_people_tolerate_at_least_so_much_and_too_few_answers_stop_nothing(
    tmp_path: Path,
) -> None:
    entry = {"kind": "correctness", "value": None, "interval": None, "backend": "vifp"}
    few = {"transformation": "c.spatter", "status": "insufficient", "why": "3 answers", "tolerated_to": None}
    none = {"transformation": "c.contrast", "status": "not found", "tolerated_to": 0.02}
    study = {"format": FORMAT, "version": FORMAT_VERSION, "thresholds": [entry | few, entry | none]}
    path = tmp_path / "estimates.json"
    path.write_text(json.dumps(study | {"checksum": checksum(study)}))
    why: dict[str, str] = {}
    limits = thresholds_of(SETTINGS[:2], str(path), "correctness", no_estimate=why)
    rows = coverage(IMAGES[:1], SETTINGS[:2], limits, REGISTRY, no_estimate=why)
    rows.sort(key=lambda row: row.family)
    lines = coverage_lines(rows)
    assert any(line.startswith("at least 0 of 1 images") for line in lines)
    assert "the human study could not estimate t_c of c.spatter: 3 answers" in lines
    assert not any("beyond it" in line or "nobody was asked" in line for line in lines)
    assert coverage_table(rows).texts()[0][3:5] == ["at least 0.02", "at least 0%"]


def test_nothing_measured_is_no_success(tmp_path: Path) -> None:
    write_image(tmp_path / "tiny.png", np.zeros((4, 4, 3), np.uint8))
    done = CliRunner().invoke(app, ["humans", "coverage", "c.contrast(severity=1)", str(tmp_path)])
    assert done.exit_code == 3, (done.output, done.exception)
