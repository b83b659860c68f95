"""What a reader must know before trusting the tables of a run, in plain words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from adverse.analysis.fault_rates import MARK_WORDS, flaky_share, outage_share, retried_mark
from adverse.analysis.results import Summary
from adverse.curves.interval import CONSTRUCTED
from adverse.report.run_tables import unreached
from adverse.report.table import Row
from adverse.store.folder import sut_log
from adverse.store.records import MUTATION_ENDED, OUTAGES
from adverse.text import counted, setting_text

SHOWN_CHANGES = 4
CUT_SCORE = 0.01
"""Lowest score above which a system is taken to drop detections by itself, if it gave many."""
MANY_DETECTIONS = 100
LISTED_TROUBLES = 5
"""Troubles that are listed in full, for each kind; all of them are in troubles.parquet."""

AGAIN = "adverse run --retry-faults asks again"
NEVER_STOPS_REASON = "the truth never stops"
NEVER_STOPS = (
    "With hold: speed the robot stops only for people within the control radius of an image, so use "
    "hold: obstacle or logs that end nearer; with hold: obstacle nobody is in the way."
)


def remarks(summary: Summary) -> list[str]:
    """Return what a reader must know before trusting the tables, one line each, what is wrong first."""
    rankings = [f"- {line}" for line in _of_rankings(summary)]
    return [*troubles(summary), *rankings, *caveats(summary)]


def quality(summary: Summary) -> list[str]:
    """Return what is odd about the data and the run, one line each; what belongs to a line is indented."""
    return [*troubles(summary), *caveats(summary)]


def caveats(summary: Summary) -> list[str]:
    """Return how far thresholds and curves reach, and what of the data was normalised."""
    lines = _of_sensitivity(summary)
    if summary.data["task"] == "detection":
        lines += [*_cut_scores(summary), *_curve_ends(summary)]
    lines += _classes_never_right(summary)
    lines += [f"{count} x {note}" for note, count in summary.data["notes"].items() if count]
    return [f"- {line}" for line in lines]


def troubles(summary: Summary) -> list[str]:
    """Return what went wrong: SUTs that fail, frames that could not be used, figures that are not there."""
    lines: list[str] = []
    worst_first = sorted(summary.data["counts"].items(), key=lambda item: -item[1]["fault"])
    for sut, counts in worst_first:
        if counts["fault"]:
            failed = f"{sut}: failed on {counts['fault']} of {counts['planned']} images"
            if sut in summary.failed_everywhere:
                commonest = summary.failed_everywhere[sut]
                lines.append(
                    f"{failed}, on every one; its figures are no result. Commonest fault: {commonest}"
                )
            else:
                lines.append(f"{failed}; {_faults_count(summary)}; {_rate(counts)}; {_see_log(sut)}; {AGAIN}")
            lines += _listed(_folded(row for row in summary.data["troubles"] if row["sut"] == sut))
        if summary.data["task"] == "detection" and counts["ok"] and sut not in summary.data["scores"]:
            lines.append(
                f"{sut}: no detection at all in {counts['ok']} answers; check its size, classes and scaling"
            )
        lines += _of_attempts(summary, sut)
        if counts["nondeterministic"]:
            lines.append(
                f"{sut}: nondeterministic: gave different answers to the same image; its figures are one "
                "draw of many"
            )
        if counts.get("order_dependent"):
            lines.append(
                f"{sut}: its answers depend on the order of images: {counts['order_dependent']} of those "
                "that were shown again after others got another answer; its figures hold for this order alone"
            )
    lines += _marks_explained(summary)
    refused = [row for row in summary.data["troubles"] if row["status"] == "quarantined"]
    ended = [row for row in refused if row["reason"].startswith(MUTATION_ENDED)]
    for setting in dict.fromkeys(setting for row in ended for setting in row["settings"]):
        mine = [row for row in ended if setting in row["settings"]]
        lines.append(f"{setting}: the mutation was ended on {_frames(mine)}; left out of its figures")
        lines += _listed(mine)
    refused = [row for row in refused if row not in ended]
    if refused:
        lines.append(f"{_frames(refused)} could not be used; left out of the figures")
        lines += _listed(refused)
    if summary.data["task"] == "detection":
        lines += _unanswered(summary)
        lines += _left_out(summary)
        lines += _refused_intervals(summary)
    lines += summary.data.get("warnings", ())
    return [line if line.startswith(" ") else f"- {line}" for line in lines]


def _marks_explained(summary: Summary) -> list[str]:
    lines = []
    if any(counts["fault"] and counts["ok"] for counts in summary.data["counts"].values()):
        lines.append("* in a table: the SUT failed on some of the images behind the figure")
    if any(map(retried_mark, summary.data["counts"].values())):
        lines.append(MARK_WORDS)
    return lines


def _of_rankings(summary: Summary) -> list[str]:
    """Say where another SUT becomes the best choice; the first few, the rest are in the summary."""
    changes = list(summary.data.get("ranking_changes", ()))
    more = len(changes) - SHOWN_CHANGES
    tail = [f"{more} more changes of the best SUT: ranking_changes in summary.json"] if more > 0 else []
    return [*changes[:SHOWN_CHANGES], *tail]


def _of_sensitivity(summary: Summary) -> list[str]:
    """Say how far thresholds can be trusted, once for all the SUTs it holds for."""
    suts: dict[str, list[str]] = {}
    for sut, facts in summary.data.get("sensitivity", {}).items():
        if facts["from"] == "test":
            words = "thresholds were chosen on the clean test images; there is no validation split"
            suts.setdefault(words, []).append(sut)
        if facts["unresolved_levels"]:
            words = (
                f"{facts['unresolved_levels']} sensitivity levels are finer than 1 in "
                f"{facts['images']} images can show"
            )
            suts.setdefault(words, []).append(sut)
    return [f"{', '.join(names)}: {words}" for words, names in suts.items()]


def _cut_scores(summary: Summary) -> list[str]:
    """Say whose scores end well above 0, as those do that a system cuts before it answers."""
    return [
        f"{sut}: none of its {facts['detections']} detections scores below {facts['lowest']:.3g}, so its "
        "curves end there. Fix: if it drops weaker ones itself, lower its own threshold, or raise its limit "
        "of detections for each image."
        for sut, facts in summary.data.get("scores", {}).items()
        if facts["detections"] >= MANY_DETECTIONS and facts["lowest"] > CUT_SCORE
    ]


def _curve_ends(summary: Summary) -> list[str]:
    """Say which clean curves end before they reach 0: nothing is known of what lies beyond."""
    lines = []
    for axis in ("efficiency", "safety"):
        ends: dict[tuple[str, str], list[str]] = {}
        for row in summary.without_failed().rows:
            if row["group"] == "baseline" and axis in unreached(row):
                ends.setdefault((row["sut"], f"{row[f'least_{axis}']:.2f}"), []).append(row["level"])
        parts = [f"{sut} at {least} ({', '.join(levels)})" for (sut, least), levels in ends.items()]
        if parts:
            lines.append(f"curves that end before {axis} reaches 0: {'; '.join(parts)}")
    return lines


def _classes_never_right(summary: Summary) -> list[str]:
    """Say of a segmenter that most classes of the data are never right: it may not know them at all."""
    lines = []
    for row in summary.rows:
        if row["group"] != "baseline" or summary.data["task"] != "segmentation":
            continue
        known = [iou for iou in row.get("per_class", {}).values() if iou is not None]
        never = sum(iou == 0 for iou in known)
        if 2 * never > len(known):
            lines.append(
                f"{row['sut']}: an IoU of 0 on clean images for {never} of {len(known)} classes; its mean "
                "IoU is over all of them, also those that it does not know"
            )
    return lines


def _left_out(summary: Summary) -> list[str]:
    """Say which levels rest on fewer clean logs than there are, and why."""
    levels: dict[tuple[str, int], dict[str, None]] = {}
    for row in summary.rows:
        if row["group"] == "baseline" and row["status"] != "insufficient":
            for reason, count in row["logs_left_out"].items():
                levels.setdefault((reason, count), {})[row["level"]] = None
    return [
        f"{', '.join(names)}: {counted(count, 'log')} left out: {reason}"
        for (reason, count), names in levels.items()
    ]


def _refused_intervals(summary: Summary) -> list[str]:
    """Say how many figures have no interval, by reason."""
    reasons = Counter(
        row["robust_area_interval"]["why"]
        for row in summary.rows
        if (row.get("robust_area_interval") or {}).get("status") == "refused"
    )
    reasons.pop(CONSTRUCTED, None)  # no interval is wanted there
    return [f"{count} figures have no interval: {why}" for why, count in reasons.items()]


def _unanswered(summary: Summary) -> list[str]:
    """Say which figures are missing or rest on too little, why, and what would help."""
    lines = []
    for level in dict.fromkeys(row["level"] for row in summary.rows if row["status"] == "insufficient"):
        baseline = next(row for row in summary.rows if row["level"] == level)
        if baseline["status"] == "ok" and "stopped_early" in summary.data:
            continue  # some of its mutations were not run, which is said apart
        left_out = baseline.get("logs_left_out", {})
        if not baseline["truths"] and left_out:
            reasons = ", ".join(f"{reason} ({count})" for reason, count in sorted(left_out.items()))
            why = f"no log with a target could be judged; logs left out: {reasons}"
            fix = (
                NEVER_STOPS
                if NEVER_STOPS_REASON in left_out
                else "docs/path.md tells what each reason means."
            )
        elif not baseline["truths"]:
            why = "no target is annotated in the test images"
            fix = "Check targets: in the study, and the annotations."
        else:
            why = "a target is in every log, so false alarms cannot be counted"
            fix = "Add images without targets, listed in the annotations."
        lines.append(f"{level} is insufficient: {why}. Fix: {fix}")
    doubtful = sum(row["status"] == "incomplete" for row in summary.rows)
    if doubtful:
        lines.append(
            f"{doubtful} figures are incomplete (?): more frames could not be used than quarantine_budget "
            f"allows. Fix: {_mending(summary)}, or raise quarantine_budget in the study."
        )
    return lines


def _mending(summary: Summary) -> str:
    """Say what is to be mended so that no frame is left out: frames, or mutations."""
    refused = [row for row in summary.data["troubles"] if row["status"] == "quarantined"]
    ended = [row for row in refused if row["reason"].startswith(MUTATION_ENDED)]
    settings = list(dict.fromkeys(setting for row in ended for setting in row["settings"]))
    mutations = f"mend the mutation {', '.join(settings[:3])}"
    if any("mutation_timeout_s" in row["reason"] for row in ended):
        mutations += " or raise mutation_timeout_s"
    if not ended:
        return "mend the frames above"
    return mutations if len(ended) == len(refused) else f"mend the frames above, {mutations}"


def _frames(rows: Iterable[Row]) -> str:
    frames = len({row["frame"] for row in rows})
    return f"{frames} {'frame' if frames == 1 else 'frames'}"


def _of_attempts(summary: Summary, sut: str) -> list[str]:
    """Say what of a SUT succeeded only when it was tried again: the figures alone would not show it."""
    counts = summary.data["counts"][sut]
    mine = [row for row in summary.data["failed_attempts"] if row["sut"] == sut and row["answered"]]
    lines = []
    if counts["retried"]:
        lines.append(
            f"{sut} is flaky: {flaky_share(counts)}; the figures show the answers that it gave then. "
            f"{_by_kind(row for row in mine if row['kind'] not in OUTAGES)}; {_see_log(sut)}"
        )
        lines += _listed(_folded(row for row in mine if row["kind"] not in OUTAGES), "attempts")
    if counts["outages"]:
        lines.append(
            f"{sut} was unavailable: {outage_share(counts)} and were sent again; not counted as its faults "
            "(measure outage_rate of a rule does)"
        )
        lines += _listed(_folded(row for row in mine if row["kind"] in OUTAGES), "attempts")
    return lines


def _rate(counts: Mapping[str, int]) -> str:
    failed, attempts = counts["failed_attempts"], counts["attempts"]
    return f"{failed} of {attempts} attempts failed ({failed / max(attempts, 1):.1%})"


def _see_log(sut: str) -> str:
    return f"see logs/{sut_log(sut)}"


def _by_kind(rows: Iterable[Row]) -> str:
    """Return what kinds of faults there were, such as "Kinds: 4 exception, 1 time-out"."""
    kinds: Counter[str] = Counter()
    for row in rows:
        kinds[row["kind"]] += row["attempts"]
    return "Kinds: " + ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())


def _folded(rows: Iterable[Row]) -> list[Row]:
    """Return one row for each reason, the commonest first, with the settings of all its images."""
    by_reason: dict[str, list[Row]] = {}
    for row in rows:
        by_reason.setdefault(row["reason"], []).append(row)
    folded = [
        {**same[0], "settings": [setting for row in same for setting in row["settings"]]}
        for same in by_reason.values()
    ]
    return sorted(folded, key=lambda row: -len(row["settings"]))


def _listed(troubles: Iterable[Row], table: str = "troubles") -> list[str]:
    rows = list(troubles)
    lines = [
        f"  frame {row['frame']!r} under {setting_text(row['settings'][0])}"
        + (f" and {len(row['settings']) - 1} more" if len(row["settings"]) > 1 else "")
        + f": {row['reason']}"
        for row in rows[:LISTED_TROUBLES]
    ]
    left = len(rows) - LISTED_TROUBLES
    return lines + ([f"  and {left} more, see results/{table}.parquet"] if left > 0 else [])


def _faults_count(summary: Summary) -> str:
    if summary.data["task"] == "detection":
        return "they count as nothing detected (area_without_faults in summary.json leaves them out)"
    return "they count as wrong answers"
