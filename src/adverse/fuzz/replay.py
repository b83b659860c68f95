"""Ask the tests of a campaign again, of other SUTs: a failure that was found once is a test for ever.

Bases, recipes and rules of scoring are the campaign's; SUTs, and where the data lie, are the new study's.
Every test must come out with the same pixels and truth as it had: what does not is an error, never another
test.
"""

from __future__ import annotations

import copy
from collections import Counter
from pathlib import Path

from adverse.content import ChangedError, digest
from adverse.errors import DataError, StoreError, StudyError
from adverse.fuzz.folder import CampaignFolder
from adverse.fuzz.guide import Arm
from adverse.fuzz.job import ReplayedTest, ReplayUnit, Row
from adverse.fuzz.outcome import CampaignOutcome, read_outcome
from adverse.fuzz.plan import CampaignPlan, PrunedBases, before_of, clean_means, plan_campaign
from adverse.fuzz.rounds import UNIT, results_digest
from adverse.fuzz.run import CampaignInProgress, CampaignRun, InterruptedCampaignError, begin
from adverse.study.engines import Engine, Stop
from adverse.study.run import RunWatcher
from adverse.study.spec import StudyFile, written_study

SAME = ("task", "targets")
"""What a study must share with the campaign that it replays."""


def replay_campaign(
    original: CampaignFolder,
    file: StudyFile,
    out: Path,
    engine: Engine,
    *,
    watch: RunWatcher,
    stop: Stop,
    only_failures: bool = False,
    fresh: bool = False,
) -> CampaignRun:
    """Run what is not done yet of a replay, in its folder."""
    outcome = read_outcome(original)
    chosen = [row for row in outcome.rows if row["kept"] or not only_failures]
    if not chosen:
        raise StoreError(
            "there is nothing to replay",
            where=str(original.path),
            got="a campaign without failures" if outcome.rows else "a campaign without tests",
            fix="Replay all of its tests, or run more of them.",
        )
    folder = CampaignFolder(out)
    with folder.in_use(fresh=fresh, note=watch.note):
        campaign = plan_campaign(_under_its_rules(file, original), seed=outcome.campaign.seed)
        replays = {
            "campaign": outcome.campaign.key,
            "results": outcome.campaign.results,
            "tests": digest(*(row["picture"] for row in chosen)),
        }
        places = _places(original, outcome, campaign)
        manifest = begin(folder, campaign, guided=False, replays=replays)
        progress = CampaignInProgress(folder, campaign, manifest, engine, watch, stop)
        asked = {"asked": len(chosen)}
        try:
            bases = _bases(progress, campaign, sorted(places.values()))
            units = _units(chosen, places)
            progress.with_resources(bases)
            _refuse_other_resources(outcome, progress.resources_key)
            rows = progress.replayed(bases, units)
            _refuse_other_pictures(original, rows)
            facts = {
                "files_read": progress.basis.as_left(),
                "pruned": bases.facts(),
                "bases": list(bases.places),
                "resources": progress.resources_key,
                "results": results_digest(len(rows), rows, {}),
            }
            folder.write_manifest(manifest | facts | asked | {"status": "complete", "tests": len(rows)})
            folder.seal()
        except InterruptedCampaignError:
            folder.write_manifest(manifest | asked | {"status": "interrupted"})
            return CampaignRun(folder, "interrupted", 0)
        except ChangedError as error:
            folder.write_manifest(manifest | asked | {"status": "interrupted"})
            raise ChangedError(error.files, where=out) from error
    return CampaignRun(folder, "complete", len(rows))


