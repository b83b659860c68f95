from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pil
from pycocotools.coco import COCO

from adverse.data import coco as coco_format
from adverse.data.coco import coco
from adverse.errors import AdverseError, DataError, StudyError
from adverse.plugins import bind
from adverse.types import Dataset, Frame

SHARED = Path(__file__).resolve().parents[2].parent / "shared/data/coco128_permissive"
Json = dict[str, Any]
NAN = float("nan")


def document() -> Json:
    """Three images of 40x30: two boxes, a crowd, and nothing."""
    return {
        "images": [
            {"id": 7, "file_name": "a.png", "width": 40, "height": 30},
            {"id": 8, "file_name": "sub/b.png", "width": 40, "height": 30},
            {"id": 0, "file_name": "写真.png", "width": 40, "height": 30},
        ],
        "categories": [{"id": 3, "name": "car"}, {"id": 1, "name": "person"}],
        "annotations": [
            {"id": 0, "image_id": 7, "category_id": 1, "bbox": [1, 2, 10, 20.5], "iscrowd": 0},
            {"id": 5, "image_id": 7, "category_id": 3, "bbox": [0, 0, 4, 4], "ignore": 1},
            {"id": 6, "image_id": 8, "category_id": 1, "bbox": [-5, 0, 10, 10], "iscrowd": 1},
        ],
    }


def written(root: Path, content: Json, name: str = "truth.json", images: str = "images") -> Path:
    for image in content.get("images", []):
        path = root / images / str(image.get("file_name", "x.png"))
        if path.is_relative_to(root) and ".." not in path.parts and len(path.name) < 200:
            path.parent.mkdir(parents=True, exist_ok=True)
            Pil.fromarray(np.zeros((30, 40, 3), np.uint8)).save(path, "PNG")
    (root / name).write_text(json.dumps(content))
    return root


def frames(data: Dataset) -> dict[str, Frame]:
    return {frame.id: frame for log in data.logs for frame in log.frames}


def test_every_image_is_a_log_with_its_truth(tmp_path: Path) -> None:
    data = coco(written(tmp_path, document()), annotations="truth.json")
    assert data.categories == ("person", "car")
    assert data.annotations == (tmp_path / "truth.json",)
    assert [(log.id, log.split, len(log.frames)) for log in data.logs] == [
        ("a", "test", 1),
        ("sub/b", "test", 1),
        ("写真", "test", 1),
    ]
    first = frames(data)["a"]
    assert first.image_id == 7
    assert first.fault is None
    np.testing.assert_array_equal(first.truth.boxes, [[1, 2, 11, 22.5], [0, 0, 4, 4]])
    assert first.truth.boxes.dtype == np.float64
    assert first.truth.labels.tolist() == [0, 1]
    assert first.truth.ignore.tolist() == [False, True]
    assert first.truth.ids.tolist() == [0, 5]
    assert first.truth.positions_m is None
    assert frames(data)["sub/b"].truth.ignore.tolist() == [True]
    empty = frames(data)["写真"]
    assert empty.image_id == 0
    assert empty.truth.boxes.shape == (0, 4)
    assert pickle.loads(pickle.dumps(empty)).image().shape == (30, 40, 3)
    assert data.notes == {
        "boxes marked crowd or ignore": 2,
        "boxes partly outside the image": 1,
        "images without annotations": 1,
        "annotations without iscrowd, taken as 0": 1,
    }


def test_files_that_are_not_annotated_are_counted(tmp_path: Path) -> None:
    written(tmp_path, document())
    (tmp_path / "images/extra.png").write_bytes(b"x")
    assert coco(tmp_path, annotations="truth.json").notes["image files not in the annotations"] == 1


