"""What the documentation shows really works."""

from __future__ import annotations

import doctest
import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, get_args

import nbformat
import pytest
import typer
import yaml
from nbclient import NotebookClient

import gallery
import generate
import rooms
from adverse import plugins
from adverse.cli.app import app
from adverse.data.kitti_layouts import Layout
from adverse.data.nrec import COUNTS
from adverse.mutations import contract
from adverse.mutations.settings import expand
from adverse.relations.contract import check_relation
from adverse.requirements.file import MEASURES, Distribution, Requirement, Requirements, read_requirements
from adverse.requirements.rules import read_rules
from adverse.requirements.run import derived
from adverse.robot.profile import Robot, read_robot
from adverse.study.spec import Study, SutSection, study_from

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(name: str, language: str) -> list[str]:
    text = (ROOT / name).read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_the_study_of_the_readme_is_valid(tmp_path: Path) -> None:
    (shown,) = blocks("README.md", "yaml")
    study = study_from(yaml.safe_load(shown), tmp_path).study
    registry = plugins.load()
    settings = [s for entry in study.mutations for s in expand(entry, registry, where="README")]
    assert "gaussian_blur(sigma_px=4)" in {setting.id for setting in settings}
    for sut in study.suts:
        plugin = registry.get("sut", sut.adapter)
        plugins.bind(plugin, sut.options, where="README")
    plugins.bind(registry.get("dataset", study.data.format), study.data.options, where="README")


def test_the_mutations_of_the_study_page_are_valid() -> None:
    shown, robot = blocks("docs/study-file.md", "yaml")
    assert read_robot(yaml.safe_load(robot)["robot"]) == Robot(2.0, 1.0)
    registry = plugins.load()
    for entry in yaml.safe_load(shown)["mutations"]:
        assert expand(entry, registry, where="docs")


@pytest.mark.parametrize("model", [Study, SutSection])
def test_every_key_of_a_study_is_on_its_page(model: type[Study | SutSection]) -> None:
    page = (ROOT / "docs" / "study-file.md").read_text()
    assert [key for key in model.model_fields if f"`{key}`" not in page] == []
    assert all(level.name in page for level in plugins.built_in("level"))


@pytest.mark.parametrize(("number", "kind"), [(0, "mutation"), (1, "sut"), (3, "dataset"), (6, "relation")])
def test_the_plug_ins_of_the_page_load_and_keep_the_contract(tmp_path: Path, number: int, kind: str) -> None:
    file = tmp_path / f"plugin{number}.py"
    file.write_text(blocks("docs/plug-ins.md", "python")[number])
    (plugin,) = plugins.marked(plugins.load_file(file))
    assert plugin.kind == kind
    check = {"mutation": contract.check, "relation": check_relation}.get(kind)
    if check is not None:
        assert [finding.error for finding in check(plugin) if not finding.ok] == []


@pytest.mark.parametrize("plugin", plugins.load().all("dataset"), ids=lambda plugin: plugin.name)
def test_every_data_format_is_on_its_page_with_its_options(plugin: plugins.Plugin) -> None:
    page = (ROOT / "docs" / "data-formats.md").read_text()
    (section,) = [part for part in page.split("\n## ") if plugin.name in part.partition("\n")[0].split(", ")]
    assert [name for name in plugin.options if f"`{name}`" not in section] == []


def test_the_subsets_and_layouts_of_the_page_are_those_there_are() -> None:
    page = (ROOT / "docs" / "data-formats.md").read_text()
    assert [name for name in COUNTS if f"`{name}`" not in page] == []
    assert [name for name in get_args(Layout) if f"`{name}`" not in page] == []


def test_every_dependency_has_its_reason() -> None:
    page = (ROOT / "docs" / "dependencies.md").read_text().lower()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    names = [re.split(r"[<>=]", entry)[0].lower() for entry in declared]
    assert [name for name in names if not name.startswith("types-") and name not in page] == []


def test_the_requirements_of_the_page_are_valid(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "requirements.md").read_text()
    (tmp_path / "requirements.yaml").write_text(blocks("docs/requirements.md", "yaml")[0])
    (tmp_path / "study.yaml").write_text("{name: x, data: {format: folder, root: data}}")
    _, versions = derived(read_requirements(tmp_path / "requirements.yaml"))
    assert len(versions) == 4
    for model in (Requirements, Requirement, Distribution):
        assert [key for key in model.model_fields if f"`{key}" not in page and f"{key}:" not in page] == []
    for names in MEASURES.values():
        assert [name for name in names if f"`{name}`" not in page] == []


def test_the_files_of_the_safety_tutorial_are_valid(tmp_path: Path) -> None:
    (study,) = blocks("docs/tutorials/robot-team.md", "yaml")
    rules, requirements = blocks("docs/tutorials/safety-engineer.md", "yaml")
    files = {"study": study, "rules": rules, "requirements": requirements}
    for name, text in files.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    levels = yaml.safe_load(study)["levels"]
    assert len(read_rules(tmp_path / "rules.yaml", levels=levels)) == 4
    _, versions = derived(read_requirements(tmp_path / "requirements.yaml"))
    assert len(versions) == 2


