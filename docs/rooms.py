"""The rooms of the package: which imports which, read from the source, and a picture of it.

A room is a folder or a file of `src/adverse`. `tests/test_imports.py` holds the graph to what it may be;
`docs/generate.py` draws it.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

Graph = Mapping[str, set[str]]
Edge = tuple[str, str]

WIDTH, MARGIN, ROW, BOX_HEIGHT = 800, 12, 76, 30
LETTER = 7.6
"""Pixels of a letter of the font, roughly; boxes are as wide as their names."""
PADDING, GAP, BEND_GAP = 22, 18, 16
GROUND_LINE = 24
SWEEPS = 24


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
    names = set(modules)
    for_types = {id(inner) for node in ast.walk(tree) if _types_only(node) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "adverse")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "adverse":
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in names else str(node.module)


def _types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def room_graph(modules: Graph) -> dict[str, set[str]]:
    """Return what each room imports of other rooms."""
    rooms: dict[str, set[str]] = {}
    for module, targets in modules.items():
        rooms.setdefault(room(module), set()).update(room(target) for target in targets)
    return {name: targets - {name} for name, targets in rooms.items()}


def ground_of(source: Path, graph: Graph) -> list[str]:
    """Return the rooms everything stands on: single files that import no folder, directly or not."""
    folders = {name for name in graph if (source / "adverse" / name).is_dir()}
    return sorted(name for name in graph if name not in folders and not reached(graph, name) & folders)


def reached(graph: Graph, start: str) -> set[str]:
    """Return all that a room imports, directly or through others."""
    seen: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += graph[name]
    return seen


def reduced(graph: Graph) -> dict[str, set[str]]:
    """Leave out the edges that a longer way implies.

    >>> reduced({"a": {"b", "c"}, "b": {"c"}, "c": set()})
    {'a': {'b'}, 'b': {'c'}, 'c': set()}
    """
    return {
        name: {
            target
            for target in targets
            if not any(target in reached(graph, other) for other in targets - {target})
        }
        for name, targets in graph.items()
    }


def heights(graph: Graph) -> dict[str, int]:
    """Return the row of each room, counted from below: one above the highest that it imports.

    >>> heights({"a": {"b", "c"}, "b": {"c"}, "c": set()})
    {'c': 0, 'b': 1, 'a': 2}
    """
    rows: dict[str, int] = {}

    def height(name: str) -> int:
        if name not in rows:
            rows[name] = 1 + max((height(target) for target in sorted(graph[name])), default=-1)
        return rows[name]

    for name in sorted(graph):
        height(name)
    return dict(sorted(rows.items(), key=lambda entry: entry[1]))


def picture(source: Path) -> str:
    """Draw the rooms as SVG: importers above what they import, the ground below all."""
    whole = room_graph(module_graph(source))
    ground = ground_of(source, whole)
    graph = reduced({name: targets - set(ground) for name, targets in whole.items() if name not in ground})
    rows, ways = _with_bends(graph)
    rows = _untangled(rows, ways)
    centres = _spread(rows, ways)
    return _svg(rows, centres, graph, ground)


def _with_bends(graph: Graph) -> tuple[list[list[str]], list[Edge]]:
    """Return the rooms row by row from the top, and edges between neighbouring rows.

    An edge over several rows passes through a bend in each of them, called `from>to>row`.
    """
    height = heights(graph)
    rows: list[list[str]] = [[] for _ in range(max(height.values()) + 1)]
    for name in sorted(graph):
        rows[height[name]].append(name)
    ways: list[Edge] = []
    for name, target in _edges(graph):
        places = [name]
        for level in range(height[name] - 1, height[target], -1):
            places.append(_bend(name, target, level))
            rows[level].append(places[-1])
        ways += itertools.pairwise([*places, target])
    return rows[::-1], ways


def _edges(graph: Graph) -> list[Edge]:
    return [(name, target) for name in sorted(graph) for target in sorted(graph[name])]


def _bend(name: str, target: str, level: int) -> str:
    return f"{name}>{target}>{level}"


def _untangled(rows: list[list[str]], ways: Sequence[Edge]) -> list[list[str]]:
    """Order each row by the mean place of its neighbours, down and up again; keep what crosses least."""
    above, below = _neighbours(ways)
    best, least = rows, _crossings(rows, ways)
    rows = [list(row) for row in rows]
    for sweep in range(SWEEPS):
        order = range(1, len(rows)) if sweep % 2 == 0 else range(len(rows) - 2, -1, -1)
        for number in order:
            other = rows[number - 1] if sweep % 2 == 0 else rows[number + 1]
            place = {name: index for index, name in enumerate(other)}
            near = above if sweep % 2 == 0 else below
            mean = {
                name: sum(place[n] for n in near[name]) / len(near[name]) if near.get(name) else float(index)
                for index, name in enumerate(rows[number])
            }
            rows[number] = sorted(rows[number], key=lambda name: (mean[name], name))
        crossings = _crossings(rows, ways)
        if crossings < least:
            best, least = [list(row) for row in rows], crossings
    return best


def _neighbours(ways: Sequence[Edge]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    above: dict[str, list[str]] = {}
    below: dict[str, list[str]] = {}
    for name, target in ways:
        below.setdefault(name, []).append(target)
        above.setdefault(target, []).append(name)
    return above, below


def _crossings(rows: Sequence[Sequence[str]], ways: Sequence[Edge]) -> int:
    place = {name: (number, index) for number, row in enumerate(rows) for index, name in enumerate(row)}
    ends = [(place[name][0], place[name][1], place[target][1]) for name, target in ways]
    return sum(a[0] == b[0] and (a[1] - b[1]) * (a[2] - b[2]) < 0 for a, b in itertools.combinations(ends, 2))


def _width(name: str) -> float:
    return 0.0 if ">" in name else PADDING + LETTER * len(name)


def _spread(rows: Sequence[Sequence[str]], ways: Sequence[Edge]) -> dict[str, float]:
    """Return the x of each room and bend: near its neighbours, in order, and inside the picture."""
    above, below = _neighbours(ways)
    x = {name: WIDTH * (index + 1) / (len(row) + 1) for row in rows for index, name in enumerate(row)}
    for sweep in range(SWEEPS):
        for row in rows if sweep % 2 == 0 else rows[::-1]:
            near = {name: above.get(name, []) + below.get(name, []) for name in row}
            wanted = [
                sum(x[n] for n in near[name]) / len(near[name]) if near[name] else x[name] for name in row
            ]
            x |= dict(zip(row, _apart(row, wanted), strict=True))
    return x


def _apart(row: Sequence[str], wanted: Sequence[float]) -> list[float]:
    """Return the places nearest to the wanted ones, by squares, that keep their order and distances."""
    offsets = [0.0]
    for left, right in itertools.pairwise(row):
        gap = BEND_GAP if ">" in left and ">" in right else GAP
        offsets.append(offsets[-1] + (_width(left) + _width(right)) / 2 + gap)
    blocks: list[tuple[float, int]] = []
    for place, offset in zip(wanted, offsets, strict=True):
        mean, count = place - offset, 1
        while blocks and blocks[-1][0] > mean:
            before, size = blocks.pop()
            mean, count = (before * size + mean * count) / (size + count), size + count
        blocks.append((mean, count))
    lowest = MARGIN + _width(row[0]) / 2
    highest = WIDTH - MARGIN - _width(row[-1]) / 2 - offsets[-1]
    shifts = [min(max(mean, lowest), highest) for mean, count in blocks for _ in range(count)]
    return [shift + offset for shift, offset in zip(shifts, offsets, strict=True)]


def _svg(rows: Sequence[Sequence[str]], x: Mapping[str, float], graph: Graph, ground: Sequence[str]) -> str:
    level = {name: number for number, row in enumerate(rows) for name in row}
    y = {name: MARGIN + BOX_HEIGHT / 2 + ROW * number for name, number in level.items()}
    lines = _wrapped(ground)
    floor = MARGIN + ROW * len(rows) - 14
    bottom = floor + 34 + GROUND_LINE * len(lines)
    height = bottom + MARGIN
    font = 'font-family="DejaVu Sans, Verdana, sans-serif" font-size="13"'
    size = f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    plinth = f'x="{MARGIN}" y="{floor}" width="{WIDTH - 2 * MARGIN}" height="{bottom - floor}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>',
        "<title>The rooms of adverse: each imports what is below it</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        '<g fill="none" stroke="#8a97a6" stroke-width="1.3">',
        *(_line(name, target, x, y, level) for name, target in _edges(graph)),
        "</g>",
        *(_box(name, x[name], y[name]) for row in rows for name in row if ">" not in name),
        f'<rect {plinth} rx="5" fill="#f1efe8" stroke="#b9b29c"/>',
        f'<text x="{MARGIN + 12}" y="{floor + 20}" fill="#6b6450">the ground: any room may import it</text>',
        *(_centred(line, floor + 20 + GROUND_LINE * (n + 1)) for n, line in enumerate(lines)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _centred(line: str, y: float) -> str:
    return f'<text x="{WIDTH // 2}" y="{y}" text-anchor="middle" fill="#1f2937">{escape(line)}</text>'


def _wrapped(names: Sequence[str]) -> list[str]:
    lines = [""]
    for name in names:
        longer = f"{lines[-1]}   {name}".strip()
        if lines[-1] and len(longer) * LETTER > WIDTH - 60:
            lines.append(name)
        else:
            lines[-1] = longer
    return [line.replace("   ", " · ") for line in lines]


def _line(
    name: str, target: str, x: Mapping[str, float], y: Mapping[str, float], level: Mapping[str, int]
) -> str:
    """Draw an edge as a smooth line from the foot of one box to the head of another, through its bends."""
    count = level[target] - level[name]
    lowest = max(level.values())
    bends = [_bend(name, target, lowest - level[name] - step) for step in range(1, count)]
    points = [(x[name], y[name] + BOX_HEIGHT / 2)]
    for bend in bends:
        points += [(x[bend], y[bend] - BOX_HEIGHT / 2), (x[bend], y[bend] + BOX_HEIGHT / 2)]
    points.append((x[target], y[target] - BOX_HEIGHT / 2))
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        middle = (y0 + y1) / 2
        path += f" C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
    return f'<path d="{path}"/>'


def _box(name: str, x: float, y: float) -> str:
    width = _width(name)
    corner = f'x="{x - width / 2:.1f}" y="{y - BOX_HEIGHT / 2:.1f}"'
    return (
        f'<rect {corner} width="{width:.1f}" height="{BOX_HEIGHT}" rx="5" fill="#e6eef7" stroke="#4a6fa5"/>'
        f'<text x="{x:.1f}" y="{y + 4.5:.1f}" text-anchor="middle" fill="#1f2937">{escape(name)}</text>'
    )
