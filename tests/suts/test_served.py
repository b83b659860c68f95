"""The http adapter against a real server: the same answers as a model on disk, and every way to fail."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from adverse.data.images import ImageFile
from adverse.errors import InfrastructureError, SutError
from adverse.plugins import bind, by_options, load
from adverse.suts.ask import ask
from adverse.suts.build import watches_itself
from adverse.suts.fingerprint import fingerprint
from adverse.suts.onnx import onnx_model as onnx_adapter
from adverse.suts.open_inference import Expected, read_reply
from adverse.suts.open_inference import served_model as served_adapter
from inference_server import Model, serving

onnx_model = by_options(onnx_adapter)
served_model = by_options(served_adapter)

NAMES = ["person", "car"]
OPTIONS: dict[str, Any] = {"decoder": "decoded", "classes": NAMES, "scale": 1.0, "timeout_s": 60.0}


def mean_net(values: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Say one box for each image whose score is the mean of its pixels over 255, so images are told apart."""
    rows = [[10, 5, 30, 15, values[k].astype(float).mean() / 255, 1] for k in range(len(values))]
    return {"dets": np.array(rows, np.float32)[:, None], "other": np.zeros(1, np.float32)}


def tiny(**changes: Any) -> Model:
    return Model(**{"net": mean_net, "shape": [-1, 3, 25, 50], "outputs": ["dets"], **changes})


def grey(value: int) -> NDArray[np.uint8]:
    return np.full((50, 100, 3), value, np.uint8)


@contextlib.contextmanager
def asked_of(model: Model, **options: Any) -> Iterator[Any]:
    with serving(model) as url:
        yield served_model(url, "tiny", **{**OPTIONS, **options})


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize(
    ("datatype", "shape"),
    [
        ("FP32", [-1, 3, 25, 50]),
        ("FP32", [1, 3, 25, 50]),
        ("UINT8", [2, 25, 50, 3]),
        ("FP16", [-1, 3, -1, -1]),
    ],
)
def test_each_image_gets_its_own_answer(datatype: str, shape: list[int], binary: bool) -> None:  # noqa: FBT001
    if datatype == "FP16" and not binary:
        pytest.skip("JSON cannot carry float16")
    model = tiny(datatype=datatype, shape=shape, binary=binary)
    scale = None if datatype == "UINT8" else 1.0
    with asked_of(model, size=(50, 25), scale=scale) as detector:
        answers = ask(detector, [grey(50), grey(100), grey(150)], name="tiny")
        assert detector.detect([]) == []
    np.testing.assert_allclose([a.scores[0] for a in answers], np.array([50, 100, 150]) / 255, rtol=1e-3)
    assert [a.boxes.tolist() for a in answers] == [[[20, 10, 60, 30]]] * 3
    assert [a.labels.tolist() for a in answers] == [[1]] * 3
    assert {"binary" if binary else "json"} == set(model.asked) & {"binary", "json"}
    assert "/v2/models/tiny/ready" in model.asked


@pytest.mark.parametrize("binary", [True, False])
def test_a_served_real_model_answers_as_the_same_file_does(
    fastestdet: Path,
    photos: Path,
    binary: bool,  # noqa: FBT001
) -> None:
    import onnxruntime  # noqa: PLC0415 - only this test runs it directly

    told = onnxruntime.SessionOptions()
    told.intra_op_num_threads = 1
    told.use_deterministic_compute = True
    session = onnxruntime.InferenceSession(str(fastestdet), told, providers=["CPUExecutionProvider"])

    def net(values: NDArray[Any]) -> dict[str, NDArray[Any]]:
        return {"758": session.run(None, {"input.1": values})[0]}

    options: dict[str, Any] = {"resize": "stretch", "interpolation": "area", "channels": "bgr"}
    image = ImageFile(min((photos / "train2017").iterdir()))()
    onnx: Any = onnx_model(fastestdet, "fastestdet", **options)
    here = onnx.detect([image])[0]
    with serving(Model(net, [1, 3, 352, 352], ["758"], binary=binary)) as url:
        served: Any = served_model(url, "tiny", "fastestdet", **options)
        there = served.detect([image])[0]
    assert len(here) > 0
    assert here.same(there)


