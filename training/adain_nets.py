"""The larger style transfer: an encoder as it is, and a decoder that can make textures. Needs PyTorch.

Adaptive instance normalization (Huang and Belongie 2017): what the encoder sees of the content takes the
means and deviations that it sees in the style, and the decoder makes an image of it. The encoder is that of
EfficientNet-Lite0 up to stride 8 (Apache-2.0). The decoder's own layers are normalized likewise, to means and
deviations that it derives from those of the style; that, and fixed noise for what is flat in the content, is
what brush strokes are made of.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from adain import Encoder, moments, normalized

SEEN = (32, 144, 240)
"""Channels of the features at strides 2, 4 and 8."""
CODE = 128
NOISE_PX = 64


def code(features: list[Tensor]) -> Tensor:
    """Return means and deviations of all channels, (batch, numbers): what the decoder knows of a style."""
    return torch.cat([part.flatten(1) for one in features[: len(SEEN)] for part in moments(one)], dim=1)


class Styled(nn.Module):
    """A convolution, normalized to means and deviations that follow from the style, with a share of noise."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, 1, 1, bias=False, padding_mode="reflect")
        self.wanted = nn.Linear(CODE, 3 * outputs)
        self.outputs = outputs
        nn.init.normal_(self.wanted.weight, std=0.02)
        nn.init.constant_(self.wanted.bias, 0.0)

    def forward(self, x: Tensor, style: Tensor, noise: Tensor) -> Tensor:
        """Return features of the same size; the noise is (1, 1, h, w)."""
        gain, shift, grain = self.wanted(style)[:, :, None, None].split(self.outputs, dim=1)
        y = self.conv(x)
        mean, deviation = moments(y)
        return (y - mean) / deviation * (1 + gain) + shift + grain * noise


class Residual(nn.Module):
    """Two styled convolutions beside what went in."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.second = Styled(channels, channels), Styled(channels, channels)

    def forward(self, x: Tensor, style: Tensor, noise: Tensor) -> Tensor:
        """Return features of the same size."""
        return x + self.second(torch.relu(self.first(x, style, noise)), style, noise)


class Decoder(nn.Module):
    """From features at strides 8 and 4 to an image; half the size, then four pixels of each."""

    noise: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.code = nn.Sequential(nn.Linear(2 * sum(SEEN), CODE), nn.ReLU(), nn.Linear(CODE, CODE), nn.ReLU())
        self.start = Styled(SEEN[2], 128)
        self.at8 = nn.ModuleList(Residual(128) for _ in range(2))
        self.side4 = nn.Conv2d(SEEN[1], 32, 1)
        self.join = Styled(160, 64)
        self.at4 = Residual(64)
        self.narrow = Styled(64, 32)
        self.at2 = Styled(32, 32)
        self.out = nn.Conv2d(32, 12, 3, 1, 1, padding_mode="reflect")
        made = torch.randn(1, 1, NOISE_PX, NOISE_PX, generator=torch.Generator().manual_seed(1))
        self.register_buffer("noise", made)

    def _noise(self, like: Tensor) -> Tensor:
        rows, columns = like.shape[2:]
        many = self.noise.repeat(1, 1, rows // NOISE_PX + 1, columns // NOISE_PX + 1)
        return many[:, :, :rows, :columns]

    def forward(self, at4: Tensor, at8: Tensor, numbers: Tensor) -> Tensor:
        """Return an RGB image in 0..1, or a little beyond."""
        style = self.code(numbers)
        noise = self._noise(at8)
        x = torch.relu(self.start(at8, style, noise))
        for block in self.at8:
            x = block(x, style, noise)
        x = nn.functional.interpolate(x, scale_factor=2.0, mode="nearest")
        noise = self._noise(x)
        x = torch.relu(self.join(torch.cat([x, self.side4(at4)], dim=1), style, noise))
        x = self.at4(x, style, noise)
        x = nn.functional.interpolate(x, scale_factor=2.0, mode="nearest")
        noise = self._noise(x)
        x = torch.relu(self.narrow(x, style, noise))
        x = torch.relu(self.at2(x, style, noise))
        return nn.functional.pixel_shuffle(self.out(x), 2) + 0.5


class AdaIn(nn.Module):
    """Encoder, adaptive instance normalization, decoder."""

    def __init__(self, weights: Path) -> None:
        super().__init__()
        self.encoder = Encoder(weights, deep=False)
        self.decoder = Decoder()

    def forward(self, content: Tensor, style: Tensor, alpha: Tensor) -> Tensor:
        """Return the content (batch,3,H,W) in the style (batch,3,h,w), in 0..1; sizes in steps of 8."""
        of_content, of_style = self.encoder(content), self.encoder(style)
        at4, at8 = (
            own + alpha * (normalized(own, other) - own)
            for own, other in zip(of_content[1:], of_style[1:], strict=True)
        )
        own, other = code(of_content), code(of_style)
        return self.decoder(at4, at8, own + alpha * (other - own)).clamp(0, 1)
