"""Score the bundled detectors on the orchard's test split, write their cards: python training/score.py RUN.

Thresholds come from the validation split, as in every study; neither split was used in training.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import adverse
from adverse.hashes import file_sha256
from adverse.suts.bundled import MODELS, Bundled

BUNDLED = Path(__file__).parents[1] / "src" / "adverse" / "suts" / "bundled"
DATA = {"format": "orchard-world", "logs": {"validation": 12, "test": 24}, "size": [320, 240], "seed": 1}
MUTATIONS = ["gaussian_blur(sigma_px=2)", "haze(visibility_m=97.8)", "channel_dropout(channel=G)"]
NETWORK = "training/train.py {name}: 240 train logs, 6 frames each; AdamW, 6 epochs of batch 8, seed 7"
SVM = "training/hog.py: 240 train logs, 6 frames each; linear SVM, two rounds of hard negatives, seed 7"
CARD = """\
# {file}

A detector of people ({family}), {kilobytes:.0f} kB, for the rendered orchard.
**Synthetic: it makes curves to look at and must not be used on anything real.**

| | |
|---|---|
| recipe | {recipe} |
| input | 320 x 240 RGB, one class, `person` |
| use | `{section}` |
| sha256 | `{sha}` |

Areas of the curves of safety against efficiency on {logs} test logs of `orchard-world` (seed 1):

| setting | ROC_A | ROC_B |
|---|---|---|
{rows}
"""


def main() -> None:
    """Run the study and write a card for each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="the run folder")
    parser.add_argument("--workers", type=int, default=2)
    told = parser.parse_args()
    suts = [
        {**one.section(name, "."), "model": str((BUNDLED / one.file).resolve())}
        for name, one in MODELS.items()
    ]
    study = {"name": "bundled", "seed": 7, "data": DATA, "suts": suts, "mutations": MUTATIONS}
    found = adverse.run(study, told.out, workers=told.workers)
    areas = {(row["sut"], row["setting"], row["level"]): row["area"] for row in found.rows}
    for name, one in MODELS.items():
        card = _card(name, one, areas)
        (BUNDLED / one.file).with_suffix(".md").write_text(card)
        print(card)


def _card(name: str, one: Bundled, areas: dict[tuple[str, str, str], float | None]) -> str:
    path = BUNDLED / one.file
    settings = dict.fromkeys(setting for sut, setting, _ in areas if sut == name)
    rows = []
    for setting in settings:
        values = [areas.get((name, setting, f"image/{level}")) for level in ("ROC_A", "ROC_B")]
        rows.append(
            f"| {setting} | "
            + " | ".join("-" if value is None else f"{value:.3f}" for value in values)
            + " |"
        )
    return CARD.format(
        file=one.file,
        family=one.family,
        kilobytes=path.stat().st_size / 1e3,
        recipe=(SVM if one.adapter == "opencv-hog" else NETWORK).format(name=name),
        section=one.section(name, "models"),
        sha=file_sha256(path),
        logs=DATA["logs"]["test"],
        rows="\n".join(rows),
    )


if __name__ == "__main__":
    main()
