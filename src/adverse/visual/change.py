"""Visual change: how much worse a person sees a changed image, from 0 to 1 (Hu et al. 2022, definition 1).

dv = 0 where nobody sees the change (VSNR infinite) or the image got better (VIF above 1), else 1 - VIF.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from adverse.errors import StudyError, suggestion
from adverse.visual.luminance import check_sizes, luminance
from adverse.visual.ssim import SsimReference
from adverse.visual.vif import SIGMA_N_SQ, VifReference
from adverse.visual.vifp import VifpReference
from adverse.visual.vsnr import VsnrReference

Backend = Literal["vif", "vifp", "vif2"]
RECORDED = "visual_change_"
"""What dv is called in the records of a run, before the name of its backend."""
BACKENDS: tuple[Backend, ...] = get_args(Backend)


@dataclass(frozen=True)
class VisualChange:
    """What changed between two images, and by which measure: dv decides, the rest is for the record."""

    dv: float
    backend: Backend
    vif: float
    vsnr_db: float
    mse: float
    ssim: float

    def numbers(self) -> dict[str, float]:
        """Return it as a record of a run keeps it; the name of dv says by which backend."""
        return {
            f"{RECORDED}{self.backend}": self.dv,
            self.backend: self.vif,
            "vsnr_db": self.vsnr_db,
            "mse": self.mse,
            "ssim": self.ssim,
        }


class Reference:
    """An image that many changes are compared with: what is needed of it is computed once, at first use."""

    def __init__(
        self, image: NDArray[Any], *, backend: Backend = "vif", sigma_n_sq: float = SIGMA_N_SQ
    ) -> None:
        if backend not in BACKENDS:
            raise StudyError(
                "there is no such backend of visual change",
                got=repr(backend),
                wanted=" or ".join(BACKENDS),
                fix=suggestion(str(backend), BACKENDS),
            )
        self.backend: Backend = backend
        self._sigma_n_sq = sigma_n_sq
        self._values = luminance(image, where="reference")

    def visual_change(self, changed: NDArray[Any]) -> float:
        """Return dv of a changed image."""
        values = luminance(changed, where="changed")
        check_sizes(self._values, values)
        vif = self._vif.compare(values)
        return 0.0 if vif > 1 or self._vsnr.invisible(values) else 1 - vif

    def measure(self, changed: NDArray[Any]) -> VisualChange:
        """Return dv with everything that is recorded beside it."""
        values = luminance(changed, where="changed")
        check_sizes(self._values, values)
        vif, vsnr_db = self._vif.compare(values), self._vsnr.compare(values)
        return VisualChange(
            dv=0.0 if vif > 1 or math.isinf(vsnr_db) else 1 - vif,
            backend=self.backend,
            vif=vif,
            vsnr_db=vsnr_db,
            mse=float(np.mean(np.square(values - self._values))),
            ssim=self._ssim.compare(values),
        )

    @functools.cached_property
    def _vif(self) -> VifReference | VifpReference:
        if self.backend == "vifp":
            return VifpReference(self._values, sigma_n_sq=self._sigma_n_sq)
        scales = 2 if self.backend == "vif2" else 4
        return VifReference(self._values, sigma_n_sq=self._sigma_n_sq, scales=scales)

    @functools.cached_property
    def _vsnr(self) -> VsnrReference:
        return VsnrReference(self._values)

    @functools.cached_property
    def _ssim(self) -> SsimReference:
        return SsimReference(self._values)


def visual_change(reference: NDArray[Any], changed: NDArray[Any], backend: Backend = "vif") -> float:
    """Return how much worse a person sees `changed` than `reference`: 0 not at all, 1 nothing is left.

    Both are uint8 images of one size, RGB or gray. `backend` is the way VIF is taken: `vif`, by
    wavelets, is the paper's; `vifp`, by pixels, is faster and has other values; `vif2`, by wavelets at two
    scales, is what the paper has for images of 32 x 32 pixels.

    >>> image = np.add.outer(np.arange(48) % 7, np.arange(50) % 5).astype(np.uint8) * 20
    >>> visual_change(image, image, backend="vifp")
    0.0
    >>> round(visual_change(image, image // 2 + 60, backend="vifp"), 3)
    0.168
    """
    return Reference(reference, backend=backend).visual_change(changed)
