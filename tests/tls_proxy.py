"""A proxy that encrypts, as one would put before a study: TLS outside, plain HTTP to the server inside."""

from __future__ import annotations

import contextlib
import datetime as dt
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def write_certificate(path: Path, name: str) -> None:
    """Write a key and a certificate of our own making for a name, into one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(who)
        .issuer_name(who)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + dt.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    path.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))


@contextlib.contextmanager
def tls_proxy(certificate: Path, listener: socket.socket, inside: int) -> Iterator[None]:
    """Pass all that arrives at a bound socket on to a port of this machine, and back."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.set_alpn_protocols(["http/1.1"])

    def serve() -> None:
        while True:
            try:
                raw, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=_connect, args=(context, raw, inside), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def _connect(context: ssl.SSLContext, raw: socket.socket, inside: int) -> None:
    with (
        contextlib.suppress(OSError),
        context.wrap_socket(raw, server_side=True) as outer,
        socket.create_connection(("127.0.0.1", inside)) as inner,
    ):
        back = threading.Thread(target=_pass, args=(inner, outer), daemon=True)
        back.start()
        _pass(outer, inner)
        back.join()


def _pass(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
