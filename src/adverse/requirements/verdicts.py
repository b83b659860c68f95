"""Verdicts: a rule or requirement, what was measured, and the outcome; and the files they are written to.

A verdict is never rounded up: what could not be decided is INCONCLUSIVE, and says why. Commands keep theirs
in verdicts/ of the run folder, one file each, sealed with the state of the run they are about. Nobody takes
them at their word: gate and report compute every verdict again.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from adverse.curves.interval import Interval
from adverse.errors import EXIT_GATE_FAILED, EXIT_INCOMPLETE, EXIT_PASS, StoreError
from adverse.store.read import Store
from adverse.store.seal_list import read_seals
from adverse.store.seals import broken_seal, made_by


class Outcome(StrEnum):
    """What became of a requirement."""

    PASS = "PASS"  # noqa: S105 - not a password
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"


@dataclass(frozen=True)
class Verdict:
    """One requirement, what it asks for, what was measured, and what follows."""

    name: str
    requirement: str
    """In words a reviewer reads: 'the lower bound of rPC of yolo is at least 50'."""
    required: float | None
    measured: float | None
    """None where there was nothing to measure."""
    interval: Interval | None
    outcome: Outcome
    reason: str = ""
    """Why, where the numbers alone do not say it."""
    sut: str = ""
    """The SUT that it is about; empty: none, or all of them."""
    remarks: tuple[str, ...] = ()
    """What a reader must know of SUT and run whatever the outcome is: failed and retried requests, say."""

    def __post_init__(self) -> None:
        interval = (self.interval.low, self.interval.high) if self.interval else ()
        numbers = (self.required, self.measured, *interval)
        if any(number is not None and not math.isfinite(number) for number in numbers):
            raise ValueError(f"a verdict holds finite numbers or none, got {numbers}")


def exit_code(verdicts: Iterable[Verdict]) -> int:
    """Return what a gate ends with: 1 if anything failed, else 3 if anything is open, else 0.

    No verdict at all is no evidence.

    >>> exit_code([])
    3
    """
    outcomes = [verdict.outcome for verdict in verdicts]
    if Outcome.FAIL in outcomes:
        return EXIT_GATE_FAILED
    if not outcomes or Outcome.INCONCLUSIVE in outcomes:
        return EXIT_INCOMPLETE
    return EXIT_PASS


def to_json(verdicts: Sequence[Verdict]) -> str:
    """Return the verdicts as a JSON list, one object each."""
    rows = [
        asdict(verdict) | {"interval": verdict.interval.plain() if verdict.interval else None}
        for verdict in verdicts
    ]
    return json.dumps(rows, indent=1, allow_nan=False) + "\n"


def from_json(text: str, *, where: str) -> list[Verdict]:
    """Read what `to_json` wrote."""
    try:
        rows = json.loads(text)
        if not isinstance(rows, list):
            raise TypeError(f"{type(rows).__name__} instead of a list")
        return [_read(row) for row in rows]
    except (ValueError, TypeError, KeyError) as error:
        raise StoreError(
            "this is not a list of verdicts",
            where=where,
            got=f"{type(error).__name__}: {error}",
            fix="Run the command that writes it again: adverse check or adverse requirements check.",
        ) from error


def _read(row: dict[str, Any]) -> Verdict:
    interval = row["interval"]
    return Verdict(
        **row
        | {
            "outcome": Outcome(row["outcome"]),
            "interval": None if interval is None else Interval.read(row["measured"], interval),
            "remarks": tuple(row.get("remarks", ())),
        }
    )


def to_junit(verdicts: Sequence[Verdict], *, suite: str) -> str:
    """Return JUnit XML: a failure where a rule fails, an error where it could not be decided.

    A rule left open is not 'skipped': CI systems show skipped tests as fine.
    """
    count = Counter(verdict.outcome for verdict in verdicts)
    totals = {
        "tests": str(len(verdicts)),
        "failures": str(count[Outcome.FAIL]),
        "errors": str(count[Outcome.INCONCLUSIVE]),
    }
    root = ET.Element("testsuites", totals)
    group = ET.SubElement(root, "testsuite", {"name": _printable(suite), **totals})
    for verdict in verdicts:
        case = ET.SubElement(
            group, "testcase", {"classname": _printable(suite), "name": _printable(verdict.name), "time": "0"}
        )
        text = _printable(f"{verdict.requirement}; {numbers(verdict)}. {verdict.reason}".strip())
        text += _printable(_noted(verdict))
        if verdict.outcome is Outcome.FAIL:
            ET.SubElement(case, "failure", {"message": text, "type": "rule"}).text = text
        elif verdict.outcome is Outcome.INCONCLUSIVE:
            ET.SubElement(case, "error", {"message": text, "type": "inconclusive"}).text = text
        else:
            ET.SubElement(case, "system-out").text = text
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _noted(verdict: Verdict) -> str:
    return f" (Note: {'; '.join(verdict.remarks)})" if verdict.remarks else ""


def same(one: Verdict, other: Verdict) -> bool:
    """Tell whether two verdicts say the same; numbers may differ by the rounding of another processor.

    >>> same(Verdict("a", "b", 1, 0.3, None, Outcome.PASS), Verdict("a", "b", 1, 0.1 * 3, None, Outcome.PASS))
    True
    """
    if (one.name, one.requirement, one.outcome) != (other.name, other.requirement, other.outcome):
        return False
    return all(
        a is b is None or (a is not None and b is not None and math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9))
        for a, b in zip(_numbers(one), _numbers(other), strict=True)
    )


def _numbers(verdict: Verdict) -> tuple[float | None, ...]:
    interval = (verdict.interval.low, verdict.interval.high) if verdict.interval else (None, None)
    return verdict.required, verdict.measured, *interval


WORST_FIRST = (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS)


def numbers(verdict: Verdict) -> str:
    """Return the numbers of a verdict in words.

    >>> interval = Interval(0.75, 0.7, 0.8, 0.95, "jackknife", 30, "ok")
    >>> numbers(Verdict("a", "b", 0.8, 0.75, interval, Outcome.FAIL))
    'required 0.8, measured 0.75 [0.7, 0.8]'
    """
    parts = [] if verdict.required is None else [f"required {verdict.required:.4g}"]
    if verdict.measured is None:
        parts.append("nothing measured")
    else:
        both = verdict.interval.text(between=", ") if verdict.interval else ""
        parts.append(f"measured {verdict.measured:.4g}" + (f" [{both}]" if both else ""))
    return ", ".join(parts)


def _printable(text: str) -> str:
    r"""Replace what XML cannot hold, and what would reorder the line it stands in.

    >>> ascii(_printable("a\x00b\u202ec"))
    "'a\\ufffdb\\ufffdc'"
    """
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def read_verdicts(store: Store) -> dict[str, list[Verdict]]:
    """Return the verdicts that a run keeps, by the name of their file; each file must be sealed.

    They are what the file says. Who shows them takes `gate.saved_verdicts`, which computes them again.
    """
    seals = read_seals(store.folder)
    verdicts = {}
    for path in sorted(store.folder.verdicts.glob("*.json")):
        name = f"{path.parent.name}/{path.name}"
        again = made_by(store.folder, name)
        broken = broken_seal(store.folder, name, seals.get(name), store.state, again)
        if broken is not None:
            raise broken
        verdicts[path.stem] = from_json(path.read_text("utf-8"), where=str(path))
    return verdicts


def write_verdicts(store: Store, name: str, verdicts: Sequence[Verdict]) -> Path:
    """Write the verdicts of one command, in place of those it left before."""
    (path,) = store.write({f"verdicts/{name}.json": to_json(verdicts).encode()})
    return path
