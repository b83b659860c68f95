"""Signatures of runs: keys, the envelope, and whose word counts."""

from __future__ import annotations

import base64
import json
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from adverse.cli.sealing import _may_read_unseen
from adverse.content import file_sha256
from adverse.errors import StoreError
from adverse.store.keys import make_key, read_private_key, read_public_key
from adverse.store.signature import _dependencies
from analysis.test_results import study
from bad_input.command import adverse_here

PEM, PKCS8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "team"
    make_key(path)
    return path


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = study(tmp_path_factory.mktemp("signing"), ["brightness(scale=0.5)"])
    adverse_here("analyze", path)
    return path


def test_a_new_key_is_the_owners_alone_and_overwrites_nothing(key: Path) -> None:
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert read_public_key(key.with_name("team.pub")).public_bytes_raw() == (
        read_private_key(key).public_key().public_bytes_raw()
    )
    with pytest.raises(StoreError, match="not written over"):
        make_key(key)


def written(path: Path, data: bytes, mode: int = 0o600) -> Path:
    path.write_bytes(data)
    path.chmod(mode)
    return path


def test_keys_that_are_not_what_is_needed(key: Path, tmp_path: Path) -> None:
    plain = serialization.NoEncryption()
    secret = serialization.BestAvailableEncryption(b"passphrase")
    mine = key.read_bytes()
    elliptic = ec.generate_private_key(ec.SECP256R1())
    cases = {
        "others can read": written(tmp_path / "open", mine, 0o644),
        "passphrase": written(
            tmp_path / "locked", Ed25519PrivateKey.generate().private_bytes(PEM, PKCS8, secret)
        ),
        "another kind, RSA": written(
            tmp_path / "rsa", rsa.generate_private_key(65537, 1024).private_bytes(PEM, PKCS8, plain)
        ),
        "another kind, E": written(tmp_path / "ec", elliptic.private_bytes(PEM, PKCS8, plain)),
        "something else": written(tmp_path / "garbage", b"\x00\xffnot a key"),
        "a public key": key.with_name("team.pub"),
        "no such file": tmp_path / "nowhere",
        "not a file": tmp_path,
    }
    for words, path in cases.items():
        with pytest.raises(StoreError, match=words):
            read_private_key(path)
    for words, path in {"a private key": key, "something else": cases["something else"]}.items():
        with pytest.raises(StoreError, match=words):
            read_public_key(path)


def test_the_envelope_is_read_by_who_knows_only_the_standards(
    finished_run: Path, key: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(finished_run, tmp_path / "run"))
    adverse_here("seal", run, "--key", key).expect(0, "signed with key")
    envelope = json.loads((run / "signature.dsse.json").read_text())
    payload = base64.b64decode(envelope["payload"])
    kind = envelope["payloadType"]
    assert kind == "application/vnd.in-toto+json"
    signed = f"DSSEv1 {len(kind)} {kind} {len(payload)} ".encode() + payload
    public = serialization.load_pem_public_key(key.with_name("team.pub").read_bytes())
    assert isinstance(public, Ed25519PublicKey)
    (one,) = envelope["signatures"]
    public.verify(base64.b64decode(one["sig"]), signed)  # raises where it does not fit
    statement = json.loads(payload)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    subjects = {file["name"]: file["digest"]["sha256"] for file in statement["subject"]}
    assert subjects == {name: file_sha256(run / name) for name in subjects}
    unsigned = {path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()} - {*subjects}
    by_the_journal = {name for name in unsigned if name.startswith("detections/")}
    assert unsigned - by_the_journal == {*(".adverse", "lock", "seals.json", "signature.dsse.json")}
    predicate = statement["predicate"]
    manifest = json.loads((run / "manifest.json").read_text())
    assert predicate["testDefinition"]["mutations"] == manifest["settings"]
    assert predicate["testDefinition"]["suts"].keys() == manifest["suts"].keys()
    assert predicate["runDetails"]["tool"]["version"] == manifest["adverse"]["version"]


