"""The image that a classifier or segmenter loses: right before, wrong now, the largest fall."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pytest

from adverse.analysis.failures import IMAGE_COLUMNS, most_telling_image

Row = tuple[str, str, str, float | None, float | None, bool | None, bool | None]


def telling(*rows: Row, unanswered: Collection[tuple[str, str, str]] = ()) -> str | None:
    columns = zip(*rows, strict=True)
    table = pa.table(dict(zip(IMAGE_COLUMNS, map(list, columns), strict=True)))
    found = most_telling_image(table, ["fog"], unanswered=unanswered)
    return None if found is None else found["frame"]


KEPT: Row = ("a", "fog", "kept", 0.1, 0.9, True, True)
NEVER: Row = ("a", "fog", "never right", 0.0, 0.9, False, False)
SMALL: Row = ("a", "fog", "small fall", 0.3, 0.5, False, True)
LARGE: Row = ("a", "fog", "large fall", None, 0.8, False, True)
SEVERE: Row = ("a", "mud", "severe", 0.0, 1.0, False, True)
LOGIT: Row = ("b", "fog", "of another kind", 9.0, 12.0, False, True)
SURER: Row = ("b", "fog", "surer", 2.0, 15.0, False, True)


@pytest.mark.parametrize(
    ("rows", "frame"),
    [
        ((KEPT, NEVER), None),
        ((KEPT, SMALL, LARGE, SEVERE), "large fall"),
        ((KEPT, SEVERE), "severe"),
        ((SEVERE, LARGE, LOGIT, SURER), "surer"),
        ((SEVERE, LARGE, LOGIT), "of another kind"),
        ((("s", "fog", "segmented", 0.4, 0.7, None, None),), "segmented"),
        ((("s", "fog", "better", 0.8, 0.7, None, None),), None),
    ],
)
def test_the_most_telling_image(rows: tuple[Row, ...], frame: str | None) -> None:
    assert telling(*rows) == frame


@pytest.mark.parametrize(("rows", "frame"), [((LARGE, SMALL), "small fall"), ((LARGE,), "large fall")])
def test_an_image_on_which_the_sut_failed_is_shown_only_where_there_is_no_other(
    rows: tuple[Row, ...], frame: str
) -> None:
    assert telling(*rows, unanswered={LARGE[:3]}) == frame
