"""Imports point one way: the house of docs/architecture.md, enforced, with no edge that nobody uses."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from rooms import module_graph, room_graph

SRC = Path(__file__).parents[1] / "src"
HOUSE = """
__main__: cli
analysis: benchmarks content curves errors levels plugins processes relations robot store text types
annotation: content data depth errors store types
api: analysis data errors plugins remote_files report store strict_yaml study suts text types
benchmarks: curves errors plain_files seeds store types
cli: adverse analysis annotation benchmarks content curves data depth errors fuzz humans interop levels
    mutations pages plugins processes relations remote_files report requirements semantic serving
    step_clock store strict_yaml study stylize suts text
content: errors plain_files types
curves: errors plain_files seeds
data: content errors json_arrays masks plain_files plugins processes remote_files seeds strict_json types
depth: errors types
file_access: adverse content
fuzz: adverse benchmarks content curves errors plugins seeds semantic store study suts text types
humans: content curves data errors plain_files plugins seeds serving store strict_json strict_yaml study
    text types visual
interop: content data errors fuzz masks mutations plugins semantic store study suts text types
json_arrays: json_scan strict_json
levels: errors marks plugins robot seeds store
marks: errors
mutations: errors marks plugins process_settings seeds text types
pages: analysis annotation errors fuzz levels report robot serving store text types
plugins: content errors marks process_settings remote_files type_words user_files
processes: adverse
relations: errors levels plugins store
remote_files: content errors
report: adverse analysis benchmarks content curves errors fuzz humans marks masks mutations plugins
    requirements robot store study text types
requirements: analysis benchmarks content curves errors fuzz humans levels marks mutations plugins seeds
    store strict_yaml study text types visual
robot: errors text
seeds: content
semantic: content errors types
serving: connections errors
store: content errors remote_files types
strict_json: errors
strict_yaml: errors plain_files type_words
study: adverse content data depth errors file_access marks masks mutations plain_files plugins processes robot
    seeds step_clock store strict_yaml stylize suts text types visual
stylize: content data errors seeds suts types
suts: content errors file_access json_arrays masks plain_files plugins process_settings processes
    remote_files strict_json types user_files
transforms: errors mutations plugins seeds types
types: errors masks
user_files: content errors file_access process_settings
visual: errors marks mutations plugins seeds types
"""
"""What each room imports besides itself; a room is a folder or a file of the package."""


@pytest.fixture(scope="module")
def modules() -> dict[str, set[str]]:
    return module_graph(SRC)


def cycle(graph: Mapping[str, set[str]]) -> list[str]:
    """Return one cycle of a graph, or nothing."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_rooms_import_what_the_house_says_and_no_more(modules: dict[str, set[str]]) -> None:
    found = room_graph(modules)
    wanted = dict(line.split(": ") for line in HOUSE.replace("\n    ", " ").split("\n") if line)
    assert {name: " ".join(sorted(targets)) for name, targets in found.items() if targets} == wanted


def test_neither_rooms_nor_modules_have_a_cycle(modules: dict[str, set[str]]) -> None:
    assert cycle(room_graph(modules)) == []
    assert cycle(modules) == []


@pytest.mark.parametrize(
    ("file", "line", "edge"),
    [
        ("mutations/blur.py", "from adverse.data.images import ImageFile", ("mutations", "data")),
        ("suts/onnx.py", "import adverse.mutations.settings", ("suts", "mutations")),
        ("levels/image.py", "def late():\n    from adverse.curves import area", ("levels", "curves")),
        ("types.py", "from adverse import study", ("types", "adverse")),
    ],
)
def test_an_import_is_seen(tmp_path: Path, file: str, line: str, edge: tuple[str, str]) -> None:
    path = tmp_path / "adverse" / file
    path.parent.mkdir(parents=True)
    path.write_text(line + "\n")
    assert room_graph(module_graph(tmp_path)) == {edge[0]: {edge[1]}}


def test_a_cycle_is_found() -> None:
    assert set(cycle({"plan": {"work"}, "work": {"plan"}})) == {"plan", "work"}


DOORS = {
    "Store(": ("store/finished_run.py",),
    "folder.results /": (
        "store/",
        "fuzz/",
        "report/fuzz.py",
        "requirements/results.py",
    ),
}
"""What opens a run folder or its results without a look at them, and who may: the rest ask `finished`."""


@pytest.mark.parametrize("words", DOORS)
def test_run_folders_are_opened_by_one_door(words: str) -> None:
    home = SRC / "adverse"
    users = [str(path.relative_to(home)) for path in sorted(home.rglob("*.py")) if words in path.read_text()]
    assert [name for name in users if not name.startswith(DOORS[words])] == []


def test_no_command_imports_the_package_that_wires_them(modules: dict[str, set[str]]) -> None:
    commands = {name: targets for name, targets in modules.items() if name.startswith("adverse.cli")}
    assert cycle(commands) == []
    assert [name for name, targets in commands.items() if {"adverse.cli", "adverse.cli.app"} & targets] == [
        "adverse.cli"
    ]
