"""What the server promises a participant and a researcher, asked without a network or a browser."""

from __future__ import annotations

import errno
import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from adverse.errors import DataError, LockedError, StoreError, StudyError
from adverse.humans.answers import Judgments, majorities, read_judgments
from adverse.humans.experiment import Experiment
from adverse.humans.records import Records, State, export
from adverse.humans.server import erase, lock_study, read_state, reopen_door
from adverse.humans.stimuli import Stimuli, population
from adverse.humans.study_file import read_human_study
from human_studies import (
    HOSTILE,
    QuickStimuli,
    experiment_of,
    happened,
    participant,
    quick_batch,
    visitor,
    write_study,
)

ON_TIME: dict[str, Any] = {"shown_ms": 100.0, "frame_ms": 16.7, "response_ms": 500}


def started(client: TestClient, request: str = "request-0") -> Any:
    return client.post("/trial.json", json={"request": request}).json()


def said(client: TestClient, trial: str, answer: int = 0, **changes: Any) -> Any:
    return client.post("/answer.json", json={"trial": trial, "answer": answer, **ON_TIME, **changes})


def whole_batch(client: TestClient, experiment: Experiment, *, right: bool = True, **times: Any) -> list[str]:
    """Go through a batch; return the trials."""
    client.post("/batch.json")
    done = []
    while (trial := started(client, f"request-{len(experiment.state.started)}")["trial"]) is not None:
        truth = experiment.study.categories.index(experiment.state.trials[trial].truth)
        assert said(client, trial, truth if right else 1 - truth, **times).json() == {"kept": True}
        done.append(trial)
    return done


def answered(study: Path) -> Counter[str]:
    return Counter(record["trial"] for record in happened(study) if record["kind"] == "answered")


def test_nobody_gets_in_without_token_name_and_consent(tmp_path: Path) -> None:
    experiment = experiment_of(write_study(tmp_path))
    client = visitor(experiment)
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 421
    assert TestClient(client.app, base_url="http://127.0.0.1:8123").get("/").status_code == 403
    for address in ("/batch.json", "/trial.json", "/answer.json"):
        assert client.post(address, json={}).status_code == 403
    assert client.get("/image/x.png").status_code == 403
    client.post("/join", data={"consent": "0"})
    assert "want to take part" in client.get("/").text
    assert experiment.state.people == {}
    assert client.post("/join", data={"consent": "1"}, headers={"Origin": "http://evil"}).status_code == 403


