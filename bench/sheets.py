"""Draw the contact sheets of the docs, from the street that we drew."""

from __future__ import annotations

import cv2

import drawn
import report
from adverse import mutations, plugins
from adverse.mutations import settings

BATTERIES = ("coco-c", "coco-c-holdout", "field-2021", "reliability-2022")
TILE_WIDTH = 160


def main() -> None:
    registry = plugins.load()
    image, depth = drawn.street(384, 512)
    folder = report.DOCS / "sheets"
    folder.mkdir(exist_ok=True)
    for name in BATTERIES:
        battery = settings.expand(name, registry, where=name)
        page = mutations.contact_sheet(image, battery, registry, depth_m=depth, tile_width=TILE_WIDTH)
        path = folder / f"{name}.jpg"
        cv2.imwrite(str(path), cv2.cvtColor(page, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, 85])
        print(path.name, page.shape)


if __name__ == "__main__":
    main()
