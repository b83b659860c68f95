"""The study file: misspelt, malformed or malicious, it is refused with the place and what was meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .cases import CANNOT_RUN, Case, case, table
from .command import adverse_here
from .good_study import GoodStudy


def text(content: str) -> Callable[[GoodStudy], object]:
    """Write the whole file oneself."""
    return lambda study: study.file.write_text(content)


def top(**keys: Any) -> Callable[[GoodStudy], object]:
    """Say these keys at the top of the study."""
    return lambda study: study.study.update(keys)


def sut(**keys: Any) -> Callable[[GoodStudy], object]:
    """Say these keys about the SUT."""
    return lambda study: study.sut(**keys)


def data(**keys: Any) -> Callable[[GoodStudy], object]:
    """Say these keys about the data."""
    return lambda study: study.study["data"].update(keys)


def without(*place: str) -> Callable[[GoodStudy], object]:
    """Leave a key out."""

    def spoil(study: GoodStudy) -> None:
        section = study.study
        for key in place[:-1]:
            section = section[key]
        section.pop(place[-1])

    return spoil


ALIAS_BOMB = "a: &a [1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{name}: &{name} [{','.join(['*' + before] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.fault(
    27, cases=["a tag", "an alias bomb", "an alias of itself", "a key twice", "a date for a name"]
)
@pytest.mark.fault(
    28,
    cases=[
        "misspelt key",
        "misspelt key of a SUT",
        "adaptor",
        "misspelt option of a SUT",
        "misspelt key of the data",
        "misspelt mutation",
        "misspelt option of a mutation",
        "misspelt level",
        "misspelt adapter",
        "misspelt format",
    ],
)
@table(
    case(
        "misspelt key",
        top(mutatoins=[]),
        CANNOT_RUN,
        "study.yaml, line",
        "mutatoins",
        "Did you mean 'mutations'?",
    ),
    case("misspelt key of a SUT", sut(timeout=3), CANNOT_RUN, "suts[0].timeout", "Did you mean 'timeout_s'?"),
    case(
        "adaptor",
        lambda s: s.study["suts"][0].update(adaptor=s.study["suts"][0].pop("adapter")),
        CANNOT_RUN,
        "suts[0].adaptor",
        "Did you mean 'adapter'?",
    ),
    case(
        "misspelt option of a SUT",
        sut(weigths="model.bin"),
        CANNOT_RUN,
        "suts[0].weigths",
        "Did you mean 'weights'?",
    ),
    case(
        "misspelt key of the data",
        data(anotations="x"),
        CANNOT_RUN,
        "data.anotations",
        "Did you mean 'annotations'?",
    ),
    case(
        "misspelt key of sensitivity",
        top(sensitivity={"lowst": 1}),
        CANNOT_RUN,
        "sensitivity.lowst",
        "'lowest'",
    ),
    case(
        "misspelt mutation",
        top(mutations=["gausian_blur"]),
        CANNOT_RUN,
        "mutations[0]",
        "Did you mean 'gaussian_blur'?",
    ),
    case(
        "misspelt option of a mutation",
        top(mutations=[{"gaussian_blur": {"sigma": 2}}]),
        CANNOT_RUN,
        "mutations[0].gaussian_blur.sigma",
        "Did you mean 'sigma_px'?",
    ),
    case(
        "misspelt option in an id",
        top(mutations=["gaussian_blur(sigma=2)"]),
        CANNOT_RUN,
        "mutations[0]",
        "Did you mean 'sigma_px'?",
    ),
    case("misspelt battery", top(mutations=["first-lok"]), CANNOT_RUN, "mutations[0]", "first-look"),
    case(
        "misspelt level",
        top(levels=["imgae"]),
        CANNOT_RUN,
        "study.yaml, line",
        "levels",
        "Did you mean 'image'?",
    ),
    case(
        "a SUT that is a mere word",
        top(suts=["hog"]),
        CANNOT_RUN,
        "suts[0] is not a section",
        "got     'hog'",
        "{name: ..., adapter: ...}",
    ),
    case("misspelt adapter", sut(adapter="prob"), CANNOT_RUN, "suts[0].adapter", "Did you mean 'probe'?"),
    case("misspelt format", data(format="cocoo"), CANNOT_RUN, "data.format", "Did you mean 'coco'?"),
    case(
        "option missing", without("data", "annotations"), CANNOT_RUN, "line", "needs the option 'annotations'"
    ),
    case("section missing", without("data"), CANNOT_RUN, "study.yaml", "'data' is missing", "Add data:"),
    case(
        "adapter missing",
        lambda s: s.study["suts"][0].pop("adapter"),
        CANNOT_RUN,
        "suts[0].adapter",
        "Add adapter:",
    ),
    case("no SUTs", top(suts=[]), CANNOT_RUN, "study.yaml, line", "suts", "names no SUT"),
    case(
        "two SUTs of one name",
        lambda s: s.study["suts"].append(s.study["suts"][0]),
        CANNOT_RUN,
        "'probe'",
        "own name",
    ),
    case("SUTs as a mapping", top(suts={"name": "x"}), CANNOT_RUN, "study.yaml, line", "suts"),
    case(
        "text for a number", top(seed="seven"), CANNOT_RUN, "study.yaml, line", "seed", "'seven'", "integer"
    ),
    case(
        "a number out of range",
        top(quarantine_budget=2),
        CANNOT_RUN,
        "quarantine_budget",
        "got     2",
        "less than or equal",
    ),
    case("not a number", text("name: x\nfpr_max: .nan\n"), CANNOT_RUN, "study.yaml"),
    case("a name that is a path", top(name="../x"), CANNOT_RUN, "study.yaml, line 1, name", "'../x'"),
    case(
        "a value no mutation takes",
        top(mutations=["brightness(scale=-1)"]),
        CANNOT_RUN,
        "mutations[0]",
        "scale",
        "-1",
    ),
    case("haze by neither", top(mutations=["haze"]), CANNOT_RUN, "haze"),
    case(
        "text no mutation is",
        top(mutations=["brightness(scale="]),
        CANNOT_RUN,
        "mutations[0]",
        "name(option=value",
    ),
    case("a mutation that is a number", top(mutations=[7]), CANNOT_RUN, "mutations[0]", "got     7"),
    case(
        "one mutation in two groups",
        top(mutations=["brightness(scale=2)", {"brightness": {"scale": 2}, "group": "severe"}]),
        CANNOT_RUN,
        "mutations[1]",
        "mild and severe",
    ),
    case(
        "no such group",
        top(mutations=[{"brightness": {"scale": 2}, "group": "hard"}]),
        CANNOT_RUN,
        "mutations[0]",
        "hard",
        "mild",
    ),
    case(
        "a tag",
        text("name: !!python/object/apply:os.system ['true']\n"),
        CANNOT_RUN,
        "study.yaml, line 1",
        "no tags",
    ),
    case("an alias bomb", text(ALIAS_BOMB), CANNOT_RUN, "study.yaml, line", "too many values"),
    case("an alias of itself", text("name: &a [*a]\n"), CANNOT_RUN, "study.yaml"),
    case(
        "a key twice",
        text("name: x\nname: y\n"),
        CANNOT_RUN,
        "study.yaml, line 2",
        "the same key stands twice",
        "'name'",
    ),
    case("bad indentation", text("name: x\n data: y\n"), CANNOT_RUN, "study.yaml, line 2", "not valid YAML"),
    case("a list", text("- name\n"), CANNOT_RUN, "study.yaml", "a study is a mapping"),
    case("an empty file", text(""), CANNOT_RUN, "study.yaml", "is missing"),
    case("not text", lambda s: s.file.write_bytes(b"\xff\xfe\x00"), CANNOT_RUN, "study.yaml", "UTF-8"),
    case("control characters", text("name: \x07\n"), CANNOT_RUN, "study.yaml"),
    case("a date for a name", text("name: 2020-01-01\n"), CANNOT_RUN, "study.yaml, line 1"),
    case(
        "no test frames",
        data(annotations="{split}.json", split={"train": "truth"}),
        CANNOT_RUN,
        "data",
        "test frames",
        "split:",
    ),
    case("no such image folder", data(images="pictures"), CANNOT_RUN, "data/pictures", "does not exist"),
    case("no such root", data(root="nowhere"), CANNOT_RUN, "nowhere/truth.json", "is missing"),
)
def test_study_file(row: Case, coco: GoodStudy) -> None:
    row.check(coco)
    assert not coco.run.exists() or not any((coco.run / "detections").iterdir())


def test_no_study_file(coco: GoodStudy) -> None:
    adverse_here("run", coco.folder / "nowhere.yaml").expect(
        CANNOT_RUN, "nowhere.yaml", "No such file", "fix"
    )
    adverse_here("run", coco.folder).expect(CANNOT_RUN, str(coco.folder), "it is a folder", "fix")