def test_splits_fill_the_names_and_prefix_the_ids(tmp_path: Path) -> None:
    few = document()
    few["categories"] = [{"id": 1, "name": "person"}, {"id": 3, "name": "car"}, {"id": 9, "name": "dog"}]
    written(tmp_path, few, "truth_val.json", "val")
    written(tmp_path, document(), "truth_test.json", "test")
    options: Json = {"annotations": "truth_{split}.json", "images": "{split}"}
    data = coco(tmp_path, **options, split={"validation": "val", "test": "test"})
    assert [log.split for log in data.logs] == ["validation"] * 3 + ["test"] * 3
    assert data.logs[0].id == "validation/a"
    assert data.logs[3].frames[0].image.path == tmp_path / "test/a.png"
    assert data.categories == ("person", "car", "dog")
    assert len(data.annotations) == 2
    alone = coco(tmp_path, **options, split={"validation": "val"})
    assert [log.id for log in alone.logs] == ["a", "sub/b", "写真"]
    assert {log.split for log in alone.logs} == {"validation"}


@pytest.mark.parametrize(
    "options",
    [
        {"annotations": "truth_{split}.json"},
        {"annotations": "truth.json", "split": {"test": "test"}},
        {"annotations": "truth.json", "images": "{split}"},
        {"annotations": "t_{split}.json", "split": {"test": "x", "validation": "x"}},
        {"annotations": "t_{split}.json", "split": {}},
    ],
)
def test_splits_that_do_not_fit_are_refused(tmp_path: Path, options: Json) -> None:
    with pytest.raises(StudyError) as caught:
        coco(written(tmp_path, document()), **options)
    assert "split" in str(caught.value)
    assert caught.value.fix


def changed(path: str, value: Any) -> Callable[[Json], None]:
    """Return a change of a document: `images.0.id` set to a value, or removed where it is `...`."""

    def change(content: Json) -> None:
        *parents, last = [int(part) if part.isdecimal() else part for part in path.split(".")]
        place: Any = content
        for part in parents:
            place = place[part]
        if value is ...:
            del place[last]
        else:
            place[last] = value

    return change


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("images", ..., ["field images", "missing"]),
        ("annotations", ..., ["field annotations", "missing"]),
        ("categories", ..., ["field categories", "missing"]),
        ("annotations", {}, ["field annotations", "list"]),
        ("images.1.file_name", 5, ["field images[1].file_name", "string"]),
        ("images.1.width", 0, ["field images[1].width", "greater than 0"]),
        ("images.1.width", "40", ["field images[1].width", "integer"]),
        ("images.1.width", ..., ["field images[1]", "missing_sizes: read"]),
        ("images.1.id", 7, ["field images[1].id", "same id", "images[0]"]),
        ("images.1.file_name", "a.png", ["field images[1].file_name", "same file_name"]),
        ("images.1.file_name", "./a.png", ["field images[1].file_name", "same file_name"]),
        ("annotations.1.id", 0, ["field annotations[1].id", "same id"]),
        ("annotations.1.id", 2**63, ["field annotations[1].id"]),
        ("annotations.2.category_id", 99, ["annotations[2].category_id", "99 in annotation 6"]),
        ("annotations.2.image_id", 99, ["annotations[2].image_id", "99 in annotation 6"]),
        ("categories.0.id", 1, ["field categories[1].id", "same id"]),
        ("categories.0.name", "person", ["field categories[1].name", "same name"]),
        ("images.0.file_name", "../a.png", ["images[0].file_name", "leaves"]),
        ("images.0.file_name", "/tmp/a.png", ["images[0].file_name", "absolute"]),
        ("images.0.file_name", "x" * 300, ["images[0].file_name", "too long"]),
        ("images", [], ["unknown"]),
    ],
)
def test_a_file_that_cannot_be_trusted_is_refused_as_a_whole(
    tmp_path: Path, path: str, value: Any, words: list[str]
) -> None:
    content = document()
    changed(path, value)(content)
    if words == ["unknown"]:
        content["annotations"] = []
        words = ["no images"]
    with pytest.raises(DataError) as caught:
        coco(written(tmp_path, content), annotations="truth.json", images=".")
    for word in [*words, str(tmp_path / "truth.json")]:
        assert word in str(caught.value)
    assert caught.value.fix
    assert caught.value.exit_code == 2


