"""demo: a whole study on a fresh machine, with nothing downloaded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adverse.cli.console import Console, rendering
from adverse.cli.runs import Workers, run_and_show

if TYPE_CHECKING:
    from adverse.types import Split

Folder = Annotated[Path, typer.Option("--out", "-o", help="Where models, study and run are written.")]
Full = Annotated[bool, typer.Option("--full", help="More logs, hog and riot-2018 too: over an hour.")]
LOGS: dict[Split, int] = {"validation": 8, "test": 14}
"""Validation frames are shown as they are, test frames under every mutation: the first cost little."""
FULL_LOGS: dict[Split, int] = {"validation": 12, "test": 40}
"""Twenty test logs of each kind are the fewest whose intervals carry no mark of few logs."""
SEED = 1
SIZE = (320, 240)
MUTATIONS, FULL_MUTATIONS = ("field-2021",), ("field-2021", "riot-2018")
LEVELS = ("image", "located", "path", "loop")
MODELS = "models"
SLOW_MODELS = ("hog",)
"""Left to --full: the sliding window takes longer than all the nets together."""


def demo(out: Folder = Path("demo"), workers: Workers = None, full: Full = False) -> None:  # noqa: FBT002
    """Render an orchard, show it to the bundled detectors under field-2021, and print what came out.

    \b
    Examples:
        adverse demo --out demo
        adverse demo --out demo-full --full
    """
    import yaml

    from adverse.data.rendered import rendered
    from adverse.study.spec import read_study
    from adverse.suts import bundled

    study, run = out / "study.yaml", out / "run"
    bundled.copy_models(out / MODELS)
    logs = FULL_LOGS if full else LOGS
    data = {"format": "orchard-world", "logs": logs, "size": list(SIZE), "seed": SEED}
    if not study.exists():
        whole = {
            "name": "demo",
            "seed": 7,
            "data": data,
            "suts": [
                one.section(name, MODELS)
                for name, one in bundled.MODELS.items()
                if full or name not in SLOW_MODELS
            ],
            "mutations": list(FULL_MUTATIONS if full else MUTATIONS),
            "levels": list(LEVELS),
        }
        study.write_text(yaml.safe_dump(whole, sort_keys=False, default_flow_style=None))
    typer.echo("an orchard is rendered on first use (synthetic: it shows the machinery, not any product)")
    if _reads(study, data):
        with rendering(Console()) as watch:
            rendered("orchard", logs, SIZE, SEED, watch)
    code = run_and_show(read_study(study), run, workers)
    typer.echo(f"look next:      adverse view {run}          frame by frame, in a browser")
    typer.echo(f"change, go on:  adverse run {study} --out {run}")
    raise typer.Exit(code)


def _reads(study: Path, data: dict[str, object]) -> bool:
    """Return whether a study still reads the demo's data; what else is wrong with it the run will say."""
    import yaml

    try:
        told = yaml.safe_load(study.read_bytes())
    except yaml.YAMLError:
        return False
    return isinstance(told, dict) and told.get("data") == data
