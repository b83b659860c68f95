"""Train the bundled style transfer and export it with its card: python training/adain.py --encoder FILE.pth.

Adaptive instance normalization (Huang and Belongie 2017): what an encoder sees of the content takes the means
and deviations that it sees in the style, and a decoder makes an image of it. The encoder is that of
EfficientNet-Lite0 up to stride 8, as it is (Apache-2.0); only the decoder is trained here. Needs PyTorch.
"""

from __future__ import annotations

import argparse
import copy
import math
import time
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from adverse.content import file_sha256
from adverse.data.worlds.writing import cache_folder
from adverse.stylize.textures import texture

HOME = Path(__file__).parents[1] / "src" / "adverse" / "stylize" / "bundled"
SEED = 11
STEPS, BATCH, CROP_PX, RATE = 500, 4, 128, 2.5e-3
TEXTURES = 60
AVERAGED = 0.995
STYLE, GRAM, SAME, PIXELS = 3.0, 0.4, 4.0, 2.0
"""How much the losses weigh beside that of the content: means and deviations of the features, how they go
together, an image that is its own style, and the colours."""
SAVE_S = 60.0
BLOCKS = ((3, 1, 1, 32, 16), (3, 2, 6, 16, 24), (3, 1, 6, 24, 24), (5, 2, 6, 24, 40), (5, 1, 6, 40, 40))
"""Kernel, stride, expansion, channels in and out of EfficientNet-Lite0's first blocks; the expansion of the
next one is the last thing that is used."""
BEYOND = ((3, 2, 6, 40, 80), (3, 1, 6, 80, 80))
"""Two blocks more, which only the losses see."""


