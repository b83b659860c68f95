"""Style transfer by any AdaIN network in ONNX: some with a closed form, and what the bundled one does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

import drawn
from adverse.data.images import ImageFile, write_image
from adverse.errors import AdverseError, StudyError
from adverse.stylize import Stylizer, stylization
from adverse.stylize.textures import KINDS, texture
from adverse.stylize.transfer import made_style
from adverse.types import Image

OPEN = [1, 3, "h", "w"]
FLOAT = TensorProto.FLOAT


def network(
    path: Path,
    *,
    content: list[Any] = OPEN,
    alpha: list[int] | None = None,
    names: tuple[str, str] = ("content", "style"),
    halved: bool = False,
) -> Path:
    """Write content + alpha * (the style's mean colour - content): one flat colour for alpha 1."""
    inputs = [
        helper.make_tensor_value_info(names[0], FLOAT, content),
        helper.make_tensor_value_info(names[1], FLOAT, [1, 3, "a", "b"]),
    ]
    nodes = [
        helper.make_node("ReduceMean", [names[1]], ["mean"], axes=[2, 3]),
        helper.make_node("Sub", ["mean", names[0]], ["gap"]),
    ]
    if alpha is not None:
        inputs.append(helper.make_tensor_value_info("alpha", FLOAT, alpha))
        nodes.append(helper.make_node("Mul", ["gap", "alpha"], ["step"]))
    last = "gap" if alpha is None else "step"
    nodes.append(helper.make_node("Add", [names[0], last], ["whole"]))
    side = [2, 2] if halved else [1, 1]
    nodes.append(helper.make_node("MaxPool", ["whole"], ["out"], kernel_shape=side, strides=side))
    output = helper.make_tensor_value_info("out", FLOAT, [1, 3, None, None])
    graph = helper.make_graph(nodes, "adain", inputs, [output])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def random_image(*shape: int) -> Image:
    return np.random.default_rng(3).integers(0, 256, shape, np.uint8)


@pytest.mark.parametrize("shape", [(37, 53, 3), (64, 32, 3), (1, 1, 3), (20, 30), (20, 30, 1)])
@pytest.mark.parametrize("alpha", [0.0, 0.25, 1.0])
def test_a_network_of_the_user_gets_and_gives_every_pixel(
    shape: tuple[int, ...], alpha: float, tmp_path: Path
) -> None:
    image, style = random_image(*shape), random_image(50, 40, 3)[::-1]
    model = network(tmp_path / "a.onnx", alpha=[], names=("x", "y"))
    made = Stylizer(stylization(None, alpha=alpha, model=model)).stylized(image, style)
    content = np.broadcast_to(image.reshape(*shape[:2], -1), (*shape[:2], 3)).astype(np.float64)
    wanted = content + alpha * (style.mean(axis=(0, 1)) - content)
    assert made.shape == (*shape[:2], 3)
    assert made.dtype == np.uint8
    np.testing.assert_allclose(made, wanted, atol=0.501)


@pytest.mark.parametrize(
    ("changes", "alpha", "words"),
    [
        ({"content": [1, 3, 64, 64], "alpha": [1]}, 1.0, "one size alone"),
        ({}, 0.5, "no input for alpha"),
        ({"content": [3, "h", "w"]}, 1.0, "no AdaIN network"),
        ({"halved": True}, 1.0, "of the content's size"),
    ],
)
def test_a_network_that_does_not_fit_is_refused(
    changes: dict[str, Any], alpha: float, words: str, tmp_path: Path
) -> None:
    model = network(tmp_path / "a.onnx", **changes)
    with pytest.raises(StudyError, match=words):
        Stylizer(stylization(None, alpha=alpha, model=model)).stylized(random_image(20, 20, 3), made_style(0))


def test_what_cannot_be_used_is_said_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "x.onnx").write_bytes(b"no network")
    with pytest.raises(AdverseError, match=r"x\.onnx"):
        Stylizer(stylization(None, model=tmp_path / "x.onnx"))
    for options, words in (
        ({"alpha": 1.5}, "alpha is out of range"),
        ({"alpha": float("nan")}, "alpha is out of range"),
        ({"model": tmp_path / "y.onnx"}, "no such model"),
    ):
        with pytest.raises(StudyError, match=words):
            stylization(None, **options)
    with pytest.raises(StudyError, match="no styles in the folder"):
        stylization(tmp_path)


def test_a_painting_is_drawn_by_seed_and_frame_and_must_not_change(tmp_path: Path) -> None:
    paintings = [random_image(30 + 4 * n, 40, 3) // (n + 1) for n in range(4)]
    for number, painting in enumerate(paintings):
        write_image(tmp_path / f"{number}.png", painting)
    how = stylization(tmp_path)
    drawn_styles = {frame: how.style(7, frame) for frame in map(str, range(40))}
    assert {style.name for style in drawn_styles.values()} == {f"{n}.png" for n in range(4)}
    assert drawn_styles == {frame: how.style(7, frame) for frame in reversed(drawn_styles)}
    assert drawn_styles != {frame: how.style(8, frame) for frame in drawn_styles}
    stylizer = Stylizer(how)
    first, again = (stylizer.style(7, "3") for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert first.shape == (256, 256, 3)
    source = drawn_styles["3"].source
    assert isinstance(source, Path)
    write_image(source, 255 - ImageFile(source)())
    with pytest.raises(AdverseError, match="was changed after"):
        stylizer.style(7, "3")


def edges(image: Image) -> NDArray[np.float64]:
    gray = cv2.GaussianBlur(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), (0, 0), 1.5).astype(np.float64)
    return np.asarray(np.hypot(*np.gradient(gray)), np.float64)


def colours(image: Image) -> NDArray[np.float64]:
    values = image.reshape(-1, 3).astype(np.float64)
    return np.concatenate([values.mean(axis=0), values.std(axis=0)])


def test_the_bundled_network_keeps_edges_and_takes_colours() -> None:
    image = drawn.street(192, 256)[0]
    how = stylization(None)
    stylizer, weak = Stylizer(how), Stylizer(stylization(None, alpha=0.0))
    nearer = []
    for number in range(4):
        style = made_style(number)
        made = stylizer.stylized(image, style)
        before, after = (np.linalg.norm(colours(one) - colours(style)) for one in (image, made))
        nearer.append(after / before)
        kept = np.corrcoef(edges(image).ravel(), edges(made).ravel())[0, 1]
        turned = np.corrcoef(edges(image).ravel(), edges(made)[::-1, ::-1].ravel())[0, 1]
        assert kept > max(0.35, 2 * turned)
    assert np.mean(nearer) < 0.5
    gap = weak.stylized(image, made_style(0)).astype(float) - image
    assert np.sqrt(np.mean(gap**2)) < 20


def test_made_styles_are_many_and_the_same_on_every_call() -> None:
    first, again = ([texture(np.random.default_rng(n)) for n in range(12)] for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert len({image.tobytes() for image in first}) == 12
    for kind in KINDS.values():
        image = kind(np.random.default_rng(1), np.array([[10.0, 20, 30], [120, 90, 60], [250, 240, 200]]))
        assert image.shape == (256, 256, 3)
        assert image.dtype == np.uint8
        assert image.std() > 10
