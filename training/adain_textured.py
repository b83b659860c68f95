"""Train a larger style transfer that also takes textures; not bundled: python training/adain_textured.py.

What an image made of a content and a style should have: the content's structure at stride 8 of the encoder,
and at strides 2 to 16 the means, deviations and covariances of the style. Needs PyTorch.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import torch
from torch import Tensor

from adain import Training, colour_gap, export, moments, normalized
from adain_data import StyledCrops
from adain_nets import AdaIn, code
from adverse.data.worlds.writing import cache_folder

STEPS, RATE, WARM, HALVED = 3000, 2e-3, 50, 1500
"""The rate rises over the first steps and is a half after so many, a third after twice as many: any number of
steps is the beginning of a longer training."""
CONTENT, MOMENTS, TOGETHER, SAME, PIXELS = 1.0, 2.0, 1.0, 2.0, 2.0
"""How much the losses weigh: structure, means and deviations of the features, how they go together, an image
that is its own style, and the colours. Those of features are relative to the variance of each layer."""


def covariances(features: Tensor) -> Tensor:
    """Return how channels go together, (batch, channels, channels)."""
    flat = features.flatten(2)
    flat = flat - flat.mean(2, keepdim=True)
    return flat @ flat.transpose(1, 2) / flat.shape[2]


class TexturedTraining(Training):
    """The same for a decoder that makes textures, on other data and with losses of its own."""

    network = AdaIn
    crops = StyledCrops

    def _rate(self) -> float:
        return RATE * min(1.0, (self.step + 1) / WARM) / (1 + self.step / HALVED)

    def _losses(self, content: Tensor, style: Tensor, both: list[tuple[Tensor, Tensor]]) -> list[Tensor]:
        at4, at8 = (normalized(*both[level]) for level in (1, 2))
        of_style = [other for _, other in both]
        made = self.net.decoder(at4, at8, code(of_style))
        of_made = self.seen(made)
        structure = (of_made[2] - at8).square().mean() / at8.var()
        moment_loss, together = torch.zeros(()), torch.zeros(())
        for got, aim in zip(of_made, of_style, strict=True):
            (mean, deviation), (aim_mean, aim_deviation) = moments(got), moments(aim)
            gap = (mean - aim_mean).square() + (deviation - aim_deviation).square()
            moment_loss = moment_loss + (gap.mean(1) / aim_deviation.square().mean(1)).mean()
            a, b = covariances(got), covariances(aim)
            together = together + ((a - b).square().sum((1, 2)) / b.square().sum((1, 2))).sqrt().mean()
        same = (made[-1] - content[-1]).abs().mean()
        return [
            CONTENT * structure,
            MOMENTS * moment_loss,
            TOGETHER * together,
            SAME * same,
            PIXELS * colour_gap(made, style),
        ]


def main() -> None:
    """Train, export, and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--encoder", type=Path, required=True, help="weights of EfficientNet-Lite0 (.pth)")
    parser.add_argument("--photos", type=Path, required=True, help="folder of photographs")
    parser.add_argument("--paintings", type=Path, required=True, help="folder of paintings")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop then; the next call goes on")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--checkpoint", type=Path, default=cache_folder() / "training" / "adain-textured.pt")
    told = parser.parse_args()
    torch.set_num_threads(1)
    photos, paintings = (sorted(folder.glob("*.jpg")) for folder in (told.photos, told.paintings))
    training = TexturedTraining(told.encoder, photos, paintings, told.steps)
    if training.run(told.checkpoint, 60 * told.minutes):
        export(training.made(), told.out / "adain.onnx")


if __name__ == "__main__":
    main()
