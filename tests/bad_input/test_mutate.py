"""`adverse mutate` on what it cannot work on, or write."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from adverse.data.images import write_image

from .cases import CANNOT_RUN
from .command import adverse_here
from .good_study import HEIGHT, WIDTH, picture


@pytest.fixture
def here(tmp_path: Path) -> Path:
    write_image(tmp_path / "in.png", picture(0))
    (tmp_path / "page.png").write_bytes(b"<html>404</html>")
    np.save(tmp_path / "small.npy", np.ones((3, 3), np.float32))
    np.save(tmp_path / "holes.npy", np.full((HEIGHT, WIDTH), np.nan, np.float32))
    return tmp_path


@pytest.mark.parametrize(
    ("source", "target", "mutation", "more", "words"),
    [
        ("no.png", "out.png", "identity", (), ("no.png", "is missing")),
        ("page.png", "out.png", "identity", (), ("page.png", "a web page")),
        ("in.png", "out.gif", "identity", (), ("out.gif", "PNG or JPEG")),
        ("in.png", "no/out.png", "identity", (), ("no/out.png", "No such file")),
        ("in.png", "out.png", "gausian_blur", (), ("Did you mean 'gaussian_blur'?",)),
        ("in.png", "out.png", "gaussian_blur(sigma=2)", (), ("Did you mean 'sigma_px'?",)),
        ("in.png", "out.png", "gaussian_blur", (), ("needs the option 'sigma_px'",)),
        ("in.png", "out.png", "gaussian_blur(sigma_px=", (), ("name(option=value",)),
        ("in.png", "out.png", "brightness(scale=-1)", (), ("scale", "-1", ">= 0")),
        ("in.png", "out.png", "haze(visibility_m=50)", (), ("haze needs depth", "'in'", "--depth")),
        ("in.png", "out.png", "haze(visibility_m=50)", ("no.npy",), ("no.npy", "is missing")),
        ("in.png", "out.png", "haze(visibility_m=50)", ("small.npy",), ("small.npy", "3x3 pixels")),
        (
            "in.png",
            "out.png",
            "haze(visibility_m=50)",
            ("holes.npy",),
            ("holes.npy", "NaN, zero or negative"),
        ),
    ],
)
def test_mutate(
    here: Path, source: str, target: str, mutation: str, more: tuple[str, ...], words: tuple[str, ...]
) -> None:
    depth = [part for name in more for part in ("--depth", here / name)]
    said = adverse_here("mutate", here / source, here / target, "--mutation", mutation, *depth)
    said.expect(CANNOT_RUN, *words, "  fix ")
    assert not (here / target).exists()


@pytest.mark.parametrize(
    ("study", "more", "words"),
    [
        ("name: a\ndata: {format: folder, rot: x}\n", (), ("mix.yaml, line 2, data.rot", "'root'")),
        ("name: a\nmutations: ['brightness(scale=-1)']\n", (), ("mix.yaml, line 2", "-1")),
        ("name: a\n", ("--mutation", "brightness(scale=-1)"), ("mix.yaml, mutations[0] brightness.scale",)),
        ("- 1\n", ("--seed", "3"), ("mix.yaml", "mapping")),
    ],
)
def test_errors_name_the_study_that_was_given(
    tmp_path: Path, study: str, more: tuple[str, ...], words: tuple[str, ...]
) -> None:
    data = "" if "data:" in study or study.startswith("-") else "data: {format: folder, root: .}\n"
    (tmp_path / "mix.yaml").write_text(study + data)
    write_image(tmp_path / "a.png", picture(0))
    said = adverse_here(
        "mutate", tmp_path / "mix.yaml", tmp_path / "out", "--mix", "clean=1,mutated=1", *more
    )
    said.expect(CANNOT_RUN, *words)
    assert "study.yaml" not in said.text
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("target", [("out",), ("--sheet", "sheet.png")])
def test_errors_name_the_data_that_was_given(here: Path, target: tuple[str, ...]) -> None:
    where = [part if part.startswith("--") else here / part for part in target]
    said = adverse_here("mutate", here, *where, "--mutation", "brightness(scale=-1)")
    said.expect(CANNOT_RUN, f"{here}, mutations[0] brightness.scale")
