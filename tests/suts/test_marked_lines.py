from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adverse.suts.wire import NOISE_BYTES, LineTooLongError, MarkedLines

LINES = st.lists(
    st.one_of(
        st.binary(max_size=20).filter(lambda text: b"\n" not in text),
        st.binary(max_size=20).filter(lambda text: b"\n" not in text).map(lambda text: b"@adverse " + text),
        st.sampled_from([b"@", b"@adverse", b"@adverse ", b"@adversity", b" @adverse x"]),
    ),
    max_size=8,
)


@given(LINES, st.data())
def test_where_the_stream_is_cut_changes_nothing(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    reader = MarkedLines(b"@adverse ", 1000)
    found: list[bytes] = []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += reader.feed(stream[:size])
        stream = stream[size:]
    assert found == [line for line in lines if line.startswith(b"@adverse ")]


def test_noise_without_end_is_forgotten_but_a_reply_without_end_is_an_error() -> None:
    reader = MarkedLines(b"@adverse ", 1000)
    for _ in range(100):
        assert reader.feed(b"." * 1000) == []
    assert len(reader.noise()) == NOISE_BYTES
    assert reader.feed(b"\n@adverse 1\n") == [b"@adverse 1"]
    with pytest.raises(LineTooLongError):
        reader.feed(b"@adverse " + b"1" * 1000)
