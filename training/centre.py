"""One stage, centre points: a map of where people's middles are, with size and offset (CenterNet).

Output (batch, N, 5) for the decoder `yolo-v8`: centre, size, score; only peaks keep their score.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nets import Backbone, Light, block, cells

STRIDE = 4
WIDTH, HEIGHT = 320, 240


class Centre(nn.Module):
    """The network; `decoder` and further options say how the onnx adapter reads it."""

    decoder = "yolo-v8"
    options: dict[str, object] = {}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__()
        self.backbone = Backbone((12, 20, 40, 72))
        self.up8 = nn.Sequential(block(40 + 72, 40), Light(40))
        self.up4 = nn.Sequential(block(20 + 40, 28), Light(28), Light(28))
        self.head = nn.Conv2d(28, 5, 1)
        nn.init.constant_(self.head.bias, 0.0)
        self.head.bias.data[0] = -4.0
        self.head.bias.data[3:] = torch.tensor([2.5, 3.4])  # log of a typical size in pixels
        self.register_buffer("centres", cells(HEIGHT // STRIDE, WIDTH // STRIDE, STRIDE), persistent=False)

    def raw(self, image: Tensor) -> Tensor:
        """Return (batch, 5, H/4, W/4): heat, offset x and y in cells, log size."""
        at4, at8, at16 = self.backbone(image)
        at8 = self.up8(torch.cat([at8, nn.functional.interpolate(at16, scale_factor=2.0, mode="nearest")], 1))
        at4 = self.up4(torch.cat([at4, nn.functional.interpolate(at8, scale_factor=2.0, mode="nearest")], 1))
        return self.head(at4)

    def forward(self, image: Tensor) -> Tensor:
        """Return (batch, N, 5) for the decoder."""
        raw = self.raw(image)
        heat = torch.sigmoid(raw[:, :1])
        peak = nn.functional.max_pool2d(heat, 3, 1, 1)
        heat = torch.where(heat >= peak, heat, torch.zeros_like(heat))
        flat = torch.cat([heat, raw[:, 1:]], dim=1).flatten(2).permute(0, 2, 1)
        middle = self.centres + flat[..., 1:3] * STRIDE
        size = torch.exp(flat[..., 3:5].clamp(0.0, 5.5))
        return torch.cat([middle, size, flat[..., :1]], dim=2)

    def loss(self, images: Tensor, boxes: Tensor, ignore: Tensor) -> Tensor:
        """Return the loss of a batch: the penalty-reduced focal loss of CornerNet, L1 of offset and size."""
        raw = self.raw(images)
        heat, count = raw.new_zeros(raw.shape[0], *raw.shape[2:]), 1
        weight, shape_loss = torch.ones_like(heat), raw.new_zeros(())
        grid = self.centres.reshape(*raw.shape[2:], 2)
        for row in range(len(images)):
            for box, skip in zip(boxes[row], ignore[row], strict=True):
                if box[2] <= 0:
                    continue
                middle, size = (box[:2] + box[2:]) / 2, box[2:] - box[:2]
                if skip:
                    inside = ((grid >= box[:2] - 4) & (grid <= box[2:] + 4)).all(dim=2)
                    weight[row][inside] = 0
                    continue
                spread = torch.clamp(size / 8, min=2.5)
                bump = torch.exp(-(((grid - middle) / spread) ** 2).sum(dim=2) / 2)
                x, y = (int(value) for value in (middle / STRIDE).tolist())
                x, y = min(x, raw.shape[3] - 1), min(y, raw.shape[2] - 1)
                bump[y, x] = 1
                heat[row] = torch.maximum(heat[row], bump)
                wanted = torch.cat([(middle - grid[y, x]) / STRIDE, torch.log(size)])
                shape_loss = shape_loss + nn.functional.l1_loss(raw[row, 1:, y, x], wanted, reduction="sum")
                count += 1
        sure = torch.sigmoid(raw[:, 0]).clamp(1e-4, 1 - 1e-4)
        on = heat == 1
        plus = -((1 - sure[on]) ** 2 * torch.log(sure[on])).sum()
        minus = -(sure**2 * torch.log(1 - sure) * (1 - heat) ** 4 * weight)[~on].sum()
        return (plus + minus + shape_loss) / count
