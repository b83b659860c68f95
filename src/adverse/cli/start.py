"""init and demo: a first study from a data set and a model, or on rendered scenes with nothing downloaded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adverse.cli.console import Console, rendering, say
from adverse.cli.options import Workers
from adverse.cli.runs import run_and_show

if TYPE_CHECKING:
    from adverse.types import Split

Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="The folder of the data set, or its annotation file.")
]
Model = Annotated[Path | None, typer.Argument(metavar="MODEL", help="An ONNX model. [default: OpenCV's HOG]")]
StudyOut = Annotated[Path, typer.Option("--out", "-o", help="The study file to write.")]
DemoFolder = Annotated[Path, typer.Option("--out", "-o", help="The folder for models, study and run.")]
Full = Annotated[
    bool, typer.Option("--full", help="More logs, the HOG detector, the battery riot-2018: over an hour.")
]
LOGS: dict[Split, int] = {"validation": 8, "test": 14}
"""Validation frames are shown as they are, test frames under every mutation: the first cost little."""
FULL_LOGS: dict[Split, int] = {"validation": 12, "test": 40}
"""Twenty test logs of each kind are the fewest whose intervals carry no mark of few logs."""
SEED = 1
SIZE = (320, 240)
POSE_NOISE_MM = 20.0
"""Of a satellite receiver with corrections (RTK), as on the robots that real logs come from."""
MUTATIONS, FULL_MUTATIONS = ("field-2021",), ("field-2021", "riot-2018")
LEVELS = ("image", "located", "path", "loop")
MODELS = "models"
SLOW_MODELS = ("hog",)
"""Left to --full: the sliding window takes longer than all the nets together."""


def init(data: Data, model: Model = None, out: StudyOut = Path("study.yaml")) -> None:
    """Write a first study for a data set and a model.

    Format, decoder, classes, and what the data supports are guessed; the study says what was assumed.

    \b
    Examples:
        adverse init data/coco models/ours.onnx
        adverse init data/VOC2007 --out voc.yaml

    Where the model does not say how images are preprocessed (letterboxed or stretched, RGB or BGR, which
    scale), the usual ways are tried on labelled images and the best is taken; the study lists their scores.

    Check the picture it draws: ground truth is white, detections are orange.
    """
    from adverse import plugins
    from adverse.study.starter import starter, write_starter

    made = starter(data, model, out.resolve().parent, plugins.load())
    picture = out.with_suffix(".png")
    write_starter(made, out, picture)
    say(f"{out} is written. Assumed:")
    for line in made.assumed:
        say(f"- {line}")
    if made.picture is not None:
        say(f"check {picture}: ground truth is white, detections are orange")
    say(f"then:   adverse run {out}")


def demo(out: DemoFolder = Path("demo"), workers: Workers = None, full: Full = False) -> None:  # noqa: FBT002
    """Run a whole study on a rendered orchard.

    The bundled detectors are run under the battery field-2021, and the results are printed.

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
    data = {
        "format": "orchard-world",
        "logs": logs,
        "size": list(SIZE),
        "seed": SEED,
        "pose_noise_mm": POSE_NOISE_MM,
    }
    if not study.exists():
        whole = {
            "name": "demo",
            "seed": 7,
            "data": data,
            "suts": [
                model.section(name, MODELS)
                for name, model in bundled.MODELS.items()
                if full or name not in SLOW_MODELS
            ],
            "mutations": list(FULL_MUTATIONS if full else MUTATIONS),
            "levels": list(LEVELS),
        }
        study.write_text(yaml.safe_dump(whole, sort_keys=False, default_flow_style=None))
    typer.echo("an orchard is rendered on first use (synthetic: it shows the machinery, not any product)")
    if _reads(study, data):
        with rendering(Console()) as watch:
            rendered("orchard", logs, SIZE, SEED, POSE_NOISE_MM, watch)
    code = run_and_show(read_study(study), run, workers)
    typer.echo(f"explore: adverse view {run}    every table: adverse analyze {run} --tables")
    typer.echo(f"change {study}, then: adverse run {study} --out {run}")
    raise typer.Exit(code)


def _reads(study: Path, data: dict[str, object]) -> bool:
    """Return whether a study still reads the demo's data; what else is wrong with it the run will say."""
    import yaml

    try:
        content = yaml.safe_load(study.read_bytes())
    except yaml.YAMLError:
        return False
    return isinstance(content, dict) and content.get("data") == data