@pytest.mark.fault(56)
def test_nothing_that_tells_who_somebody_is_gets_kept(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    experiment = experiment_of(study)
    client = participant(experiment)
    client.headers["User-Agent"] = "telltale-browser"
    whole_batch(client, experiment)
    kept = b"".join(path.read_bytes() for path in (tmp_path / "shapes-answers").iterdir())
    secret = client.cookies["adverse_8123_participant"]
    for telltale in (b"telltale", b"testclient", b"127.0.0.1", secret.encode()):
        assert telltale not in kept
    keys = {key for record in happened(study) for key in record}
    wanted = {"answer", "consent", "frame_ms", "kind", "participant", "request", "response_ms", "shown_ms"}
    assert keys == wanted | {"study", "trial", "trials"}  # study: the checksum of the study


@pytest.mark.fault(55)
def test_one_trial_posted_by_many_at_once_is_one_row(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    experiment = experiment_of(study)
    client = participant(experiment)
    client.post("/batch.json")
    trial = started(client)["trial"]
    person = next(iter(experiment.state.people.values()))
    barrier = threading.Barrier(8)
    codes: list[int] = []

    def post(number: int) -> None:
        again = TestClient(client.app, base_url="http://127.0.0.1:8123", cookies=dict(client.cookies))
        barrier.wait()
        codes.append(said(again, trial, number % 2).status_code)

    threads = [threading.Thread(target=post, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [200] * 8
    assert answered(study) == {trial: 1}
    assert len(person.batches) == 1


@pytest.mark.fault(55)
def test_a_second_tab_gets_another_trial_and_a_repeated_request_the_same(tmp_path: Path) -> None:
    experiment = experiment_of(write_study(tmp_path))
    client = participant(experiment)
    client.post("/batch.json")
    first = started(client, "request-a")["trial"]
    assert started(client, "request-a")["trial"] == first
    other = started(client, "request-b")["trial"]
    assert other != first
    assert said(client, other).status_code == 200
    assert said(client, first).status_code == 200


@pytest.mark.fault(55)
def test_two_tabs_that_ask_for_a_batch_share_it(tmp_path: Path) -> None:
    experiment = experiment_of(write_study(tmp_path))
    client = participant(experiment)
    assert client.post("/batch.json").json() == client.post("/batch.json").json()
    (person,) = experiment.state.people.values()
    assert len(person.batches) == 1


@pytest.mark.fault(55)
def test_a_restart_goes_on_where_it_was(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    client = participant(experiment_of(study))
    client.post("/batch.json")
    trial = started(client)["trial"]
    again = experiment_of(study)
    back = visitor(again)
    back.cookies.update(dict(client.cookies))
    assert said(back, trial).json() == {"kept": True}
    assert started(back, "request-9")["progress"]["left"] == 2
    assert answered(study) == {trial: 1}


def test_a_torn_last_line_does_not_count_and_other_damage_is_told(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    client = participant(experiment_of(study))
    client.post("/batch.json")
    path = tmp_path / "shapes-answers" / "answers.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b"0123 {torn")
    experiment_of(study)
    assert path.read_bytes() == whole
    path.write_bytes(whole.replace(b"joined", b"joyned"))
    with pytest.raises(StoreError, match="line 1"):
        experiment_of(study)


@pytest.mark.parametrize(
    "changes",
    [
        {"answer": 2},
        {"answer": -1},
        {"answer": "1"},
        {"answer": True},
        {"shown_ms": None},
        {"shown_ms": -1},
        {"shown_ms": 10**400},
        {"frame_ms": 1e9},
        {"response_ms": "5"},
    ],
)
def test_an_answer_that_means_nothing_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    experiment = experiment_of(write_study(tmp_path))
    client = participant(experiment)
    client.post("/batch.json")
    told = {"trial": started(client)["trial"], "answer": 0, **ON_TIME, **changes}
    assert client.post("/answer.json", json=told).status_code == 400
    assert experiment.state.answers == {}


def test_only_ones_own_trials_can_be_seen_and_answered_and_only_when_shown(tmp_path: Path) -> None:
    experiment = experiment_of(write_study(tmp_path))
    one, other = participant(experiment), participant(experiment)
    one.post("/batch.json")
    trial = started(one)["trial"]
    (person,) = (person for person in experiment.state.people.values() if person.batches)
    later = person.batches[0][1].id
    for client, asked in ((other, trial), (one, later), (one, "nothing")):
        assert client.get(f"/image/{asked}.png").status_code == 404
        assert said(client, asked).status_code == 409
    assert one.get(f"/image/{trial}.png").headers["content-type"] == "image/png"
    assert one.get(f"/mask/{trial}.png").status_code == 200
    assert one.get(f"/other/{trial}.png").status_code == 404
    assert one.post("/trial.json", content=b"{").status_code == 400
    assert one.post("/trial.json", json={"request": "short"}).status_code == 400


def test_nobody_sees_two_versions_of_an_image(tmp_path: Path) -> None:
    experiment = experiment_of(
        write_study(tmp_path, images=24, batches=9, qualification={"items": 3, "right": 1})
    )
    for _ in range(3):
        client = participant(experiment)
        while client.post("/batch.json").json()["stage"] == "running":
            whole_batch(client, experiment)
        assert "That was all" not in client.get("/").text  # said by the script, from the stage
        assert 'data-stage="finished"' in client.get("/").text
    for person in experiment.state.people.values():
        images = [trial.image for trial in person.trials]
        assert len(images) == len(set(images)) == 24
        roles = [Counter(trial.role for trial in batch) for batch in person.batches[1:-1]]
        assert all(count["sanity"] == 1 for count in roles)
    places = [
        [trial.role for trial in batch].index("sanity")
        for person in experiment.state.people.values()
        for batch in person.batches[1:]
        if any(trial.role == "sanity" for trial in batch)
    ]
    assert len(set(places)) > 1


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for the disk: for tests of a thousand answers."""
    monkeypatch.setattr("os.fsync", lambda _: None)


@pytest.mark.usefixtures("hasty")
def test_the_whole_range_of_visual_change_is_covered_evenly(tmp_path: Path) -> None:
    names = ["t.contrast", "t.jpeg"]
    study = write_study(tmp_path, images=60, batch=20, transformations=names, sanity={"items": 0})
    experiment = experiment_of(study)
    for number in range(24):
        for _ in range(2):
            quick_batch(experiment, f"secret {number}")
    for name in names:
        filled = population(experiment.state, name)
        assert filled.sum() == 240
        assert filled.max() - filled.min() <= 1
    changed = Counter(trial.image for trial in experiment.state.trials.values() if trial.role == "changed")
    assert max(changed.values()) - min(changed.values()) <= 6


@pytest.mark.usefixtures("hasty")
def test_what_cannot_be_reached_is_not_tried_for_ever(tmp_path: Path) -> None:
    class Weak(QuickStimuli):
        reach = 0.3

    file = read_human_study(write_study(tmp_path, images=60, batch=20, sanity={"items": 0}))
    file.folder.mkdir()
    experiment = Experiment(file, Weak(file))
    for number in range(20):
        quick_batch(experiment, f"secret {number}")
    reached = population(experiment.state, "t.contrast")[:30]
    assert reached.min() >= 1


def test_off_time_unanswered_and_inattentive_trials_are_left_out_and_counted(tmp_path: Path) -> None:
    study = write_study(tmp_path, images=20, batches=1)
    experiment = experiment_of(study)
    whole_batch(participant(experiment), experiment)
    whole_batch(participant(experiment), experiment, shown_ms=100 + 17.3)
    whole_batch(participant(experiment), experiment, right=False)
    lost = participant(experiment)
    lost.post("/batch.json")
    while started(lost, f"request-{len(experiment.state.started)}")["trial"]:
        pass
    found = export(experiment.state, experiment.study)
    assert Counter(one.reason for one in found.excluded) == {
        "off time": 3,
        "failed sanity": 3,
        "unanswered": 3,
    }
    assert any("9 trials left out" in line for line in found.words())
    assert found.excluded_csv().count("\n") == 10


def test_who_leaves_the_easy_images_out_was_not_looking(tmp_path: Path) -> None:
    """The page knows how long an image is to be seen, so it can tell which are easy."""
    experiment = experiment_of(write_study(tmp_path, batches=1))
    client = participant(experiment)
    client.post("/batch.json")
    while trial := started(client, f"request-{len(experiment.state.started)}")["trial"]:
        if experiment.state.trials[trial].role != "sanity":
            client.post("/answer.json", json={"trial": trial, "answer": 0, **ON_TIME})
    found = export(experiment.state, experiment.study)
    assert (found.rows, {one.reason for one in found.excluded}) == ((), {"failed sanity"})


@pytest.mark.parametrize("shown_ms", [100 - 16.7, 100.0, 100 + 16.7])
def test_off_by_one_frame_still_counts(tmp_path: Path, shown_ms: float) -> None:
    experiment = experiment_of(write_study(tmp_path, batches=1))
    whole_batch(participant(experiment), experiment, shown_ms=shown_ms)
    assert export(experiment.state, experiment.study).excluded == ()


def test_who_does_not_qualify_ends_there(tmp_path: Path) -> None:
    experiment = experiment_of(write_study(tmp_path, qualification={"items": 4, "right": 3}))
    client = participant(experiment)
    whole_batch(client, experiment, right=False)
    assert client.post("/batch.json").json()["stage"] == "failed"
    able = participant(experiment)
    whole_batch(able, experiment)
    assert able.post("/batch.json").json()["stage"] == "running"


def test_the_export_is_what_the_estimation_reads_with_anothers_answer_on_the_original(tmp_path: Path) -> None:
    study = write_study(tmp_path, images=20, batch=10, batches=2)
    experiment = experiment_of(study)
    for _ in range(6):
        client = participant(experiment)
        for _ in range(2):
            whole_batch(client, experiment)
    file = tmp_path / "answers.csv"
    file.write_text(export(read_state(read_human_study(study)), experiment.study).csv())
    found = read_judgments(file)
    roles = Counter(trial.role for trial in experiment.state.trials.values())
    assert (len(found), len(found.originals)) == (roles["changed"] + roles["original"], roles["original"])
    assert found.measured_by == experiment.study.visual_change
    assert found.seen_before == 0
    assert set(found.truth.tolist()) == {HOSTILE, "square"}
    seen = np.isin(found.image, found.originals.image)
    assert seen.mean() > 0.8
    most = majorities(found.originals)
    assert all(
        most[image] == truth for image, truth in zip(found.image[seen], found.truth[seen], strict=True)
    )  # all answered rightly


def test_a_study_goes_on_by_the_backend_it_began_with(tmp_path: Path) -> None:
    study = write_study(tmp_path, visual_change="vifp")
    quick_batch(experiment_of(study), "secret")
    assert set(read_exported(study, tmp_path).backend.tolist()) == {"vifp"}
    write_study(tmp_path, visual_change="vif")
    with pytest.raises(StudyError, match=r"another backend.*visual_change: vif; wanted: vifp"):
        experiment_of(study)
    with pytest.raises(StudyError, match="another backend"):
        read_exported(study, tmp_path)


def read_exported(study: Path, folder: Path) -> Judgments:
    file, read = folder / "answers.csv", read_human_study(study)
    file.write_text(export(read_state(read), read.study).csv())
    return read_judgments(file)


@pytest.mark.fault(56)
def test_a_new_consent_text_is_asked_for_again_and_keeps_the_answers(tmp_path: Path) -> None:
    experiment = experiment_of(write_study(tmp_path))
    client = participant(experiment)
    whole_batch(client, experiment)
    renewed = experiment_of(write_study(tmp_path, consent={"version": 2, "text": "New."}))
    back = visitor(renewed)
    back.cookies.update(dict(client.cookies))
    assert "New." in back.get("/").text
    assert back.post("/batch.json").status_code == 403
    back.post("/join", data={"consent": "2"})
    assert len(renewed.state.people) == 1
    assert 'data-stage="break"' in back.get("/").text


@pytest.mark.fault(56)
def test_one_participant_is_erased_and_the_others_stay(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    experiment = experiment_of(study)
    one, other = participant(experiment), participant(experiment)
    for client in (one, other):
        whole_batch(client, experiment)
    gone, stays = experiment.state.people
    file = read_human_study(study)
    erase(file, gone)
    assert {record["participant"] for record in happened(study)} == {stays}
    assert gone.encode() not in (file.folder / "answers.jsonl").read_bytes()
    with pytest.raises(DataError, match="no such participant"):
        erase(file, gone)
    with lock_study(file), pytest.raises(LockedError, match="being served"):
        erase(file, stays)


@pytest.mark.fault(56)
def test_whoever_erased_themselves_writes_no_more(tmp_path: Path) -> None:
    experiment = experiment_of(write_study(tmp_path))
    client = participant(experiment)
    client.post("/batch.json")
    (person,) = experiment.state.people.values()
    experiment.erase(person.id)
    with pytest.raises(DataError, match="erased"):
        experiment.start(person, "request-1")
    with pytest.raises(DataError, match="erased"):
        experiment.next_batch(person)
    assert client.post("/batch.json").status_code == 403
    assert Records(experiment.file.folder).read() == []


def test_the_address_stays_after_a_restart_and_is_nobody_elses(tmp_path: Path) -> None:
    file = read_human_study(write_study(tmp_path))
    file.folder.mkdir()
    door, bound = reopen_door(file, "127.0.0.1", 0)
    bound.listen()
    again, other = reopen_door(file, "127.0.0.1", 0)  # the first still listens
    bound.close()
    assert again.port != door.port
    assert again.token == door.token
    other.close()
    third, last = reopen_door(file, "127.0.0.1", 0)
    last.close()
    assert third == again
    assert (file.folder / "door.json").stat().st_mode & 0o777 == 0o600


def test_pictures_are_the_same_whenever_they_are_made_and_the_memory_is_bounded(tmp_path: Path) -> None:
    file = read_human_study(write_study(tmp_path, size_px=66))
    first, second = Stimuli(file), Stimuli(file, most_bytes=1)
    name = first.pictures[0].id
    for wanted in (0.2, 0.6):
        made = first.changed(name, "t.contrast", wanted)
        assert made == second.changed(name, "t.contrast", wanted)
        assert made.dv == pytest.approx(wanted, abs=0.011)
    assert (made.width, made.height) == (66, 66)
    assert first.mask("trial", 64, 48) == second.mask("trial", 64, 48)
    assert first.mask("trial", 64, 48) != first.mask("other", 64, 48)
    assert len(second._kept) == 1


def test_records_are_read_while_the_study_is_served(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    experiment = experiment_of(study)
    with lock_study(experiment.file):
        whole_batch(participant(experiment), experiment)
        assert len(State(Records(experiment.file.folder).read()).answers) == 4
    assert json.dumps(happened(study))


def test_a_full_disk_is_asked_again_and_leaves_no_half_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = write_study(tmp_path)
    experiment = experiment_of(study)
    client = participant(experiment)
    client.post("/batch.json")
    trial = started(client)["trial"]

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("os.fsync", full)
        answer = said(client, trial)
        assert (answer.status_code, "disk is full" in answer.json()["error"]) == (507, True)
    assert answered(study) == {}
    assert said(client, trial).json() == {"kept": True}
    assert answered(study) == {trial: 1}
    assert len(experiment_of(study).state.answers) == 1
