"""verify, seal: whether a folder is what was written, and who vouches for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adverse.cli.console import say, show_error
from adverse.cli.options import Json, Quiet, Trust, at_hand, fetched_anew, trusted_plugins
from adverse.errors import EXIT_CANNOT_RUN, EXIT_INCOMPLETE, EXIT_PASS, AdverseError, StoreError, StudyError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    from adverse.store.read import Store
    from adverse.store.verify import Verification

Folder = Annotated[
    Path,
    typer.Argument(
        metavar="RUN", help="The folder of a run, fuzz campaign or export.", callback=fetched_anew
    ),
]
NoInputs = Annotated[bool, typer.Option("--no-inputs", help="Skip the data files.")]
PublicKey = Annotated[
    Path | None, typer.Option("--key", help="A public key: the run must be signed with its private one.")
]
SignedRun = Annotated[
    Path | None,
    typer.Argument(metavar="RUN", help="The folder of a finished run.", show_default=False, callback=at_hand),
]
PrivateKey = Annotated[
    Path | None, typer.Option("--key", help="The private key (PEM, ed25519) to sign with.")
]
NewKey = Annotated[
    Path | None, typer.Option("--new-key", help="Make a key: FILE signs, FILE.pub is for everybody.")
]
Replace = Annotated[bool, typer.Option("--replace", help="Replace the signature of another key.")]

READ_WHAT_THEY_ARE_GIVEN = frozenset(
    {"contrast-blobs", "litert", "onnx", "opencv-dnn", "opencv-hog", "predictions"}
)
"""Adapters that open no file but those of their options, which are in the fingerprint."""


def verify(
    folder: Folder,
    no_inputs: NoInputs = False,  # noqa: FBT002
    key: PublicKey = None,
    trust: Trust = False,  # noqa: FBT002
    as_json: Json = False,  # noqa: FBT002
    quiet: Quiet = False,  # noqa: FBT002
) -> None:
    """Recompute every hash of a run and name changed files.

    The data files are checked too, unless --no-inputs is given, and saved verdicts are computed again; those
    on levels of the study's plug-ins only with --trust.

    \b
    Examples:
        adverse verify runs/orchard
        adverse verify runs/orchard --key team.pub
        adverse verify runs/orchard --quiet && echo unchanged

    A seal reveals a change, not a forgery: whoever edits a file can rewrite its hash. With --key the run must
    also be signed, as it is now, by the holder of the private key (adverse seal).
    Exit codes: 0 all is as it was written, 2 something is not, 3 the run is not finished, or a verdict could
    not be computed again.
    """
    public = _public(key)
    checked, is_run = _checked(folder, inputs=not no_inputs)
    notes = [*(_mixed(folder) if is_run else ()), *(f"note: {note}" for note in checked.notes)]
    problems, withheld, signer = list(checked.problems), "", None
    try:
        if is_run and not problems and not checked.unfinished:
            withheld = _withheld_verdicts(folder, trust=trust)
        if public is not None and not problems:
            signer = _signer(folder, public, is_run=is_run)
    except AdverseError as error:
        problems.append(error)
    code = EXIT_CANNOT_RUN if problems else EXIT_INCOMPLETE if checked.unfinished or withheld else EXIT_PASS
    if as_json:
        facts = {
            "files": checked.files,
            "problems": [{"what": error.what, **dict(error.details())} for error in problems],
            "notes": notes,
            "finished": not checked.unfinished,
            "not_computed_again": withheld or None,
            "signed_with": signer,
        }
        typer.echo(json.dumps(facts, indent=1))
        raise typer.Exit(code)
    for note in () if quiet else notes:
        say(note, err=True)
    for problem in problems:
        show_error(problem)
    if not problems and not quiet:
        signed = [] if signer is None else [f"signed with key {signer}"]
        whose = _whose(folder) if public is None and is_run else []
        counts = f"{checked.files} files match their recorded hashes"
        for line in filter(None, (*signed, counts, *whose, withheld)):
            say(line)
        say_stale(folder)
    raise typer.Exit(code)


def _public(key: Path | None) -> Ed25519PublicKey | None:
    if key is None:
        return None
    from adverse.store.keys import read_public_key

    return read_public_key(key)


def _mixed(folder: Path) -> list[str]:
    """Warn where results come from different environments, or from SUTs that write what they read."""
    from adverse.content import NOT_NOTICED
    from adverse.store.folder import existing_run
    from adverse.study.basis import written_warnings
    from adverse.study.environment import mixture

    manifest = existing_run(folder).read_manifest()
    lines = mixture(manifest.get("environments", {})) + written_warnings(manifest.get("files_read", {}))
    doubted = any(_may_read_unseen(sut) for sut in manifest.get("suts", {}).values())
    noted = [f"note: {NOT_NOTICED}"] if doubted else []
    return [*(f"warning: {line}" for line in lines), *noted]


def _may_read_unseen(sut: Mapping[str, Any]) -> bool:
    """Tell whether a SUT runs code that is not ours, of which the study does not say what it reads."""
    options, hashed = sut.get("options") or {}, sut.get("files") or {}
    named = options.get("files") or any(label.startswith("files[") for label in hashed)
    return sut.get("adapter") not in READ_WHAT_THEY_ARE_GIVEN and not named


def _checked(folder: Path, *, inputs: bool) -> tuple[Verification, bool]:
    """Check a folder of whatever kind, and tell whether it is a run."""
    from adverse.fuzz.folder import CampaignFolder
    from adverse.fuzz.verify import verify_campaign
    from adverse.interop.coco_results import KIND, verify_export
    from adverse.store.folder import existing_run
    from adverse.store.owned_folder import is_marked
    from adverse.store.verify import verify as check

    if is_marked(folder, CampaignFolder.kind):
        return verify_campaign(CampaignFolder(folder)), False
    if is_marked(folder, KIND):
        return verify_export(folder), False
    return check(existing_run(folder), inputs=inputs), True


def _withheld_verdicts(folder: Path, *, trust: bool) -> str:
    """Compute the saved verdicts of a run again, or raise; say how many could not be, for want of trust."""
    from adverse.requirements.gate import saved_verdicts
    from adverse.requirements.run_figures import WITHHELD
    from adverse.store.finished_run import finished
    from adverse.text import counted

    again = saved_verdicts(finished(folder), registry=trusted_plugins(folder) if trust else None)
    verdicts = [verdict for some in again.values() for verdict in some]
    withheld = [verdict for verdict in verdicts if WITHHELD in verdict.reason]
    if not withheld:
        return ""
    number = counted(len(withheld), "saved verdict")
    return f"INCONCLUSIVE: {number} of {len(verdicts)} could not be computed again: {WITHHELD}"


def _signer(folder: Path, public: Ed25519PublicKey, *, is_run: bool) -> str:
    """Return the key that a run was signed with as it is now, or raise."""
    from adverse.store.folder import RunFolder
    from adverse.store.signature import check_signature

    if not is_run:
        raise StoreError("only runs are signed", where=str(folder), fix="Leave --key out.")
    return check_signature(RunFolder(folder), public).key


def _whose(folder: Path) -> list[str]:
    """Say whose signature a run has that nobody asked to check."""
    from adverse.store.folder import RunFolder
    from adverse.store.seal_list import SIGNATURE

    if not (folder / SIGNATURE).exists():
        return []
    from adverse.store.signature import read_signature

    signed = read_signature(RunFolder(folder))
    return [f"signed, it says, with key {signed.key if signed else '?'}; --key PUBLIC checks that"]


def seal(
    folder: SignedRun = None,
    key: PrivateKey = None,
    new_key: NewKey = None,
    replace: Replace = False,  # noqa: FBT002
    trust: Trust = False,  # noqa: FBT002
    quiet: Quiet = False,  # noqa: FBT002
) -> None:
    """Sign a finished run: what was tested, with which hashes.

    Writes signature.dsse.json into the run: an in-toto statement of data, SUTs, mutations, study, results
    and verdicts with their hashes, signed with ed25519. adverse verify RUN --key FILE.pub checks it.

    \b
    Examples:
        adverse seal --new-key team
        adverse seal runs/orchard --key team
        adverse verify runs/orchard --key team.pub

    Results, report and verdicts are computed again from the detections first, and only signed if they are the
    same to the byte. The signature of another key is not replaced without --replace.
    """
    if (key is None) == (new_key is None) or (folder is None and new_key is None):
        raise StudyError(
            "a run is signed with one key",
            where="adverse seal",
            got="both --key and --new-key" if key and new_key else "no run, or no key",
            wanted="RUN --key FILE, RUN --new-key FILE, or --new-key FILE alone",
            fix="Make a key with --new-key FILE, once; then give --key FILE.",
        )
    from adverse.store.keys import key_id, make_key, read_private_key

    if new_key is not None:
        public = make_key(new_key)
        if not quiet:
            say(f"private key: {new_key} (keep it secret)\npublic key:  {public}")
        key = new_key
    if folder is None or key is None:
        return
    private = read_private_key(key)
    from adverse.report.recompute import refuse_other_results
    from adverse.requirements.gate import saved_verdicts
    from adverse.store.finished_run import finished
    from adverse.store.seal_list import SIGNATURE
    from adverse.store.signature import read_signature, sign_run

    store = finished(folder, rewrites=(SIGNATURE,) if replace else ())
    before = None if replace else read_signature(store.folder)
    if before is not None and before.key != key_id(private.public_key()):
        raise StoreError(
            "the run is signed with another key",
            where=str(folder / SIGNATURE),
            got=f"key {before.key}",
            wanted=f"key {key_id(private.public_key())}",
            fix="Give --replace if that signature is no longer wanted.",
        )
    verdicts = saved_verdicts(store, registry=trusted_plugins(folder) if trust else None)
    refuse_other_results(store, trust=trust)
    signer = sign_run(store, private, verdicts)
    if not quiet:
        say(f"signed with key {signer}: {folder / SIGNATURE}")


def say_stale(folder: Path) -> None:
    """Say in one line that what was just written is not what somebody signed, where that is so."""
    from adverse.store.folder import RunFolder
    from adverse.store.seal_list import SIGNATURE

    if not (folder / SIGNATURE).exists():
        return
    from adverse.store.signature import differences, listed, read_signature

    run = RunFolder(folder)
    try:
        signed = read_signature(run)
        stale = differences(run, signed) if signed else []
    except AdverseError as error:
        say(f"note: {error.what}: {error.where}", err=True)
        return
    if stale:
        say(f"note: the signature of the run is now of an older state: {listed(stale)}", err=True)


def say_remade(store: Store) -> None:
    """Name what somebody had changed, and what a command is about to make again."""
    for error in store.tolerated:
        say(f"note: {error.what}: {error.where}", err=True)
