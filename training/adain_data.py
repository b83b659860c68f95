"""What the larger style transfer is trained on: parts of photographs, and styles as large as in use."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from adverse.stylize.textures import texture
from adverse.stylize.transfer import LEAST_CROP, MOST_CROP, STYLE_PX

BATCH, CROP_PX = 4, 128
TEXTURES = 120
PAINTED, MADE = 0.5, 0.9
"""Shares of the styles: paintings, up to the second number made ones, the rest photographs."""
CONTENT_ZOOM = (1.0, 2.5)
"""So many pixels of a photograph make one."""


class Data:
    """Crops of photographs, and styles: paintings, made textures, now and then a photograph."""

    def __init__(self, photos: list[Path], paintings: list[Path], seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.photos = [_read(path) for path in photos]
        self.paintings = [_read(path) for path in paintings]
        made = np.random.default_rng(seed + 1)
        self.textures = [texture(made) for _ in range(TEXTURES)]

    def batch(self) -> tuple[Tensor, Tensor]:
        """Return contents and styles."""
        rng = self.rng
        contents = [self._content() for _ in range(BATCH)]
        styles = []
        for _ in range(BATCH):
            kind = rng.random()
            if kind < PAINTED:
                styles.append(self._tinted(self._painted()))
            elif kind < MADE:
                styles.append(
                    self._tinted(self._cut(self._one(self.textures), CROP_PX * rng.uniform(1, 1.8)))
                )
            else:
                styles.append(self._content())
        return _tensor(contents), _tensor(styles)

    def _one(self, images: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
        return images[int(self.rng.integers(len(images)))]

    def _content(self) -> NDArray[np.uint8]:
        return self._cut(self._one(self.photos), CROP_PX * self.rng.uniform(*CONTENT_ZOOM))

    def _painted(self) -> NDArray[np.uint8]:
        """Return part of a style as the product cuts it, whose pixels are as large as there."""
        painting = self._one(self.paintings)
        style = min(painting.shape[:2]) * self.rng.uniform(LEAST_CROP, MOST_CROP)
        return self._cut(painting, style * CROP_PX / STYLE_PX)

    def _cut(self, image: NDArray[np.uint8], wanted: float) -> NDArray[np.uint8]:
        side = max(1, min(round(wanted), *image.shape[:2]))
        top, left = (int(self.rng.integers(size - side + 1)) for size in image.shape[:2])
        cut = image[top : top + side, left : left + side]
        cut = cut[:, ::-1] if self.rng.random() < 0.5 else cut
        how = cv2.INTER_AREA if side > CROP_PX else cv2.INTER_LINEAR
        return cv2.resize(np.ascontiguousarray(cut), (CROP_PX, CROP_PX), interpolation=how)

    def _tinted(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return a style in other colours or turned, half of the time: there are few of them."""
        if self.rng.random() < 0.5:
            return image
        image = np.rot90(image, int(self.rng.integers(4)))[:, :, self.rng.permutation(3)]
        return 255 - image if self.rng.random() < 0.25 else image


def _read(path: Path) -> NDArray[np.uint8]:
    return np.asarray(cv2.imread(str(path), cv2.IMREAD_COLOR_RGB), np.uint8)


def _tensor(images: list[NDArray[np.uint8]]) -> Tensor:
    stacked = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float() / 255
    return stacked.contiguous(memory_format=torch.channels_last)
