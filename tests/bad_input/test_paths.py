"""Paths that data name: none may leave the data set's folder, and any name the disk takes is fine."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import pytest

from .cases import CANNOT_RUN, INCOMPLETE, PASS, Case, case, table
from .command import adverse_here, run_alone
from .good_study import GoodStudy

AT = 2
FIELD = "truth.json, field images[2].file_name"


def name(text: str) -> Callable[[GoodStudy], object]:
    """List the picture under this name, wherever that leads."""
    return lambda study: study.truth["images"][AT].update(file_name=text)


def renamed(text: str) -> Callable[[GoodStudy], object]:
    """Give the picture this name, and list it under it."""

    def spoil(study: GoodStudy) -> None:
        target = study.images[AT].with_name(text)
        target.parent.mkdir(parents=True, exist_ok=True)
        study.images[AT].rename(target)
        name(text)(study)

    return spoil


def link_out(study: GoodStudy) -> None:
    outside = study.folder / "outside.png"
    study.images[AT].rename(outside)
    study.images[AT].symlink_to(outside)


def link_in_circles(study: GoodStudy) -> None:
    study.images[AT].unlink()
    study.images[AT].symlink_to(study.images[AT])


@pytest.mark.fault(24, cases=["../", "absolute", "home", "NUL", "symlink out", "symlink in circles"])
@pytest.mark.fault(
    25,
    cases=[
        "300 characters",
        "half a character",
        "200 characters",
        "unicode",
        "spaces, quotes and brackets",
        "a line break",
        "unicode, missing",
    ],
)
@table(
    case("../", name("../../model.bin"), CANNOT_RUN, FIELD, "leaves its folder", "'../../model.bin'"),
    case("absolute", name("/etc/passwd"), CANNOT_RUN, FIELD, "the path is absolute", "'/etc/passwd'"),
    case("home", name("~/2.png"), CANNOT_RUN, FIELD, "the path is absolute"),
    case("empty", name(""), CANNOT_RUN, FIELD, "the path is empty"),
    case("NUL", name("2\0.png"), CANNOT_RUN, FIELD, "NUL"),
    case("symlink out", link_out, CANNOT_RUN, FIELD, "through a symlink", "'2.png'"),
    case("symlink in circles", link_in_circles, CANNOT_RUN, FIELD, "cannot be used", "Rename the file"),
    case(
        "300 characters", name("x" * 296 + ".png"), CANNOT_RUN, FIELD, "(300 characters)", "Rename the file"
    ),
    case(
        "half a character",
        name("\ud800.png"),
        CANNOT_RUN,
        "truth.json",
        "half a character, \\ud800, at line 1",
    ),
    case("200 characters", renamed("x" * 196 + ".png"), PASS, "results:"),
    case("unicode", renamed("Füße 路 🚶 e\u0301.png"), PASS, "results:"),
    case("spaces, quotes and brackets", renamed('it\'s [bold] {x} %s \\ "2".png'), PASS, "results:"),
    case("a line break", renamed("a\nb.png"), PASS, "results:"),
    case(
        "unicode, missing",
        name("Füße.png"),
        INCOMPLETE,
        "frame 'Füße'",
        "images/Füße.png",
        "is missing",
        "Fix:",
    ),
)
def test_names(row: Case, coco: GoodStudy) -> None:
    row.check(coco)


@pytest.mark.fault(24)
def test_a_name_of_the_folder_format_leads_out(folder: GoodStudy) -> None:
    folder.truth["images"][AT]["file_name"] = "../outside.png"
    folder.adverse().expect(CANNOT_RUN, FIELD, "leaves its folder", "fix")


@pytest.mark.fault(24)
def test_a_symlinked_log_leads_out(folder: GoodStudy) -> None:
    outside = folder.folder / "outside"
    folder.log.rename(outside)
    folder.log.symlink_to(outside)
    folder.adverse().expect(CANNOT_RUN, "through a symlink", "'b", "fix")


@pytest.mark.fault(25)
@pytest.mark.skipif(sys.platform != "linux", reason="other systems take only text")
def test_a_name_that_is_no_text(folder: GoodStudy) -> None:
    """On Linux a file name is any bytes; without a truth file every image counts."""
    folder.images[2].rename(folder.images[2].with_name(os.fsdecode(b"\xff.png")))
    folder.study["data"]["truth"] = None
    folder.write()
    folder.annotations.unlink()
    (folder.data / "a" / "poses.csv").unlink()
    said = adverse_here("run", folder.file, "--out", folder.run, "--workers", "0")
    said.expect(CANNOT_RUN, str(folder.images[2].parent), r"\udcff.png", "Rename the file")


def test_a_name_that_the_terminal_cannot_show(coco: GoodStudy) -> None:
    name("Füße.png")(coco)
    coco.write()
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    said = run_alone("-m", "adverse", "run", coco.file, "--out", coco.run, "--workers", "0", env=ascii_only)
    said.expect(INCOMPLETE, r"F\xfc\xdfe.png", "is missing", "Fix:")