BRIGHT = 200
NOT_ASKED = (
    "broken",
    "hung_up",
    "moved",
    "locked",
    "slow",
    "dripping",
    "dripping_header",
    "broken_off_refusal",
)
FAULTS: list[tuple[str, str, dict[str, Any]]] = [
    ("slow", "no complete answer after 1 s", {"timeout_s": 1.0}),
    ("dripping", "no complete answer after 1 s", {"timeout_s": 1.0}),
    ("dripping_header", "no complete answer after 0.3 s", {"timeout_s": 0.3}),
    ("broken_off", "in the midst of its answer", {}),
    ("broken_off_header", "in the midst of its answer", {}),
    ("broken_off_refusal", "status 503 Service Unavailable: not ready", {"retries": 0}),
    ("failing", "status 500 Internal Server Error: assertion failed in layer 3", {}),
    ("broken", "status 503 Service Unavailable: out of memory on device 0", {}),
    ("broken", "3 tries", {}),
    ("broken", "1 try", {"retries": 0}),
    ("refusing", "unexpected shape", {}),
    ("moved", "location http://elsewhere.invalid/v2", {}),
    ("locked", "status 401 Unauthorized: token expired", {}),
    ("garbage", "got: b'<html>It works!", {}),
    ("a_list", "not a JSON object; where: served, http", {}),
    ("empty", "wanted: outputs dets", {}),
    ("nested", "not JSON", {}),
    ("short", "cannot reshape", {}),
    ("bad_length", "got: 900; wanted: a number up to 2", {}),
    ("not_a_number", "not finite", {}),
    ("other_shape", "does not have the shape that its decoder reads", {}),
    ("other_model", "that of another model; where: served, http", {}),
    ("other_model", "got: 'tiny-2'; wanted: tiny. Fix:", {}),
    ("other_version", "got: '77'; wanted: 3. Fix:", {"version": "3"}),
    ("other_request", "that of another request", {}),
    ("other_datatype", "got: INT64; wanted: FP32. Fix:", {}),
    ("text_as_numbers", "that are no numbers", {}),
    ("twice", "key 'outputs' twice", {}),
    ("huge", "more than 1 MB", {"max_response_mb": 1}),
    ("compressed", "gzip", {}),
    ("hung_up", "cannot be reached", {}),
]


@pytest.mark.fault(40)
@pytest.mark.parametrize(
    ("way", "told", "options"), FAULTS, ids=[f"{f[0]}-{n}" for n, f in enumerate(FAULTS)]
)
def test_a_failure_is_a_fault_of_the_image_and_the_next_one_is_answered(
    way: str, told: str, options: dict[str, Any]
) -> None:
    fails: Callable[[NDArray[Any]], str | None] = lambda values: way if values.mean() > BRIGHT else None  # noqa: E731
    model = tiny(fails=fails)
    with asked_of(model, **options) as detector:
        before = model.asked.count("binary")
        with pytest.raises(SutError) as caught:
            ask(detector, [grey(250)], name="served")
        tries = model.asked.count("binary") - before
        assert told in str(caught.value)
        assert isinstance(caught.value, InfrastructureError) == (way in NOT_ASKED)
        assert caught.value.where is not None
        assert caught.value.where.startswith("served")
        assert len(ask(detector, [grey(100)], name="served")[0]) == 1
    passing = way in ("broken", "hung_up", "broken_off_refusal")
    assert tries == (1 + options.get("retries", 2) if passing else 1)