def _under_its_rules(file: StudyFile, original: CampaignFolder) -> StudyFile:
    """Return the study with the fuzz section of the campaign: tests are judged as they were."""
    before = written_study(original.study)
    for name in SAME:
        if getattr(file.study, name) != getattr(before, name):
            raise StudyError(
                "the study asks for something else than the campaign did",
                where=file.where(name),
                got=f"{name} {getattr(file.study, name)!r}",
                wanted=repr(getattr(before, name)),
                fix=f"Replay it with a study that has the same {name}.",
            )
    donors = file.study.fuzz.donors  # where data lie is the new study's to say
    if before.fuzz.donors is not None and donors is None:
        raise StudyError(
            "the campaign put objects of other data into its scenes",
            where=file.where("fuzz"),
            got="no donors",
            wanted=f"donors: {{format: {before.fuzz.donors.format}, ...}}, the data that the campaign used",
            fix="Add donors under fuzz: in the study.",
        )
    changed = copy.copy(file)
    rules = before.fuzz.model_copy(update={"donors": donors if before.fuzz.donors else None})
    changed.study = file.study.model_copy(update={"fuzz": rules})
    return changed


def _places(original: CampaignFolder, outcome: CampaignOutcome, campaign: CampaignPlan) -> dict[str, int]:
    """Return where in the new study's frames the bases of the campaign are."""
    units = sorted(
        (unit for unit in original.journal().entries if unit.phase == "baseline"), key=lambda unit: unit.id
    )
    frames = [row["frame"] for unit in units for row in unit.rows]
    if outcome.campaign.replays is None:
        frames = [frames[place] for place in outcome.campaign.bases]
    known = {frame.id: place for place, frame in enumerate(campaign.job.frames)}
    missing = [name for name in frames if name not in known]
    if missing:
        raise DataError(
            "base frames of the campaign are not in the study's data",
            where=f"data set {campaign.dataset.name!r}",
            got=f"{len(missing)} of {len(frames)} missing, first {missing[0]!r}",
            wanted="the frames that the campaign changed, in the test split",
            fix="Name the same data under data: in the study.",
        )
    return {name: known[name] for name in frames}


def _bases(progress: CampaignInProgress, campaign: CampaignPlan, places: list[int]) -> PrunedBases:
    """Show the bases un-mutated; none is dropped, as the tests are what they are."""
    rows = progress.shown_clean(places)
    suts = [task.name for task in campaign.job.suts]
    before = {row["frame"]: tuple(before_of(row["suts"].get(name)) for name in suts) for row in rows}
    means, unanswered = clean_means(rows, suts)
    unusable = {row["frame"]: row["unusable"] for row in rows if row["unusable"] is not None}
    best = max(means, key=lambda name: means[name]) if means else suts[0]
    return PrunedBases(tuple(places), before, len(rows), best, means, 0.0, 0, 0, unusable, unanswered)


def _units(rows: list[Row], places: dict[str, int]) -> list[ReplayUnit]:
    tests = []
    for row in rows:
        arm = Arm(*row["arm"])
        tests.append(ReplayedTest(arm, row["recipe"], row["picture"], places[row["base"]]))
    return [
        ReplayUnit(f"replay-{at:08d}", at, tuple(tests[at : at + UNIT])) for at in range(0, len(tests), UNIT)
    ]


def _refuse_other_resources(outcome: CampaignOutcome, key: str | None) -> None:
    if key != outcome.campaign.resources:
        raise DataError(
            "the objects that can be put in are not those of the campaign",
            got=f"resource set {key}",
            wanted=f"resource set {outcome.campaign.resources}",
            fix="Use the data as they were, and the version of adverse that made the campaign.",
        )


def _refuse_other_pictures(original: CampaignFolder, rows: list[Row]) -> None:
    reasons = Counter(reason for row in rows if "picture" not in row for reason in row["refused"])
    if reasons:
        raise StoreError(
            "tests of the campaign cannot be made again",
            where=str(original.path),
            got="; ".join(f"{count} tests: {reason}" for reason, count in reasons.most_common(3)),
            wanted="the same pixels and truth, test by test",
            fix="Use the data as they were, and the version of adverse and its libraries that made it.",
        )
