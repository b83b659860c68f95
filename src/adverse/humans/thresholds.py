"""How much visual change people tolerate: a threshold by name, whatever it comes from.

A threshold is `published` (data that come with the package), the path of an estimates file that `adverse
humans estimate --out` wrote, or a number. Requirements only ask here, so they need not know which it was.

A threshold belongs to the backend that measured the visual change it was found with: 0.91 by wavelet VIF is
another image than 0.91 by pixel VIF. So every threshold carries its backend.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any, Literal, Self, cast, get_args

from adverse.content import digest
from adverse.curves.interval import Interval
from adverse.errors import StudyError, suggestion
from adverse.plain_files import read_plain
from adverse.strict_json import parse_json
from adverse.text import plain_number
from adverse.visual import BACKENDS, Backend

Kind = Literal["correctness", "prediction"]
"""What people keep up to the threshold: the right answer (t_c), or the answer they gave before (t_p)."""
KINDS: tuple[Kind, ...] = get_args(Kind)
SYMBOLS: dict[Kind, str] = {"correctness": "t_c", "prediction": "t_p"}

GIVEN = "given"
PUBLISHED = "published"
PUBLISHED_SOURCE = "published with the paper (ICSE 2022): cars in ImageNet images, shown for 200 ms"
PUBLISHED_CAVEAT = (
    "constants of the authors' repository; a re-run of their script on their answers differs in several cells"
)
PUBLISHED_FALLBACK = (
    "the authors' script found no drop here and took the second-to-last bin: people tolerate that or more"
)
FALLBACKS = (("t.rgb_shift", "correctness"), ("t.jpeg", "correctness"))
"""Published thresholds that are none, by the script on the authors' answers (docs/human-study.md)."""
AUTHORS_NAMES = {"jpeg_compression": "jpeg"}
"""What the authors call a transformation in their files, where the paper has another name."""
DEFAULT_BACKEND: Backend = "vif"
"""By which a bare number is meant: the paper's."""
FILE = "human_thresholds_2022.csv"
FORMAT = "adverse human thresholds"
FORMAT_VERSION = 4
CHECKSUM = "checksum"
FOUND, NOT_FOUND, INSUFFICIENT = "found", "not found", "insufficient"


@dataclass(frozen=True)
class Threshold:
    """How far people tolerate a transformation, in visual change.

    `value` is None where no drop was found: then people tolerate it at least up to `tolerated_to`, the end
    of the last populated bin, and how much further nobody knows. Otherwise the two are equal. `interval` is
    that of the drop, where people were asked; an infinite upper end is beyond the data. `people` is how often
    they succeeded, as (visual change, rate) along the spline. `fallback`: `tolerated_to` is that of
    the second-to-last bin, as the authors' script has it, and not of the last. `better`: the rule that found
    it is two-sided, and people do better there, not worse.
    """

    transformation: str
    kind: Kind
    value: float | None
    tolerated_to: float
    backend: Backend
    source: str
    interval: Interval | None = None
    note: str = ""
    people: tuple[tuple[float, float], ...] = ()
    fallback: bool = False
    better: bool = False

    @property
    def doubt(self) -> str:
        """What must be said wherever the threshold is used, as it is no drop that people showed; or nothing.

        >>> threshold("published", "t.jpeg", "correctness").doubt
        't_c 0.94 is a fallback: no drop was found, people tolerate that or more'
        """
        if self.better:
            return f"{self.symbol} {self.tolerated_to:g} is no drop: people do better there, not worse"
        if self.value is not None and not self.fallback:
            return ""
        source = "is a fallback" if self.fallback else "is where the answers end"
        return (
            f"{self.symbol} {self.tolerated_to:g} {source}: no drop was found, people tolerate that or more"
        )

    def plain(self) -> dict[str, Any]:
        """Return the threshold as JSON holds it."""
        return asdict(self) | {"interval": None if self.interval is None else self.interval.plain()}

    @classmethod
    def read(cls, plain: Mapping[str, Any]) -> Self:
        """Return the threshold that `plain` wrote."""
        people = tuple((float(change), float(rate)) for change, rate in plain["people"])
        interval = _interval(plain["value"], plain["interval"])
        return cls(**{**plain, "interval": interval, "people": people})

    @property
    def symbol(self) -> str:
        """t_c or t_p, as the paper calls it."""
        return SYMBOLS[self.kind]

    @property
    def words(self) -> str:
        """The threshold in words.

        >>> threshold("published", "t.frost", "correctness").words
        't_c = 0.84'
        """
        if self.value is None:
            last = "second-to-last" if self.fallback else "last"
            return f"{self.symbol}: tolerated up to {self.tolerated_to:g}, the {last} populated bin"
        return f"{self.symbol} = {self.value:g}"

    @property
    def origin(self) -> str:
        """Where the threshold comes from, and what is known about it.

        >>> threshold(0.5, "haze", "correctness").origin
        'a number given in the requirements; how sure it is, nobody said'
        """
        if self.source == GIVEN:
            return "a number given in the requirements; how sure it is, nobody said"
        words = self.source
        if self.interval is None:
            words += "" if self.value is None else "; no interval is known"
        elif self.interval.low is None or self.interval.high is None:
            words += f"; no interval: {self.interval.why}"
        else:
            high = "beyond the data" if math.isinf(self.interval.high) else f"{self.interval.high:g}"
            words += f"; {self.interval.percent} interval of where people begin to fail: "
            words += f"{self.interval.low:g} to {high}, from {self.interval.logs} participants"
        return f"{words}; {self.note}" if self.note else words