@pytest.mark.parametrize(
    ("data", "kind"), [([0.5], "INT64"), ([300], "UINT8"), ([2], "BOOL"), ([-1], "UINT64")]
)
def test_numbers_are_never_cut_to_fit(data: list[float], kind: str) -> None:
    entry = {"name": "out", "datatype": kind, "shape": [1], "data": data}
    expected = Expected(("m",), None, {"out": kind})
    with pytest.raises(SutError, match=f"numbers that {kind} cannot hold"):
        read_reply(json.dumps({"outputs": [entry]}).encode(), {}, ["out"], expected, "7")
    (output,) = read_reply(
        json.dumps({"outputs": [{**entry, "data": [1]}]}).encode(), {}, ["out"], expected, "7"
    )
    assert output.array.tolist() == [1]


def test_a_version_that_the_study_does_not_name_stays_that_of_the_first_answer() -> None:
    expected = Expected(("m",), None, {})
    for version in ("4", 4, None):
        expected.check({"model_version": version}, "7")
    with pytest.raises(SutError, match="another version of the model; got: '5'; wanted: 4"):
        expected.check({"model_version": "5"}, "7")


@pytest.mark.fault(40)
def test_what_passes_by_itself_is_no_fault() -> None:
    troubles = ["broken", "hung_up"]

    def fails(values: NDArray[Any]) -> str | None:
        return troubles.pop() if values.mean() > BRIGHT and troubles else None

    with asked_of(tiny(fails=fails)) as detector:
        assert len(ask(detector, [grey(250)], name="served")[0]) == 1
        assert [outage[:25] for outage in detector.take_requests().outages] == [
            "the server cannot be reac",
            "the server cannot take th",
        ]
        assert detector.take_requests() == (0, [])
    assert troubles == []


def test_proxies_of_the_environment_are_used_only_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # bound, but nobody listens
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{nobody.getsockname()[1]}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        with asked_of(tiny()) as detector:
            assert len(detector.detect([grey(9)])[0]) == 1
        with pytest.raises(SutError, match="cannot be reached"), asked_of(tiny(), use_environment=True):
            pass


@pytest.mark.parametrize(
    ("model", "options", "told"),
    [
        ({}, {"model": "tinny"}, "status 404"),
        ({}, {"url": "localhost:8000"}, "not the address of a server"),
        ({}, {"url": "http://[::1"}, "not the address of a server"),
        ({}, {"token_from": "NO_SUCH_TOKEN"}, "$NO_SUCH_TOKEN is not set"),
        ({}, {"url": "file:///etc/passwd"}, "not the address of a server"),
        ({}, {"url": "http://127.0.0.1:9", "retries": 1}, "2 tries"),
        ({"outputs": ["a", "b"]}, {}, "outputs a, b"),
        ({"shape": [-1, 3, -1, -1]}, {}, "size: [width, height]"),
        ({"datatype": "BYTES"}, {}, "not a batch of images"),
        ({"datatype": "UINT8"}, {}, "Take out scale:"),
        ({"datatype": "FP16", "binary": False}, {}, "JSON cannot carry"),
        ({}, {"classes": "coco-80", "decoder": "yolo"}, "(N, 85)"),
        ({"fails": lambda _values: "garbage"}, {}, "not JSON"),
    ],
)
def test_what_does_not_fit_is_found_before_the_study_starts(
    model: dict[str, Any], options: dict[str, Any], told: str
) -> None:
    with serving(tiny(**model)) as url:
        given = {**OPTIONS, "url": url, "model": "tiny", **options}
        with pytest.raises(SutError) as caught:
            served_model(**given)
    assert told in str(caught.value)


def test_a_token_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVER_TOKEN", "abc")
    model = tiny()
    with asked_of(model, token_from="SERVER_TOKEN"):  # the name of a variable
        assert "Bearer abc" in model.asked
    with asked_of(model):
        assert "no token" in model.asked


def test_a_study_can_say_it_and_a_new_revision_is_a_new_system() -> None:
    plugin = load().get("sut", "http")
    given = {"url": "http://localhost:8000", "model": "tiny", "decoder": "decoded"}
    prints = {
        fingerprint(plugin, bind(plugin, {**given, **more}, where="suts[0]"))
        for more in ({}, {"revision": "2"}, {"version": "2"}, {"decoder": "yolo"})
    }
    assert len(prints) == 4
    assert watches_itself(plugin)