@pytest.mark.fault(24)
def test_a_symlink_out_of_the_image_folder_is_refused(tmp_path: Path) -> None:
    written(tmp_path, document())
    (tmp_path / "secret.png").write_bytes((tmp_path / "images/a.png").read_bytes())
    (tmp_path / "images/a.png").unlink()
    (tmp_path / "images/a.png").symlink_to(tmp_path / "secret.png")
    with pytest.raises(DataError, match=r"symlink.*images\[0\].file_name.*Fix: "):
        coco(tmp_path, annotations="truth.json")


@pytest.mark.fault(19)
@pytest.mark.parametrize(
    ("bbox", "word"),
    [
        ([1, 2, 0, 5], "has no size"),
        ([1, 2, 5, -5], "has no size"),
        ([1, 2, "3", 4], "is not four finite numbers"),
        ([1, 2, True, 4], "is not four finite numbers"),
        ([1, 2, 3], "is not four finite numbers"),
        ([10**400, 2, 3, 4], "is not four finite numbers"),
        (None, "is not four finite numbers"),
        ([40, 2, 3, 4], "is outside the image"),
        ([1, -9, 3, 9], "is outside the image"),
    ],
)
def test_a_bad_box_costs_one_frame(tmp_path: Path, bbox: Any, word: str) -> None:
    content = document()
    content["annotations"][0]["bbox"] = bbox
    found = frames(coco(written(tmp_path, content), annotations="truth.json"))
    fault = found["a"].fault
    assert fault is not None
    assert f"box of annotation 0 {word}" in fault
    assert "'a.png'" in fault
    assert "Fix: " in fault
    assert "\n" not in fault
    assert found["a"].truth.labels.tolist() == [0, 1]  # the log stays one with a person
    assert [found[name].fault for name in ("sub/b", "写真")] == [None, None]


