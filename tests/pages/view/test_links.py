"""The links of a report lead to what they say, on whatever run and whatever its names."""

from __future__ import annotations

import html
from pathlib import Path

from starlette.testclient import TestClient

from adverse.analysis.results import read_summary
from adverse.report.galleries import FAILURES, explorer_address
from adverse.store.finished_run import finished


def test_a_failure_leads_to_its_frame_before_and_after(guest: TestClient, run: Path) -> None:
    store = finished(run)
    rows = read_summary(store).data["failures"]
    text = html.unescape((run / "report.html").read_text())
    addresses = [explorer_address(row, store.run.baseline.id) for row in rows]
    assert sum(address in text for address in addresses) == min(len(rows), FAILURES) > 1
    for row, address in zip(rows, addresses, strict=True):
        path, _, query = address.partition("?")
        assert path.endswith("/explore")
        page = guest.get(f"/explore.json?{query}").json()
        pick = page["pick"]
        assert page["frame"]["id"] == row["frame"]
        assert (pick["sut"], pick["left"], pick["right"]) == (
            row["sut"],
            store.run.baseline.id,
            row["setting"],
        )
