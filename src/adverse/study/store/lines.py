"""Lines that carry a check of their own text, so that a torn or changed one is known."""

from __future__ import annotations

from adverse.hashes import digest


def checked_line(body: str) -> bytes:
    """Return a body, itself one line of text, as a line with its check in front."""
    return f"{digest(body, size=8)} {body}\n".encode()


def body_of(line: bytes) -> bytes | None:
    r"""Return the body of a line, or None where it is torn or does not match its check.

    >>> body_of(checked_line("{}")), body_of(b"0 {}\n")
    (b'{}', None)
    """
    check, _, body = line.rstrip(b"\n").partition(b" ")
    return body if line.endswith(b"\n") and digest(body, size=8).encode() == check else None
