"""Objects of other data: which frames are the study's own, and campaigns that are made and replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from adverse import plugins
from adverse.errors import AdverseError, StudyError
from adverse.fuzz.donors import OTHER, donor_data
from adverse.fuzz.folder import CampaignFolder
from adverse.fuzz.outcome import read_outcome
from adverse.fuzz.replay import replay_campaign
from adverse.fuzz.run import run_campaign
from adverse.interop.suites import suite_tests
from adverse.semantic import Recipe
from adverse.study.engines import Stop
from adverse.study.engines.local import InlineEngine
from adverse.study.plan import read_dataset
from adverse.study.spec import read_study
from fuzz.whole_campaign import Quiet
from small_campaign import write_campaign


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("donors")
    write_campaign(folder / "others", frames=3, seed=4)
    section: dict[str, Any] = {"mutations": ["add_car"], "donors": donors("others/data")}
    return write_campaign(folder, frames=2, fuzz=section)


def donors(root: str) -> dict[str, Any]:
    return {"format": "cityscapes", "root": root, "split": {"test": "val"}}


def variant(study: Path, name: str, **fuzz: Any) -> Path:
    data = yaml.safe_load(study.read_text())
    data["fuzz"] = {key: value for key, value in (data["fuzz"] | fuzz).items() if value is not None}
    path = study.parent / name
    path.write_text(yaml.safe_dump(data))
    return path


@pytest.fixture(scope="module")
def campaign(study: Path) -> CampaignFolder:
    run = run_campaign(
        read_study(study), study.parent / "run", InlineEngine(), tests=3, watch=Quiet(), stop=Stop()
    )
    assert run.tests == 3
    return run.folder


def test_frames_of_other_data_have_names_of_their_own_unless_they_are_the_studys(study: Path) -> None:
    """Both folders call their frames alike, and only those with the same image are the same."""
    for name, root, begins in (("x.yaml", "others/data", OTHER), ("y.yaml", "data", "")):
        file = read_study(variant(study, name, donors=donors(root)))
        registry = plugins.load(file.plugin_files)
        own = read_dataset(file, registry)
        data = donor_data(file, registry, own)
        assert data is not None
        names = [frame.id for log in data.logs for frame in log.frames]
        bases = {frame.id for log in own.logs for frame in log.frames}
        assert bases <= {name.removeprefix(OTHER) for name in names}
        assert all(name.startswith(OTHER) == bool(begins) for name in names)
        assert all(frame.log_id.startswith(begins) for log in data.logs for frame in log.frames)


def test_only_objects_of_the_other_data_are_put_in(campaign: CampaignFolder, study: Path) -> None:
    outcome = read_outcome(campaign)
    donors = [Recipe.from_json(row["recipe"]).donor or "" for row in outcome.rows]
    assert all(donor.startswith(OTHER) for donor in donors)
    assert len({row["picture"] for row in outcome.rows}) == 3
    again = list(suite_tests(campaign, outcome, file=read_study(study)))
    assert len(again) == 3, "each is made again from the study's data with the same picture"


def test_a_replay_needs_the_same_donors(campaign: CampaignFolder, study: Path, tmp_path: Path) -> None:
    def replay(path: Path, out: str) -> None:
        replay_campaign(
            campaign, read_study(path), tmp_path / out, InlineEngine(), watch=Quiet(), stop=Stop()
        )

    replay(variant(study, "same.yaml"), "same")
    with pytest.raises(StudyError, match="put objects of other data"):
        replay(variant(study, "none.yaml", donors=None), "none")
    with pytest.raises(AdverseError, match="not those of the campaign"):
        replay(variant(study, "own.yaml", donors=donors("data")), "own")
