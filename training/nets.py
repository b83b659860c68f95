"""The parts that the bundled networks share: a small backbone, boxes on grids, losses."""

from __future__ import annotations

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