def threshold(
    name: str | float,
    transformation: str,
    kind: Kind,
    *,
    backend: Backend | None = None,
    where: str = "threshold",
    base: Path | None = None,
    option: str = "backend:",
) -> Threshold:
    """Return a threshold: `published`, the path of an estimates file (relative to `base`), or a number.

    `backend` is the one visual change will be measured with; a threshold found with another one is refused.
    A number has no backend of its own and takes this one, `vif` unless told. `option` is what users give it
    by.

    Only the very mutation that people were shown has one: `brightness` is another than `t.brightness`.

    >>> threshold("published", "t.defocus_blur", "prediction").value
    0.94
    >>> threshold(0.3, "haze", "correctness").backend
    'vif'
    """
    number = _number(name)
    if isinstance(name, str) and name == PUBLISHED:
        limit = _published(transformation, kind, where)
    elif number is None:
        limit = _from_file((base or Path()) / str(name), transformation, kind, where)
    else:
        return _given(number, transformation, kind, backend or DEFAULT_BACKEND, where)
    if backend is not None and backend != limit.backend:
        raise StudyError(
            f"the threshold was measured with {limit.backend}, but the check measures with {backend}",
            where=where,
            got=f"{limit.words} of {limit.transformation} by {limit.backend} ({limit.source})",
            wanted=f"a threshold by {backend}, or visual change by {limit.backend}",
            fix=f"Leave {option} out, which takes the threshold's own, or set it to {limit.backend}.",
        )
    return limit


def _given(number: float, transformation: str, kind: Kind, backend: Backend, where: str) -> Threshold:
    if not 0 < number <= 1:
        raise StudyError(
            "a visual change lies above 0 and is at most 1",
            where=where,
            got=f"{number:g}",
            wanted="a number such as 0.5",
            fix="Give the largest visual change that people tolerate, or the name published.",
        )
    return Threshold(transformation, kind, number, number, backend, GIVEN)


def published() -> list[Threshold]:
    """Return all published thresholds, t_c and t_p of each transformation, by the name of our mutation."""
    return [
        Threshold(
            row["mutation"],
            kind,
            float(row[SYMBOLS[kind]]),
            float(row[SYMBOLS[kind]]),
            cast("Backend", row["backend"]),
            PUBLISHED_SOURCE,
            note="; ".join(
                [PUBLISHED_CAVEAT, *[PUBLISHED_FALLBACK] * ((row["mutation"], kind) in FALLBACKS)]
            ),
            fallback=(row["mutation"], kind) in FALLBACKS,
        )
        for row in _rows()
        for kind in KINDS
    ]


