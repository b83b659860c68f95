"""A study's folder and its door: one server at a time, and the same address after a restart.

A participant's page keeps asking when the server is gone; with the port and the token kept in the folder, it
finds the server again.
"""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path

from adverse.errors import AdverseError, LockedError
from adverse.humans.experiment import Experiment
from adverse.humans.records import Records, State, without
from adverse.humans.study_file import HumanStudyFile
from adverse.serving import Door, open_door
from adverse.store.durable import storage_errors, write_file
from adverse.store.owned_folder import locked

DOOR = "door.json"


@contextlib.contextmanager
def held(file: HumanStudyFile) -> Iterator[None]:
    """Hold the study's folder, making it if it is not there."""
    with storage_errors(file.folder):
        file.folder.mkdir(parents=True, exist_ok=True)
    try:
        with locked(file.folder):
            yield
    except LockedError as error:
        raise LockedError(
            "the study is being served",
            where=error.where,
            got=error.got,
            fix="Stop that server first (Ctrl-C). Participants can erase their answers on its page.",
        ) from error


def door_of(file: HumanStudyFile, host: str, port: int) -> tuple[Door, socket.socket]:
    """Open the door that the study had before; at another port where that one is taken and none was given."""
    kept = _kept(file.folder / DOOR)
    token = kept.get("token")
    token = token if isinstance(token, str) else None
    before = kept.get("port")
    try:
        door, bound = open_door(host, port or (before if isinstance(before, int) else 0), token=token)
    except AdverseError:
        if port or not before:
            raise
        door, bound = open_door(host, 0, token=token)
    path = file.folder / DOOR
    write_file(path, json.dumps({"port": door.port, "token": door.token}).encode())
    with storage_errors(path):
        path.chmod(0o600)
    return door, bound


def warm_up(experiment: Experiment) -> None:
    """Make one changed image before anybody waits for it; a data set that cannot be read is found here."""
    first = experiment.stimuli.pictures[0].id
    for name in experiment.study.transformations:
        experiment.stimuli.changed(first, name, 0.5)


def past(file: HumanStudyFile) -> State:
    """Return what happened in a study, whether or not it is being served."""
    return State(Records(file.folder).read())


def erase(file: HumanStudyFile, participant: str) -> None:
    """Erase a participant from the folder of a study that is not being served."""
    with held(file):
        records = Records(file.folder)
        records.mend()
        records.replace(without(records, participant))


def _kept(path: Path) -> dict[str, object]:
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(path.read_text())
        if isinstance(found, dict) and path.stat().st_mode & 0o077 == 0:
            return found
    return {}