@pytest.mark.parametrize("small", [2**21, -1])
def test_numbers_past_all_bounds(tmp_path: Path, small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an attribute left out, as a size refused; small and large files alike."""
    monkeypatch.setattr("adverse.json_arrays.SMALL_BYTES", small)
    content = document()
    content["annotations"][0]["occluded"] = 10**400
    assert frames(coco(written(tmp_path, content), annotations="truth.json"))["a"].fault is None
    content["images"][0]["width"] = 10**400
    (tmp_path / "truth.json").write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"images\[0\].width.*less than 2147483648"):
        coco(tmp_path, annotations="truth.json")


def test_an_infinite_box_costs_one_frame_but_nan_in_the_text_the_file(tmp_path: Path) -> None:
    written(tmp_path, document())
    path = tmp_path / "truth.json"
    text = path.read_text()
    path.write_text(text.replace("20.5", "1e999"))
    assert "finite" in (frames(coco(tmp_path, annotations="truth.json"))["a"].fault or "")
    path.write_text(text.replace("20.5", "NaN"))
    with pytest.raises(DataError, match="NaN at line 1 column"):
        coco(tmp_path, annotations="truth.json")


def test_a_missing_image_costs_one_frame(tmp_path: Path) -> None:
    written(tmp_path, document())
    (tmp_path / "images/a.png").unlink()
    found = frames(coco(tmp_path, annotations="truth.json"))
    assert "image file is missing" in (found["a"].fault or "")
    assert "a.png" in (found["a"].fault or "")
    assert found["sub/b"].fault is None


def test_a_size_other_than_annotated_is_caught_at_decode(tmp_path: Path) -> None:
    content = document()
    content["images"][0]["width"] = 41
    frame = frames(coco(written(tmp_path, content), annotations="truth.json"))["a"]
    assert frame.fault is None
    with pytest.raises(DataError, match=r"40x30.*41x30"):
        frame.image()


def test_sizes_can_be_read_from_the_images(tmp_path: Path) -> None:
    content = document()
    for image in content["images"]:
        del image["width"], image["height"]
    content["annotations"][1]["bbox"] = [40, 0, 4, 4]
    written(tmp_path, content)
    (tmp_path / "images/sub/b.png").write_bytes(b"no image")
    found = frames(coco(tmp_path, annotations="truth.json", missing_sizes="read"))
    assert "outside the image" in (found["a"].fault or "")
    assert "not an image" in (found["sub/b"].fault or "")
    assert found["写真"].fault is None


@pytest.mark.fault(25)
def test_ids_keep_their_ending_where_names_collide(tmp_path: Path) -> None:
    content = document()
    content["images"][1]["file_name"] = "a.jpg"
    data = coco(written(tmp_path, content), annotations="truth.json")
    assert [log.id for log in data.logs] == ["a.png", "a.jpg", "写真.png"]


def test_missing_places_are_named(tmp_path: Path) -> None:
    written(tmp_path, document())
    with pytest.raises(DataError, match=r"image folder does not exist.*pictures"):
        coco(tmp_path, annotations="truth.json", images="pictures")
    with pytest.raises(DataError, match=r"annotation file is missing.*labels\.json"):
        coco(tmp_path, annotations="labels.json")


def test_options_are_checked_as_a_study_gives_them(tmp_path: Path) -> None:
    plugin = coco.__adverse__  # type: ignore[attr-defined]
    given: Json = {"root": "data", "annotations": "t.json", "split": {"test": "x"}, "exif": "apply"}
    bound = bind(plugin, given, where="data", base=tmp_path)
    assert bound["root"] == tmp_path / "data"
    assert bound["split"] == {"test": "x"}
    for key, value in [
        ("exif", "maybe"),
        ("split", {"tset": "x"}),
        ("scale_16bit", 0),
        ("max_megapixels", -1),
    ]:
        with pytest.raises(AdverseError, match=key):
            bind(plugin, {**given, key: value}, where="data")


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared COCO sample is not beside the repository")
def test_real_boxes_are_those_of_pycocotools(capsys: pytest.CaptureFixture[str]) -> None:
    name = "instances_train2017_permissive.json"
    witness = COCO(str(SHARED / name))
    assert "index created" in capsys.readouterr().out
    data = coco(SHARED, annotations=name, images="train2017")
    assert [frame.image_id for frame in frames(data).values()] == [
        image["id"] for image in witness.dataset["images"]
    ]
    names = {key: category["name"] for key, category in witness.cats.items()}
    for frame in frames(data).values():
        expected = witness.loadAnns(witness.getAnnIds(imgIds=[frame.image_id]))
        assert frame.fault is None
        assert frame.truth.ids.tolist() == [annotation["id"] for annotation in expected]
        boxes = np.array([annotation["bbox"] for annotation in expected]).reshape(-1, 4)
        boxes[:, 2:] += boxes[:, :2]
        np.testing.assert_allclose(frame.truth.boxes, boxes)
        assert [data.categories[i] for i in frame.truth.labels] == [names[a["category_id"]] for a in expected]
        assert frame.truth.ignore.tolist() == [bool(a["iscrowd"]) for a in expected]


def test_area_and_crowd_are_kept_as_annotated(tmp_path: Path) -> None:
    content = document()
    content["annotations"][0]["area"] = 12.5
    found = frames(coco(written(tmp_path, content), annotations="truth.json"))
    first, second = found["a"].truth, found["sub/b"].truth
    assert first.area is not None
    assert first.crowd is not None
    assert second.crowd is not None
    np.testing.assert_array_equal(first.area, [12.5, np.nan])
    assert first.crowd.tolist() == [False, False]
    assert second.crowd.tolist() == [True]


@pytest.mark.parametrize("area", [-1, NAN, float("inf"), "big", [3], True])
def test_an_impossible_area_costs_its_image(tmp_path: Path, area: object) -> None:
    content = document()
    content["annotations"][2]["area"] = area
    path = written(tmp_path, content)
    (path / "truth.json").write_text(json.dumps(content).replace("Infinity", "1e999"))
    if area is NAN:  # no JSON: the file is refused as a whole
        with pytest.raises(DataError):
            coco(path, annotations="truth.json")
        return
    found = frames(coco(path, annotations="truth.json"))
    assert found["a"].fault is None
    assert "the area of annotation 6" in str(found["sub/b"].fault)


def test_large_files_are_read_as_small_ones_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks decoded straight into columns give what the models give, entry by entry; so do the errors."""
    rng = np.random.default_rng(0)
    odd: list[Json] = [
        {"bbox": [1, 2, 3, True]},
        {"bbox": [1, 2, 1e400, 3]},
        {"bbox": [1, 2, 0, 3]},
        {"bbox": [50, 2, 4, 3]},
        {"area": -1},
        {"area": "big"},
        {"position_m": [1, 2]},
    ]
    names = [f"{n}.png" for n in range(60)]
    content: Json = {
        "images": [
            {"id": n if n % 2 else str(n), "file_name": name, "width": 40, "height": 30}
            for n, name in enumerate(names)
        ],
        "categories": [{"id": 3, "name": "car"}, {"id": 1, "name": "person"}],
        "annotations": [],
    }
    for number in range(4500):
        image = content["images"][int(rng.integers(len(names) - 10))]["id"]
        entry: Json = {"id": number, "image_id": image, "category_id": int(rng.choice([1, 3]))}
        entry["bbox"] = [float(rng.uniform(-3, 30)), int(rng.integers(0, 20)), 9.5, 8]
        extra: list[Json] = [{}, {"iscrowd": 1}, {"iscrowd": 0, "area": 3.5}, {"ignore": True, "area": 4}]
        extra += [{"track_id": 7}, {"position_m": [1, 2, 3.5]}]
        content["annotations"].append(entry | extra[number % len(extra)])
    for number, change in enumerate(odd):  # all in the last of three blocks
        content["annotations"][-1 - number] |= change | {"image_id": content["images"][-1 - number]["id"]}
    written(tmp_path, content)
    (tmp_path / "truth.json").write_text(json.dumps(content).replace("Infinity", "1e999"))
    small = coco(tmp_path, annotations="truth.json")
    monkeypatch.setattr("adverse.json_arrays.SMALL_BYTES", 0)
    large = coco(tmp_path, annotations="truth.json")
    assert large.notes == small.notes
    assert large.categories == small.categories
    ours = frames(large)
    assert sum(frame.fault is not None for frame in ours.values()) == len(odd)
    for name, wanted in frames(small).items():
        assert (ours[name].fault, ours[name].image_id) == (wanted.fault, wanted.image_id)
        for column in ("boxes", "labels", "ignore", "ids", "positions_m", "area", "crowd"):
            np.testing.assert_array_equal(
                getattr(ours[name].truth, column), getattr(wanted.truth, column), strict=True
            )
    copy = (tmp_path / "truth.json").rename(tmp_path / "instances.json")
    assert coco_format.looks_like(copy) is not None
    for spoil in (
        changed("annotations.4400.id", 7),
        changed("annotations.4400.id", 4.0),
        changed("annotations.3000.image_id", 999),
        changed("annotations.3000.category_id", 2),
        changed("annotations.3000.iscrowd", None),
        changed("images.7.width", 0),
        changed("annotations", {}),
        changed("categories.1.name", "car"),
    ):
        wrong = json.loads(json.dumps(content))
        spoil(wrong)
        (tmp_path / "truth.json").write_text(json.dumps(wrong).replace("Infinity", "1e999"))
        messages = []
        for limit in (2**30, 0):
            monkeypatch.setattr("adverse.json_arrays.SMALL_BYTES", limit)
            with pytest.raises(DataError) as caught:
                coco(tmp_path, annotations="truth.json")
            messages.append(str(caught.value))
        assert messages[0] == messages[1]
