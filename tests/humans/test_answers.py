"""Answers are read strictly, and whatever is wrong is found by row and column."""

from __future__ import annotations

from pathlib import Path

import pytest

from adverse.errors import DataError
from adverse.humans.answers import COLUMNS, judgments_of, read_judgments, to_csv
from adverse.humans.estimates_file import counts_in_words

HEADER = ",".join(COLUMNS)
GOOD = "p1,i1,haze,0.25,vif,car,car"


def read(folder: Path, *lines: str) -> str:
    path = folder / "answers.csv"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError) as caught:
        read_judgments(path)
    assert caught.value.fix
    return str(caught.value)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    rows = [("p,1", 'i "1"', "haze", 0.125, "vifp", "a car", "car"), ("p2", "i1", "ö", 1.0, "vifp", "x", "")]
    path = tmp_path / "answers.csv"
    path.write_text(to_csv(judgments_of(rows)))
    found = read_judgments(path)
    assert [
        (*row[:3], float(row[3]), *row[4:])
        for row in zip(*(getattr(found, name).tolist() for name in COLUMNS), strict=True)
    ] == rows


def test_columns_may_stand_in_any_order_after_a_mark_of_utf8(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    names = list(reversed(COLUMNS))
    path.write_text("\ufeff" + ",".join(names) + "\r\n" + ",".join(reversed(GOOD.split(","))) + "\r\n")
    assert read_judgments(path).dv.tolist() == [0.25]


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("p1,i1,haze,1.01,vif,car,car", "row 3, column dv; got: '1.01'; wanted: a visual change from 0 to 1"),
        ("p1,i1,haze,nan,vif,car,car", "row 3, column dv"),
        ("p1,i1,haze,-0.1,vif,car,car", "row 3, column dv"),
        ("p1,i1,haze,much,vif,car,car", "row 3, column dv; got: 'much'"),
        ("p1,i1,haze,0_1,vif,car,car", "row 3, column dv; got: '0_1'"),
        ("p2,i1,original,0,vif,bus,bus", "rows 2 and 3, column truth; got: 'car' and 'bus' for image i1"),
        ("p2,i1,haze,0.2,vif,CAR,", "row 3, column answer; got: 'CAR'; wanted: 'car', as it is"),
        ("p2,i1,Original,0,vif,car,car", "row 3, column transformation; got: 'Original'"),
        ("p1,i1,haze,,vif,car,car", "row 3, column dv; got: an empty cell"),
        (",i1,haze,0.5,vif,car,car", "row 3, column participant"),
        ("p1,i1,haze,0.5,vif,,car", "row 3, column answer"),
        ("p1,i1,haze,0.5,vif,car", "row 3; got: 6 cells; wanted: 7"),
        ("p1,i1,haze,0.5,vif,car,car,car", "row 3; got: 8 cells"),
        (f"p1,{'i' * 1001},haze,0.5,vif,car,car", "row 3, column image"),
        ("p1,i1,haze,0.5,ssim,car,car", "row 3, column backend; got: 'ssim'; wanted: vif or vifp or vif2"),
        ("p1,i1,haze,0.5,vifp,car,car", "answers 1 and 2; got: vif and vifp; wanted: one backend"),
        ("p1,i1,original,0.5,vif,car,car", "row 3, column dv; got: '0.5'; wanted: 0 for an original"),
        (GOOD, "answers 1 and 2; got: participant p1, image i1, haze, dv 0.25"),
        ('p1,"i1,haze,0.5,vif,car,car', "row 3"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, line: str, place: str) -> None:
    assert place in read(tmp_path, HEADER, GOOD, line)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (HEADER.replace("truth", "trut"), "Did you mean 'truth'?"),
        (HEADER.replace(",truth", ""), "lack a column"),
        (HEADER + ",truth", "a duplicate column"),
        ("", "lack a column"),
    ],
)
def test_a_bad_header_is_named(tmp_path: Path, header: str, words: str) -> None:
    assert words in read(tmp_path, header, GOOD)


def test_no_answers_are_an_error_and_so_is_no_file(tmp_path: Path) -> None:
    assert "no answers" in read(tmp_path, HEADER)
    with pytest.raises(DataError, match="cannot be read"):
        read_judgments(tmp_path / "missing.csv")
    (tmp_path / "latin.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not UTF-8"):
        read_judgments(tmp_path / "latin.csv")


def test_seeing_an_image_twice_is_counted() -> None:
    rows = [("p", "i", "original", 0.0, "vif", "a", "a"), ("p", "i", "haze", 0.5, "vif", "a", "a")]
    assert judgments_of(rows).seen_before == 1


def test_answers_that_are_no_category_are_named() -> None:
    rows = [
        (f"p{n}", f"i{n}", "haze", 0.5, "vif", answer, "car")
        for n, answer in enumerate(["car", "x", "x", "y"])
    ]
    assert judgments_of(rows).strangers == {"x": 2, "y": 1}
    assert "3 answers of no category that is a truth count as wrong: 'x' (2), 'y' (1)." in counts_in_words(
        judgments_of(rows)
    )
    unknown = judgments_of([(*row[:6], "") for row in rows])
    assert not unknown.strangers  # nobody knows the truth: t_p needs none
