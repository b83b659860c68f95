"""The text of setting ids: reading its parts, and writing values in their shortest form."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from typing import Any

DRIFT = "drift"
LOG = "log"
"""What coherent randomness is kept over, and the purpose of the stream that belongs to a log."""
STILL = "still"
"""Another word for it; ids say `log`."""


def shortest(value: Any) -> str:
    """Return a value in its shortest form."""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, tuple | list):
        return f"({', '.join(shortest(item) for item in value)})"
    if isinstance(value, str) and not value.isidentifier():
        return repr(value)
    return str(value)


def over_log(node: ast.expr) -> tuple[ast.expr, dict[str, Any]]:
    """Return what stands before @, and what after it with its options; nothing where there is no @."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        name, options = call(node.right)
        name = LOG if name == STILL else name
        if name not in (LOG, DRIFT) or (name == LOG and options):
            raise ValueError(f"only {STILL} ({LOG}) or {DRIFT} can follow @")
        return node.left, {name: options}
    return node, {}


def terms(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the parts of a sum."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from terms(node.left)
        yield from terms(node.right)
    else:
        yield node


def call(node: ast.expr) -> tuple[str, dict[str, Any]]:
    """Return the name and the options of a call, or of a bare name."""
    if not isinstance(node, ast.Call):
        return ast.unparse(node), {}
    if node.args:
        raise ValueError("options are given by name")
    return ast.unparse(node.func), {str(word.arg): literal(word.value) for word in node.keywords}


def literal(node: ast.expr) -> Any:
    """Return the value that an option is given."""
    if isinstance(node, ast.Name):
        return math.inf if node.id == "inf" else node.id
    if isinstance(node, ast.Tuple | ast.List):
        return [literal(item) for item in node.elts]
    return ast.literal_eval(node)
