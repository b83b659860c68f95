"""A training that was stopped and goes on, and one that starts with exported weights. Needs PyTorch."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import numpy as np
import onnxruntime
import pytest

torch = pytest.importorskip("torch", reason="the networks are trained with PyTorch, which nothing else needs")
pytest.importorskip("onnx", reason="networks are exported with it")
TRAINING = Path(__file__).parents[2] / "training"
FRAMES = 24


@pytest.fixture
def train(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the trainer for some steps on a few frames of noise, half of them with a person."""
    monkeypatch.syspath_prepend(str(TRAINING))
    trainer = importlib.import_module("train")
    scenes = importlib.import_module("scenes")
    rng = np.random.default_rng(5)
    boxes = np.zeros((FRAMES, scenes.MOST_BOXES, 4), np.float32)
    boxes[::2, 0] = 100, 60, 140, 160
    shape = FRAMES, scenes.HEIGHT, scenes.WIDTH
    data = scenes.Frames(
        rng.integers(0, 256, (*shape, 3), np.uint8),
        rng.integers(0, 34, shape, np.uint8),
        rng.integers(0, 256, shape, np.uint8),
        boxes,
        np.zeros((FRAMES, scenes.MOST_BOXES), np.bool_),
    )
    monkeypatch.setattr(trainer, "frames", lambda *_: data)
    cycles = dict.fromkeys(trainer.CYCLES, ((2, 2), (1, 3)))
    monkeypatch.setattr(trainer, "CYCLES", cycles)
    monkeypatch.setattr(trainer, "RATES", dict.fromkeys(cycles, (1e-3, 1e-3)))
    monkeypatch.setattr(trainer, "CROPS_BATCH", 2)
    monkeypatch.setattr(trainer, "LOOKED", 5)
    monkeypatch.setattr(trainer, "MINE_EVERY", 2)
    torch.set_num_threads(1)
    return trainer


@pytest.mark.parametrize("name", ["anchor", "centre", "two-stage"])
def test_a_stopped_training_goes_on_to_the_same_weights_bit_by_bit(
    name: str, train: ModuleType, tmp_path: Path
) -> None:
    whole = train.Training(name, 1.0)
    first = {key: value.clone() for key, value in whole.average.state_dict().items()}
    whole.run(tmp_path / "whole.pt")
    for stop in (3, 5, 7):  # among the whole frames of the first cycle, and of the second
        part = train.Training(name, 1.0)
        part.steps = stop
        part.run(tmp_path / "parts.pt")
    part = train.Training(name, 1.0)
    part.run(tmp_path / "parts.pt")
    wanted = whole.average.state_dict()
    assert not all(torch.equal(first[key], wanted[key]) for key in wanted)
    for key, value in part.average.state_dict().items():
        assert torch.equal(value, wanted[key]), key
    middle, end = part.ends
    for key, value in part.made().state_dict().items():
        assert torch.equal(end[key], wanted[key]), key
        if value.is_floating_point():
            assert torch.allclose(value, (middle[key] + wanted[key]) / 2), key


@pytest.mark.parametrize("name", ["anchor", "centre", "two-stage"])
def test_a_network_with_exported_weights_answers_as_the_exported_one(name: str, train: ModuleType) -> None:
    exported = train.BUNDLED / f"orchard-{name}.onnx"
    net = train.NETS[name]()
    train.take_weights(net, exported, train.Training(name, 1.0).sampler.crops(4).images)
    pictures = torch.from_numpy(np.random.default_rng(6).random((2, 3, 240, 320), np.float32))
    wanted = onnxruntime.InferenceSession(str(exported)).run(None, {"images": pictures.numpy()})
    with torch.inference_mode():
        answer = net.eval()(pictures)
    answers = answer if isinstance(answer, tuple) else (answer,)
    for one, other in zip(answers, wanted, strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-3, atol=1e-3)


def test_halfway_between_two_networks_lies_the_mean_of_each_number(
    train: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    onnx = importlib.import_module("onnx")
    mean = importlib.import_module("mean")
    models = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        train.export(train.NETS["anchor"](), tmp_path / f"{seed}.onnx")
        models.append(onnx.load(tmp_path / f"{seed}.onnx"))
    monkeypatch.setattr(
        "sys.argv", ["mean", *(str(tmp_path / name) for name in ("1.onnx", "2.onnx", "3.onnx"))]
    )
    mean.main()
    made = [onnx.numpy_helper.to_array(one) for one in onnx.load(tmp_path / "3.onnx").graph.initializer]
    first, second = ([onnx.numpy_helper.to_array(one) for one in model.graph.initializer] for model in models)
    for a, b, between in zip(first, second, made, strict=True):
        np.testing.assert_allclose(between, (a.astype(float) + b) / 2, rtol=1e-6)
    assert not all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    other = onnx.ModelProto()
    other.CopyFrom(models[1])
    other.graph.initializer[0].name = "else"
    with pytest.raises(ValueError, match="differ in kind"):
        mean.mean(models[0], other)
