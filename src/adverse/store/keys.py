"""Files of ed25519 keys, in PEM: a private one that only its owner may read, and a public one beside it."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from adverse.errors import StoreError
from adverse.store.durable import storage_errors, write_file

LARGEST = 1 << 16
"""Bytes of a key file; anything larger is something else."""
WANTED = "an ed25519 key in PEM, as adverse seal --new-key FILE writes it"
MAKE = "Make a pair with adverse seal --new-key FILE: FILE signs, FILE.pub verifies."


def make_key(path: Path) -> Path:
    """Write a new private key, and its public key to PATH.pub, which is returned; nothing is overwritten."""
    public = path.with_name(f"{path.name}.pub")
    for place in (path, public):
        if place.exists() or place.is_symlink():
            raise StoreError(
                "a key is not written over another file",
                where=str(place),
                got="a file that is there already",
                fix="Give another name, or move that file away.",
            )
    key = Ed25519PrivateKey.generate()
    data = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            os.fchmod(handle, 0o600)  # whatever the umask
            file.write(data)
            file.flush()
            os.fsync(handle)
    write_file(public, _public_pem(key.public_key()))
    return public


def read_private_key(path: Path) -> Ed25519PrivateKey:
    """Read a key to sign with, or raise: one that others can read is not used."""
    data = _key_file(path)
    if b"PUBLIC KEY" in data:
        raise _wrong(path, "a public key", "a private one, to sign with")
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise StoreError(
            "others can read or change the private key",
            where=str(path),
            got=f"mode {mode:04o}",
            wanted="mode 0600",
            fix=f"chmod 600 {path}, and make a new key if anybody may have seen it.",
        )
    try:
        key = serialization.load_pem_private_key(data, password=None)
    except TypeError as error:
        raise StoreError(
            "the key is protected by a passphrase",
            where=str(path),
            wanted=f"{WANTED}, without a passphrase",
            fix="Have a key without one for signing runs, in a place that only you and your CI can read.",
        ) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _wrong(path, "something else") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise _wrong(path, f"a private key of another kind, {_kind(key)}")
    return key


def read_public_key(path: Path) -> Ed25519PublicKey:
    """Read a key to verify with, or raise."""
    data = _key_file(path)
    if b"PRIVATE KEY" in data:
        raise _wrong(path, "a private key", "the public one, FILE.pub; keep the private one where it is")
    try:
        key = serialization.load_pem_public_key(data)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _wrong(path, "something else") from error
    if not isinstance(key, Ed25519PublicKey):
        raise _wrong(path, f"a public key of another kind, {_kind(key)}")
    return key


def key_id(key: Ed25519PublicKey) -> str:
    """Return the name of a key in signatures: the sha256 of it in DER."""
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).hexdigest()


def _public_pem(key: Ed25519PublicKey) -> bytes:
    return key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def _key_file(path: Path) -> bytes:
    if not path.is_file():
        got = "something that is not a file" if path.exists() else "no such file"
        raise StoreError("the key cannot be read", where=str(path), got=got, wanted=WANTED, fix=MAKE)
    try:
        with path.open("rb") as file:
            return file.read(LARGEST)
    except OSError as error:
        raise StoreError(
            "the key cannot be read", where=str(path), got=error.strerror, wanted=WANTED, fix=MAKE
        ) from error


def _wrong(path: Path, got: str, wanted: str = WANTED) -> StoreError:
    return StoreError("this is not the key that is needed", where=str(path), got=got, wanted=wanted, fix=MAKE)


def _kind(key: object) -> str:
    return type(key).__name__.strip("_").removesuffix("PrivateKey").removesuffix("PublicKey")
