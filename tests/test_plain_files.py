"""Whatever a user names is opened only if it is a plain file: a pipe would block, a device never end."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adverse.benchmarks.classification import read_reference
from adverse.content import content_hash
from adverse.curves.predict import read_table
from adverse.data.coco import coco
from adverse.data.depth import DepthFile
from adverse.data.images import ImageFile
from adverse.data.rig import read_camera
from adverse.errors import AdverseError
from adverse.humans.answers import read_judgments
from adverse.humans.thresholds import read_estimates
from adverse.plain_files import NotPlainFileError, read_plain
from adverse.plugins import bind, built_in
from adverse.strict_yaml import read_yaml
from adverse.suts.fingerprint import fingerprint
from adverse.suts.hog_views import read_hog_model
from adverse.suts.predictions import predictions
from adverse.user_files import load_python


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link_to_pipe(path: Path) -> None:
    pipe(path.with_name("pipe"))
    path.symlink_to(path.with_name("pipe"))


def bound_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the name of a socket is at most 107 bytes
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


KINDS = [pipe, device, link_to_pipe, bound_socket]


@pytest.mark.parametrize("make", KINDS)
def test_what_is_no_plain_file_is_refused_at_once(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "x"
    make(path)
    with pytest.raises(NotPlainFileError, match=r"it is a (named pipe|device|socket), not a plain file"):
        read_plain(path)
    assert content_hash(path) == "missing"


def test_a_plain_file_is_read_and_a_folder_is_not(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"0123456789")
    (tmp_path / "link").symlink_to("x")
    assert read_plain(tmp_path / "link") == b"0123456789"
    assert read_plain(tmp_path / "x", 4) == b"01234"
    with pytest.raises(NotPlainFileError, match="folder"):
        read_plain(tmp_path)


def _sut(adapter: str) -> Callable[[Path], Any]:
    def described(path: Path) -> Any:
        plugin = next(plugin for plugin in built_in("sut") if plugin.name == adapter)
        return fingerprint(plugin, bind(plugin, {"model": str(path)}, where="suts"))

    return described


@pytest.mark.parametrize(
    "read",
    [
        lambda path: coco(path.parent, annotations=path.name, images="."),
        lambda path: ImageFile(path)(),
        lambda path: DepthFile(path.rename(path.with_suffix(".npy")), ImageFile(path))(),
        read_camera,
        read_yaml,
        read_table,
        read_reference,
        read_judgments,
        read_estimates,
        read_hog_model,
        lambda path: predictions(path.with_name("{mutation}.json"), categories={1: "person"}).recall(
            1, path.stem
        ),
        lambda path: predictions(path.with_name("{mutation}.json"), annotations=path),
        _sut("onnx"),
        _sut("opencv-dnn"),
        load_python,
    ],
)
def test_nothing_waits_for_a_pipe(tmp_path: Path, read: Callable[[Path], Any]) -> None:
    path = tmp_path / "x.json"
    os.mkfifo(path)
    with pytest.raises(AdverseError) as caught:
        read(path)
    assert caught.value.fix
