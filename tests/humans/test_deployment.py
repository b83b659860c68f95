"""A study for strangers: behind an encrypting proxy, paid by a platform, bound to its file, owned by one."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.testclient import TestClient
from typer.testing import CliRunner

from adverse.cli.app import app
from adverse.errors import AdverseError, StudyError
from adverse.humans.experiment import participant_of
from adverse.humans.records import Answer, answers_with_reason, off_time, workers_csv
from adverse.humans.server import lock_study
from adverse.humans.study_file import read_human_study
from adverse.serving import public_origin
from human_studies import DOOR, STUDY, experiment_of, happened, quick_batch, visitor, write_study

PUBLIC = replace(DOOR, public_url="https://study.example.org")
PLATFORM = {"parameter": "PROLIFIC_PID", "completion_code": "C0DE-77"}


def test_behind_a_proxy_the_public_name_is_ours_and_no_other(tmp_path: Path) -> None:
    assert PUBLIC.address == "https://study.example.org/?token=secret-token"
    client = visitor(experiment_of(write_study(tmp_path)), PUBLIC, "https://study.example.org")
    joined = client.post(
        "/join",
        data={"consent": "1"},
        headers={"Origin": "https://study.example.org"},
        follow_redirects=False,
    )
    assert joined.status_code == 303
    assert "Secure" in joined.headers["set-cookie"]
    for origin in (
        "https://evil.example",
        "http://study.example.org",
        "https://study.example.org.evil",
        "null",
    ):
        assert client.post("/batch.json", headers={"Origin": origin}).status_code == 403
    assert client.post("/batch.json", headers={"Origin": "https://study.example.org"}).status_code == 200
    for ours in ("study.example.org", "STUDY.example.org:443"):
        assert client.get("/", headers={"Host": ours}).status_code == 200
    for past_the_proxy in (
        "study.example.org:444",
        "other.example.org",
        "127.0.0.1",
        f"127.0.0.1:{DOOR.port}",
        f"localhost:{DOOR.port}",
    ):
        assert client.get("/", headers={"Host": past_the_proxy}).status_code == 421
    local = {"Origin": f"http://127.0.0.1:{DOOR.port}"}
    assert client.post("/batch.json", headers=local).status_code == 403
    plain = visitor(experiment_of(tmp_path / "shapes.yaml"))  # without the option that name is not ours
    assert plain.get("/", headers={"Host": "study.example.org"}).status_code == 421


@pytest.mark.parametrize(
    "address",
    [
        "http://a.org",
        "https://a.org/study",
        "https://",
        "a.org",
        "https://u@a.org",
        "https://a.org:x",
        "https://a b",
    ],
)
def test_what_is_no_address_of_a_proxy_is_refused(address: str) -> None:
    assert public_origin("https://a.org:8443/") == "https://a.org:8443"
    with pytest.raises(AdverseError, match="no address of a proxy"):
        public_origin(address)


def finish(client: TestClient, experiment: Any) -> list[dict[str, Any]]:
    """Answer all that is asked; return what came with each trial."""
    told: list[dict[str, Any]] = []
    while client.post("/batch.json").json()["stage"] == "running":
        for number in range(100):
            told.append(client.post("/trial.json", json={"request": f"request-{len(told)}-{number}"}).json())
            trial = told[-1]["trial"]
            if trial is None:
                break
            truth = experiment.study.categories.index(experiment.state.trials[trial].truth)
            times = {"shown_ms": 100.0, "frame_ms": 16.7, "response_ms": 500}
            client.post("/answer.json", json={"trial": trial, "answer": truth, **times})
    return told


def test_a_worker_is_paid_once_and_may_be_forgotten(tmp_path: Path) -> None:
    study = write_study(tmp_path, platform=PLATFORM)
    experiment = experiment_of(study)
    client = visitor(experiment)
    consent = client.get("/", params={"PROLIFIC_PID": "w<1>"}).text
    assert "w&lt;1&gt;" in consent
    assert client.post("/join", data={"consent": "1", "worker": "w<1>"}).status_code == 400
    assert "worker-1" in client.get("/", params={"PROLIFIC_PID": "worker-1"}).text
    client.post("/join", data={"consent": "1", "worker": "worker-1"})
    other = visitor(experiment)
    assert other.post("/join", data={"consent": "1", "worker": "worker-1"}).status_code == 409
    assert "C0DE" not in client.get("/").text
    told = finish(client, experiment)
    assert [one["code"] for one in told] == [""] * (len(told) - 1) + ["C0DE-77"]
    assert "C0DE-77" in client.get("/").text
    assert client.post("/join", data={"consent": "1", "worker": "worker-3"}).status_code == 409  # nor sold on
    assert client.get("/", params={"PROLIFIC_PID": "worker-3"}).status_code == 409
    assert "C0DE-77" in client.get("/", params={"PROLIFIC_PID": "worker-1"}).text
    assert visitor(experiment).post("/join", data={"consent": "1", "worker": "worker-1"}).status_code == 409
    (row,) = csv.DictReader(io.StringIO(workers_csv(experiment.state, experiment.study)))
    assert (row["platform_id"], row["batches"], row["answers"]) == ("worker-1", "2", "8")
    counts = [why for _, _, why in answers_with_reason(experiment.state, experiment.study)].count("")
    assert (int(row["counted"]), row["failed_sanity"].isdigit()) == (counts, True)
    exported = CliRunner().invoke(app, ["humans", "export", str(study), "--workers", str(tmp_path / "w.csv")])
    assert exported.exit_code == 0, exported.output
    assert "worker-1" not in exported.output
    assert "worker-1" in (tmp_path / "w.csv").read_text()
    assert (tmp_path / "w.csv").stat().st_mode & 0o077 == 0
    for number in range(20):  # who only asks for images and answers none has done nothing to be paid for
        other.post("/join", data={"consent": "1", "worker": "worker-2"})
        other.post("/batch.json")
        told = [other.post("/trial.json", json={"request": f"skipping-{number}"}).json()]
    assert (told[-1]["trial"], told[-1]["progress"]["stage"], told[-1]["code"]) == (None, "finished", "")
    other.post("/erase")
    client.post("/erase")
    assert happened(study) == []
    assert "worker-1" not in (tmp_path / "shapes-answers" / "answers.jsonl").read_text()


def test_answers_belong_to_the_study_they_were_given_in(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    experiment_of(study)
    write_study(tmp_path, exposure_ms=150)  # nothing was shown yet
    quick_batch(experiment_of(study), "a")
    for changes in (
        {"exposure_ms": 100},
        {"exposure_ms": 150, "question": "Which?"},
        {"exposure_ms": 150, "batch": 6},
    ):
        write_study(tmp_path, **changes)
        with pytest.raises(StudyError, match="not what it was when its answers were given") as refused:
            experiment_of(study)
        assert refused.value.got == f"another value of {list(changes)[-1]}"
        told = CliRunner().invoke(app, ["humans", "export", str(study)])
        assert isinstance(told.exception, StudyError)
    write_study(tmp_path, exposure_ms=150, consent={"version": 2, "text": "Anew."}, platform=PLATFORM)
    experiment_of(study)
    assert CliRunner().invoke(app, ["humans", "export", str(study)]).exit_code == 0
    kept = tmp_path / "shapes-answers" / "study.json"
    text = kept.read_text()
    kept.write_text(text.replace('"exposure_ms": 150', '"exposure_ms": 100'))
    write_study(tmp_path, exposure_ms=100)  # both were changed: the answers carry what they were given under
    with pytest.raises(AdverseError, match="is not what its answers were given under"):
        experiment_of(study)
    kept.write_text("{")
    with pytest.raises(AdverseError, match="cannot be read"):
        experiment_of(study)
    kept.unlink()
    with pytest.raises(AdverseError, match="cannot be read"):
        experiment_of(study)
    assert isinstance(CliRunner().invoke(app, ["humans", "export", str(study)]).exception, AdverseError)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("add", "1 image added: disc/99"),
        ("remove", "1 image removed: disc/00"),
        ("replace", "1 image with other pixels: disc/00"),
    ],
)
def test_answers_belong_to_the_images_they_were_given_on(tmp_path: Path, change: str, words: str) -> None:
    study = write_study(tmp_path)
    quick_batch(experiment_of(study), "a")
    photos = tmp_path / "photos" / "disc"
    other = (photos / "01.png").read_bytes()
    if change == "remove":
        (photos / "00.png").unlink()
    else:
        (photos / ("99.png" if change == "add" else "00.png")).write_bytes(other)
    with pytest.raises(StudyError, match="not what it was") as refused:
        experiment_of(study)
    assert str(refused.value.got).startswith(words)
    exported = CliRunner().invoke(app, ["humans", "export", str(study)]).exception
    assert isinstance(exported, StudyError)
    assert exported.got == refused.value.got


def test_a_long_frame_excuses_nothing(tmp_path: Path) -> None:
    experiment = experiment_of(write_study(tmp_path))
    quick_batch(experiment, "a")
    trial = next(iter(experiment.state.trials.values()))
    assert not off_time(trial, Answer("square", 133.0, 33.4, 500))  # a screen of 30 Hz
    assert off_time(trial, Answer("square", 180.0, 100.0, 500))
    assert off_time(trial, Answer("square", 3000.0, 3_600_000.0, 500))


def test_only_the_owner_can_read_the_answers(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    file = read_human_study(study)
    with lock_study(file):
        experiment = experiment_of(study)
        quick_batch(experiment, "a")
        quick_batch(experiment, "b")
        experiment.erase(participant_of("b"))  # writes the file anew
    assert file.folder.stat().st_mode & 0o777 == 0o700
    for name in ("answers.jsonl", "study.json"):
        assert (file.folder / name).stat().st_mode & 0o077 == 0


def test_boxes_say_whether_an_image_contains_something(tmp_path: Path) -> None:
    write_study(tmp_path)
    names = sorted((tmp_path / "photos" / "disc").glob("*.png"))
    boxes = {0: (1, 30, 0), 1: (2, 30, 0), 2: (1, 5, 0), 3: (1, 30, 1)}  # class, side in pixels, crowd
    truth = {
        "images": [
            {"id": n, "file_name": path.name, "width": 72, "height": 72} for n, path in enumerate(names)
        ],
        "annotations": [
            {
                "id": n,
                "image_id": n,
                "category_id": c,
                "bbox": [9, 9, side, side],
                "area": side**2,
                "iscrowd": i,
            }
            for n, (c, side, i) in boxes.items()
        ],
        "categories": [{"id": 1, "name": "person"}, {"id": 2, "name": "dog"}],
    }
    root = tmp_path / "photos" / "boxed"
    (root / "images").mkdir(parents=True)
    for path in names:
        (root / "images" / path.name).write_bytes(path.read_bytes())
    (root / "truth.json").write_text(json.dumps(truth))
    contains = {"category": "a person", "classes": ["person"], "otherwise": "nobody", "smallest": 0.01}
    study = {
        **STUDY,
        "data": {"format": "coco", "root": "photos/boxed", "annotations": "truth.json"},
        "categories": ["a person", "nobody"],
        "contains": contains,
        "sanity": {"items": 0},
    }
    del study["truth"]
    path = tmp_path / "shapes.yaml"
    path.write_text(yaml.safe_dump(study))
    shown = {picture.id.split("/")[-1]: picture.truth for picture in experiment_of(path).stimuli.pictures}
    assert list(shown.values()) == [
        "a person",
        "nobody",
        "nobody",
        "nobody",
    ]  # too small, or a crowd: not shown
    path.write_text(yaml.safe_dump({**study, "contains": {**contains, "classes": ["persn"]}}))
    with pytest.raises(StudyError, match="no class 'persn'"):
        experiment_of(path)
    for wrong in ({"truth": {"nobody": ["dog"]}}, {"contains": {**contains, "otherwise": "else"}}):
        path.write_text(yaml.safe_dump({**study, **wrong}))
        with pytest.raises(StudyError):
            read_human_study(path)


def test_every_version_is_judged_as_often_as_asked_for(tmp_path: Path) -> None:
    study = write_study(tmp_path, images=40, batches=3, judgments=3, sanity={"items": 0})
    experiment = experiment_of(study)
    for secret in "abcdefghijklmno":
        for _ in range(3):
            quick_batch(experiment, secret)
    judged = Counter((t.image, t.role, t.transformation, t.wanted) for t in experiment.state.trials.values())
    by_count = Counter(judged.values())
    assert by_count[3] * 3 >= 0.9 * len(experiment.state.trials)
    assert max(judged.values()) == 3
    for person in experiment.state.people.values():
        images = [trial.image for trial in person.trials]
        assert len(set(images)) == len(images)
    adaptive = experiment_of(write_study(tmp_path / "adaptive", images=40, batches=3, sanity={"items": 0}))
    quick_batch(adaptive, "a")
    quick_batch(adaptive, "b")
    wanted = [t.wanted for t in adaptive.state.trials.values() if t.role == "changed"]
    assert len(set(wanted)) == len(wanted)
