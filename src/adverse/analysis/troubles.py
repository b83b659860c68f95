"""What went wrong in a run: answers of each kind, frames that cannot be used, requests that failed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def status_counts(sut: str, counts: list[dict[str, Any]]) -> dict[str, int]:
    """Return how many answers a SUT gave of each kind, and in how many attempts."""
    mine = [row for row in counts if row["sut"] == sut]
    found = {
        status: sum(int(row["n"]) for row in mine if row["status"] == status)
        for status in ("ok", "fault", "quarantined")
    }
    unstable = sum(int(row["unstable"]) for row in mine)
    attempts = {
        name: sum(int(row[name]) for row in mine)
        for name in ("attempts", "failed_attempts", "retried", "outages")
    }
    planned = sum(found.values())
    ordered = sum(int(row["ordered"]) for row in mine)
    remembers = ordered == unstable  # else chance may look like memory now and then
    kinds = {"nondeterministic": 0 if remembers else unstable, "order_dependent": ordered if remembers else 0}
    return {"planned": planned, **found, **attempts, **kinds}


def troubles_by_frame(troubles: pa.Table) -> list[dict[str, Any]]:
    """Return one entry for each frame and reason; a frame that cannot be used is not any SUT's trouble."""
    found: dict[tuple[str, ...], list[str]] = {}
    for row in troubles.to_pylist():
        sut = row["sut"] if row["status"] == "fault" else ""
        settings = found.setdefault((row["status"], sut, row["frame"], row["reason"]), [])
        if row["setting"] not in settings:
            settings.append(row["setting"])
    return [
        {"status": status, "sut": sut, "frame": frame, "settings": settings, "reason": reason}
        for (status, sut, frame, reason), settings in sorted(found.items())
    ]


def failures_by_frame(failed: pa.Table) -> list[dict[str, Any]]:
    """Return one entry for each SUT, first frame, kind and reason of the requests that failed."""
    found: dict[tuple[str, str, str, str, bool], list[str]] = {}
    for row in failed.to_pylist():
        key = row["sut"], row["frame"], row["kind"], row["message"], row["answered"]
        found.setdefault(key, []).append(row["setting"])
    return [
        {
            "sut": sut,
            "frame": frame,
            "settings": list(dict.fromkeys(settings)),
            "attempts": len(settings),
            "kind": kind,
            "answered": answered,
            "reason": reason,
        }
        for (sut, frame, kind, reason, answered), settings in sorted(found.items())
    ]
