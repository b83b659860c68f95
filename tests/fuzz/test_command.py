"""adverse fuzz: the study alone is enough, tables fit a terminal, errors say what to do."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import yaml
from pydantic import TypeAdapter

from adverse.cli import main
from adverse.errors import StoreError
from adverse.fuzz.votes import SAYS, Vote, Votes
from adverse.pages.review.app import routes_of
from adverse.seeds import generator
from adverse.semantic import KINDS, Options
from adverse.store.owned_folder import MARK
from adverse.study.spec import study_from
from bad_input.command import adverse_here
from small_campaign import write_campaign


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["fuzz", *arguments])
    return int(ended.value.code or 0)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    return write_campaign(tmp_path_factory.mktemp("command"), frames=3, suts=2)


def test_a_guided_campaign_by_one_command(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.environ["COLUMNS"] = "80"
    options = ["--tests", "24", "--workers", "0", "--guided", "--out", str(study.parent / "run")]
    assert run(str(study), *options) == 0
    shown = capsys.readouterr().out
    assert "first an unguided campaign" in shown
    assert "inconsistencies per 1,000 tests; difference" in shown
    tables = [line for line in shown.splitlines() if line.startswith(("│", "┃", "├", "└", "┏"))]
    assert tables
    assert max(map(len, tables)) <= 80
    results = {path.name for path in (study.parent / "run" / "results").iterdir()}
    tables_of_two = {"counts.csv", "discovery.json", "overlap.csv", "guided.csv", "refusals.csv", "tests.csv"}
    assert tables_of_two <= results
    assert run("report", str(study.parent / "run" / "unguided")) == 0
    assert "page:" in capsys.readouterr().out


def test_a_flipped_byte_of_a_campaign_is_found_and_not_read(study: Path) -> None:
    campaign = study.parent / "run"
    for says in SAYS:
        Votes(campaign / "votes").add(Vote("ann", "k", says))
    adverse_here("fuzz", "report", campaign).expect(0)
    adverse_here("verify", campaign).expect(0)
    chance = generator(17, "campaign")
    by_kind: dict[str, list[Path]] = {}
    for path in sorted(campaign.rglob("*")):
        if path.is_file() and path.stat().st_size:
            by_kind.setdefault(f"{path.parent.parent.name}/{path.suffix or path.name}", []).append(path)
    assert {path.name for paths in by_kind.values() for path in paths} >= {"log", "votes", "votes.json"}
    for paths in by_kind.values():
        for path in {paths[0], paths[-1]}:
            data = path.read_bytes()
            at = int(chance.integers(len(data)))
            path.write_bytes(data[:at] + bytes([data[at] ^ 1 << int(chance.integers(8))]) + data[at + 1 :])
            adverse_here("verify", campaign).expect(2, str(path))
            with pytest.raises(StoreError, match=re.escape(str(path))):
                routes_of(campaign)
            if path.parent.name != "results" and path.name != "fuzz.html":  # these it makes again
                adverse_here("fuzz", "report", campaign).expect(2, str(path))
            path.write_bytes(data)
            path.unlink()  # verify names the file, or the folder that is no campaign without it
            where = str(path.parent if path.name in {"manifest.json", MARK} else path)
            adverse_here("verify", campaign).expect(2, where)
            path.write_bytes(data)
    for place in ("failures", "bases", "suts", "logs", "results", "unguided/failures"):
        theirs = campaign / place / "mine.png"
        theirs.write_bytes(b"mine")
        resumed = ("fuzz", study, "--tests", "24", "--workers", "0", "--guided", "--out", campaign)
        for words in (("verify", campaign), ("fuzz", "report", campaign), resumed, (*resumed, "--fresh")):
            adverse_here(*words).expect(2, str(theirs), "not written by adverse")
        with pytest.raises(StoreError, match="not written by adverse"):
            routes_of(campaign)
        theirs.unlink()
    (campaign / "seals.json").unlink()
    adverse_here("fuzz", "report", campaign).expect(2, "no seals")


def test_a_write_that_was_cut_short_is_named_and_swept(study: Path) -> None:
    """One of a process that is at work is neither; pid 4194305 is beyond the largest that Linux gives."""
    campaign = study.parent / "run" / "unguided"
    adverse_here("fuzz", "report", campaign).expect(0)
    mine = campaign / "results" / f".counts.csv.{os.getpid()}.partial"
    mine.write_text("half")
    adverse_here("verify", campaign).expect(0)
    mine.unlink()
    for place in ("", "results", "failures"):
        left = campaign / place / ".x.4194305.partial"
        left.write_text("half")
        for folder in (campaign, campaign.parent):
            adverse_here("verify", folder).expect(2, str(left), "cut short", "Delete it")
        assert str(left) not in (campaign / "seals.json").read_text()
        adverse_here("fuzz", "report", campaign).expect(0)
        assert not left.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.yaml"], "missing.yaml"),
        (["report", "nowhere"], "not a fuzz campaign"),
        (["review", "nowhere"], "not a fuzz campaign"),
    ],
)
def test_errors_say_what_to_do(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*arguments) == 2
    error = capsys.readouterr().err
    assert words in error
    assert "fix" in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("check", "Did you mean 'adverse check'?"),
        ("repotr", "Did you mean 'adverse fuzz report'?"),
        ("causes", "one of: run, replay, export"),
    ],
)
def test_a_word_that_is_no_command_is_not_taken_for_a_study(
    word: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for more in ([], ["--help"], ["a", "b"]):
        assert run(word, *more) == 2
        shown = capsys.readouterr()
        assert words in " ".join(shown.err.split())
        assert not shown.out


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    shown = capsys.readouterr().out
    assert "adverse fuzz study.yaml --tests 10000" in shown
    assert "review" in shown


def test_the_study_of_the_page_is_valid(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "fuzzing.md").read_text()
    (shown,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    study = study_from({"name": "page", **yaml.safe_load(shown)}, tmp_path).study
    assert "`judged_as`" in page
    assert [key for key in type(study.fuzz).model_fields if f"`{key}`" not in page] == []
    assert [name for name in KINDS if f"`{name}`" not in page] == []
    assert study.fuzz.judged_as["*"] == "background"
    assert TypeAdapter(Options).validate_python(study.fuzz.options).min_side_px["car"] == 40
