"""The gallery of the docs: every mutation on one frame of the rendered orchard, with its words.

    python bench/gallery.py

The frame is ours, so that no licence stands on it. Strengths are chosen to be seen. A mutation that
is missing here fails a test.
"""

from __future__ import annotations

from collections.abc import Iterator

import cv2
import numpy as np

import report
from adverse import mutations, plugins
from adverse.data.worlds.rendering import render
from adverse.data.worlds.scripts import stereo_camera
from adverse.data.worlds.writing import SCRIPTS
from adverse.mutations.hazards import hazard_words
from adverse.seeds import generator
from adverse.types import Depth, Image

PAGE = report.DOCS / "gallery.md"
PICTURES = report.DOCS / "pictures" / "gallery"
SIZE = (320, 240)
QUALITY = 80
PARTS = {
    "By depth": (
        "haze(visibility_m=60)",
        "defocus(focus_m=2, kappa=12)",
        "rain(rate_mm_h=50)",
        "snow(rate_mm_h=3)",
    ),
    "On the lens, in the light": (
        "lens_drops(coverage=0.25)",
        "lens_mud(coverage=0.2)",
        "glare(veiling_ratio=0.4)",
        "low_light(stops=5)",
    ),
    "Simple": (
        "gaussian_blur(sigma_px=2)",
        "motion_blur(length_px=9)",
        "brightness(scale=0.4)",
        "alpha_blend(alpha=0.5)",
        "jpeg(quality=8)",
        "salt_pepper(fraction=0.05)",
        "channel_dropout(channel=G)",
        "signal_noise(psi=0.5, sigma_u=2, sigma_w=4)",
        "mirror",
        "identity",
    ),
}
"""Mutations with options of their own; those of `c.` are shown at severity 3, of `t.` at strength 0.5."""


def shown() -> dict[str, list[str]]:
    """Return the ids that the gallery shows, by part."""
    names = [plugin.name for plugin in plugins.load().all("mutation")]
    parts = {title: list(ids) for title, ids in PARTS.items()}
    parts["Corruptions of the Robust Detection Benchmark, severity 3"] = [
        f"{name}(severity=3)" for name in names if name.startswith("c.")
    ]
    parts["Transformations of known visual change, strength 0.5"] = [
        f"{name}(strength=0.5)" for name in names if name.startswith("t.")
    ]
    return parts


def frame() -> tuple[Image, Depth]:
    """Render one frame of the orchard, with its depth."""
    name = "test/positive000"
    script = SCRIPTS["orchard"](1, name, "positive")
    at = script.drive.duration_s * 0.8
    seen = render(script.scene(), stereo_camera(*SIZE), script.drive.pose(at), at, generator(1, name))
    return seen.image, np.asarray(seen.depth_m, np.float32)


def page(parts: dict[str, list[str]]) -> Iterator[str]:
    """Yield the lines of the page."""
    registry = plugins.load()
    yield "# Gallery of mutations"
    yield ""
    yield "<!-- Made by bench/gallery.py from the registry: change it there. -->"
    yield ""
    yield "Every mutation on one frame of the [rendered orchard](worlds.md)."
    yield "`adverse mutate IN OUT --mutation ID` applies them to your own pictures."
    for title, ids in parts.items():
        yield f"\n## {title}\n"
        yield "| | |\n|---|---|"
        for mutation in ids:
            name = mutation.partition("(")[0]
            plugin = registry.get("mutation", name)
            words = f"`{mutation}`<br>{plugin.summary}<br>*{hazard_words(plugin)}*"
            yield f"| ![{mutation}](pictures/gallery/{name}.jpg) | {words.replace('|', '/')} |"


def main() -> None:
    image, depth = frame()
    PICTURES.mkdir(exist_ok=True)
    parts = shown()
    for mutation in (mutation for ids in parts.values() for mutation in ids):
        changed = mutations.apply(image, mutation, seed=7, key="gallery", depth_m=depth)
        path = PICTURES / f"{mutation.partition('(')[0]}.jpg"
        cv2.imwrite(
            str(path),
            cv2.cvtColor(np.asarray(changed), cv2.COLOR_RGB2BGR),
            [cv2.IMWRITE_JPEG_QUALITY, QUALITY],
        )
    PAGE.write_text("\n".join(page(parts)) + "\n", encoding="utf-8")
    print(f"{PAGE.name}: {sum(map(len, parts.values()))} mutations")


if __name__ == "__main__":
    main()