def test_the_pictures_of_the_readme_are_there_and_light() -> None:
    shown = re.findall(r"!\[[^]]+\]\(([^)]+)\)", (ROOT / "README.md").read_text())
    assert shown
    assert [name for name in shown if (ROOT / name).stat().st_size > 300 * 1024] == []


@pytest.mark.parametrize(
    "page", [ROOT / "docs" / "api.md", ROOT / "docs" / "cli.md"], ids=lambda page: page.name
)
def test_generated_pages_are_up_to_date(page: Path) -> None:
    assert page.read_text() == generate.generated()[page], "stale: run make docs"


def test_the_picture_of_the_rooms_is_up_to_date() -> None:
    shown = (ROOT / "docs" / "pictures" / "rooms.svg").read_text()
    assert shown == rooms.picture(ROOT / "src"), "stale: run make docs"


@pytest.mark.parametrize("module", [generate, rooms])
def test_the_examples_of_the_generator_hold(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


def test_every_command_and_option_is_in_the_reference() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    sections = {part.partition("\n")[0]: part for part in page.split("\n## ")[1:]}
    waiting = [("adverse", typer.main.get_command(app))]
    while waiting:
        name, command = waiting.pop()
        options = [option for parameter in command.params for option in parameter.opts if option[0] == "-"]
        assert [option for option in options if option not in sections[name]] == []
        below = getattr(command, "commands", {}).items()
        waiting += [(f"{name} {inner}", item) for inner, item in below]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_and_modules_that_are_named_exist(page: Path) -> None:
    text = page.read_text()
    files = re.findall(r"\b((?:bench|docs|tests|training)/[\w/]+\.(?:py|md|svg))\b", text)
    assert [file for file in files if not (ROOT / file).exists()] == []
    ours = re.findall(r"`((?:\w+/)+\w+\.py)`", text)
    assert [
        file for file in ours if not any((root / file).exists() for root in (ROOT, ROOT / "src/adverse"))
    ] == []
    assert [name for name in set(re.findall(r"\badverse(?:\.\w+)+", text)) if not _there(name)] == []


def _there(name: str) -> bool:
    """Tell whether a dotted name is a module, or something in one."""
    module, _, rest = name.rpartition(".")
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        return bool(module) and _there(module) and hasattr(_value(module), rest)
    return True


def _value(name: str) -> object:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, rest = name.rpartition(".")
        return getattr(_value(module), rest)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_papers_are_cited_by_author_and_year(page: Path) -> None:
    if page.name == "api.md":
        return  # made from docstrings
    assert re.findall(r"(?<![\w.,])00[0-4](?![\w.,]\d|\d)", page.read_text()) == []


def test_every_room_has_its_line_in_the_architecture() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    named = {
        name.rstrip("/")
        for line in page.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`([\w/]+)`", line.split("|")[1])
    }
    assert named | {"__main__"} == set(rooms.room_graph(rooms.module_graph(ROOT / "src")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_the_python_of_a_page_imports_is_there(page: Path) -> None:
    for shown in blocks(str(page.relative_to(ROOT)), "python"):
        for line in re.findall(r"^(?:from|import) adverse.*$", shown, flags=re.MULTILINE):
            exec(line, {})


def test_the_notebook_runs(tmp_path: Path) -> None:
    """Its charts and tables show themselves; it leaves nothing beside itself."""
    notebook: Any = nbformat.read(ROOT / "docs" / "tutorials" / "notebook.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    assert all(not cell.get("outputs") for cell in notebook.cells), "commit it without outputs"
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", ())]
    assert any("image/svg+xml" in data for data in shown)
    assert any("<table" in data.get("text/html", "") for data in shown)


def test_the_site_has_no_broken_link(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "site" / "index.html").exists()


def test_every_page_is_on_the_site() -> None:
    listed = (ROOT / "mkdocs.yml").read_text()
    pages = [str(page.relative_to(ROOT / "docs")) for page in sorted((ROOT / "docs").rglob("*.md"))]
    assert [page for page in pages if f": {page}\n" not in listed] == []


def test_every_mutation_is_in_the_gallery() -> None:
    page = (ROOT / "docs" / "gallery.md").read_text()
    shown = {mutation.partition("(")[0] for ids in gallery.shown().values() for mutation in ids}
    assert shown == {plugin.name for plugin in plugins.load().all("mutation")}
    for ids in gallery.shown().values():
        for mutation in ids:
            assert f"`{mutation}`" in page, "stale: run bench/gallery.py"
            assert (ROOT / "docs" / "pictures" / "gallery" / f"{mutation.partition('(')[0]}.jpg").exists()
