"""Paths that data name: none may leave the data set's folder, and any name the disk takes is fine."""

from __future__ import annotations

from collections.abc import Callable

from .cases import CANNOT_RUN, INCOMPLETE, PASS, Case, case, table
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


@table(
    case("../", name("../../model.bin"), CANNOT_RUN, FIELD, "leaves its folder", "'../../model.bin'"),
    case("absolute", name("/etc/passwd"), CANNOT_RUN, FIELD, "the path is absolute", "'/etc/passwd'"),
    case("home", name("~/2.png"), CANNOT_RUN, FIELD, "the path is absolute"),
    case("empty", name(""), CANNOT_RUN, FIELD, "the path is empty"),
    case("NUL", name("2\0.png"), CANNOT_RUN, FIELD, "NUL"),
    case("symlink out", link_out, CANNOT_RUN, FIELD, "by a symlink", "'2.png'"),
    case("symlink in circles", link_in_circles, CANNOT_RUN, FIELD, "cannot be used", "Rename the file"),
    case(
        "300 characters", name("x" * 296 + ".png"), CANNOT_RUN, FIELD, "(300 characters)", "Rename the file"
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


def test_a_name_of_the_folder_format_leads_out(folder: GoodStudy) -> None:
    folder.truth["images"][AT]["file_name"] = "../outside.png"
    folder.adverse().expect(CANNOT_RUN, FIELD, "leaves its folder", "fix")


def test_a_symlinked_log_leads_out(folder: GoodStudy) -> None:
    outside = folder.folder / "outside"
    folder.log.rename(outside)
    folder.log.symlink_to(outside)
    folder.adverse().expect(CANNOT_RUN, "by a symlink", "'b", "fix")
