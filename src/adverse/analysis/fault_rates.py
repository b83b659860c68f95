"""How often a SUT failed or could not be reached: rates over requests with their intervals, and in words.

An attempt is a request that reached the SUT; it failed or was answered. A request that reached nobody
(connection refused, 503, no memory left on the machine) is an outage: no fault of the SUT, but what it
depends on was not there. Requests of one log come one after the other and fail together, so the intervals
are by log, as those of recall. The same image asked again, for comparison or after a failure, is no further
evidence: an interval is as wide as if each image had been asked once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from adverse.curves.interval import Interval, korn_graubard
from adverse.store.read import Store

COUNTED = ("attempts", "failed_attempts", "outages")
MARK = "\u2020"
"""A dagger: stands beside a SUT some of whose requests had to be sent again."""
MARK_WORDS = f"{MARK} beside a SUT: requests failed or reached nobody, and were sent again"


def requests_by_log(
    store: Store, sut: str, settings: Collection[str] | None = None
) -> dict[str, NDArray[np.float64]]:
    """Return attempts, failed attempts and outages of a SUT for each log (L,) of the run, in its order.

    A request counts in the log of its first image. `images_reached` are those images, each under each setting
    once, that attempts began with, `images_sent` those that any request began with. `settings`: under these
    only.
    """
    log_of = dict(zip(store.frames.ids, store.frames.log.tolist(), strict=True))
    counts = {name: np.zeros(len(store.frames.logs)) for name in (*COUNTED, "images_reached", "images_sent")}
    for row in store.attempts(sut).to_pylist():
        if settings is None or row["setting"] in settings:
            log = log_of[row["frame"]]
            for name in COUNTED:
                counts[name][log] += row[name]
            counts["images_reached"][log] += row["attempts"] > 0
            counts["images_sent"][log] += row["attempts"] + row["outages"] > 0
    return counts


def fault_rate(store: Store, sut: str) -> Interval:
    """Return the share of attempts that failed, those answered on a retry too, with its interval.

    Each time that the whole run was killed counts as a failed attempt, in the first log: which one it was is
    not known, nor whether the SUT did it, but a SUT that takes everything down must not look faultless.
    """
    counts = requests_by_log(store, sut)
    for name in ("attempts", "failed_attempts", "images_reached"):
        counts[name][:1] += store.run.kills.get(sut, 0)
    parts = counts["failed_attempts"], counts["attempts"], counts["images_reached"]
    return _rate(*parts, store.confidence)


def outage_rate(store: Store, sut: str) -> Interval:
    """Return the share of requests that reached nobody, with its interval."""
    counts = requests_by_log(store, sut)
    parts = counts["outages"], counts["attempts"] + counts["outages"], counts["images_sent"]
    return _rate(*parts, store.confidence)


def _rate(
    part: NDArray[np.float64], requests: NDArray[np.float64], images: NDArray[np.float64], sure: float
) -> Interval:
    """Return part / requests with an interval of no more trials than there were images."""
    trials_of_a_request = images.sum() / max(requests.sum(), 1)
    return korn_graubard(part * trials_of_a_request, requests * trials_of_a_request, confidence=sure)


def flaky_share(counts: Mapping[str, int]) -> str:
    """Say how many attempts of a SUT failed and were answered on a retry, by its counts.

    >>> flaky_share({"retried": 5, "failed_attempts": 5, "attempts": 29})
    '5 of 29 attempts failed and were retried (17.2%)'
    """
    failed, attempts, retried = counts["failed_attempts"], counts["attempts"], counts["retried"]
    rate = f"({failed / attempts:.1%})"
    text = f"{retried} of {attempts} attempts failed and were retried"
    return f"{text} {rate}" if failed == retried else f"{text}, {failed} failed in all {rate}"


def outage_share(counts: Mapping[str, int]) -> str:
    """Say how many requests to a SUT reached nobody, by its counts.

    >>> outage_share({"outages": 35, "attempts": 79})
    '35 of 114 requests found no server or memory (30.7%)'
    """
    outages, requests = counts["outages"], counts["attempts"] + counts["outages"]
    return f"{outages} of {requests} requests found no server or memory ({outages / requests:.1%})"


def fault_remarks(sut: str, counts: Mapping[str, int]) -> list[str]:
    """Say in a line each what of a SUT's requests its figures do not show; nothing where all went well."""
    lines = []
    if counts["fault"]:
        lines.append(f"{sut} failed on {counts['fault']} of {counts['planned']} images, after retries")
    if counts["retried"]:
        lines.append(f"{sut} is flaky: {flaky_share(counts)}")
    if counts["outages"]:
        lines.append(f"{sut} was unavailable: {outage_share(counts)}; not counted as its faults")
    if counts["nondeterministic"]:
        lines.append(f"{sut} is nondeterministic: it gave different answers to the same image")
    if counts.get("order_dependent"):
        lines.append(f"{sut} remembers: its answers depend on the order of images, and its figures with them")
    return lines


def mutation_remarks(store: Store) -> list[str]:
    """Say in a line each which mutations of plug-ins are not the same again; figures under them are luck."""
    return [
        f"mutation {setting} does not repeat: other pixels on {frames} frame{'s' if frames > 1 else ''} when "
        "applied again, so its figures are one draw of many; use the rng it is given"
        for setting, frames in store.unrepeated_mutations().items()
    ]


def retried_mark(counts: Mapping[str, int]) -> str:
    """Return what stands beside the name of a SUT some of whose requests had to be sent again."""
    return MARK if counts["retried"] or counts["outages"] else ""
