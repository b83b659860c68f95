"""Who vouches for a run: an in-toto statement of what was tested with which hashes, signed with a key.

The statement (in-toto Statement v1) names every file of the run with its sha256; detections are named by the
journal, which holds theirs. Its predicate says what was tested: data, SUTs, mutations, study, tool, verdicts.
It is signed in a DSSE envelope, `signature.dsse.json`, which any tool for such envelopes can check. Without
the private key nobody can make another one, so a signature shows a forgery where a seal shows a change.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from adverse.content import MISSING, VARIABLE, WRITTEN, file_sha256
from adverse.errors import StoreError
from adverse.store.folder import RunFolder
from adverse.store.keys import key_id
from adverse.store.read import Store
from adverse.store.seal_list import ANALYSIS, SIGNATURE, read_seals
from adverse.store.seals import hash_inside

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:adverse:test-run:v1"
UNSIGNED = (SIGNATURE, "results/drive.csv", "results/drive.svg", f"{ANALYSIS}/")
"""How the names of sealed files begin that are not signed: the signature, a drive, which does not say how it
was asked for, and what is kept to save work."""
NAMED = 5
"""Files that are named when many changed."""


@dataclass(frozen=True)
class SignedStatement:
    """What lies in the folder: a statement, the bytes of it that were signed, by which key."""

    statement: Mapping[str, Any]
    payload: bytes
    key: str
    signature: bytes

    def subjects(self) -> dict[str, str]:
        """Return the sha256 of each file that was signed, by its path below the folder."""
        return {one["name"]: one["digest"]["sha256"] for one in self.statement["subject"]}


def sign_run(store: Store, key: Ed25519PrivateKey, verdicts: Mapping[str, Sequence[Any]]) -> str:
    """Sign a finished run as it is now, verdicts included, and return the id of the key."""
    payload = json.dumps(_statement(store, verdicts), sort_keys=True, default=str).encode()
    name = key_id(key.public_key())
    envelope = {
        "payloadType": PAYLOAD_TYPE,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [{"keyid": name, "sig": base64.b64encode(key.sign(signed_bytes(payload))).decode()}],
    }
    store.write({SIGNATURE: json.dumps(envelope, indent=1).encode() + b"\n"})
    return name


def signed_bytes(payload: bytes, payload_type: str = PAYLOAD_TYPE) -> bytes:
    """Return what a signature is of: DSSE's pre-authentication encoding.

    >>> signed_bytes(b"hello world", "http://example.com/HelloWorld")
    b'DSSEv1 29 http://example.com/HelloWorld 11 hello world'
    """
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def read_signature(folder: RunFolder) -> SignedStatement | None:
    """Return the signed statement of a run, not checked yet; None: nobody signed it."""
    path = folder.path / SIGNATURE
    if not path.exists():
        return None
    try:
        envelope = json.loads(path.read_bytes())
        (one,) = envelope["signatures"]
        payload = base64.b64decode(envelope["payload"], validate=True)
        signature = base64.b64decode(one["sig"], validate=True)
        found = SignedStatement(json.loads(payload), payload, str(one["keyid"]), signature)
        found.subjects()
        if envelope["payloadType"] == PAYLOAD_TYPE and found.statement["_type"] == STATEMENT_TYPE:
            return found
    except (OSError, ValueError, KeyError, TypeError, binascii.Error, RecursionError):
        pass
    raise StoreError(
        "the signature cannot be read",
        where=str(path),
        wanted=f"a DSSE envelope of an in-toto statement with one signature ({PAYLOAD_TYPE})",
        fix=f"Restore it, or sign the run again: adverse seal {folder.path} --key KEY --replace.",
    )


def check_signature(folder: RunFolder, key: Ed25519PublicKey) -> SignedStatement:
    """Return the statement that the holder of a key signed about a run as it is now, or raise."""
    signed = read_signature(folder)
    where, again = str(folder.path / SIGNATURE), f"adverse seal {folder.path} --key KEY"
    if signed is None:
        raise StoreError("the run is not signed", where=str(folder.path), fix=f"Sign it: {again}.")
    try:
        key.verify(signed.signature, signed_bytes(signed.payload))
    except InvalidSignature as error:
        other = signed.key != key_id(key)
        raise StoreError(
            "the signature is of another key" if other else "the signature does not fit what it signs",
            where=where,
            got=f"key {signed.key}",
            wanted=f"key {key_id(key)}",
            fix="Ask whoever signed it for the public key; trust no run whose signature does not fit.",
        ) from error
    if stale := differences(folder, signed):
        raise StoreError(
            "the signature is of an older state of the run",
            where=where,
            got=f"since then {listed(stale)}",
            wanted="the files that were signed, and no others",
            fix=f"If they are to be vouched for, sign them: {again}.",
        )
    return signed


def differences(folder: RunFolder, signed: SignedStatement) -> list[str]:
    """Say which files are not what was signed, or were not signed at all."""
    before = signed.subjects()
    now = {name: hash_inside(folder.path, folder.path / name) for name in {*before, *_names(folder)}}
    words = {name: "changed" if name in before else "is new" for name in now}
    return [f"{name} {words[name]}" for name in sorted(now) if now[name] != before.get(name)]


def listed(stale: Sequence[str]) -> str:
    """Return a few of many changes in one line."""
    more = f" and {len(stale) - NAMED} more" if len(stale) > NAMED else ""
    return ", ".join(stale[:NAMED]) + more


def _names(folder: RunFolder) -> list[str]:
    """Return the files that are signed: all but the list of seals and what is unsigned."""
    sealed = folder.read_manifest()["files"]
    return [
        folder.manifest.name,
        *sealed,
        *(name for name in read_seals(folder) if not name.startswith(UNSIGNED)),
    ]


def _statement(store: Store, verdicts: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    folder = store.folder
    manifest = folder.read_manifest()
    files = {name: file_sha256(folder.path / name) for name in sorted(_names(folder))}
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": sha256}} for name, sha256 in files.items()],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "testDefinition": {
                "study": manifest["study"] | {"digest": {"sha256": files[folder.study.name]}},
                "mutations": manifest["settings"],
                "statistics": manifest["statistics"],
                "data": {key: manifest["data"][key] for key in ("format", "fingerprint", "frames", "logs")},
                "suts": {name: sut["fingerprint"] for name, sut in manifest["suts"].items()},
                "resolvedDependencies": _dependencies(manifest, files[folder.inputs.name]),
            },
            "runDetails": {
                "tool": {"name": "adverse", **manifest["adverse"]},
                "environment": manifest["environment"],
                "state": store.state,
            },
            "verdicts": {
                name: [
                    {"name": one.name, "outcome": str(one.outcome), "requirement": one.requirement}
                    for one in some
                ]
                for name, some in verdicts.items()
            },
        },
    }


def _dependencies(manifest: Mapping[str, Any], inputs: str) -> list[dict[str, Any]]:
    """Return what the run was made from, as in-toto's resource descriptors."""
    found = [(f"data: {path}", sha256) for path, sha256 in manifest["data"]["annotations"].items()]
    found += [("data: every image, by inputs.parquet", inputs)]
    found += [(f"plug-in: {path}", sha256) for path, sha256 in manifest.get("plugins", {}).items()]
    for sut, entry in manifest["suts"].items():
        found += [(f"SUT {sut}: {name}", file["sha256"]) for name, file in entry["files"].items()]
    for owner, hashes in manifest.get("files_read", {}).items():  # what their code opened by itself
        found += [
            (f"{owner}, read: {path}", wanted.removeprefix(WRITTEN))
            for path, wanted in hashes.items()
            if not path.startswith(VARIABLE) and wanted != MISSING
        ]
    return [{"name": name, "digest": {"sha256": sha256}} for name, sha256 in found]
