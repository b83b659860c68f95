"""Draw the contact sheets of the docs, from the street that we drew; the weather in the orchard too."""

from __future__ import annotations

import cv2
import numpy as np

import drawn
import report
from adverse import mutations, plugins
from adverse.data.worlds.rendering import render
from adverse.data.worlds.scripts import stereo_camera
from adverse.data.worlds.writing import SCRIPTS
from adverse.mutations import settings
from adverse.seeds import generator
from adverse.types import Depth, Image

BATTERIES = ("coco-c", "coco-c-holdout", "field-2021", "reliability-2022")
TILE_WIDTH = 160
WEATHER_WIDTH = 320
"""Rain is fine: shown smaller, it is gone."""

Scene = tuple[Image, Depth]


def orchard() -> Scene:
    """Render a frame of the orchard world, with its depth."""
    name = "test/positive000"
    script = SCRIPTS["orchard"](1, name, "positive")
    at = script.drive.duration_s * 0.8
    camera = stereo_camera(WEATHER_WIDTH, WEATHER_WIDTH * 3 // 4)
    seen = render(script.scene(), camera, script.drive.pose(at), at, generator(1, name))
    return seen.image, np.asarray(seen.depth_m, np.float32)


def main() -> None:
    registry = plugins.load()
    street, wide = drawn.street(384, 512), drawn.street(WEATHER_WIDTH * 3 // 4, WEATHER_WIDTH)
    sheets = [(name, name, street, TILE_WIDTH) for name in BATTERIES]
    sheets += [("weather", "weather", wide, WEATHER_WIDTH)]
    sheets += [("weather-orchard", "weather", orchard(), WEATHER_WIDTH)]
    folder = report.DOCS / "sheets"
    folder.mkdir(exist_ok=True)
    for file, name, (image, depth), width in sheets:
        battery = settings.expand(name, registry, where=name)
        page = mutations.contact_sheet(image, battery, registry, depth_m=depth, tile_width=width)
        path = folder / f"{file}.jpg"
        cv2.imwrite(str(path), cv2.cvtColor(page, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, 85])
        print(path.name, page.shape)


if __name__ == "__main__":
    main()
