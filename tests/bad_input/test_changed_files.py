"""Files that change where nobody expects it: beside a model, or while a study runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from onnx import TensorProto, helper, numpy_helper

from adverse.content import file_sha256
from adverse.store.folder import RunFolder
from adverse.store.journal import RunEntry, RunJournal
from adverse.store.records import table_bytes

from .cases import CANNOT_RUN, INCOMPLETE, PASS
from .command import run_alone
from .good_study import BOX, HEIGHT, PICTURES, WIDTH, GoodStudy, encoded, picture


def external_model(folder: Path, score: float) -> Path:
    """Write a detector that sees the figure on every picture; the answer is in a file beside it."""
    x, y, width, height = BOX
    table = np.array([[[x, y, x + width, y + height, score, 0]]], np.float32)
    graph = helper.make_graph(
        [helper.make_node("Identity", ["w"], ["dets"])],
        "constant",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, (1, 3, HEIGHT, WIDTH))],
        [helper.make_tensor_value_info("dets", TensorProto.FLOAT, table.shape)],
        [numpy_helper.from_array(table, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path = folder / "model.onnx"
    (folder / "model.weights").unlink(missing_ok=True)
    onnx.save(model, str(path), save_as_external_data=True, location="model.weights", size_threshold=0)
    return path


@pytest.fixture
def external(coco: GoodStudy) -> GoodStudy:
    path = external_model(coco.folder, 0.9)
    coco.study["suts"] = [
        {"name": "net", "adapter": "onnx", "model": path.name, "decoder": "decoded", "classes": ["person"]}
    ]
    return coco


def test_other_weights_beside_a_model_are_another_model(external: GoodStudy) -> None:
    external.adverse().expect(PASS, "16/16 images done")
    weights = external.folder / "model.weights"
    before = (external.folder / "model.onnx").read_bytes(), weights.stat().st_size
    external_model(external.folder, 0.0001)  # under the threshold: no detections at all
    assert before == ((external.folder / "model.onnx").read_bytes(), weights.stat().st_size)
    external.adverse("verify").expect(CANNOT_RUN, str(weights), "changed")
    external.adverse().expect(PASS, "SUT net changed", "16/16 images done")
    assert {row["area"] for row in external.rows()} == {0.0}
    external.adverse("verify").expect(PASS)


@pytest.mark.parametrize("changed", ["mine.py", "palette.py"])
def test_a_changed_plug_in_or_file_beside_it_is_named(coco: GoodStudy, changed: str) -> None:
    (coco.folder / "palette.py").write_text("STEP = 2\n")
    (coco.folder / "mine.py").write_text(
        "from adverse import mutation\nfrom palette import STEP\n\n\n"
        '@mutation\ndef dim(image):\n    """Darken."""\n    return image // STEP\n'
    )
    coco.study |= {"plugins": ["probe.py", "mine.py"], "mutations": ["dim"]}
    coco.adverse().expect(PASS)
    coco.adverse("verify").expect(PASS)
    with (coco.folder / changed).open("a", encoding="utf-8") as file:
        file.write("# another version\n")
    coco.adverse("verify").expect(CANNOT_RUN, str(coco.folder / changed), "changed")


def image_file(study: GoodStudy) -> tuple[Path, bytes]:
    """Picture 6 is empty; in its place, one with the figure that the probe finds."""
    return study.images[6], encoded(picture(1), ".png")


def depth_file(study: GoodStudy) -> tuple[Path, bytes]:
    data = study.depth_file(6).read_bytes()
    return study.depth_file(6), data[:-4] + np.float32(3).tobytes()


def unlike_depth(study: GoodStudy) -> tuple[Path, bytes]:
    """No depth at all: what cannot be read any more is no fault of the data that were planned."""
    return study.depth_file(6), b"gone"


def label_map(study: GoodStudy) -> tuple[Path, bytes]:
    """Of a study for segmenters, whose only class is everywhere."""
    study.study |= {
        "task": "segmentation",
        "mutations": ["brightness(scale=0.9)"],
        "data": {"format": "folder", "root": "data", "pixel_classes": {1: "person", 2: "road"}},
    }
    study.study["suts"] = [{"name": "probe", "adapter": "painter"}]
    for number, image in enumerate(study.images):
        path = image.parents[1] / "labels" / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        cv2.imwrite(str(path), np.ones((HEIGHT, WIDTH), np.uint8))
    return study.images[6].parents[1] / "labels" / "6.png", encoded(
        np.full((HEIGHT, WIDTH), 2, np.uint8), ".png"
    )


def weights(study: GoodStudy) -> tuple[Path, bytes]:
    return study.folder / "model.bin", b"better weights"


def annotated_image(study: GoodStudy) -> tuple[Path, bytes]:
    """A file that the plan could not read and the run could: also not what was planned."""
    path, data = study.images[6], study.images[6].read_bytes()
    path.write_bytes(b"")
    return path, data


CHANGES: list[Callable[[GoodStudy], tuple[Path, bytes]]] = [
    image_file,
    depth_file,
    unlike_depth,
    label_map,
    weights,
    annotated_image,
]


def meddle(study: GoodStudy, place: Path, new: bytes | None) -> None:
    """Let the probe change a file when it looks at the first picture, in the first of two units."""
    study.sut(mood="meddle", at=0)
    (study.folder / "place").write_text(str(place))
    if new is not None:
        (study.folder / "new").write_bytes(new)


def results(study: GoodStudy) -> dict[str, Any]:
    """Return all that was found, apart from where it was found."""
    tables = [pq.read_table(path) for path in sorted((study.run / "detections").iterdir())]
    rows = pa.concat_tables(tables).sort_by([("frame", "ascending"), ("setting", "ascending")])
    return {"rows": repr(rows.to_pylist()), "results": study.summary()["rows"]}


@pytest.fixture(params=CHANGES)
def change(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.fault(48)
def test_a_file_that_changes_during_a_run_leaves_no_trace(folder: GoodStudy, change: Any) -> None:
    place, new = change(folder)
    old = place.read_bytes()
    folder.sut(mood="meddle", at=0)
    folder.adverse()
    undisturbed = results(folder)
    meddle(folder, place, new)
    said = folder.adverse("run", "--fresh")
    said.expect(INCOMPLETE, f"{place} was changed", "1 file", "not kept")
    assert place.read_bytes() == new
    folder.adverse("analyze").expect(INCOMPLETE, f"{place} was changed")
    place.write_bytes(old)
    folder.adverse()
    assert results(folder) == undisturbed
    folder.adverse("verify").expect(PASS)


def test_a_file_that_changed_during_a_run_and_stays_is_run_anew(folder: GoodStudy) -> None:
    place, new = image_file(folder)
    meddle(folder, place, new)
    folder.adverse().expect(INCOMPLETE, str(place))
    folder.adverse().expect(PASS, "input file changed")
    after = results(folder)
    folder.adverse("run", "--fresh").expect(PASS)
    assert results(folder) == after


@pytest.mark.parametrize("workers", [0, 1])
def test_a_file_that_is_lost_during_a_run(coco: GoodStudy, workers: int) -> None:
    place, data = coco.images[6], coco.images[6].read_bytes()
    meddle(coco, place, None)
    coco.adverse(workers=workers).expect(INCOMPLETE, f"{place} is gone", "1 file", "not kept")
    place.write_bytes(data)
    coco.adverse(workers=workers).expect(PASS, "images were done before")
    assert coco.summary()["counts"]["probe"]["ok"] == 2 * PICTURES
    coco.adverse("verify").expect(PASS)


def test_equal_size_and_time_do_not_hide_a_change(coco: GoodStudy) -> None:
    place = coco.images[6] = coco.images[6].with_suffix(".bmp")
    coco.truth["images"][6]["file_name"] = place.name
    place.write_bytes(encoded(picture(6), ".bmp"))
    coco.adverse().expect(PASS)
    before = place.stat()
    place.write_bytes(encoded(picture(1), ".bmp"))
    os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (before.st_size, before.st_mtime_ns) == (place.stat().st_size, place.stat().st_mtime_ns)
    coco.adverse("plan").expect(PASS, "8 done, 8 to do")
    coco.adverse().expect(PASS, "1 input file changed", "8 of 16 images were done before")


def test_no_stamp_is_trusted_for_a_hash(done: GoodStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even all times of a file: whoever may set the clock can set them."""
    monkeypatch.setattr("adverse.content.stamp", lambda _path: (1, 1, 1, 1))
    place, new = image_file(done)
    place.write_bytes(new)
    done.adverse("plan").expect(PASS, "8 done, 8 to do")
    done.adverse(workers=0).expect(PASS, "1 input file changed", "8 of 16 images were done before")