def mutation_of(authors_name: str) -> str:
    """Return our mutation for the authors' name of a transformation; any other name stays as it is.

    >>> mutation_of("defocus blur"), mutation_of("jpeg_compression"), mutation_of("haze")
    ('t.defocus_blur', 't.jpeg', 'haze')
    """
    name = _plain(authors_name)
    for row in _rows():
        if AUTHORS_NAMES.get(name, name) in (_plain(row["name"]), row["mutation"].removeprefix("t.")):
            return row["mutation"]
    return authors_name


def _published(transformation: str, kind: Kind, where: str) -> Threshold:
    for row in _rows():
        if transformation == row["mutation"]:
            (published_one,) = [
                t for t in published() if (t.transformation, t.kind) == (row["mutation"], kind)
            ]
            return published_one
    raise StudyError(
        f"no threshold is published for {transformation!r}",
        where=where,
        wanted="one of the eight transformations, a number, or the file of a human study",
        fix=f"{suggestion(transformation, [row['mutation'] for row in _rows()])} For others, run a human "
        "study (docs/human-study.md) or give a number.",
    )


def _rows() -> list[dict[str, str]]:
    text = resources.files("adverse.humans").joinpath("data", FILE).read_text("utf-8")
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


def _from_file(path: Path, transformation: str, kind: Kind, where: str) -> Threshold:
    entries = read_estimates(path, where=where)
    for entry in entries:
        if entry["kind"] == kind and entry["transformation"] == transformation:
            return _estimated(entry, path)
    shown_names = sorted({entry["transformation"] for entry in entries if entry["kind"] == kind})
    raise StudyError(
        f"the human study has no {SYMBOLS[kind]} of {transformation!r}",
        where=f"{where}, {path}",
        fix=f"{suggestion(transformation, shown_names)} Give one that was shown to people, or a number.",
    )


def read_estimates(path: Path, *, where: str = "threshold") -> list[dict[str, Any]]:
    """Read the thresholds of an estimates file as plain data, or raise StudyError."""
    try:
        raw = read_plain(path)
    except OSError as error:
        raise StudyError(
            "the threshold is neither a number, nor 'published', nor a readable file",
            where=where,
            got=f"{path}: {error.strerror or error}",
            wanted="published, a number above 0 and at most 1, or the file of adverse humans estimate --out",
            fix="Correct the name.",
        ) from error
    data = parse_json(raw, path, "estimates")
    readable = (
        isinstance(data, dict) and data.get("format") == FORMAT and data.get("version") == FORMAT_VERSION
    )
    entries = data.get("thresholds") if readable else None
    if not isinstance(entries, list) or not all(_valid(entry) for entry in entries):
        raise StudyError(
            "the file holds no thresholds of a human study",
            where=f"{where}, {path}",
            wanted=f"the JSON that adverse humans estimate --out writes (version {FORMAT_VERSION})",
            fix="Write it again: adverse humans estimate ANSWERS.csv --out estimates.json",
        )
    if data.get(CHECKSUM) != checksum(data):
        raise StudyError(
            "the estimates were changed after they were written",
            where=f"{where}, {path}",
            got="another checksum than the file names",
            wanted="what adverse humans estimate wrote, unchanged",
            fix="Write it again: adverse humans estimate ANSWERS.csv --out estimates.json; or give a number.",
        )
    for number, entry in enumerate(entries):
        contradiction = _contradiction(entry)
        if contradiction:
            raise StudyError(
                "a threshold of the human study contradicts itself",
                where=f"{where}, {path}, thresholds[{number}]: {SYMBOLS[entry['kind']]} of "
                f"{entry['transformation']}",
                got=contradiction,
                wanted="what adverse humans estimate wrote, unchanged",
                fix="Write it again: adverse humans estimate ANSWERS.csv --out estimates.json",
            )
    return entries


def checksum(data: Mapping[str, Any]) -> str:
    """Return the checksum of all else that an estimates file holds, however its JSON is laid out."""
    return digest(json.dumps({**data, CHECKSUM: None}, sort_keys=True), size=16)


