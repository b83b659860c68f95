"""list and check-plugin: what a study can name, and whether a plug-in file keeps its contract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from adverse.cli.console import show_error
from adverse.cli.options import Json
from adverse.errors import EXIT_GATE_FAILED

Kind = Literal["mutations", "batteries", "suts", "datasets", "levels", "metrics"]
KindArgument = Annotated[
    Kind, typer.Argument(metavar="KIND", help="mutations, batteries, suts, datasets, levels or metrics.")
]
PluginFiles = Annotated[
    list[Path] | None, typer.Option("--plugin", help="Also list this plug-in file; repeatable.")
]


def list_known(kind: KindArgument, as_json: Json = False, plugin: PluginFiles = None) -> None:  # noqa: FBT002
    """List what a study can name, with options and hazards.

    \b
    Examples:
        adverse list mutations
        adverse list suts --json
        adverse list mutations --plugin my_mutations.py
    """
    entries = _entries(kind, plugin or [])
    if as_json:
        typer.echo(json.dumps(entries, indent=1))
        return
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


File = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="A Python file with @mutation, @sut, @dataset, @level or @metric."),
]


def check_plugin(file: File) -> None:
    """Check that a plug-in file keeps its contract.

    Mutations, levels and metrics are run; SUTs and data sets are only loaded.

    \b
    Example:
        adverse check-plugin rain_on_lens.py
    """
    from adverse import plugins
    from adverse.levels import contract as levels
    from adverse.mutations import contract as mutations

    checks = {"mutation": mutations.check, "level": levels.check_level, "metric": levels.check_metric}
    failed = 0
    shown: set[str] = set()
    for plugin in plugins.marked(plugins.load_file(file)):
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
    plugins.load([file])  # names must not collide with those there are
    if failed:
        raise typer.Exit(EXIT_GATE_FAILED)
