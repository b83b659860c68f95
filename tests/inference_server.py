"""A small real server of the Open Inference Protocol, and the ways in which one can fail."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
from numpy.typing import NDArray

Net = Callable[[NDArray[Any]], dict[str, NDArray[Any]]]
KINDS = {"float32": "FP32", "float64": "FP64", "int64": "INT64", "uint8": "UINT8", "float16": "FP16"}
CODES = {kind: np.dtype(code) for code, kind in KINDS.items()}
HEAD = "Inference-Header-Content-Length"


@dataclass
class Model:
    """What is served. `fails(values)` names a way to fail for an input, or None."""

    net: Net
    shape: list[int]
    outputs: list[str]
    datatype: str = "FP32"
    binary: bool = True
    fails: Callable[[NDArray[Any]], str | None] = lambda _values: None
    asked: list[str] = field(default_factory=list)
    slow_s: float = 3.0
    latency_s: float = 0.0


@contextlib.contextmanager
def serving(model: Model) -> Iterator[str]:
    """Serve a model as `tiny` on a free port of this machine, and give its address."""

    class Handler(_Handler):
        served = model

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    served: Model
    request_id = ""
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's own name
        pass

    def do_GET(self) -> None:
        model = self.served
        model.asked.append(self.path)
        path = self.path.replace("/versions/3", "")
        if path == "/v2":
            extensions = ["binary_tensor_data"] if model.binary else []
            self._json({"name": "small", "version": "1", "extensions": extensions})
        elif path == "/v2/models/tiny/ready":
            self._send(200, b"")
        elif path == "/v2/models/tiny":
            inputs = [{"name": "image", "datatype": model.datatype, "shape": model.shape}]
            outputs = [{"name": name, "datatype": "FP32", "shape": [-1]} for name in model.outputs]
            self._json({"name": "tiny", "inputs": inputs, "outputs": outputs})
        else:
            self._send(404, b'{"error": "no such model"}')

    def do_POST(self) -> None:
        model = self.served
        model.asked.append(self.headers.get("Authorization", "no token"))
        body = self.rfile.read(int(self.headers["Content-Length"]))
        length = int(self.headers.get(HEAD, len(body)))
        request = json.loads(body[:length])
        self.request_id = request["id"]
        (tensor,) = request["inputs"]
        code = CODES[tensor["datatype"]]
        binary = "data" not in tensor
        model.asked.append("binary" if binary else "json")
        values = np.frombuffer(body[length:], code) if binary else np.array(tensor["data"], code)
        values = values.reshape(tensor["shape"])
        failure = model.fails(values)
        if failure is not None:
            getattr(self, failure)()
            return
        time.sleep(model.latency_s)
        arrays = model.net(values)
        wanted = [one["name"] for one in request["outputs"]]
        self._answer({name: arrays[name] for name in wanted}, binary=binary)

    def _answer(
        self, arrays: dict[str, NDArray[Any]], *, binary: bool, more: dict[str, Any] | None = None
    ) -> None:
        outputs: list[dict[str, Any]] = []
        raw = b""
        for name, array in arrays.items():
            entry: dict[str, Any] = {
                "name": name,
                "datatype": KINDS[array.dtype.name],
                "shape": list(array.shape),
            }
            if binary:
                entry["parameters"] = {"binary_data_size": array.nbytes}
                raw += array.tobytes()
            else:
                entry["data"] = array.ravel().tolist()
            outputs.append(entry)
        said = {"model_name": "tiny", "id": self.request_id, "outputs": outputs, **(more or {})}
        head = json.dumps(said).encode()
        self._send(200, head + raw, {HEAD: str(len(head))} if binary else {})

    def _json(self, content: Any) -> None:
        self._send(200, json.dumps(content).encode())

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    # The ways to fail.

    def slow(self) -> None:
        time.sleep(self.served.slow_s)
        with contextlib.suppress(OSError):
            self._send(200, b"{}")

    def dripping(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "100000")
        self.end_headers()
        with contextlib.suppress(OSError):
            for _ in range(int(self.served.slow_s * 20)):
                self.wfile.write(b" ")
                self.wfile.flush()
                time.sleep(0.05)

    def dripping_header(self) -> None:
        with contextlib.suppress(OSError):
            for byte in b"HTTP/1.1 200 OK\r\nX-Pad: " + b"a" * int(self.served.slow_s * 20):
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                time.sleep(0.05)
        self.close_connection = True

    def broken_off(self) -> None:
        self._send(200, b'{"outputs": []}', {"Content-Length": "900"})
        self.close_connection = True

    def broken_off_header(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-")
        self.close_connection = True

    def broken_off_refusal(self) -> None:
        self._send(503, b"not ready", {"Content-Length": "900"})
        self.close_connection = True

    def broken(self) -> None:
        self._send(503, b"out of memory on device 0")

    def failing(self) -> None:
        self._send(500, b"assertion failed in layer 3")

    def refusing(self) -> None:
        self._send(400, b'{"error": "unexpected shape"}')

    def locked(self) -> None:
        self._send(401, b"token expired")

    def moved(self) -> None:
        self._send(307, b"", {"Location": "http://elsewhere.invalid/v2"})

    def garbage(self) -> None:
        self._send(200, b"<html>It works!</html>")

    def a_list(self) -> None:
        self._send(200, b"[1, 2]")

    def empty(self) -> None:
        self._send(200, b'{"outputs": []}')

    def nested(self) -> None:
        self._send(200, b"[" * 200_000)

    def short(self) -> None:
        head = b'{"outputs": [{"name": "dets", "datatype": "FP32", "shape": [1, 6], '
        head += b'"parameters": {"binary_data_size": 24}}]}'
        self._send(200, head + b"1234", {HEAD: str(len(head))})

    def bad_length(self) -> None:
        self._send(200, b"{}", {HEAD: "900"})

    def not_a_number(self) -> None:
        self._answer({"dets": np.full((1, 1, 6), np.nan, np.float32)}, binary=False)

    def other_shape(self) -> None:
        self._answer({"dets": np.zeros((1, 1, 5), np.float32)}, binary=False)

    def _differing(self, array: NDArray[Any], **more: Any) -> None:
        self._answer({"dets": array}, binary=False, more=more)

    def other_model(self) -> None:
        self._differing(np.ones((1, 1, 6), np.float32), model_name="tiny-2")

    def other_version(self) -> None:
        self._differing(np.ones((1, 1, 6), np.float32), model_version="77")

    def other_request(self) -> None:
        self._differing(np.ones((1, 1, 6), np.float32), id="of-another-image")

    def other_datatype(self) -> None:
        self._differing(np.ones((1, 1, 6), np.int64))

    def text_as_numbers(self) -> None:
        entry = '{"name": "dets", "datatype": "FP32", "shape": [1, 1, 6], "data": ["0.5", 1, 1, 1, 1, 1]}'
        self._send(200, f'{{"outputs": [{entry}]}}'.encode())

    def twice(self) -> None:
        self._send(200, b'{"outputs": [], "outputs": []}')

    def huge(self) -> None:
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        with contextlib.suppress(OSError):
            for _ in range(4096):
                self.wfile.write(b" " * (1 << 16))

    def compressed(self) -> None:
        self._send(200, b"\x1f\x8b", {"Content-Encoding": "gzip"})

    def hung_up(self) -> None:
        self.close_connection = True
