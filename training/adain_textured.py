"""Train a larger style transfer that also takes textures; not bundled: python training/adain_textured.py.

What an image made of a content and a style should have: the content's structure at stride 8 of the encoder,
and at strides 2 to 16 the means, deviations and covariances of the style. Needs PyTorch.
"""

from __future__ import annotations

import argparse
import copy
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from adain import Encoder, export, moments, normalized
from adain_data import BATCH, Data
from adain_nets import AdaIn, code
from adverse.data.worlds.writing import cache_folder

SEED = 11
STEPS, RATE, WARM, HALVED = 3000, 2e-3, 50, 1500
"""The rate rises over the first steps and is a half after so many, a third after twice as many: any number of
steps is the beginning of a longer training."""
AVERAGED = 0.995
CONTENT, MOMENTS, TOGETHER, SAME, PIXELS = 1.0, 2.0, 1.0, 2.0, 2.0
"""How much the losses weigh: structure, means and deviations of the features, how they go together, an image
that is its own style, and the colours. Those of features are relative to the variance of each layer."""
SAVE_S = 60.0


def covariances(features: Tensor) -> Tensor:
    """Return how channels go together, (batch, channels, channels)."""
    flat = features.flatten(2)
    flat = flat - flat.mean(2, keepdim=True)
    return flat @ flat.transpose(1, 2) / flat.shape[2]


class Training:
    """The decoder under training, and all that a checkpoint must hold."""

    def __init__(self, encoder: Path, photos: list[Path], paintings: list[Path], steps: int) -> None:
        torch.manual_seed(SEED)
        self.net = AdaIn(encoder).to(memory_format=torch.channels_last)
        self.average = copy.deepcopy(self.net.decoder)
        self.seen = Encoder(encoder, deep=True).to(memory_format=torch.channels_last)
        self.data = Data(photos, paintings, SEED)
        self.optimizer = torch.optim.Adam(self.net.decoder.parameters(), lr=RATE)
        self.steps, self.step = steps, 0

    def run(self, checkpoint: Path, most_s: float = math.inf) -> bool:
        """Train to the end or for so long, from a checkpoint if there is one; return whether it ended."""
        if checkpoint.exists():
            self._load(checkpoint)
            print(f"goes on from step {self.step}", flush=True)
        started = saved = time.monotonic()
        losses = []
        while self.step < self.steps:
            losses.append(self._learn())
            if self.step % 20 == 0:
                parts = " ".join(f"{value:.3f}" for value in np.mean(losses[-20:], axis=0))
                print(f"step {self.step}: {parts} after {time.monotonic() - started:.0f} s", flush=True)
            now = time.monotonic()
            if now - saved > SAVE_S or now - started > most_s or self.step == self.steps:
                self._save(checkpoint)
                saved = now
            if now - started > most_s:
                break
        return self.step == self.steps

    def _learn(self) -> list[float]:
        rate = RATE * min(1.0, (self.step + 1) / WARM) / (1 + self.step / HALVED)
        self.optimizer.param_groups[0]["lr"] = rate
        content, style = self.data.batch()
        style[-1] = content[-1]  # one image in its own style, which must come back as it is
        with torch.no_grad():
            both = [features.split(BATCH) for features in self.seen(torch.cat([content, style]))]
            at4, at8 = (normalized(*both[level]) for level in (1, 2))
            of_style = [other for _, other in both]
        made = self.net.decoder(at4, at8, code(of_style))
        parts = self._losses(made, content, style, at8, of_style)
        loss = torch.stack(parts).sum()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.net.decoder.parameters(), 5.0)
        self.optimizer.step()
        self.step += 1
        kept = min(AVERAGED, self.step / (self.step + 10))
        with torch.no_grad():
            for mean, value in zip(self.average.parameters(), self.net.decoder.parameters(), strict=True):
                mean.lerp_(value, 1 - kept)
        return [part.item() for part in parts]

    def _losses(
        self, made: Tensor, content: Tensor, style: Tensor, wanted: Tensor, of_style: list[Tensor]
    ) -> list[Tensor]:
        of_made = self.seen(made)
        structure = (of_made[2] - wanted).square().mean() / wanted.var()
        moment_loss, together = torch.zeros(()), torch.zeros(())
        for got, aim in zip(of_made, of_style, strict=True):
            (mean, deviation), (aim_mean, aim_deviation) = moments(got), moments(aim)
            gap = (mean - aim_mean).square() + (deviation - aim_deviation).square()
            moment_loss = moment_loss + (gap.mean(1) / aim_deviation.square().mean(1)).mean()
            a, b = covariances(got), covariances(aim)
            together = together + ((a - b).square().sum((1, 2)) / b.square().sum((1, 2))).sqrt().mean()
        same = (made[-1] - content[-1]).abs().mean()
        colours = torch.zeros(())
        for scale in (1, 8):
            small, aim = (nn.functional.avg_pool2d(image, scale) for image in (made, style))
            for one, other in zip(moments(small), moments(aim), strict=True):
                colours = colours + (one - other).abs().mean()
        outside = (made - made.clamp(0, 1)).abs().mean()
        return [
            CONTENT * structure,
            MOMENTS * moment_loss,
            TOGETHER * together,
            SAME * same,
            PIXELS * (colours + outside),
        ]

    def made(self) -> AdaIn:
        """Return the network to export."""
        net = copy.deepcopy(self.net)
        net.decoder.load_state_dict(self.average.state_dict())
        return net

    def _save(self, path: Path) -> None:
        """Write a checkpoint whole or not at all."""
        state = {
            "net": self.net.decoder.state_dict(),
            "average": self.average.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "numpy": self.data.rng.bit_generator.state,
        }
        making = path.with_suffix(".part")
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save(state, making)
        making.replace(path)

    def _load(self, path: Path) -> None:
        state: dict[str, Any] = torch.load(path)
        self.net.decoder.load_state_dict(state["net"])
        self.average.load_state_dict(state["average"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step = state["step"]
        self.data.rng.bit_generator.state = state["numpy"]


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
    training = Training(told.encoder, photos, paintings, told.steps)
    if training.run(told.checkpoint, 60 * told.minutes):
        export(training.made(), told.out / "adain.onnx")


if __name__ == "__main__":
    main()
