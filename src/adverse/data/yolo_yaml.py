"""The data.yaml of a YOLO data set: what the classes are called and where the images are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from adverse.data.files import read_text
from adverse.errors import DataError

ENTRIES = ("train", "val", "test")


def _by_number(value: Any) -> Any:
    return dict(enumerate(value)) if isinstance(value, list) else value


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else ([] if value is None else value)


Places = Annotated[list[str], BeforeValidator(_as_list)]


class YoloFile(BaseModel):
    """What we read of the file; it may say more, to others."""

    names: Annotated[dict[int, str], BeforeValidator(_by_number), Field(min_length=1)]
    path: str | None = None
    train: Places = []
    val: Places = []
    test: Places = []
    nc: int | None = None
    kpt_shape: list[int] | None = None

    def entry(self, key: str) -> list[str]:
        """Return the folders or lists of train, val or test."""
        found: list[str] = getattr(self, key)
        return found


def read_yolo_yaml(path: Path) -> YoloFile:
    """Read and check the file; errors name its line or field."""
    content = read_text(path, what="YAML")
    try:
        _refuse_aliases(path, content)
        _refuse_twice(path, yaml.compose(content, yaml.SafeLoader))
        data = yaml.safe_load(content)
        found = YoloFile.model_validate(data, strict=True)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise _wrong(f"{path}, line {line}", error.problem or "no YAML", "valid YAML") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise _wrong(str(path), " ".join(str(error).split())[:120], "valid YAML") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or "(top)"
        missing = first["type"] == "missing"
        got = "nothing" if missing else repr(first["input"])[:80]
        raise _wrong(f"{path}, field {field}", got, str(first["msg"])) from error
    if not any(found.entry(key) for key in ENTRIES):
        raise _wrong(str(path), "no train, val or test", "where the images are, such as val: images/val")
    if found.nc is not None and found.nc != len(found.names):
        raise _wrong(f"{path}, field nc", f"{found.nc} for {len(found.names)} names", "as many as names")
    if len(set(found.names.values())) < len(found.names):
        raise _wrong(f"{path}, field names", "one name twice", "a name of its own for each class")
    return found


def _refuse_aliases(path: Path, content: str) -> None:
    """Refuse values that stand for others: a few of them can stand for millions."""
    for event in yaml.parse(content, yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            line = event.start_mark.line + 1 if event.start_mark else 1
            raise _wrong(f"{path}, line {line}", f"the alias *{event.anchor}", "plain values")


def _refuse_twice(path: Path, node: yaml.Node | None) -> None:
    if not isinstance(node, yaml.MappingNode):
        return
    seen: set[str] = set()
    for key, _ in node.value:
        if str(key.value) in seen:
            where = f"{path}, line {key.start_mark.line + 1}"
            raise _wrong(where, f"{key.value} again", "each key once")
        seen.add(str(key.value))


def _wrong(where: str, got: str, wanted: str) -> DataError:
    return DataError(
        "the YAML file of the data set is wrong",
        where=where,
        got=got,
        wanted=wanted,
        fix="Correct the file; docs/data-formats.md describes it.",
    )
