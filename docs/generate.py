"""Write the pages of docs/ that are made from the code: `make docs`. A test fails when one is stale.

docs/api.md lists the public names of the package, docs/cli.md every command with its help, and
docs/pictures/rooms.svg shows which room imports which.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import re
import textwrap
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, get_origin

import typer

import adverse
import rooms

DOCS = Path(__file__).resolve().parent
SOURCE = DOCS.parent / "src"
MADE = "<!-- Made by docs/generate.py from the code: change it there, then run `make docs`. -->"
COLUMNS = 80
LONG = 100
"""Signatures longer than this are written one parameter a line."""

LONG_DEFAULT = 40

API_INTRO = """\
What Python programs may use: the names that `dir(adverse)` lists, and what [plug-ins](plug-ins.md) import.
All else may change without notice.
`import adverse` is quick; a name loads what it needs when it is first used.

```python
import adverse

finished = adverse.run("study.yaml", "runs/orchard")  # or adverse.open_run("runs/orchard")
finished.run.baseline.id  # the typed description of the run
finished.rows, finished.to_arrow(), finished.to_pandas()  # the figures
finished.table("curves")  # what is behind them, as Arrow tables
hazy = adverse.mutations.apply(image, "c.fog(severity=3)", seed=7)  # numpy or Pillow
dataset = adverse.read_dataset("data", format="coco", annotations="truth.json")
```
"""
CLI_INTRO = """\
Every command with its help, as `adverse COMMAND --help` prints it.

In scripts, `--quiet` prints errors only: the exit code says how it went. `--json` prints facts instead of
text, or takes the file to write them to. Commands that are not in the table make files or serve pages.
"""


def main() -> None:
    """Write all pages that have changed, and say which."""
    for path, text in generated().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(DOCS.parent)}")


def generated() -> dict[Path, str]:
    """Return the text of each page."""
    return {
        DOCS / "api.md": api_page(),
        DOCS / "cli.md": cli_page(),
        DOCS / "pictures" / "rooms.svg": rooms.picture(SOURCE),
    }


# --- the Python interface


def api_page() -> str:
    """Return the page of the public names, functions first."""
    values = {name: getattr(adverse, name) for name in adverse.__all__}
    sections: dict[str, Callable[[Any], bool]] = {
        "Functions": inspect.isfunction,
        "Types": lambda value: inspect.isclass(value) and not issubclass(value, Exception),
        "Errors": lambda value: inspect.isclass(value) and issubclass(value, Exception),
    }
    lines = ["# Python interface", "", MADE, "", API_INTRO]
    for title, belongs in sections.items():
        lines += [f"## {title}", ""]
        for name, value in values.items():
            if belongs(value):
                lines += _entry(f"adverse.{name}", value, "###")
    for name, value in values.items():
        if isinstance(value, ModuleType):
            lines += [f"## adverse.{name}", "", *_text(value), ""]
            for inner in sorted(value.__all__):
                lines += _member(f"adverse.{name}.{inner}", getattr(value, inner))
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _entry(name: str, value: Any, mark: str) -> Iterator[str]:
    """Yield a function, or a class with its fields and methods."""
    yield from (f"{mark} {name}", "")
    if inspect.isfunction(value):
        yield from ("```python", _signature(name.rpartition(".")[2], value), "```", "")
    yield from (*_text(value), "")
    if not inspect.isclass(value) or issubclass(value, Exception):
        return
    yield from _fields(value)
    for method, item in vars(value).items():
        if not method.startswith("_"):
            yield from _method(method, item)
    yield ""


def _fields(value: type) -> Iterator[str]:
    if dataclasses.is_dataclass(value):
        notes = _field_notes(value)
        for field in dataclasses.fields(value):
            note = f": {notes[field.name]}" if field.name in notes else ""
            yield f"- `{field.name}: {_plain(field.type)}`{note}"


def _field_notes(value: type) -> dict[str, str]:
    """Return the strings that stand below the fields of a class in its source."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(value))).body
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    return {
        ast.unparse(field.target): str(note.value.value)
        for field, note in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(note, ast.Expr)
        and isinstance(note.value, ast.Constant)
    }


def _method(name: str, item: Any) -> Iterator[str]:
    if isinstance(item, property | cached_property):
        function: Any = item.fget if isinstance(item, property) else item.func
        yield f"- `{name}: {_plain(inspect.signature(function).return_annotation)}`: {_first(function)}"
    elif inspect.isfunction(function := getattr(item, "__func__", item)):
        yield f"- `{_signature(name, function, short=True).removeprefix('def ')}`: {_first(function)}"


