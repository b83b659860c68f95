"""The list of real models, kept as data: what each is, which package holds it, the hashes of its files."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from adverse.errors import SutError, suggestion

Sha256 = str
_PLAIN = ConfigDict(frozen=True, extra="forbid")


class Package(BaseModel):
    """One file on a package index: a wheel, or the source archive where there is no wheel."""

    model_config = _PLAIN
    name: str
    version: str
    bytes: int
    sha256: Sha256 = Field(pattern="^[0-9a-f]{64}$")
    form: Literal["wheel", "source"] = "wheel"


class Member(BaseModel):
    """One file inside a package; `path` is its whole path in the archive."""

    model_config = _PLAIN
    path: PurePosixPath
    bytes: int
    sha256: Sha256 = Field(pattern="^[0-9a-f]{64}$")


class RealModel(BaseModel):
    """A pre-trained model: what it does, whose it is, its files by option, its other study lines."""

    model_config = _PLAIN
    task: Literal["detection", "segmentation", "classification"]
    trained: str
    licence: str
    package: Package
    files: Mapping[str, Member]
    study: Mapping[str, Any]

    def section(self, name: str, folder: Path | str) -> dict[str, Any]:
        """Return the study's entry for the model, its files lying in a folder."""
        files = {option: f"{folder}/{member.path.name}" for option, member in self.files.items()}
        rest = {key: value for key, value in self.study.items() if key != "adapter"}
        return {"name": name, "adapter": self.study["adapter"], **files, **rest}


@functools.cache
def real_models() -> Mapping[str, RealModel]:
    """Return all real models by name."""
    text = resources.files(__package__).joinpath("catalogue.yaml").read_text("utf-8")
    return TypeAdapter(dict[str, RealModel]).validate_python(yaml.safe_load(text))


def real_model(name: str) -> RealModel:
    """Return a real model by its name, or say which ones there are."""
    known = real_models()
    if name not in known:
        raise SutError(f"there is no model {name!r} to get", fix=suggestion(name, known))
    return known[name]
