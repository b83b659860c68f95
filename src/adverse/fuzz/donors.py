"""Where the objects come from that are put into scenes: the base frames themselves, or other data.

A frame of the other data whose image is one of the study's own is that frame: nothing is put into the scene
that it comes from, whatever a data set calls it. Frames of other images get ids that no frame of the study
has.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from adverse.content import content_hash, user_cache
from adverse.errors import StudyError
from adverse.plugins import Registry
from adverse.semantic import Resources
from adverse.semantic.resource_file import Watch, hash_files
from adverse.study.plan import read_section
from adverse.study.spec import StudyFile
from adverse.types import Dataset, Frame

OTHER = "donors:"
"""How the ids of frames and logs begin that are not of the study's own data."""


def donor_data(file: StudyFile, registry: Registry, own: Dataset) -> Dataset | None:
    """Read the data that `fuzz: donors:` names; None where objects are those of the base frames."""
    section = file.study.fuzz.donors
    if section is None:
        return None
    dataset = read_section(file, registry, section, "fuzz", "donors")
    frames = [frame for log in dataset.logs for frame in log.frames]
    if not any(frame.labels is not None and frame.instances is not None for frame in frames):
        raise StudyError(
            "the data that objects are to come from have none",
            where=file.where("fuzz", "donors"),
            got="no frame with both a label map and an instance map",
            wanted="labels and instances: Cityscapes, COCO panoptic, street-world, folder",
        )
    by_image: dict[str, Frame] = {}
    for log in own.logs:
        for frame in log.frames:
            by_image.setdefault(_image_of(frame), frame)
    logs = []
    for log in dataset.logs:
        members = [_named(frame, by_image.get(_image_of(frame))) for frame in log.frames]
        logs.append(replace(log, id=OTHER + log.id, frames=tuple(members)))
    return replace(dataset, logs=tuple(logs))


def _image_of(frame: Frame) -> str:
    try:
        return f"{content_hash(frame.image.path)} {frame.image.recipe}"
    except OSError:
        return f"unreadable {frame.image.path}"


def _named(frame: Frame, same: Frame | None) -> Frame:
    if same is not None:
        return replace(frame, id=same.id, log_id=same.log_id)
    return replace(frame, id=OTHER + frame.id, log_id=OTHER + frame.log_id)


def build_resources(
    dataset: Dataset,
    donors: Dataset | None,
    bases: Collection[str],
    *,
    hashes: Mapping[Path, str] | None = None,
    watch: Watch | None = None,
) -> tuple[Resources, Path]:
    """Cut out the objects of the base frames, or of the donors if there are any; return them and their file.

    `hashes` are those of the files of `dataset`, where they are known.
    """
    if donors is None:
        logs = tuple(
            replace(log, frames=tuple(frame for frame in log.frames if frame.id in bases))
            for log in dataset.logs
        )
        chosen = replace(dataset, logs=tuple(log for log in logs if log.frames))
    else:
        chosen, hashes = donors, hash_files(donors)
    home = user_cache("resources")
    home.mkdir(parents=True, exist_ok=True)
    resources = Resources.build(chosen, home, hashes=hashes, watch=watch)
    return resources, home / f"resources-{resources.key}.arrow"