def test_files_that_a_sut_opens_by_itself_are_in_the_statement() -> None:
    sha256 = "5" * 64
    read = {"/etc/cfg.txt": sha256, "/out/log": f"written:{sha256}", "$HOME": sha256, "/no": "missing"}
    manifest = {"data": {"annotations": {}}, "suts": {}, "files_read": {"SUT a": read}}
    assert _dependencies(manifest, sha256)[1:] == [
        {"name": f"SUT a, read: {path}", "digest": {"sha256": sha256}}
        for path in ("/etc/cfg.txt", "/out/log")
    ]


def test_openssl_makes_a_key_that_signs(finished_run: Path, tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl")
    run = Path(shutil.copytree(finished_run, tmp_path / "run"))
    key, public = tmp_path / "key", tmp_path / "key.pub"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", key], check=True)
    subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-out", public], check=True)
    key.chmod(0o600)
    adverse_here("seal", run, "--key", key).expect(0)
    adverse_here("verify", run, "--no-inputs", "--key", public).expect(0, "signed with key")


def test_whose_signature_it_is(finished_run: Path, key: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(finished_run, tmp_path / "run"))
    public = key.with_name("team.pub")
    adverse_here("verify", run, "--no-inputs", "--key", public).expect(2, "not signed")
    adverse_here("seal", run, "--key", key).expect(0)
    adverse_here("seal", run, "--key", key).expect(0)  # one's own is renewed
    other = tmp_path / "other"
    make_key(other)
    adverse_here("seal", run, "--key", other).expect(2, "signed with another key", "--replace")
    adverse_here("verify", run, "--no-inputs", "--key", public).expect(0)
    adverse_here("seal", run, "--key", other, "--replace").expect(0)
    adverse_here("verify", run, "--no-inputs", "--key", public).expect(2, "of another key")
    adverse_here("verify", run, "--no-inputs").expect(0, "signed, it says, with key")
    (run / "signature.dsse.json").unlink()
    adverse_here("verify", run, "--no-inputs").expect(2, "signature.dsse.json", "missing")
    adverse_here("seal", run, "--key", other, "--replace").expect(0)


def test_a_signature_over_a_run_that_was_forged_with_its_seals(
    finished_run: Path, key: Path, tmp_path: Path
) -> None:
    from bad_input.test_seals import forge  # noqa: PLC0415

    run = Path(shutil.copytree(finished_run, tmp_path / "run"))
    adverse_here("seal", run, "--key", key).expect(0)
    text = (run / "results" / "summary.json").read_text()
    forge(run, "results/summary.json", text.replace('"area": 0.', '"area": 0.9', 1))
    adverse_here("verify", run, "--no-inputs").expect(0)  # a seal shows a change, not a forgery
    public = key.with_name("team.pub")
    adverse_here("verify", run, "--no-inputs", "--key", public).expect(2, "summary.json changed")


@pytest.mark.parametrize("options", [(), ("--key", "a", "--new-key", "b")])
def test_seal_wants_one_key(finished_run: Path, options: tuple[str, ...]) -> None:
    adverse_here("seal", finished_run, *options).expect(2, "one key")


@pytest.mark.parametrize(
    ("sut", "doubted"),
    [
        ({"adapter": "predictions", "options": {}}, False),
        ({"adapter": "command", "options": {"files": None}}, True),
        ({"adapter": "command", "options": {"files": ["weights.bin"]}}, False),
        ({"adapter": "of-a-plug-in", "options": None}, True),
        ({"adapter": "of-a-plug-in", "options": {}, "files": {"files[0]": {}}}, False),
    ],
)
def test_unseen_files_are_mentioned_where_there_is_doubt(sut: dict[str, object], *, doubted: bool) -> None:
    assert _may_read_unseen(sut) is doubted
