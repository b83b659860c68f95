"""export: a finished run in the formats of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adverse.cli.console import say
from adverse.cli.runs import RunPath

Target = Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write.")]
Suts = Annotated[list[str] | None, typer.Option("--sut", help="Only this SUT; repeatable.")]
Settings = Annotated[list[str] | None, typer.Option("--setting", help="Only this setting's id; repeatable.")]


def export(folder: RunPath, out: Target, sut: Suts = None, setting: Settings = None) -> None:
    """Write the test frames of a run as COCO results, one file for each SUT and setting, and the truth.

    \b
    Examples:
        adverse export runs/orchard coco
        adverse export runs/orchard coco --sut yolo --setting identity
    """
    from adverse.interop.coco_results import ANNOTATIONS, export_coco

    written = export_coco(folder, out, suts=sut or (), settings=setting or ())
    for one in written:
        failed = f", {len(one.faults)} faults" if one.faults else ""
        unusable = f", {len(one.quarantined)} images could not be used" if one.quarantined else ""
        say(f"{out / one.file}: {one.detections} detections{failed}{unusable}")
    say(f"{out / ANNOTATIONS}: the truth")