def test_plan_counts_as_done_only_what_run_would_not_repeat(done: GoodStudy) -> None:
    lost = min((done.run / "detections").iterdir())
    lost.write_bytes(b"")
    done.adverse("plan").expect(PASS, "8 done, 8 to do")
    done.adverse().expect(PASS, f"{lost.name} was changed or lost", "8 of 16 images were done before")
    done.adverse("plan").expect(PASS, "16 done, 0 to do")


def test_a_plug_in_that_changes_during_a_run(coco: GoodStudy) -> None:
    """In processes of their own, as no process imports a file twice."""
    coco.write()
    command = ("-m", "adverse", "run", coco.file, "--out", coco.run, "--workers")
    plugin = coco.folder / "probe.py"
    meddle(coco, plugin, plugin.read_bytes().replace(b"> 150", b"> 255"))
    coco.rewrite()
    run_alone(*command, "1").expect(INCOMPLETE, "sut 'probe' was changed", str(plugin))
    run_alone(*command, "1").expect(PASS, "16/16 images done")
    assert {row["area"] for row in coco.rows()} == {0.0}


def test_analysis_refuses_a_frame_of_two_images(done: GoodStudy) -> None:
    folder = RunFolder(done.run)
    name = min(path.name for path in folder.detections.iterdir())
    rows = pq.read_table(folder.detections / name)
    rows = rows.set_column(
        rows.schema.get_field_index("pixels"), "pixels", pa.array(["other", *rows["pixels"].to_pylist()[1:]])
    )
    (folder.detections / name).write_bytes(table_bytes(rows))
    journal = RunJournal(folder.journal)
    sealed = [
        RunEntry(one.file, file_sha256(folder.detections / one.file), one.cells) for one in journal.entries
    ]
    folder.journal.unlink()
    for entry in sealed:
        journal.append(entry)
    folder.write_manifest(folder.read_manifest())
    done.adverse("analyze").expect(CANNOT_RUN, "different images", repr(rows["frame"][0].as_py()))
