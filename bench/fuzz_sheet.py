"""Draw additions of a fuzz campaign to look at, one by one: each framed, with its number and what it is.

    python bench/fuzz_sheet.py CAMPAIGN STUDY OUT.jpg [--count 12] [--distinct]

Cars and people are spread evenly over the campaign's tests. Tests are made again from the study's data. With
--distinct nothing is drawn: all pictures are made again and hashed, and compared with the number of tests.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse import plugins
from adverse.content import user_cache
from adverse.fuzz.folder import CampaignFolder
from adverse.fuzz.outcome import read_outcome
from adverse.semantic import Mutated, Recipe, Resources, apply, scene_of
from adverse.study.plan import read_dataset
from adverse.study.spec import read_study
from adverse.types import Image

COLUMNS, WIDTH = 4, 320
MARK = (255, 0, 255)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("campaign", type=Path)
    parser.add_argument("study", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--distinct", action="store_true")
    options = parser.parse_args()
    outcome = read_outcome(CampaignFolder(options.campaign))
    file = read_study(options.study)
    data = read_dataset(file, plugins.load(file.plugin_files))
    frames = {frame.id: frame for log in data.logs for frame in log.frames}
    resources = Resources.open(user_cache("resources") / f"resources-{outcome.campaign.resources}.arrow")

    def again(row: Mapping[str, Any]) -> Mutated:
        return apply(Recipe.from_json(row["recipe"]), scene_of(frames[row["base"]], data), resources)

    if options.distinct:
        made = (again(row).scene for row in outcome.rows)
        hashes = {
            hashlib.sha256(b"".join(map(pixels, (s.image, s.labels, s.instances)))).digest() for s in made
        }
        print(f"{outcome.count} tests, {len(hashes)} distinct pictures, {outcome.duplicates} duplicates")
        return
    added = [row for row in outcome.rows if row["arm"][0].startswith("add_")]
    spread = np.linspace(0, len(added) - 1, min(options.count, len(added))).astype(int).tolist()
    tiles = [
        tile(f"{number} {added[at]['arm'][0]}", again(added[at])) for number, at in enumerate(spread, start=1)
    ]
    height = max(image.shape[0] for image in tiles)
    tiles = [
        np.pad(image, ((0, height - len(image)), (0, 0), (0, 0)), constant_values=255) for image in tiles
    ]
    tiles += [np.full_like(tiles[0], 255)] * (-len(tiles) % COLUMNS)
    rows = [np.concatenate(tiles[at : at + COLUMNS], axis=1) for at in range(0, len(tiles), COLUMNS)]
    sheet = cv2.cvtColor(np.concatenate(rows), cv2.COLOR_RGB2BGR)
    cv2.imwrite(str(options.out), sheet, [cv2.IMWRITE_JPEG_QUALITY, 88])


def tile(words: str, made: Mutated) -> Image:
    image = made.scene.image.copy()
    rows, columns = np.nonzero(made.mask)
    corners = (int(columns.min()) - 3, int(rows.min()) - 3), (int(columns.max()) + 3, int(rows.max()) + 3)
    cv2.rectangle(image, *corners, MARK, 1)
    height = round(image.shape[0] * WIDTH / image.shape[1])
    image = np.asarray(cv2.resize(image, (WIDTH, height), interpolation=cv2.INTER_AREA), np.uint8)
    cv2.putText(image, words, (4, 14), cv2.FONT_HERSHEY_SIMPLEX, 0.45, MARK, 1)
    return image


def pixels(array: NDArray[Any]) -> bytes:
    return np.ascontiguousarray(array).tobytes()


if __name__ == "__main__":
    main()
