"""Imports point one way: the house of docs/architecture.md, enforced, with no edge that nobody uses."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"
HOUSE = """
__main__: cli
analysis: benchmarks content curves errors levels plugins processes robot store types
api: analysis strict_yaml study
benchmarks: curves errors seeds store types
cli: adverse analysis benchmarks content curves data depth errors fuzz humans interop levels mutations pages
    plugins processes report requirements semantic serving store strict_yaml study suts text
content: errors types
curves: errors seeds
data: content errors plugins seeds strict_json types
depth: errors types
fuzz: adverse benchmarks content curves errors plugins seeds semantic store study suts types
humans: content data errors plugins seeds serving store strict_json strict_yaml study text types visual
interop: data errors mutations plugins store suts types
levels: errors marks plugins robot store
marks: errors
mutations: errors marks plugins seeds types
pages: analysis errors fuzz levels report robot serving store text
plugins: content errors marks type_words
processes: adverse
report: adverse analysis benchmarks content curves errors fuzz humans mutations plugins requirements store
    study text types
requirements: analysis benchmarks content curves errors humans levels marks mutations plugins seeds store
    strict_yaml study types visual
robot: errors
seeds: content
semantic: content errors types
serving: errors
store: content errors types
strict_json: errors
strict_yaml: errors type_words
study: adverse content data depth errors marks mutations plugins processes robot store strict_yaml suts types
    visual
suts: content errors plugins processes strict_json types
types: errors
visual: errors marks mutations plugins seeds types
"""
"""What each room imports besides itself; a room is a folder or a file of the package."""


def room(module: str) -> str:
    """Return the room of a module; the package itself is `adverse`."""
    return module.split(".")[1] if "." in module else "adverse"


def module_graph(source: Path) -> dict[str, set[str]]:
    """Return what each module of the package imports of it, also inside functions, but not for types only."""
    paths = {
        ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted((source / "adverse").rglob("*.py"))
    }
    return {name: set(_imported(ast.parse(path.read_text()), paths)) - {name} for name, path in paths.items()}


def _imported(tree: ast.Module, modules: Iterable[str]) -> Iterable[str]:
    known = set(modules)
    for_types = {id(inner) for node in ast.walk(tree) if _types_only(node) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "adverse")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "adverse":
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in known else str(node.module)


def _types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def room_graph(modules: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return what each room imports of other rooms."""
    rooms: dict[str, set[str]] = {}
    for module, targets in modules.items():
        rooms.setdefault(room(module), set()).update(room(target) for target in targets)
    return {name: targets - {name} for name, targets in rooms.items()}


def cycle(graph: Mapping[str, set[str]]) -> list[str]:
    """Return one cycle of a graph, or nothing."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_rooms_import_what_the_house_says_and_no_more() -> None:
    found = room_graph(module_graph(SRC))
    wanted = dict(line.split(": ") for line in HOUSE.replace("\n    ", " ").split("\n") if line)
    assert {name: " ".join(sorted(targets)) for name, targets in found.items() if targets} == wanted


def test_rooms_have_no_cycle() -> None:
    assert cycle(room_graph(module_graph(SRC))) == []


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
    "Store(": ("store/finished.py",),
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
