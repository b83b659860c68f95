"""The parts that the bundled networks share: backbones, boxes on grids, losses."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


def block(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    """Return a 3x3 convolution with batch norm and ReLU."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
    )


class Light(nn.Module):
    """A depthwise and a pointwise convolution, added to what went in."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.steps = nn.Sequential(
            nn.Conv2d(channels, channels, 5, 1, 2, groups=channels, bias=False),
            nn.BatchNorm2d(channels),
            nn.Conv2d(channels, channels, 1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(inplace=True),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return x and what the two convolutions make of it."""
        return x + self.steps(x)


class Slim(nn.Module):
    """A smaller depthwise convolution than that of Light, for half of the time, added to what went in."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.steps = nn.Sequential(
            nn.Conv2d(channels, channels, 3, 1, 1, groups=channels, bias=False),
            nn.Conv2d(channels, channels, 1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(inplace=True),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return x and what the two convolutions make of it."""
        return x + self.steps(x)


class Backbone(nn.Module):
    """From an image in 0..1, of any size in steps of 16, to features at strides 4, 8 and 16."""

    def __init__(self, widths: tuple[int, int, int, int] = (16, 24, 48, 80)) -> None:
        super().__init__()
        a, b, c, d = widths
        self.to4 = nn.Sequential(block(3, a, 2), block(a, b, 2), Light(b))
        self.to8 = nn.Sequential(block(b, c, 2), Light(c), Light(c))
        self.to16 = nn.Sequential(block(c, d, 2), Light(d), Light(d), Light(d))

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the features at strides 4, 8, 16."""
        at4 = self.to4(image * 2 - 1)
        at8 = self.to8(at4)
        return at4, at8, self.to16(at8)


class Pyramid(nn.Module):
    """From an image in 0..1, of any size in steps of 16, to features of one width at strides 4, 8, 16, 32.

    Coarse features are added to finer ones (Lin et al. 2017, FPN), so that a cell of stride 8 knows of the
    person who fills the picture.
    """

    def __init__(self, widths: tuple[int, int, int, int, int] = (16, 32, 64, 96, 128), out: int = 64) -> None:
        super().__init__()
        a, b, c, d, e = widths
        self.to4 = nn.Sequential(block(3, a, 2), block(a, b, 2))
        self.to8 = nn.Sequential(block(b, c, 2), Slim(c), Slim(c))
        self.to16 = nn.Sequential(block(c, d, 2), Slim(d), Slim(d), Slim(d))
        self.to32 = nn.Sequential(block(d, e, 2), Slim(e), Slim(e))
        self.side8, self.side16, self.side32 = (nn.Conv2d(width, out, 1) for width in (c, d, e))
        self.out8, self.out16, self.out32 = (Slim(out) for _ in range(3))

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the features at strides 4, 8, 16, 32; the first as they are, the others of one width."""
        at4 = self.to4(image * 2 - 1)
        at8 = self.to8(at4)
        at16 = self.to16(at8)
        at32 = self.out32(self.side32(self.to32(at16)))
        at16 = self.out16(self.side16(at16) + _cut(doubled(at32), at16))
        return at4, self.out8(self.side8(at8) + _cut(doubled(at16), at8)), at16, at32


def _cut(features: Tensor, like: Tensor) -> Tensor:
    """Return a map without the last row or column that rounding up has added."""
    return features[:, :, : like.shape[2], : like.shape[3]]


def doubled(features: Tensor) -> Tensor:
    """Return a map of features at half its stride."""
    return nn.functional.interpolate(features, scale_factor=2.0, mode="nearest")


def cells(height: int, width: int, stride: int) -> Tensor:
    """Return (H*W, 2): the centres x, y of the cells of a grid, in pixels."""
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    return (torch.stack([x, y], dim=-1).reshape(-1, 2).float() + 0.5) * stride


def overlap(a: Tensor, b: Tensor) -> Tensor:
    """Return (N, M): intersection over union of boxes xyxy (N,4) and (M,4)."""
    low = torch.maximum(a[:, None, :2], b[None, :, :2])
    high = torch.minimum(a[:, None, 2:], b[None, :, 2:])
    common = (high - low).clamp(min=0).prod(dim=2)
    areas = (a[:, 2:] - a[:, :2]).prod(dim=1)[:, None] + (b[:, 2:] - b[:, :2]).prod(dim=1)[None]
    return common / (areas - common).clamp(min=1e-6)


def misfit(a: Tensor, b: Tensor) -> Tensor:
    """Return (N,): 1 - generalized IoU (Rezatofighi et al. 2019) of boxes xyxy, row by row."""
    low, high = torch.maximum(a[:, :2], b[:, :2]), torch.minimum(a[:, 2:], b[:, 2:])
    common = (high - low).clamp(min=0).prod(dim=1)
    union = (a[:, 2:] - a[:, :2]).prod(dim=1) + (b[:, 2:] - b[:, :2]).prod(dim=1) - common
    hull = (torch.maximum(a[:, 2:], b[:, 2:]) - torch.minimum(a[:, :2], b[:, :2])).prod(dim=1)
    return 1 - common / union.clamp(min=1e-6) + 1 - union / hull.clamp(min=1e-6)


def focal(logits: Tensor, target: Tensor, weight: Tensor, alpha: float = 0.25) -> Tensor:
    """Return the sum of the focal loss (Lin et al. 2017, gamma 2) over all cells of weight 1."""
    loss = nn.functional.binary_cross_entropy_with_logits(logits, target, reduction="none")
    sure = torch.sigmoid(logits)
    off = torch.where(target > 0.5, 1 - sure, sure)
    balance = torch.where(target > 0.5, alpha, 1 - alpha)
    return (loss * off * off * balance * weight).sum()


def flattened(maps: Sequence[Tensor], values: int) -> Tensor:
    """Return (batch, N, values): all cells of several maps (batch, K * values, H, W), in order."""
    return torch.cat([one.permute(0, 2, 3, 1).reshape(one.shape[0], -1, values) for one in maps], dim=1)
