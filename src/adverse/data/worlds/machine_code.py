"""The renderer's machine code, made on two cores: numba compiles one function of a process at a time.

Half of it is shading. A second process compiles that and keeps it on disk, where this one finds it.
"""

from __future__ import annotations

import subprocess

import numpy as np

from adverse.data.worlds import shadows
from adverse.data.worlds.orchard import orchard_log
from adverse.data.worlds.rendering import Scene, View
from adverse.data.worlds.scripts import stereo_camera
from adverse.processes import die_with_parent, our_environment, our_module

SIZE = (64, 48)


def compile_beside() -> None:
    """Compile what renders a view, on two cores; where it is on disk from an earlier time, load it."""
    scene, view = _small_view()
    if shadows.is_on_disk():
        return
    with subprocess.Popen(  # noqa: S603 - this very package
        our_module(__name__),
        env=our_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,  # whatever it could not compile is compiled here
    ):
        view.cast()
        dark = np.zeros((*view.owner.shape, 3), np.float32), np.zeros(view.owner.shape, np.bool_)
        view.developed(scene, *dark, np.random.default_rng(0))


def main() -> None:
    """Compile the shading; what `compile_beside` runs beside itself."""
    die_with_parent()
    scene, view = _small_view()
    view.shaded(scene.light)


def _small_view() -> tuple[Scene, View]:
    script = orchard_log(0, "machine code", "positive")
    scene = script.scene()
    return scene, View.of(scene, stereo_camera(*SIZE), script.drive.pose(0.0), 0.0)
