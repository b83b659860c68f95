"""The film of a run's failed stop as a contact sheet: a few of its pictures below each other.

adverse report demo/run
python bench/film_sheet.py demo/run film.jpg
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from adverse.report.page import FILM

PICTURES = 5


def contact_sheet(film: Path, pictures: int = PICTURES) -> Image.Image:
    """Return evenly spaced pictures of a film, the first and the last among them."""
    opened: Any = Image.open(film)
    chosen = np.linspace(0, opened.n_frames - 1, pictures).round().astype(int).tolist()
    width, height = opened.size
    sheet = Image.new("RGB", (width, height * len(chosen)))
    for place, number in enumerate(chosen):
        opened.seek(number)
        sheet.paste(opened.convert("RGB"), (0, place * height))
    return sheet


def main() -> None:
    """Write the sheet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="the folder of a run with a report")
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    contact_sheet(given.run / FILM).save(given.out, quality=85)


if __name__ == "__main__":
    main()