def _member(name: str, value: Any) -> Iterator[str]:
    """Yield one name of a public module, or the names of a module below it."""
    if isinstance(value, ModuleType):
        yield f"- `{name}`: {_first(value)}"
        inner = sorted(key for key, item in vars(value).items() if hasattr(item, "__adverse__"))
        yield from (f"  - `{_signature(key, getattr(value, key), short=True)[4:]}`" for key in inner)
    elif inspect.isfunction(value):
        shown = _signature(name.rpartition(".")[2], value, short=True).removeprefix("def ")
        yield f"- `{shown}`: {_first(value)}"
    elif inspect.isclass(value):
        yield f"- `{name.rpartition('.')[2]}`: {_first(value)}"
    elif get_origin(value) is not None:
        yield f"- `{name.rpartition('.')[2]} = {_plain(value)}`"
    else:
        yield f"- `{name.rpartition('.')[2]} = {value!r}`"


def _signature(name: str, function: Any, *, short: bool = False) -> str:
    signature = inspect.signature(function)
    words: list[str] = []
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    for index, parameter in enumerate(signature.parameters.values()):
        if parameter.name == "self":
            continue
        stars = "*" * (
            (parameter.kind == parameter.VAR_POSITIONAL) + 2 * (parameter.kind == parameter.VAR_KEYWORD)
        )
        first_by_name = parameter.kind == parameter.KEYWORD_ONLY and parameter.kind not in kinds[:index]
        words += ["*"] if first_by_name and parameter.VAR_POSITIONAL not in kinds[:index] else []
        default = "" if parameter.default is parameter.empty else f" = {_default(parameter.default)}"
        words.append(f"{stars}{parameter.name}: {_plain(parameter.annotation)}{default}")
        last_by_place = [*kinds, None][index + 1] != parameter.POSITIONAL_ONLY
        words += ["/"] if parameter.kind == parameter.POSITIONAL_ONLY and last_by_place else []
    result = _plain(signature.return_annotation)
    line = f"def {name}({', '.join(words)}) -> {result}"
    if short or len(line) <= LONG:
        return line
    return "\n".join([f"def {name}(", *(f"    {word}," for word in words), f") -> {result}"])


def _default(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONG_DEFAULT else "..."


def _plain(annotation: Any) -> str:
    """Return a type as it is written in the code, without the modules of names and without limits.

    >>> _plain("collections.abc.Mapping[str, Annotated[float, Field(gt=0)]]")
    'Mapping[str, float]'
    """
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    short = re.sub(r"\b(?:[a-z_]+\.)+(?=\w)", "", text)
    return re.sub(r"\bAnnotated\[(\w+), [^\[\]]*\]", r"\1", short)


def _text(value: Any) -> Iterator[str]:
    """Yield a docstring as Markdown: its examples in a block of code."""
    inside = False
    for line in (inspect.getdoc(value) or "").splitlines():
        if line.startswith(">>>") and not inside:
            yield "```python"
            inside = True
        elif inside and not line.strip():
            yield "```"
            inside = False
        yield line
    if inside:
        yield "```"


def _first(value: Any) -> str:
    return (inspect.getdoc(value) or "").partition("\n\n")[0].replace("\n", " ")


# --- the command line


def cli_page() -> str:
    """Return the page of all commands."""
    from adverse.cli.app import app  # noqa: PLC0415 - quick where only the picture is wanted

    root = typer.main.get_command(app)
    lines = ["# Command line", "", MADE, "", CLI_INTRO, *_script_options(root)]
    for name, text in _helps(root, "adverse", None):
        lines += [f"## {name}", "", "```text", text, "```", ""]
    return "\n".join(lines).rstrip() + "\n"


def _script_options(root: Any) -> list[str]:
    """Return the table of commands that scripts can silence or read."""
    lines = ["| command | `--quiet` | `--json` |", "|---|---|---|"]
    for name, options in sorted(_options(root, "")):
        by_name = {text: option for option in options for text in option.opts}
        quiet = "yes" if "--quiet" in by_name else ""
        as_json = by_name.get("--json")
        kind = "" if as_json is None else "printed" if as_json.is_flag else "to a file"
        if quiet or kind:
            lines.append(f"| `{name}` | {quiet} | {kind} |")
    return [*lines, ""]


def _options(command: Any, name: str) -> Iterator[tuple[str, list[Any]]]:
    """Yield the name and the options of every command below a group."""
    for inner_name, inner in command.commands.items():
        path = f"{name} {inner_name}".strip()
        if hasattr(inner, "commands"):
            yield from _options(inner, path)
        else:
            yield path, [option for option in inner.params if hasattr(option, "is_flag")]


def _helps(command: Any, name: str, parent: Any) -> Iterator[tuple[str, str]]:
    """Yield the full name and the help of a command and of those below it."""
    context = command.context_class(
        command,
        info_name=name,
        parent=parent,
        terminal_width=COLUMNS,
        max_content_width=COLUMNS,
        **command.context_settings,
    )
    text = "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
    yield context.command_path, text
    for inner in getattr(command, "commands", {}).items():
        yield from _helps(inner[1], inner[0], context)


if __name__ == "__main__":
    main()
