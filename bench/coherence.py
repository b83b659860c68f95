"""Draw the sheet of the docs that shows rain and snow over the frames of a log: 12 frames of one scene.

python bench/coherence.py
"""

from __future__ import annotations

import cv2
import numpy as np

import drawn
import report
from adverse.mutations import apply
from adverse.types import Image

FRAMES, STEP_S = 12, 0.1
COLUMNS, GAP_PX, TEXT_PX = 4, 4, 18
WIDTH, HEIGHT = 320, 240
SHEETS = {
    "rain-over-time": "rain(rate_mm_h=80) @ drift(spread=0.8, period_s=2)",
    "snow-over-time": "snow(rate_mm_h=4, wind_m_s=0.5)",
}


def sheet(mutation: str) -> Image:
    """Return the frames of a still scene, a tenth of a second apart, with their times."""
    image, depth = drawn.street(HEIGHT, WIDTH)
    rows = -(-FRAMES // COLUMNS)
    page = np.full((rows * (HEIGHT + GAP_PX + TEXT_PX), COLUMNS * (WIDTH + GAP_PX), 3), 255, np.uint8)
    for number in range(FRAMES):
        time_s = number * STEP_S
        made = apply(image, mutation, seed=1, key=f"log/{number}", log="log", time_s=time_s, depth_m=depth)
        top = number // COLUMNS * (HEIGHT + GAP_PX + TEXT_PX)
        left = number % COLUMNS * (WIDTH + GAP_PX)
        place = (left, top + TEXT_PX - GAP_PX)
        cv2.putText(
            page, f"{time_s:.1f} s", place, cv2.FONT_HERSHEY_SIMPLEX, 0.45, (30, 30, 30), 1, cv2.LINE_AA
        )
        page[top + TEXT_PX : top + TEXT_PX + HEIGHT, left : left + WIDTH] = made
    return page


def main() -> None:
    """Write the sheets."""
    for name, mutation in SHEETS.items():
        path = report.DOCS / "sheets" / f"{name}.jpg"
        page = cv2.cvtColor(sheet(mutation), cv2.COLOR_RGB2BGR)
        cv2.imwrite(str(path), page, [cv2.IMWRITE_JPEG_QUALITY, 85])
        print(path.name, page.shape)


if __name__ == "__main__":
    main()
