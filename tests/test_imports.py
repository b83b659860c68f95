"""Imports point one way: the house of docs/architecture.md, enforced."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"
GROUND = (
    "types",
    "errors",
    "hashes",
    "marks",
    "planned",
    "strict_json",
    "seeds",
    "processes",
    "plugins",
    "type_words",
    "user_cache",
    "verdicts",
)
SEAM = "study.store"
VISUAL = "reliability.visual"
ALLOWED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(GROUND, GROUND),
    "": ("api", "curves", "mutations", "reliability", *GROUND),  # adverse/__init__.py
    "__main__": ("cli",),
    "data": GROUND,
    "mutations": GROUND,
    "suts": GROUND,
    "depth": GROUND,
    SEAM: GROUND,
    VISUAL: ("mutations", *GROUND),
    "study": ("data", "mutations", "suts", "depth", "robot", VISUAL, SEAM, *GROUND),
    "robot": GROUND,
    "levels": ("robot", SEAM, *GROUND),
    "curves": ("levels", *GROUND),
    "benchmarks": ("curves", SEAM, *GROUND),
    "analysis": ("benchmarks", "curves", "levels", "robot", SEAM, *GROUND),
    "reliability": (
        "benchmarks",
        "curves",
        "levels",
        "data",
        "mutations",
        "suts",
        "study",
        VISUAL,
        SEAM,
        *GROUND,
    ),
    "semantic": GROUND,
    "fuzz": ("semantic", "benchmarks", "curves", "data", "suts", "study", SEAM, *GROUND),
    "report": (
        "analysis",
        "benchmarks",
        "curves",
        "fuzz",
        "reliability",
        "mutations",
        "study",
        SEAM,
        *GROUND,
    ),  # mutations, study: to show the frames of a run
    "pages": (
        "report",
        "reliability",
        "semantic",
        "fuzz",
        "analysis",
        "benchmarks",
        "curves",
        "levels",
        "robot",
        "study",
        "data",
        "mutations",
        SEAM,
        *GROUND,
    ),
    "gate": (
        "analysis",
        "benchmarks",
        "curves",
        "reliability",
        "study",
        SEAM,
        *GROUND,
    ),  # reliability: to judge requirements again; study: strict YAML
    "interop": ("data", "mutations", "suts", SEAM, *GROUND),
    "api": ("analysis", "study", *GROUND),
    "cli": (
        "gate",
        "pages",
        "report",
        "reliability",
        "semantic",
        "fuzz",
        "interop",
        "analysis",
        "benchmarks",
        "curves",
        "study",
        "data",
        "mutations",
        "suts",
        "depth",
        SEAM,
        *GROUND,
    ),
}
"""What each room may import besides itself."""


def rooms(module: str) -> str:
    parts = module.split(".")[1:]
    joined = ".".join(parts[:2])
    return joined if joined in ALLOWED else (parts[0] if parts else "")


def imported(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [
                f"{node.module}.{alias.name}" if node.module == "adverse" else node.module
                for alias in node.names
            ]
    return [name for name in found if name.split(".")[0] == "adverse" and name != "adverse"]


def wrong_imports(source: Path) -> list[str]:
    wrong = []
    for path in sorted((source / "adverse").rglob("*.py")):
        module = ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
        room = rooms(module)
        tree = ast.parse(path.read_text())
        skipped = {id(n) for node in ast.walk(tree) if _typing_only(node) for n in ast.walk(node)}
        body = ast.Module([node for node in ast.walk(tree) if id(node) not in skipped], [])  # type: ignore[misc]
        for name in imported(_flat(body)):
            target = rooms(name)
            if target != room and target not in ALLOWED.get(room, ()):
                wrong.append(f"{module} imports {name}")
    return wrong


def _flat(module: ast.Module) -> ast.AST:
    return ast.Module([n for n in module.body if isinstance(n, ast.Import | ast.ImportFrom)], [])


def _typing_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def test_imports_point_down() -> None:
    assert wrong_imports(SRC) == []


def test_every_room_is_known() -> None:
    names = {path.stem if path.is_file() else path.name for path in (SRC / "adverse").iterdir()}
    names -= {"__init__", "__pycache__", "py"}
    assert names <= {name.split(".")[0] for name in ALLOWED}


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("mutations/blur.py", "from adverse.data.images import ImageFile"),
        ("suts/onnx.py", "import adverse.mutations.settings"),
        ("study/store/read.py", "from adverse.study.plan import Plan"),
        ("levels/image.py", "def late():\n    from adverse.curves import area"),
        ("types.py", "from adverse.study import run"),
    ],
)
def test_a_wrong_import_is_found(tmp_path: Path, file: str, line: str) -> None:
    path = tmp_path / "adverse" / file
    path.parent.mkdir(parents=True)
    path.write_text(line + "\n")
    assert len(wrong_imports(tmp_path)) == 1


DOORS = {
    "Store(": ("study/store/finished.py",),
    "folder.results /": (
        "study/store/",
        "fuzz/",
        "report/fuzz_tables.py",
        "reliability/written.py",
    ),
}
"""What opens a run folder or its results without a look at them, and who may: the rest ask `finished`."""


@pytest.mark.parametrize("words", DOORS)
def test_run_folders_are_opened_by_one_door(words: str) -> None:
    home = SRC / "adverse"
    users = [str(path.relative_to(home)) for path in sorted(home.rglob("*.py")) if words in path.read_text()]
    assert [name for name in users if not name.startswith(DOORS[words])] == []
