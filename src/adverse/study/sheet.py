"""A contact sheet of one frame of a study or data set: every mutation, by the depth that a run would use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from adverse import plugins
from adverse.data.formats import guess, read_format
from adverse.depth import usable
from adverse.errors import StudyError, suggestion
from adverse.mutations.contact_sheets import contact_sheet
from adverse.plugins import bind
from adverse.strict_yaml import YamlFile
from adverse.study.export import export_job
from adverse.study.frame_versions import moment_s
from adverse.study.spec import StudyFile
from adverse.types import Dataset, Frame, Image

SPARSE = 0.5
"""Depth at a smaller share of the pixels is that of laser returns."""


def study_of_data(source: Path, given: Mapping[str, Any]) -> StudyFile:
    """Return a study around a data set; depth comes from stereo pairs or laser returns where it has any."""
    guessed = guess(source, plugins.load().all("dataset"))
    options = {"root": str(source), **guessed.options}
    data = {"format": guessed.format.name, **options, "root": str(Path(options["root"]).resolve())}
    bound = bind(guessed.format, options, where=str(source), base=Path.cwd())
    targets = read_format(guessed.format, bound, where=str(source)).categories[:1]
    known = {key: value for key, value in {**given, "targets": list(targets)}.items() if value}
    study = {"name": "sheet", "data": data, **known}
    file = _around(source, study)
    dataset, job = export_job(file)
    if not any("depth_m" in setting.needs for setting in job.settings):
        return file
    frame = _usable(dataset)
    if frame.depth_m is None and frame.right is not None and frame.camera and frame.camera.baseline_m:
        return _around(source, {**study, "depth": {"from": "stereo"}})
    if frame.depth_m is not None and float(np.isfinite(frame.depth_m()).mean()) < SPARSE:
        return _around(source, {**study, "depth": {"from": "laser"}})
    return file


def _around(source: Path, study: Mapping[str, Any]) -> StudyFile:
    """Check a study made up around data, which errors name; other paths are relative to where we are."""
    file = StudyFile(YamlFile(source, dict(study), {}))
    file.folder = Path.cwd()
    return file


def study_sheet(file: StudyFile, frame_id: str | None) -> Image:
    """Draw the mutations of a study on one frame: the one that is named, or the first that is usable."""
    dataset, job = export_job(file)
    frame = _usable(dataset) if frame_id is None else _named(dataset, frame_id)
    depth_m = None
    if frame.depth_m is not None and any("depth_m" in setting.needs for setting in job.settings):
        where = f"depth of frame {frame.id!r}"
        depth_m = usable(frame.depth_m(), job.invalid_depth, where=where).depth_m
    return contact_sheet(
        frame.image(),
        job.settings,
        plugins.load(job.plugin_files),
        seed=job.seed,
        key=frame.id,
        log=frame.log_id,
        time_s=moment_s(frame),
        depth_m=depth_m,
    )


def _frames(dataset: Dataset) -> Sequence[Frame]:
    return [frame for log in dataset.logs for frame in log.frames]


def _usable(dataset: Dataset) -> Frame:
    frame = next((frame for frame in _frames(dataset) if frame.fault is None), None)
    if frame is None:
        raise StudyError("no frame of the data set can be used", fix="adverse data check says why.")
    return frame


def _named(dataset: Dataset, frame_id: str) -> Frame:
    by_id = {frame.id: frame for frame in _frames(dataset)}
    if frame_id not in by_id:
        raise StudyError(
            "there is no such frame",
            where="--key",
            got=repr(frame_id),
            wanted=f"the id of a frame, such as {next(iter(by_id))!r}",
            fix=suggestion(frame_id, by_id),
        )
    return by_id[frame_id]