class Block(nn.Module):
    """An inverted residual of EfficientNet-Lite: expand, filter each channel, project."""

    def __init__(self, kernel: int, stride: int, expansion: int, inputs: int, outputs: int) -> None:
        super().__init__()
        inner = inputs * expansion
        if expansion > 1:
            self._expand_conv = nn.Conv2d(inputs, inner, 1, bias=False)
            self._bn0 = nn.BatchNorm2d(inner, eps=1e-3)
        self._depthwise_conv = nn.Conv2d(inner, inner, kernel, stride, kernel // 2, groups=inner, bias=False)
        self._bn1 = nn.BatchNorm2d(inner, eps=1e-3)
        self._project_conv = nn.Conv2d(inner, outputs, 1, bias=False)
        self._bn2 = nn.BatchNorm2d(outputs, eps=1e-3)
        self.kept = stride == 1 and inputs == outputs
        self.expands = expansion > 1

    def expanded(self, x: Tensor) -> Tensor:
        """Return the wide features that the block starts with."""
        return nn.functional.relu6(self._bn0(self._expand_conv(x))) if self.expands else x

    def rest(self, x: Tensor, wide: Tensor) -> Tensor:
        """Return what the block makes of them."""
        y = self._bn2(self._project_conv(nn.functional.relu6(self._bn1(self._depthwise_conv(wide)))))
        return x + y if self.kept else y


class Encoder(nn.Module):
    """EfficientNet-Lite0 up to stride 8, or to 16 for the losses; images are RGB in 0..1."""

    def __init__(self, weights: Path, *, deep: bool) -> None:
        super().__init__()
        self._conv_stem = nn.Conv2d(3, 32, 3, 2, 1, bias=False)
        self._bn0 = nn.BatchNorm2d(32, eps=1e-3)
        self._blocks = nn.ModuleList(Block(*shape) for shape in (*BLOCKS, *BEYOND))
        self.deep = deep
        values = torch.load(weights, weights_only=True)
        self.load_state_dict({name: values[name] for name in self.state_dict()})
        self.eval().requires_grad_(requires_grad=False)

    def forward(self, image: Tensor) -> list[Tensor]:
        """Return 32 features at stride 2, 144 at 4, 240 at 8; for the losses also 96 at 2, 480 at 16."""
        x = nn.functional.relu6(self._bn0(self._conv_stem((image * 255 - 127) / 128)))
        features, more = [x], []
        for index, block in enumerate(self._blocks):
            wide = block.expanded(x)
            if index in (2, 5):
                features.append(wide)
            if index in (1, 6):
                more.append(wide)
            if index == 5 and not self.deep:
                break
            if index < 6:
                x = block.rest(x, wide)
        return features + more if self.deep else features


def moments(features: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean and the deviation of each channel, (batch, channels, 1, 1) each."""
    mean = features.mean((2, 3), keepdim=True)
    return mean, ((features - mean).square().mean((2, 3), keepdim=True) + 1e-5).sqrt()


def normalized(content: Tensor, style: Tensor) -> Tensor:
    """Return features with the mean and deviation that those of the style have."""
    (mean, deviation), (wanted_mean, wanted) = moments(content), moments(style)
    return (content - mean) / deviation * wanted + wanted_mean


def _pair(inputs: int, inner: int, outputs: int) -> nn.Sequential:
    """Return two convolutions."""
    first, second = nn.Conv2d(inputs, inner, 3, 1, 1), nn.Conv2d(inner, outputs, 3, 1, 1)
    return nn.Sequential(first, nn.ReLU(), second, nn.ReLU())


class Decoder(nn.Module):
    """From features at strides 8, 4 and 2 to an image; half the size, then four pixels of each."""

    def __init__(self) -> None:
        super().__init__()
        self.at8 = _pair(240, 96, 64)
        self.side4 = nn.Conv2d(144, 32, 1)
        self.at4 = _pair(96, 64, 40)
        self.side2 = nn.Conv2d(32, 24, 1)
        self.at2 = _pair(64, 32, 32)
        self.out = nn.Conv2d(32, 12, 3, 1, 1)

    def forward(self, at2: Tensor, at4: Tensor, at8: Tensor) -> Tensor:
        """Return an RGB image in 0..1, or a little beyond."""
        x = nn.functional.interpolate(self.at8(at8), scale_factor=2.0, mode="nearest")
        x = self.at4(torch.cat([x, self.side4(at4)], dim=1))
        x = nn.functional.interpolate(x, scale_factor=2.0, mode="nearest")
        x = self.at2(torch.cat([x, self.side2(at2)], dim=1))
        return nn.functional.pixel_shuffle(self.out(x), 2) + 0.5


class AdaIn(nn.Module):
    """Encoder, adaptive instance normalization at three strides, decoder."""

    def __init__(self, weights: Path) -> None:
        super().__init__()
        self.encoder = Encoder(weights, deep=False)
        self.decoder = Decoder()

    def forward(self, content: Tensor, style: Tensor, alpha: Tensor) -> Tensor:
        """Return the content (batch,3,H,W) in the style (batch,3,h,w), in 0..1; sizes in steps of 8."""
        pairs = zip(self.encoder(content), self.encoder(style), strict=True)
        mixed = [own + alpha * (normalized(own, other) - own) for own, other in pairs]
        return self.decoder(*mixed).clamp(0, 1)


class Data:
    """Crops of photographs, and styles: paintings, made textures, now and then a photograph."""

    least_px: float = 640
    """Images are reduced to so many pixels on their shorter side."""
    made_textures = TEXTURES

    def __init__(self, photos: list[Path], paintings: list[Path]) -> None:
        self.rng = np.random.default_rng(SEED)
        self.photos = [_read(path, self.least_px) for path in photos]
        self.paintings = [_read(path, self.least_px) for path in paintings]
        made = np.random.default_rng(SEED + 1)
        self.textures = [texture(made) for _ in range(self.made_textures)]

    def batch(self) -> tuple[Tensor, Tensor]:
        """Return contents and styles."""
        rng = self.rng
        contents = [self._crop(self._one(self.photos), 0.3, 1.0) for _ in range(BATCH)]
        styles = []
        for _ in range(BATCH):
            kind = rng.random()
            if kind < 0.5:
                styles.append(self._tinted(self._crop(self._one(self.paintings), 0.35, 1.0)))
            else:
                styles.append(self._crop(self._one(self.textures if kind < 0.85 else self.photos), 0.6, 1.0))
        return tensor(contents), tensor(styles)

    def _one(self, images: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
        return images[int(self.rng.integers(len(images)))]

    def _crop(self, image: NDArray[np.uint8], low: float, high: float) -> NDArray[np.uint8]:
        return self._square(image, int(min(image.shape[:2]) * self.rng.uniform(low, high)))

    def _square(self, image: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
        """Return a part of an image, mirrored half of the time, as large as all of them."""
        top, left = (int(self.rng.integers(size - side + 1)) for size in image.shape[:2])
        cut = image[top : top + side, left : left + side]
        cut = cut[:, ::-1] if self.rng.random() < 0.5 else cut
        how = cv2.INTER_AREA if side > CROP_PX else cv2.INTER_LINEAR
        return cv2.resize(np.ascontiguousarray(cut), (CROP_PX, CROP_PX), interpolation=how)

    def _tinted(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return a painting in other colours, half of the time: there are few of them."""
        if self.rng.random() < 0.5:
            return image
        image = image[:, :, self.rng.permutation(3)]
        return 255 - image if self.rng.random() < 0.25 else image


def _read(path: Path, least_px: float) -> NDArray[np.uint8]:
    """Return an image, with at most so many pixels on its shorter side."""
    image = np.asarray(cv2.imread(str(path), cv2.IMREAD_COLOR_RGB), np.uint8)
    scale = least_px / min(image.shape[:2])
    return image if scale >= 1 else cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)


def tensor(images: list[NDArray[np.uint8]]) -> Tensor:
    """Return images as a batch (batch,3,H,W) in 0..1."""
    stacked = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float() / 255
    return stacked.contiguous(memory_format=torch.channels_last)


def gram(features: Tensor) -> Tensor:
    """Return how channels go together, (batch, channels, channels): the mean of their products."""
    flat = features.flatten(2)
    return flat @ flat.transpose(1, 2) / flat.shape[2]


def colour_gap(made: Tensor, style: Tensor) -> Tensor:
    """Return how far the colours are from those of the style, of pixels and of areas, and from 0..1."""
    gap = torch.zeros(())
    for scale in (1, 8):
        a, b = (nn.functional.avg_pool2d(image, scale) for image in (made, style))
        for got, wanted in zip(moments(a), moments(b), strict=True):
            gap = gap + (got - wanted).abs().mean()
    return gap + (made - made.clamp(0, 1)).abs().mean()


class Training:
    """The decoder under training, and all that a checkpoint must hold."""

    network: type[nn.Module] = AdaIn
    crops: type[Data] = Data

    def __init__(self, encoder: Path, photos: list[Path], paintings: list[Path], steps: int) -> None:
        torch.manual_seed(SEED)
        self.net = self.network(encoder).to(memory_format=torch.channels_last)
        self.average = copy.deepcopy(self.net.decoder)
        self.seen = Encoder(encoder, deep=True).to(memory_format=torch.channels_last)
        self.data = self.crops(photos, paintings)
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

    def _rate(self) -> float:
        """Return the learning rate of this step."""
        done = self.step / self.steps
        return RATE * min(1.0, self.step / 50 + 0.02) * (1 - done) ** 0.9

    def _learn(self) -> list[float]:
        self.optimizer.param_groups[0]["lr"] = self._rate()
        content, style = self.data.batch()
        style[-1] = content[-1]  # one image in its own style, which must come back as it is
        with torch.no_grad():
            both = [features.split(BATCH) for features in self.seen(torch.cat([content, style]))]
        parts = self._losses(content, style, both)
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

    def _losses(self, content: Tensor, style: Tensor, both: list[tuple[Tensor, Tensor]]) -> list[Tensor]:
        """Return the parts of the loss; `both` are the features of content and style."""
        targets = [normalized(own, other) for own, other in both[:3]]
        made = self.net.decoder(*targets)
        of_made, of_style = self.seen(made), [other for _, other in both]
        at4, at8 = ((of_made[level] - targets[level]).square().mean() for level in (1, 2))
        structure = 0.5 * at4 + at8
        moment_loss, gram_loss = torch.zeros(()), torch.zeros(())
        for got, wanted in zip(of_made, of_style, strict=True):
            for a, b in zip(moments(got), moments(wanted), strict=True):
                moment_loss = moment_loss + (a - b).square().mean()
            gram_loss = gram_loss + (gram(got) - gram(wanted)).square().mean()
        same, colours = (made[-1] - content[-1]).abs().mean(), colour_gap(made, style)
        return [structure, STYLE * moment_loss, GRAM * gram_loss, SAME * same, PIXELS * colours]

    def made(self) -> nn.Module:
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


def export(net: nn.Module, path: Path) -> None:
    """Write the network as ONNX; sizes of both images are open."""
    path.parent.mkdir(parents=True, exist_ok=True)
    net.eval()
    image, open_axes = torch.zeros(1, 3, 64, 64), {2: "height", 3: "width"}
    torch.onnx.export(
        net.to(memory_format=torch.contiguous_format),
        (image, image, torch.ones(())),
        str(path),
        input_names=["content", "style", "alpha"],
        output_names=["stylized"],
        dynamic_axes={
            "content": open_axes,
            "style": {2: "style_height", 3: "style_width"},
            "stylized": open_axes,
        },
        opset_version=17,
        dynamo=False,
    )
    print(f"{path}: {path.stat().st_size / 1e3:.0f} kB, sha256 {file_sha256(path)}")


def main() -> None:
    """Train, export, and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--encoder", type=Path, required=True, help="weights of EfficientNet-Lite0 (.pth)")
    parser.add_argument("--photos", type=Path, required=True, help="folder of photographs")
    parser.add_argument("--paintings", type=Path, required=True, help="folder of paintings")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--out", type=Path, default=HOME)
    parser.add_argument("--checkpoint", type=Path, default=cache_folder() / "training" / "adain.pt")
    told = parser.parse_args()
    torch.set_num_threads(1)
    photos, paintings = (sorted(folder.glob("*.jpg")) for folder in (told.photos, told.paintings))
    training = Training(told.encoder, photos, paintings, told.steps)
    training.run(told.checkpoint)
    export(training.made(), told.out / "adain.onnx")


if __name__ == "__main__":
    main()
