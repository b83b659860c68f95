"""A real S3 server on this machine (moto), and the ways in which one can fail."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

KEY, SECRET = "AKIAOFTHESETESTS", "a/secret+that/nobody/may/write/down"


@dataclass
class ObjectStore:
    """A server; `fails` says of a request, by its method, path and how often it came, how it fails, if so."""

    url: str = ""
    fails: Callable[[str, str, int], str | None] = lambda _method, _path, _time: None
    asked: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def client(self) -> Any:
        """A client of the makers of S3."""
        return boto3.client(
            "s3",
            endpoint_url=self.url,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
        )

    def upload(self, folder: Path, bucket: str, prefix: str) -> None:
        """Put all files of a folder into a bucket, which is made."""
        client = self.client
        client.create_bucket(Bucket=bucket)
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                client.put_object(
                    Bucket=bucket,
                    Key=f"{prefix}/{path.relative_to(folder).as_posix()}",
                    Body=path.read_bytes(),
                )

    def environment(self) -> dict[str, str]:
        """Return the variables by which a process finds the server and its credentials."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_MAX_ATTEMPTS": "1",  # so that it is our tries that are seen
        }


@contextlib.contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Run a server on a free port."""
    store = ObjectStore()
    app = DomainDispatcherApplication(create_backend_app)

    def failing(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        request = (environ["REQUEST_METHOD"], environ["PATH_INFO"])
        store.asked[request] += 1
        way = store.fails(*request, store.asked[request])
        if way == "500":
            start("500 Internal Server Error", [("Content-Length", "0")])
            return [b""]
        if way == "403":
            start("403 Forbidden", [("Content-Length", "0")])
            return [b""]
        if way == "slow":
            time.sleep(0.5)
        body: Iterable[bytes] = app(environ, start)
        if way == "truncated":
            whole = b"".join(body)
            return [whole[: len(whole) // 2]]
        return body

    server = make_server("127.0.0.1", 0, failing, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    store.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield store
    finally:
        server.shutdown()
        thread.join()
