"""list and check-plugin: what a study can name, and whether a plug-in file keeps its contract."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal

import typer

from adverse.cli.console import Console, say, show_error
from adverse.cli.options import Json
from adverse.errors import EXIT_GATE_FAILED, AdverseError, StudyError, suggestion

if TYPE_CHECKING:
    from adverse.step_clock import Steps

MANY = 5
"""Names with the same beginning, such as c., that stand together in a list."""

Kind = Literal["mutations", "batteries", "suts", "datasets", "levels", "metrics", "relations"]
KindArgument = Annotated[
    Kind,
    typer.Argument(
        metavar="KIND", help="mutations, batteries, suts, datasets, levels, metrics or relations."
    ),
]
PluginFiles = Annotated[
    list[Path] | None, typer.Option("--plugin", help="Also list this plug-in file; repeatable.")
]


Names = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="Show these with all their options.")
]


def list_known(
    kind: KindArgument,
    names: Names = None,
    as_json: Json = False,  # noqa: FBT002
    plugin: PluginFiles = None,
) -> None:
    """List what a study can name, or show one in full. Long suites, such as c., stand together.

    \b
    Examples:
        adverse list mutations
        adverse list mutations c.
        adverse list mutations haze rain
        adverse list suts --json
        adverse list mutations --plugin my_mutations.py
    """
    entries = {entry["name"]: entry for entry in _entries(kind, plugin or [])}
    suites = _suites(entries)
    if names and all(name in suites for name in names) and not as_json:
        _print_lines([entries[name] for suite in names for name in suites[suite]])
        return
    names = [each for name in names or () for each in suites.get(name, [name])]
    for name in names:
        if name not in entries:
            raise StudyError(f"there are no {kind} called {name!r}", fix=suggestion(name, entries))
    chosen = [entries[name] for name in names or entries]
    if as_json:
        typer.echo(json.dumps(chosen, indent=1))
    elif names:
        _print_whole(chosen)
    else:
        together = {name for suite in suites.values() for name in suite}
        _print_lines([entry for entry in chosen if entry["name"] not in together])
        for suite, members in suites.items():
            text = f"{suite:<4} {len(members)}: {', '.join(name.removeprefix(suite) for name in members)}"
            for line in textwrap.wrap(text, Console().width, subsequent_indent=" " * 5):
                say(line)
        some = f"; NAME can be {' or '.join(suites)}" if suites else ""
        typer.echo(f"adverse list {kind} NAME shows one in full{some}")


def _suites(entries: Mapping[str, object]) -> dict[str, list[str]]:
    """Return the names that begin alike, up to a point, where there are many of them."""
    found: dict[str, list[str]] = {}
    for name in entries:
        if "." in name:
            found.setdefault(f"{name.partition('.')[0]}.", []).append(name)
    return {suite: names for suite, names in found.items() if len(names) >= MANY}


def _print_lines(entries: list[dict[str, Any]]) -> None:
    widest, width = max((len(entry["name"]) for entry in entries), default=0), Console().width
    for entry in entries:
        line = f"{entry['name']:{widest}}  {entry['summary']}"
        say(line if len(line) <= width else f"{line[: width - 1]}…")


def _print_whole(entries: list[dict[str, Any]]) -> None:
    for entry in entries:
        typer.echo(f"{entry['name']}\n    {entry['summary']}")
        for option in entry.get("options", ()):
            default = "required" if option["required"] else f"default {option['default']}"
            typer.echo(f"      {option['name']}: {option['type']} ({default})")
        if "hazard" in entry:
            typer.echo(f"      hazard: {entry['hazard']}")
        for setting in entry.get("settings", ()):
            typer.echo(f"      {setting['id']} [{setting['group']}]")


def _entries(kind: Kind, files: list[Path]) -> list[dict[str, Any]]:
    from adverse import plugins
    from adverse.mutations.batteries import BATTERIES
    from adverse.mutations.hazards import hazard_words

    if kind == "batteries":
        return [
            {
                "name": name,
                "summary": f"{len(settings)} settings",
                "settings": [{"id": text, "group": group} for text, group in settings],
            }
            for name, settings in BATTERIES.items()
        ]
    singular: dict[Kind, plugins.Kind] = {
        "mutations": "mutation",
        "suts": "sut",
        "datasets": "dataset",
        "levels": "level",
        "metrics": "metric",
        "relations": "relation",
    }
    return [
        {
            "name": plugin.name,
            "summary": plugin.summary,
            "needs": sorted(plugin.needs),
            **({"hazard": hazard_words(plugin)} if kind == "mutations" else {}),
            "options": [
                {
                    "name": name,
                    "type": plugin.options[name].shown_type,
                    "required": plugin.options[name].required,
                    "default": None if plugin.options[name].required else str(plugin.options[name].default),
                }
                for name in plugin.option_names()
            ],
        }
        for plugin in plugins.load(files).all(singular[kind])
    ]


StudyPath = Annotated[
    Path | None,
    typer.Argument(metavar="[STUDY]", help="A study: its plug-ins and settings count."),
]
MarksFile = Annotated[
    Path | None, typer.Option("--marks", help="Entries that are not applicable, with reasons (YAML).")
]
ChecklistPage = Annotated[Path | None, typer.Option("--page", help="Write the checklist as a page (HTML).")]


def hazards(
    study: StudyPath = None,
    marks: MarksFile = None,
    page: ChecklistPage = None,
    plugin: PluginFiles = None,
    as_json: Json = False,  # noqa: FBT002
) -> None:
    """Show the checklist of hazards of seeing.

    All places, parameters and guide words, with the mutations that stand for them, and those that none stands
    for.

    \b
    Examples:
        adverse hazards
        adverse hazards study.yaml --marks marks.yaml --page checklist.html
    """
    from adverse import plugins
    from adverse.mutations.settings import expand
    from adverse.report.checklist import checklist_lines, checklist_page, checklist_table
    from adverse.requirements.checklist import checklist, read_marks
    from adverse.store.durable import write_file
    from adverse.study.spec import read_study

    file = None if study is None else read_study(study)
    registry = plugins.load([*(file.plugin_files if file else ()), *(plugin or ())])
    settings = [
        setting.id
        for number, entry in enumerate(file.study.mutations if file else ())
        for setting in expand(entry, registry, where=file.where("mutations", number) if file else "")
    ]
    entries = checklist(registry, settings, () if marks is None else read_marks(marks))
    if as_json:
        typer.echo(checklist_table(entries).json())
    else:
        for line in checklist_lines(entries):
            say(line)
    if page is not None:
        write_file(page, checklist_page(entries).encode())
        typer.echo(f"written: {page}", err=True)


File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="A Python file with @mutation, @sut, @dataset, @level, @metric or @relation."
    ),
]


TimeLimit = Annotated[
    float,
    typer.Option(
        "--timeout-s",
        min=0.1,
        help="Longest time to load the file, and to check each plug-in in it; compiling does not count.",
    ),
]


def check_plugin(file: File, timeout_s: TimeLimit = 120) -> None:
    """Check that a plug-in file keeps its contract.

    Mutations, levels, metrics and relations are run; SUTs and data sets are only loaded. This happens in a
    process of its own, which is ended when a plug-in hangs.

    \b
    Example:
        adverse check-plugin rain_on_lens.py
    """
    import os
    import subprocess
    import threading

    from adverse.errors import PluginError
    from adverse.processes import end_tied, our_environment, our_module, tied
    from adverse.step_clock import late_step

    environment = tied(our_environment())
    heard, told = os.pipe()
    with subprocess.Popen(  # noqa: S603
        our_module("adverse.cli.plugins", str(file), str(told)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=[told],
        env=environment,
        text=True,
        errors="replace",
    ) as process:
        os.close(told)
        echoes = [
            threading.Thread(target=_echo, args=(process.stdout, False)),
            threading.Thread(target=_echo, args=(process.stderr, True)),
        ]
        for echo in echoes:
            echo.start()
        with open(heard, "rb", buffering=0) as steps:  # noqa: PTH123 - a descriptor, not a path
            late = late_step(steps, process, timeout_s)
        if late is not None:
            process.kill()
        process.wait()
        end_tied(environment)
        for echo in echoes:
            echo.join()
    if late is not None:
        raise PluginError(
            "the plug-in did not finish in time",
            where=str(file),
            got=f"no end of {late} after {timeout_s:g} s",
            fix="Mend what hangs, or raise --timeout-s if it is only slow.",
        )
    if process.returncode:
        raise typer.Exit(process.returncode)


def _echo(lines: IO[str], err: bool) -> None:  # noqa: FBT001 - an argument of a thread
    for line in lines:
        typer.echo(line.rstrip("\n"), err=err)


def main() -> None:
    """Check the plug-in file that the first argument names, as `check_plugin` starts it."""
    from adverse.processes import die_with_parent
    from adverse.step_clock import Steps

    die_with_parent()
    steps = Steps(int(sys.argv[2]))
    steps.hold_while_compiling()
    try:
        _check_plugin(Path(sys.argv[1]), steps)
    except AdverseError as error:
        show_error(error)
        sys.exit(error.exit_code)
    except typer.Exit as end:
        sys.exit(end.exit_code)


def _check_plugin(file: Path, steps: Steps) -> None:
    """Check the plug-ins of a file, printing what was found out."""
    from adverse import plugins
    from adverse.levels import contract as levels
    from adverse.mutations import contract as mutations
    from adverse.relations import contract as relations

    installed = plugins.load()  # as our own imports, no part of what is timed
    steps.begin("loading the file")
    checks = {
        "mutation": mutations.check,
        "level": levels.check_level,
        "metric": levels.check_metric,
        "relation": relations.check_relation,
    }
    failed = 0
    shown: set[str] = set()
    loaded = list(plugins.marked(plugins.load_file(file)))
    for plugin in loaded:
        steps.begin(f"the checks of {plugin.kind} {plugin.name}")
        typer.echo(f"{plugin.kind} {plugin.name}: options {', '.join(plugin.option_names()) or 'none'}")
        if plugin.kind not in checks:
            typer.echo("  loads; it was not run: adverse plan tries it with a study's options")
            continue
        for finding in checks[plugin.kind](plugin):
            typer.echo(f"  {'ok  ' if finding.ok else 'FAIL'} {finding.check}")
            if finding.error is not None:
                failed += 1
                if str(finding.error) not in shown:
                    show_error(finding.error)
                shown.add(str(finding.error))
    steps.hold()
    plugins.Registry((*installed.given, *loaded), (file,), built_in=True)  # names must not collide
    if failed:
        raise typer.Exit(EXIT_GATE_FAILED)
