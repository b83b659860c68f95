"""The tables of a run: areas and scores by mutation, rankings, visual change, hazards and predictions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from adverse.analysis.failed_suts import FAILED
from adverse.analysis.fault_rates import retried_mark
from adverse.analysis.results import Summary
from adverse.analysis.score import ANY, ANY_MILD
from adverse.analysis.unseen import ALONE
from adverse.curves.detection_rates import REFERENCES
from adverse.curves.interval import interval_cells
from adverse.curves.predict import Predictions
from adverse.curves.ranking import equal, percent
from adverse.mutations.hazards import HazardCoverage
from adverse.report.intervals import interval_or_reason, summary_interval
from adverse.report.stops import tolerance_words
from adverse.report.table import Cell, Column, Row, Table, columns, setting_cell
from adverse.text import CLEAN, SCORE_WORDS, WORST_CASES, setting_text, shown

NO_ORDER = "no order can be told"
GROUP_WORDS = {"baseline": "", "mild": "mild", "severe": "severe", "worst": "worst case"}
COUNTED = ("logs", "frames", "people", "truths", "negative_frames", "quarantined", "faults")
HARDLY_LESS = 0.9
"""A curve that ends with more efficiency than this trades none of it for safety."""
NAMED_SETTINGS = 2
"""Settings that are named beside a hazard; the rest are counted, and named when looked at closely."""


def marked_name(summary: Summary, sut: str) -> str:
    """Return the name of a SUT, with a mark where requests to it had to be sent again."""
    counts = summary.data.get("counts", {}).get(sut)
    return f"{sut}{retried_mark(counts)}" if counts else sut


def level_tables(summary: Summary) -> list[Table]:
    """Return mutations x SUTs for every level, or the one table of a segmentation or classification run."""
    if summary.data["task"] != "detection":
        metric = str(summary.data["metric"])
        rows = [{**row, **row["scores"]} for row in summary.rows]
        return [_matrix(summary, metric, f"{SCORE_WORDS[metric]}, {SURVIVES}", rows, metric, "share")]
    levels = dict.fromkeys(str(row["level"]) for row in summary.rows)
    return [
        _matrix(
            summary,
            level,
            "; ".join(filter(None, (f"{level}: {WORST_CASE}, {SURVIVES}", tolerance_words(summary, level)))),
            [row for row in summary.rows if row["level"] == level],
            "robust_area",
            "robustness",
            caption=_ends_words(summary, level),
        )
        for level in levels
    ]


VARIANTS = {
    "ROC_A": ("", ", all images"),
    "ROC_B": ("", ", images without any"),
    "annotated": (", annotated positions", ""),
    "localized": (", positions from depth", ""),
}
"""What the variants of a level add to its safety and to its efficiency."""


def area_words(summary: Summary, level: str, *, axes: bool = True) -> str:
    """Say what the area of a level is of, in words of its two axes; with or without what these are called."""
    name, _, variant = level.partition("/")
    known: Mapping[str, Any] = summary.data.get("levels", {}).get(name, {})
    words = []
    for axis, more in zip(("safety", "efficiency"), VARIANTS.get(variant, ("", "")), strict=True):
        plain = f"{known[axis]}{more}" if axis in known else axis
        words.append(f"{axis} ({plain})" if axes and plain != axis else plain)
    return " over ".join(words)


def level_label(summary: Summary, level: str) -> str:
    """Return a level in plain words, with the name of its variant; its own name where it has no words."""
    name, _, variant = level.partition("/")
    title = summary.data.get("levels", {}).get(name, {}).get("title", "")
    return f"{title} ({variant or name})" if title else level


def _ends_words(summary: Summary, level: str) -> str:
    """Say whose clean curve keeps its efficiency to the end: its area is its highest safety."""
    flat = [
        str(row["sut"])
        for row in summary.rows
        if (row["level"], row["group"]) == (level, "baseline")
        and (row.get("least_efficiency") or 0.0) > HARDLY_LESS
    ]
    if not flat:
        return ""
    return (
        f"{', '.join(flat)}: no sensitivity costs efficiency here, so the area is the safety at the most "
        "sensitive end; what a threshold in use gives may be much less"
    )


def levels_table(summary: Summary) -> Table | None:
    """Return SUTs x levels: areas on clean frames and in the worst cases; None where there are no levels."""
    if summary.data["task"] != "detection" or not summary.rows:
        return None
    levels = list(dict.fromkeys(str(row["level"]) for row in summary.rows))
    suts = list(dict.fromkeys(str(row["sut"]) for row in summary.rows))
    rows = {(row["sut"], row["level"], row["setting"]): row for row in summary.rows}
    baseline = str(summary.rows[0]["setting"])
    lines: list[tuple[Cell, ...]] = []
    groups: dict[int, str] = {}
    records: list[dict[str, Any]] = []
    for condition, words in {baseline: CLEAN, **WORST_CASES}.items():
        groups[len(lines)] = words
        for sut in suts:
            mine = [rows.get((sut, level, condition)) for level in levels]
            named = Cell(sut, marked_name(summary, sut))
            lines.append((named, *(_figure(row, "robust_area", "robustness") for row in mine)))
            areas = {level: row and row["robust_area"] for level, row in zip(levels, mine, strict=True)}
            records.append({"condition": condition, "sut": sut, **areas})
    title = "all levels: area on clean frames, and in the worst case of clean and mutated"
    headings = (
        Column("SUT", align="left"),
        *(Column(level.replace("/", " "), ".3f") for level in levels),
    )
    return Table("levels", title, headings, tuple(lines), tuple(records), groups)


def metric_tables(summary: Summary) -> list[Table]:
    """Return mutations x SUTs for every metric that the study names."""
    rows = summary.data.get("metrics", ())
    return [
        _matrix(
            summary,
            name,
            _metric_title(name, title, mine),
            mine,
            "value",
            "share",
        )
        for name, title in summary.data.get("metric_titles", {}).items()
        if (mine := [row for row in rows if row["metric"] == name])
    ]


def metric_label(summary: Summary, name: str) -> str:
    """Return the name of a metric in words; that of a level as it is."""
    return name.replace("_", " ") if name in summary.data.get("metric_titles", {}) else name


def _metric_title(name: str, title: str, rows: Sequence[Row]) -> str:
    words = name.replace("_", " ")
    named = title if title.startswith(words) else f"{words}: {title}"
    return f"{named}; lower is better" if _lower(rows[0]) else f"{named}, {SURVIVES}"


def _lower(row: Row) -> bool:
    """Tell whether lower values of a metric are better; results of earlier versions do not say."""
    return bool(row.get("lower_is_better"))


def adr_table(summary: Summary) -> Table | None:
    """Return mutations x SUTs with the average detection rate; None where there is none."""
    rows = summary.data.get("adr")
    if not rows:
        return None
    title = f"ADR: average detection rate at {ADR_RATES}, {SURVIVES}"
    return _matrix(summary, "ADR", title, rows, "adr", "share")


ADR_RATES = f"{len(REFERENCES)} rates of false positives per image, {REFERENCES[0]:g} to {REFERENCES[-1]:g}"
WORST_CASE = "area in the worst case of clean and mutated"
SURVIVES = "and share of the clean figure that survives"


def ranking_table(summary: Summary) -> Table | None:
    """Return who is best under which condition, with probabilities."""
    rankings = summary.data.get("rankings")
    if not rankings:
        return None
    rows, records = [], []
    for ranking in rankings:
        places = ranking["places"]
        order = "".join(
            f"{_between(places, number)}{place['sut']} {place['value']:.3f}"
            for number, place in enumerate(places)
        )
        chance, why = ranking["probability"], ranking["why"]
        first = places[0] if places and places[0]["best"] is not None else None
        rows.append(
            (
                Cell(ranking["level"]),
                setting_cell(ranking["condition"]),
                Cell(f"{first['sut']} ({percent(first['best'])})" if first else "-"),
                Cell(order, shown(order, longest=400)),
                Cell(chance, f"{NO_ORDER}: {shown(why, longest=400)}" if chance is None else percent(chance)),
            )
        )
        records += [
            {
                "level": ranking["level"],
                "condition": ranking["condition"],
                "place": number,
                "sut": place["sut"],
                "area": place["value"],
                "probability_best": place["best"],
                "probability_ahead_of_next": place["ahead"],
                "probability_of_order": chance,
                "why_no_order": why,
            }
            for number, place in enumerate(places, start=1)
        ]
    headings = ("level", "condition", "best (probability)", "order by area", "probability of the whole order")
    return Table("rankings", "Rankings", columns(*headings, left=5), tuple(rows), tuple(records))


def visual_change_table(summary: Summary) -> Table | None:
    """Return median and range of visual change by setting; None where the study did not measure it."""
    settings = summary.data.get("visual_change")
    if not settings:
        return None
    rows = tuple(
        (
            setting_cell(row["setting"]),
            Cell(row["median"]),
            Cell(f"{row['least']:.3f} to {row['most']:.3f}"),
            Cell(row["unseen"], f"{row['unseen']:.0%}"),
            Cell(
                row["vsnr_db_median"],
                "infinite" if row["vsnr_db_median"] is None else f"{row['vsnr_db_median']:.1f} dB",
            ),
            Cell(row["ssim_median"]),
            Cell(row["mse_median"], f"{row['mse_median']:.1f}"),
            Cell(str(row["frames"])),
        )
        for row in settings
    )
    backends = " and ".join(sorted({row["backend"] for row in settings}))
    title = f"Visual change by {backends}: 0 is no worse to see, 1 is nothing left"
    headings = ("setting", "median", "range", "not seen in", "VSNR", "SSIM", "MSE", "frames")
    return Table("visual change", title, columns(*headings, format=".3f"), rows, tuple(settings))


def hazard_table(coverage: HazardCoverage) -> Table:
    """Return every hazard that a mutation stands for, and what exercised it."""
    rows, records = [], []
    for row in coverage.rows:
        if row.settings:
            text = ", ".join(setting_text(name) for name in row.settings[:NAMED_SETTINGS])
            more = len(row.settings) - NAMED_SETTINGS
            text += f" and {more} more" if more > 0 else ""
        else:
            text = f"not exercised; {', '.join(row.mutations)} would"
        where = (Cell(row.location), Cell(row.parameter), Cell(row.guide_word), Cell(row.words, row.words))
        rows.append((*where, Cell(text, text, note=", ".join(row.settings))))
        records.append(
            {
                "location": row.location,
                "parameter": row.parameter,
                "guide_word": row.guide_word,
                "meaning": row.words,
                "exercised": bool(row.settings),
                "settings": "; ".join(row.settings),
                "mutations": "; ".join(row.mutations),
            }
        )
    title = f"{len(coverage.exercised)} of {len(coverage.rows)} hazards were exercised"
    headings = ("location", "parameter", "guide word", "what happens", "exercised by")
    return Table("hazards", title, columns(*headings, left=5), tuple(rows), tuple(records))


def prediction_tables(summary: Summary) -> Iterator[Table]:
    """Yield how well contextual mutations can be predicted from simple ones."""
    predictions = summary.data.get("predictions", ())
    for contextual in dict.fromkeys(row["contextual"] for row in predictions):
        records = tuple(row for row in predictions if row["contextual"] == contextual)
        title = f"ADR under {contextual} from that under {records[0]['simple']}"
        yield _fit_table(f"predict {contextual}", title, records)


def unseen_table(summary: Summary) -> Table | None:
    """Return what the mutations of a run say about one that it does not have; None where they are too few."""
    records = tuple(row for row in summary.data.get("unseen", ()) if row["basis"] == ALONE)
    if not records:
        return None
    heads = ("level", "SUT", "clean", "worst case to be expected", "80 % interval", "held in")
    rows = tuple(
        (
            Cell(row["level"]),
            Cell(row["sut"]),
            Cell(row["clean_area"], f"{row['clean_area']:.2f}"),
            *_unseen_cells(row),
            Cell(row["coverage"], f"{row['inside']} of {row['left_out']}"),
        )
        for row in records
    )
    title = "Worst-case area under an untested mutation"
    return Table("unseen", title, columns(*heads, format=".2f"), rows, tuple(summary.data["unseen"]))


def _unseen_cells(row: Row) -> tuple[Cell, Cell]:
    if not row["told"]:
        return Cell(None, "cannot be told", tone="doubt"), Cell(None)
    return Cell(row["expected_area"]), Cell(None, f"{row['expected_low']:.2f} to {row['expected_high']:.2f}")


def prediction_table(prediction: Predictions, name: str, title: str) -> Table:
    """Return how well each SUT's scores were predicted."""
    records = tuple(
        {"sut": sut, "r2": fit.r2, "squared_correlation": fit.squared_correlation}
        for sut, fit in prediction.suts.items()
    )
    return _fit_table(name, title, records)


