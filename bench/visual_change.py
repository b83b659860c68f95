"""CPU time of visual change: VIFp beside sewar's, and what all the rest costs.

    python bench/visual_change.py [FOLDER OF JPEG FILES]

Both get the same luminance as float64 arrays and the same variance of the eye's noise, on one thread, and
must come to the same number. A pair is a reference and one change of it; "one more" has the reference's share
done before. Times are the least of several rounds over all images. Without a folder, a street is drawn.
Writes its table into docs/performance.md.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import cv2
import numpy as np
from sewar.full_ref import vifp as sewar_vifp

import drawn
import report
from adverse.types import Image
from adverse.visual import Reference, visual_change
from adverse.visual.luminance import Luminance, luminance
from adverse.visual.vif import VifReference
from adverse.visual.vifp import VifpReference

IMAGES = 5
ROUNDS = 8
WANTED = 40
ONE_SHOT = "dv by vifp, VSNR and conversion from RGB included, a pair"
MOST_MS = 12
SIZE = (640, 480)
"""What a pair may cost, at the size that all photographs are brought to."""
SIGMA_N_SQ = 0.4


def images(folder: Path | None) -> list[Image]:
    if folder is None:
        return [cv2.resize(drawn.street()[0], SIZE).astype(np.uint8)]
    read = (cv2.imread(str(path), cv2.IMREAD_COLOR_RGB) for path in sorted(folder.glob("*.jpg"))[:IMAGES])
    return [cv2.resize(image, SIZE).astype(np.uint8) for image in read if image is not None]


def least(call: Callable[[int], object], count: int, rounds: int = ROUNDS) -> float:
    """Return the CPU milliseconds per image of the quickest round, after one that does not count."""
    times = []
    for _ in range(rounds + 1):
        started = time.process_time()
        for number in range(count):
            call(number)
        times.append(time.process_time() - started)
    return 1000 * min(times[1:]) / count


def gap(gray: list[tuple[Luminance, Luminance]]) -> float:
    """Return how far ours and sewar's are apart at most."""
    return max(
        abs(
            VifpReference(x, sigma_n_sq=SIGMA_N_SQ).compare(y) - float(sewar_vifp(x, y, sigma_nsq=SIGMA_N_SQ))
        )
        for x, y in gray
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="a folder of photos (.jpg)")
    parser.add_argument("--dry", action="store_true", help="print only, leave the docs alone")
    options = parser.parse_args()
    cv2.setNumThreads(1)
    originals = images(options.folder)
    changes = [cv2.GaussianBlur(image, (0, 0), 1.5).astype(np.uint8) for image in originals]
    x, y = ([luminance(image) for image in group] for group in (originals, changes))
    vifp, vif = [VifpReference(values) for values in x], [VifReference(values) for values in x]
    dv_p, dv = ([Reference(image, backend=b) for image in originals] for b in ("vifp", "vif"))
    calls: dict[str, Callable[[int], object]] = {
        "VIFp, adverse, a pair": lambda n: VifpReference(x[n]).compare(y[n]),
        "VIFp, adverse, one more": lambda n: vifp[n].compare(y[n]),
        "VIF by wavelets, a pair": lambda n: VifReference(x[n]).compare(y[n]),
        "VIF by wavelets, one more": lambda n: vif[n].compare(y[n]),
        ONE_SHOT: lambda n: visual_change(originals[n], changes[n], backend="vifp"),
        "dv by vifp, VSNR and conversion from RGB included, one more": lambda n: dv_p[n].visual_change(
            changes[n]
        ),
        "dv by vif, VSNR and conversion from RGB included, one more": lambda n: dv[n].visual_change(
            changes[n]
        ),
    }
    apart = gap(list(zip(x, y, strict=True)))
    sewar = least(lambda n: sewar_vifp(x[n], y[n], sigma_nsq=SIGMA_N_SQ), len(x), rounds=2)
    times = {name: least(call, len(x)) for name, call in calls.items()}
    ratio = sewar / times["VIFp, adverse, a pair"]
    holds = ratio >= WANTED and apart < 1e-4 and times[ONE_SHOT] <= MOST_MS
    sizes = [image.shape[0] * image.shape[1] / 1e6 for image in originals]
    kind = "drawn street" if options.folder is None else "photos"
    said = (
        f"{report.machine()}. {len(x)} {kind} of {min(sizes):.2f} to {max(sizes):.2f} megapixels, a blur "
        f"of 1.5 px, one thread. The two VIFp differ by {apart:.0e} at most. A pair is {ratio:.0f} times as "
        f"fast; wanted are {WANTED}. Visual change of a pair takes {times[ONE_SHOT]:.1f} ms; wanted are at "
        f"most {MOST_MS}: **{'holds' if holds else 'falls short'}**."
    )
    lines = [
        said,
        "",
        *report.table(
            ["", "CPU ms", "times as fast as sewar's VIFp"],
            [
                [f"VIFp, sewar {version('sewar')}, a pair", f"{sewar:.1f}", "1"],
                *([name, f"{ms:.1f}", f"{sewar / ms:.0f}"] for name, ms in times.items()),
            ],
        ),
    ]
    print("\n".join(lines))
    if not options.dry:
        report.write("performance.md", "visual change", lines)
    raise SystemExit(0 if holds else 1)


if __name__ == "__main__":
    main()
