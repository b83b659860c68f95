"""What docs/gate.md shows works: its rules are read, its workflow is YAML, its commands and options exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from adverse.cli.app import app
from adverse.requirements.rules import NEEDS, Rule, read_rules

PAGE = (Path(__file__).parents[2] / "docs" / "gate.md").read_text()
RULES, WORKFLOW, SIGNING = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)
SHOWN = [line.partition("#")[0] for line in re.findall(r"^    (adverse .*)$", PAGE, flags=re.MULTILINE)]


def steps() -> list[dict[str, Any]]:
    flow = yaml.safe_load(WORKFLOW)
    assert set(flow) == {"name", True, "jobs"}  # YAML 1.1 reads `on` as true
    (job,) = flow["jobs"].values()
    assert all(("uses" in step) != ("run" in step) for step in job["steps"])
    return list(job["steps"])


def test_the_step_that_signs_is_one_of_a_workflow() -> None:
    (step,) = yaml.safe_load(SIGNING)
    assert "adverse seal runs/after --key " in step["run"]
    assert step["env"].keys() == {"SIGNING_KEY"}


def test_the_rules_of_the_page_are_read(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(RULES)
    assert len(read_rules(path)) == 13


def test_every_measure_and_key_is_on_the_page() -> None:
    assert [name for name in (*NEEDS, *Rule.model_fields) if f"`{name}`" not in PAGE] == []


@pytest.mark.parametrize("line", [*SHOWN, *(step["run"] for step in steps() if "run" in step)])
def test_every_command_exists_with_its_options(line: str) -> None:
    words = shlex.split(line)
    if words[0] != "adverse":
        assert words[0] in ("pip", "cat")
        return
    command = typer.main.get_command(app)
    context = typer.Context(command)
    found = command.get_command(context, words[1])  # type: ignore[attr-defined]
    assert found is not None
    known = {option for parameter in found.params for option in parameter.opts}
    assert [word for word in words if word.startswith("--") and word not in known] == []
    found.make_context(words[1], words[2:], parent=context)


def test_files_that_are_uploaded_are_written() -> None:
    written = " ".join(str(step.get("run", "")) for step in steps())
    (upload,) = (step["with"]["path"] for step in steps() if "upload" in step.get("uses", ""))
    for path in upload.split():
        assert path in written or path == "runs/after/report.html"