def _fit_table(name: str, title: str, records: tuple[Row, ...]) -> Table:
    rows = tuple((Cell(row["sut"]), Cell(row["r2"]), Cell(row["squared_correlation"])) for row in records)
    return Table(name, title, columns("SUT", "R²", "squared correlation", format=".3f"), rows, records)


def _between(places: Sequence[Row], number: int) -> str:
    if number == 0:
        return ""
    return " = " if equal(places[number]["value"], places[number - 1]["value"]) else " > "


def _matrix(
    summary: Summary, name: str, title: str, rows: Sequence[Row], value: str, share: str, *, caption: str = ""
) -> Table:
    suts = list(dict.fromkeys(str(row["sut"]) for row in rows))
    lines: list[tuple[Cell, ...]] = []
    groups: dict[int, str] = {}
    for group, words in GROUP_WORDS.items():
        settings = dict.fromkeys(str(row["setting"]) for row in rows if _group(row) == group)
        if settings and words:
            groups[len(lines)] = words
        for setting in settings:
            by_sut = {row["sut"]: row for row in rows if row["setting"] == setting}
            cells = (_figure(by_sut.get(sut), value, share) for sut in suts)
            lines.append(
                (setting_cell(setting, tone="" if words in ("mild", "severe") else "strong"), *cells)
            )
    records = tuple(_flat(row) for row in rows)
    headings = columns("mutation", *(marked_name(summary, sut) for sut in suts), format=".3f")
    return Table(name, title, headings, tuple(lines), records, groups, caption=caption)


