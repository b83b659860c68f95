"""batch: auto takes the smallest size that is about as fast as any, within memory; a folder keeps it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from adverse.analysis.results import analyze
from adverse.cli import main
from adverse.errors import IncompleteError, InfrastructureError, StudyError, SutError
from adverse.fuzz.plan import plan_campaign
from adverse.study import unit_size
from adverse.study.batch_trial import ROUNDS, try_sizes
from adverse.study.engines import Stop
from adverse.study.engines.local import InlineEngine
from adverse.study.run import run_study
from adverse.study.spec import read_study
from adverse.study.time_estimate import TimeEstimate
from small_study import write_study
from watching import Quiet


class Device:
    """Takes `call_s` for each call and `image_s` for each image; fails from `breaks` images on."""

    def __init__(
        self, call_s: float, image_s: float, *, breaks: int = 1000, error: SutError | None = None
    ) -> None:
        self.call_s, self.image_s, self.breaks = call_s, image_s, breaks
        self.error = error or SutError("out of memory")
        self.now, self.largest, self.calls = 0.0, 0, list[int]()

    def show(self, images: Sequence[Any]) -> None:
        if len(images) >= self.breaks:
            raise self.error
        disturbed = 1.0 if len(self.calls) % (ROUNDS + 1) == 1 else 0.0  # once for each size
        self.now += self.call_s + self.image_s * len(images) + disturbed
        self.largest = max(self.largest, len(images))
        self.calls.append(len(images))

    def memory_mb(self) -> float:
        return 100.0 + 10.0 * self.largest


def tried(device: Device, images: int, limit_mb: int | None = None) -> Any:
    return try_sizes(
        [None] * images,  # type: ignore[list-item]
        device.show,
        memory_mb=device.memory_mb,
        limit_mb=limit_mb,
        clock=lambda: device.now,
    )


def test_the_smallest_size_that_is_about_as_fast_as_any() -> None:
    # an image of a batch of n takes call / n + image: 1.01, .51, .26, .135, .0725, .04125 s ...
    found = tried(Device(1.0, 0.01), 32)
    assert [size.batch for size in found.tried] == [1, 2, 4, 8, 16, 32]
    assert [size.image_s for size in found.tried] == pytest.approx(
        [1 / n + 0.01 for n in (1, 2, 4, 8, 16, 32)]
    )
    assert found.chosen == 32
    assert tried(Device(0.0, 0.01), 32).chosen == 1  # a device that does one after the other
    assert tried(Device(0.004, 0.01), 32).chosen == 4  # 14, 12, 11, 10.5, 10.25, 10.125 ms


@pytest.mark.parametrize(
    ("device", "limit_mb", "chosen", "why"),
    [
        (Device(1.0, 0.01, breaks=8), None, 4, "batch 8: out of memory"),
        (Device(1.0, 0.01), 200, 4, "batch 8: 180 MB, more than 80% of 200 MB"),  # 140 MB with 4 images
        (Device(1.0, 0.01, breaks=1), None, 1, "batch 1: out of memory"),
        (Device(30.0, 0.01), None, 1, "60 s were over"),
    ],
)
def test_a_size_that_does_not_fit_ends_the_trial(
    device: Device, limit_mb: int | None, chosen: int, why: str
) -> None:
    found = tried(device, 32, limit_mb)
    assert (found.chosen, found.ended) == (chosen, why)
    assert found.unreachable is None


def test_who_cannot_be_reached_has_no_size() -> None:
    found = tried(Device(1.0, 0.01, breaks=1, error=InfrastructureError("nobody there")), 32)
    assert str(found.unreachable) == "nobody there"


def test_a_folder_keeps_the_size_and_its_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_study(
        tmp_path, frames=5, logs=1, size=(64, 48), sleep_s=0, mutations="[brightness(scale=0.5)]"
    )
    path.write_text(path.read_text().replace("sleep_s: 0}", "sleep_s: 0, batch: auto}"))

    def run(out: str) -> Any:
        file = read_study(path)
        done = run_study(file, tmp_path / out, InlineEngine(), watch=Quiet(), stop=Stop())
        return done, json.loads((tmp_path / out / "manifest.json").read_text())["suts"]["nothing"]

    done, entry = run("run")
    tried = {one["batch"]: one["image_s"] for one in entry["batch_trial"]["tried"]}
    size = entry["batch"]
    assert done.units_run == 1
    assert list(tried) == [1, 2, 4, 5]
    assert size == min(one for one, image_s in tried.items() if image_s <= 1.1 * min(tried.values()))
    assert entry["batch_trial"]["ended"] == "a unit has no more than 5 images under one setting"
    again, kept = run("run")
    assert (again.units_run, kept) == (0, entry)
    with pytest.raises(SystemExit):
        main(["plan", str(path), "--out", str(tmp_path / "run"), "--no-estimate"])
    assert f", batch {size} (as begun)" in capsys.readouterr().out
    path.write_text(path.read_text().replace("batch: auto", f"batch: {size}"))
    assert run("run")[0].units_run == 0  # the key has the number, not how it was found
    path.write_text(path.read_text().replace(f"batch: {size}", f"batch: {size + 1}"))
    assert run("run")[0].units_run == 1
    path.write_text(path.read_text().replace(f"batch: {size + 1}", "batch: auto"))
    stopped = Stop()
    stopped.soft = True
    with pytest.raises(IncompleteError, match="stopped before the batch sizes were found"):
        run_study(read_study(path), tmp_path / "other", InlineEngine(), watch=Quiet(), stop=stopped)
    with pytest.raises(StudyError, match="fuzz does not look for batch sizes"):
        plan_campaign(read_study(path))


def test_units_of_any_size_give_the_same_results_and_a_folder_keeps_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_study(
        tmp_path, frames=6, logs=2, size=(64, 48), sleep_s=0, mutations="[salt_pepper(fraction=0.1)]"
    )
    text, results = path.read_text(), {}
    for size, frame_s in (("4", 0.0), ("auto", 1000.0), ("auto", 1e-6)):
        found = TimeEstimate(1.0, 2, 8, image_s=frame_s)
        monkeypatch.setattr(unit_size, "estimate_time", lambda *_, found=found, **__: found)
        path.write_text(text + f"unit_frames: {size}\n")
        out = tmp_path / f"{size} {frame_s}"
        done = run_study(read_study(path), out, InlineEngine(), watch=Quiet(), stop=Stop())
        analyze(out)
        results[done.units_run] = [file.read_bytes() for file in sorted((out / "results").iterdir())]
    assert list(results) == [4, 12, 1]  # of 4, 1 and at most 256 frames; logs share one
    assert results[4] == results[12] == results[1]
    monkeypatch.setattr(unit_size, "estimate_time", lambda *_, **__: pytest.fail("timed again"))
    again = run_study(read_study(path), tmp_path / "auto 1000.0", InlineEngine(), watch=Quiet(), stop=Stop())
    assert (again.units_run, again.plan.unit_frames) == (0, 1)
