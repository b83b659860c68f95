"""Plug-ins that do not load or break their promises, and recorded predictions that are not there."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from .cases import CANNOT_RUN, INCOMPLETE, PASS, Case, case, table
from .command import adverse_here
from .good_study import BOX, GoodStudy

HEAD = "from adverse import dataset, mutation, sut\n"


def plugin(text: str, **study_keys: Any) -> Callable[[GoodStudy], object]:
    """Add a plug-in file of this text, and say something in the study."""

    def spoil(study: GoodStudy) -> None:
        (study.folder / "mine.py").write_text(text)
        study.study["plugins"].append("mine.py")
        study.study.update(study_keys)

    return spoil


def recorded(
    spoil: Callable[[list[dict[str, Any]]], object], **options: Any
) -> Callable[[GoodStudy], object]:
    """Give the SUT's answers from files, one of them spoilt."""

    def prepare(study: GoodStudy) -> None:
        options_ = {"path": "vendor/{mutation}.json", "categories": {1: "person"}, **options}
        study.study["suts"] = [{"name": "vendor", "adapter": "predictions", **options_}]
        (study.folder / "vendor").mkdir()
        for setting in ("identity", "brightness(scale=0.9)"):
            found = [
                {"image_id": number, "category_id": 1, "bbox": list(BOX), "score": 0.9} for number in range(4)
            ]
            if setting != "identity":
                spoil(found)
            (study.folder / "vendor" / f"{setting}.json").write_text(json.dumps(found))

    return prepare


def unrecorded(study: GoodStudy) -> None:
    recorded(list)(study)
    (study.folder / "vendor" / "brightness(scale=0.9).json").unlink()


def garbled(study: GoodStudy) -> None:
    recorded(list)(study)
    (study.folder / "vendor" / "brightness(scale=0.9).json").write_text("[{")


BROKEN_MUTATION = HEAD + "@mutation\ndef torn(image):\n    return image[:5]\n"
FAILING_MUTATION = HEAD + "@mutation\ndef torn(image):\n    return {}[0]\n"
FAILING_DATASET = HEAD + "@dataset\ndef mine():\n    return {}['rows']\n"
NO_DATASET = HEAD + "@dataset\ndef mine():\n    return []\n"
NO_DETECTOR = HEAD + "@sut\ndef mine():\n    return 42\n"
FAULTY = (
    "vendor: failed on 1 of 16 images",
    "frame '1' under brightness 0.9:",
    "brightness(scale=0.9).json",
)


@table(
    case(
        "a name that is too long",
        lambda s: s.study["plugins"].append("x" * 5000),
        CANNOT_RUN,
        "a name is too long for a file",
        "5",
    ),
    case(
        "not there",
        lambda s: s.study["plugins"].append("no.py"),
        CANNOT_RUN,
        "no.py",
        "does not exist",
        "plugins:",
    ),
    case("syntax error", plugin("def f(:\n"), CANNOT_RUN, "mine.py, line 1", "SyntaxError", "Mend the file"),
    case(
        "import error", plugin("\nimport no_such_module\n"), CANNOT_RUN, "mine.py, line 2", "no_such_module"
    ),
    case("exits", plugin("raise SystemExit(0)\n"), CANNOT_RUN, "mine.py, line 1", "SystemExit"),
    case("marks nothing", plugin("x = 1\n"), CANNOT_RUN, "mine.py", "marks no plug-in", "@mutation"),
    case(
        "a name that is taken",
        plugin(HEAD + "@mutation\ndef haze(image):\n    return image\n"),
        CANNOT_RUN,
        "two plug-ins are called 'haze'",
        "mine.py",
        "Rename one",
    ),
    case(
        "an option without a type",
        plugin(HEAD + "@mutation\ndef torn(image, *, much):\n    return image\n"),
        CANNOT_RUN,
        "mine.py",
        "'much'",
        "much: float",
    ),
    case(
        "any options",
        plugin(HEAD + "@mutation\ndef torn(image, **much):\n    return image\n"),
        CANNOT_RUN,
        "mine.py",
        "**kwargs",
    ),
    case(
        "a mutation that crops",
        plugin(BROKEN_MUTATION, mutations=["torn"]),
        INCOMPLETE,
        "frame '0' under torn:",
        "did not return an image like",
        "check-plugin",
    ),
    case(
        "a mutation that fails",
        plugin(FAILING_MUTATION, mutations=["torn"]),
        INCOMPLETE,
        "frame '0' under torn:",
        "KeyError: 0",
        "mine.py",
        "Fix:",
    ),
    case(
        "a data format that fails",
        plugin(FAILING_DATASET, data={"format": "mine"}),
        CANNOT_RUN,
        "study.yaml, line",
        "'mine' failed",
        "KeyError: 'rows'",
        "@dataset",
    ),
    case(
        "a data format of nothing",
        plugin(NO_DATASET, data={"format": "mine"}),
        CANNOT_RUN,
        "did not return a Dataset",
        "list",
    ),
    case(
        "not a detector",
        plugin(NO_DETECTOR, suts=[{"name": "x", "adapter": "mine"}]),
        CANNOT_RUN,
        "x (adapter 'mine')",
        "int",
    ),
    case("predictions", recorded(list), PASS, "results:"),
    case(
        "predictions missing",
        unrecorded,
        CANNOT_RUN,
        "SUT 'vendor' has no predictions",
        "suts[0]",
        "vendor/brightness(scale=0.9).json",
    ),
    case(
        "predictions of one file",
        recorded(list, path="vendor/identity.json"),
        CANNOT_RUN,
        "suts[0], path",
        "{mutation}",
    ),
    case(
        "predictions of no meaning",
        recorded(list, categories=None),
        CANNOT_RUN,
        "suts[0], categories",
        "neither",
    ),
    case(
        "predictions garbled",
        garbled,
        CANNOT_RUN,
        "suts[0]",
        "cannot be read",
        "brightness(scale=0.9).json",
        "line 1",
    ),
    case(
        "prediction with NaN",
        recorded(lambda found: found[1].update(score=float("nan"))),
        PASS,
        *FAULTY,
        "not finite",
        "Fix:",
    ),
    case(
        "prediction of three numbers",
        recorded(lambda found: found[1].update(bbox=[1, 2, 3])),
        PASS,
        *FAULTY,
        "entry 1",
        "Fix:",
    ),
    case(
        "prediction of no category",
        recorded(lambda found: found[1].update(category_id=7)),
        CANNOT_RUN,
        "suts[0]",
        "category_id 7 in 1 entries",
    ),
    case(
        "prediction without a score",
        recorded(lambda found: found[1].pop("score")),
        PASS,
        *FAULTY,
        "it has no score",
        "Fix:",
    ),
)
def test_plugin(row: Case, coco: GoodStudy) -> None:
    row.check(coco)


def test_check_plugin_names_the_broken_promise(coco: GoodStudy) -> None:
    plugin(BROKEN_MUTATION)(coco)
    adverse_here("check-plugin", coco.folder / "mine.py").expect(1, "FAIL same shape and type", "torn", "fix")
    adverse_here("check-plugin", coco.folder / "no.py").expect(CANNOT_RUN, "no.py", "does not exist", "fix")


def test_list_names_the_broken_file(coco: GoodStudy) -> None:
    plugin("def f(:\n")(coco)
    listed = adverse_here("list", "mutations", "--plugin", coco.folder / "mine.py")
    listed.expect(CANNOT_RUN, "mine.py, line 1", "SyntaxError", "fix")