def _group(row: Row) -> str:
    """Return the part of a table that a row stands in."""
    return "worst" if row["setting"] in (ANY, ANY_MILD) else str(row["group"])


def _figure(row: Row | None, value: str, share: str) -> Cell:
    if row is None:
        return Cell(None, note="not run")
    if row[value] is None:
        why = "the SUT failed on every image" if row["status"] == FAILED else "the data cannot answer this"
        note = f"{row['status']}: {why}"
        return Cell(None, str(row["status"]), note=note, tone="soft")
    marks = ("*" if row["faults"] else "") + ("?" if row["status"] == "incomplete" else "")
    left = math.nan if row[share] is None else row[share]
    return Cell(
        row[value],
        details=(interval_or_reason(row.get(f"{value}_interval")), *_at_0(row, value), *_over_clean(row)),
        note=_note(row, value, share),
        share=None if row["group"] == "baseline" or _lower(row) else left,
        marks=marks,
    )


def _at_0(row: Row, value: str) -> list[str]:
    """Return the same figure at tolerance 0, in words; nothing where there is none."""
    strict = row.get(f"{value}_at_0")
    return [] if strict is None else [f"{strict:.3f} at 0 m"]


def _over_clean(row: Row) -> list[str]:
    """Return how much a metric that should be low is above that on clean frames, in words."""
    over = row.get("over_clean") if _lower(row) and row["group"] != "baseline" else None
    return [] if over is None else [f"{over:+.3f} against clean"]


