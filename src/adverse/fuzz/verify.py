"""Look at every file of a fuzz campaign, and name what is not as it was written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from adverse.errors import AdverseError, StoreError
from adverse.fuzz.folder import FINISHED, UNGUIDED, CampaignFolder, existing_campaign
from adverse.fuzz.votes import Votes
from adverse.store.seal_list import BASE, read_seals
from adverse.store.seals import leftovers
from adverse.store.verify import Verification, added, broken_seals, made_again, wrong_inside

AGAIN = "Restore it from a copy, or run the same adverse fuzz command again: missing files are made again."


REWRITES = ("results/", "fuzz.html")
"""What `adverse fuzz report` makes again."""


def open_campaign(path: Path, *, rewrites: Sequence[str] = ()) -> CampaignFolder:
    """Open the folder of a finished campaign, or raise: for one that is not, or for a file that changed."""
    folder = existing_campaign(path)
    folder.finished()
    for problem in _verify(folder, rewrites=rewrites).problems:
        raise problem
    return folder


def verify_campaign(folder: CampaignFolder) -> Verification:
    """Check the folder of a campaign and that of the unguided one inside it, also for leftovers of writes."""
    checked = _verify(folder)
    inner = CampaignFolder(folder.path / UNGUIDED)
    cut_short = (
        [path for each in (folder, inner) for path in leftovers(each)] if not checked.unfinished else []
    )
    return replace(checked, problems=(*checked.problems, *map(_leftover, cut_short)))


def _verify(folder: CampaignFolder, *, rewrites: Sequence[str] = ()) -> Verification:
    """Check all files but leftovers of writes that were cut short, which nothing reads.

    `rewrites` says how the names of derived files begin that the caller is about to make again.
    """
    manifest = folder.read_manifest()
    finished = manifest.get("status") in FINISHED
    problems: list[AdverseError] = []
    kept: dict[Path, str] = {}
    known = {folder.path / name for name in read_seals(folder)}
    if finished and folder.log not in known:
        problems.append(_unsealed(folder))
    state = folder.state(manifest) if finished else None
    names, broken = broken_seals(folder, state, lambda _: folder.recomputed_by)
    broken = {name: _named(name, error) for name, error in broken.items()}
    tolerated = made_again(folder, broken, rewrites)
    problems += [error for error in broken.values() if error not in tolerated]
    if not problems:
        try:
            units = folder.journal().entries
            kept = {folder.path / name: facts[1] for unit in units for name, facts in unit.files.items()}
        except StoreError as error:
            problems.append(error)
    problems += wrong_inside(folder, kept, fix=AGAIN)
    if finished and not problems:
        places = [folder.path / name for name in ("bases", "failures", "suts", "logs")]
        problems += added(places, {*known, *kept})
    problems += _votes(folder)
    notes = [] if finished else [f"the campaign is not finished ({manifest.get('status')})"]
    count = len(kept) + names + folder.votes.exists()
    unguided = CampaignFolder(folder.path / UNGUIDED)
    if unguided.manifest.exists():
        inner = _verify(unguided, rewrites=rewrites)
        count, problems = count + inner.files, [*problems, *inner.problems]
        notes += inner.notes
    return Verification(count, tuple(problems), tuple(notes), tuple(tolerated), unfinished=not finished)


def _named(name: str, error: AdverseError) -> AdverseError:
    """Return an error with the way out: what the campaign itself wrote, no report makes again."""
    if not BASE.fullmatch(name):
        return error
    return StoreError(error.what, where=error.where, got=error.got, wanted=error.wanted, fix=AGAIN)


def _leftover(path: Path) -> StoreError:
    return StoreError(
        "a write was cut short",
        where=str(path),
        got="a .partial file of a process that is gone",
        fix="Delete it: nothing reads it. adverse fuzz and adverse fuzz report do so, too.",
    )


def _unsealed(folder: CampaignFolder) -> StoreError:
    return StoreError(
        "the campaign has no seals",
        where=str(folder.seals),
        got="no list of the files that the campaign wrote" if folder.seals.exists() else "no such file",
        fix="Run the same adverse fuzz command again: it repeats nothing, and seals what is there.",
    )


def _votes(folder: CampaignFolder) -> list[AdverseError]:
    try:
        Votes(folder.votes, mend=False)
    except StoreError as error:
        return [error]
    return []
