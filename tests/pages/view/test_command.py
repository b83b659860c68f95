"""`adverse view` as a user meets it: what cannot be served is said, and Ctrl-C ends it quietly."""

from __future__ import annotations

import re
import signal
import socket
from pathlib import Path

import httpx
import pytest

from adverse import serving
from bad_input.command import adverse_here, started


def test_it_serves_until_interrupted(run: Path) -> None:
    with started("-m", "adverse", "view", run) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        (address,) = re.findall(r"http://127\.0\.0\.1:\d+/\?token=\S+", line)
        with httpx.Client(follow_redirects=True, timeout=None) as client:
            assert client.get(address).status_code == 200
            assert "keen" in client.get(address).text
            assert client.get(address, headers={"host": "elsewhere.example"}).status_code == 421
        assert httpx.get(address.partition("?")[0], timeout=None).status_code == 403
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate()
        assert process.returncode == 0
        assert said == "Ctrl-C ends it\n"


def test_a_port_in_use_is_said(run: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        said = adverse_here("view", run, "--port", str(taken.getsockname()[1]))
    said.expect(2, "cannot listen there", "--port")


def test_what_is_no_run_is_said(tmp_path: Path) -> None:
    adverse_here("view", tmp_path).expect(2, "not a run folder")


@pytest.mark.fault(53)
def test_other_hosts_come_with_a_warning(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "serve", lambda _door, bound, _routes: bound.close())
    assert "warning" not in adverse_here("view", run).text
    assert (
        "warning: 0.0.0.0 can be reached from other machines"
        in adverse_here("view", run, "--host", "0.0.0.0").text
    )