def _note(row: Row, value: str, share: str) -> str:
    parts = [f"{row['sut']} under {setting_text(row['setting'])}: {row[value]:.4f}"]
    if value == "robust_area" and row["area"] is not None and row["group"] != "baseline":
        parts.append(f"{row['area']:.4f} under the mutation alone")
    interval = row.get(f"{value}_interval")
    if interval:
        text = summary_interval(interval)
        parts.append(f"95 % interval {text}" if text else interval_or_reason(interval))
    if row[share] is not None and row["group"] != "baseline":
        where = " on the frames that could be used in both" if row["status"] == "incomplete" else ""
        parts.append(f"{row[share]:.1%} of its clean figure survives{where}")
        if text := summary_interval(row.get(f"{share}_interval")):
            parts.append(f"interval of that {text}")
    parts += _at_0(row, value)
    parts += [f"its curve ends at {axis} {row[f'least_{axis}']:.3f}" for axis in unreached(row)]
    counts = [f"{row[name]} {name.replace('_', ' ')}" for name in COUNTED if row.get(name)]
    return "; ".join([*parts, ", ".join(counts)])


def unreached(row: Row) -> list[str]:
    """Return what the curve of a figure does not bring down to 0: safety, efficiency."""
    return [axis for axis in ("safety", "efficiency") if (row.get(f"least_{axis}") or 0.0) > 0]


def _flat(row: Row) -> dict[str, Any]:
    """Return a row without nesting: intervals have cells of their own."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if name.endswith("_interval"):
            flat |= interval_cells(name.removesuffix("_interval"), value)
        elif isinstance(value, Mapping):
            flat |= {f"{name}.{key}": inner for key, inner in value.items()}
        elif not isinstance(value, list):
            flat[name] = value
    return flat