def _contradiction(entry: Mapping[str, Any]) -> str:
    """Say what in an entry cannot be true at once; empty where all of it can."""
    value, end, interval = entry.get("value"), entry.get("tolerated_to"), entry.get("interval")
    if value is not None and value != end:
        return f"value {value:g}, but tolerated_to {end:g}"
    if interval is None or interval["status"] == "refused":
        return ""
    low, high = interval["low"], 1.0 if interval["high"] is None else interval["high"]
    if low > high:
        return f"an interval from {low:g} to {high:g}"
    if value is not None and not low <= value <= high:
        return f"an interval from {low:g} to {high:g} that does not hold the value {value:g}"
    return ""


def _estimated(entry: dict[str, Any], path: Path) -> Threshold:
    if entry["status"] == INSUFFICIENT:
        raise StudyError(
            f"the human study could not estimate {SYMBOLS[entry['kind']]} of {entry['transformation']}",
            where=str(path),
            got=str(entry.get("why", "too few answers")),
            fix="Collect more answers, or give a number.",
        )
    value = None if entry["status"] == NOT_FOUND else float(entry["value"])
    if value == 0:
        raise StudyError(
            f"people of the human study tolerate no visible change by {entry['transformation']}",
            where=str(path),
            got=f"{SYMBOLS[entry['kind']]} = 0",
            wanted="a threshold above 0: nothing can be asked of a SUT without any change",
            fix="Look at the answers to the least changed images, collect more of them, or give a number.",
        )
    return Threshold(
        entry["transformation"],
        entry["kind"],
        value,
        float(entry["tolerated_to"]),
        entry["backend"],
        f"estimated from human answers{_rules_of(entry)}: {path.name}",
        interval=_interval(value, entry.get("interval")),
        note=str(entry.get("why", "")),
        people=tuple(
            ((each["low"] + each["high"]) / 2, min(max(each["fitted"], 0.0), 1.0))
            for each in entry.get("bins", ())
        ),
        fallback=value is None and bool(entry.get("compat")),
        better=bool(entry.get("better")),
    )


def _rules_of(entry: Mapping[str, Any]) -> str:
    return f" by the rules of {entry['compat']}" if entry.get("compat") else ""


def _valid(entry: object) -> bool:
    if not isinstance(entry, dict) or entry.get("kind") not in KINDS:
        return False
    if not isinstance(entry.get("transformation"), str) or entry.get("backend") not in BACKENDS:
        return False
    status, value, end = entry.get("status"), entry.get("value"), entry.get("tolerated_to")
    if status == INSUFFICIENT:
        return value is None
    fits = _is_change(end) and (_is_change(value) if status == FOUND else value is None)
    known = fits and _is_interval(entry.get("interval")) and _are_bins(entry.get("bins", []))
    return status in (FOUND, NOT_FOUND) and known


def _are_bins(bins: object) -> bool:
    return isinstance(bins, list) and all(
        isinstance(each, dict)
        and _is_change(each.get("low"))
        and _is_change(each.get("high"))
        and _is_number(each.get("fitted"))
        for each in bins
    )


def _is_interval(plain: object) -> bool:
    if plain is None:
        return True
    if not isinstance(plain, dict) or set(plain) != {field.name for field in fields(Interval)} - {"value"}:
        return False
    if plain["status"] == "refused":
        return plain["low"] is None and plain["high"] is None
    return _is_change(plain["low"]) and (plain["high"] is None or _is_change(plain["high"]))


def _interval(value: float | None, plain: Mapping[str, Any] | None) -> Interval | None:
    """Return the interval of a drop as a file holds it: an upper end that is missing is beyond the data."""
    if plain is None:
        return None
    beyond = plain["status"] != "refused" and plain["high"] is None
    return Interval.read(value, {**plain, "high": math.inf} if beyond else plain)


def _is_change(value: object) -> bool:
    return _is_number(value) and 0 <= float(str(value)) <= 1


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _number(name: str | float) -> float | None:
    if isinstance(name, str):
        number = plain_number(name.strip())
        return None if math.isnan(number) else number
    return None if isinstance(name, bool) else float(name)


def _plain(name: str) -> str:
    return name.strip().lower().replace(" ", "_").replace("-", "_").replace("colour", "color")
