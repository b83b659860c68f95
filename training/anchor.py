"""One stage, anchors: every cell of two grids scores three box shapes and corrects them (SSD, YOLOv2).

Output (batch, N, 6) for the decoder `yolo`: centre, size, objectness, and 1 for the one class.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nets import Backbone, Light, block, cells, focal, overlap

SHAPES = {8: ((6.0, 18.0), (9.0, 28.0), (14.0, 38.0)), 16: ((20.0, 56.0), (32.0, 80.0), (48.0, 130.0))}
"""Widths and heights in pixels of the anchors at each stride, about evenly spaced over people's sizes."""
WIDTH, HEIGHT = 320, 240
HIT, MISS = 0.5, 0.35
"""Overlap from which an anchor shall find a person, and below which it shall not."""


class Anchor(nn.Module):
    """The network; `decoder` and further options say how the onnx adapter reads it."""

    decoder = "yolo"
    options: dict[str, object] = {}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__()
        self.backbone = Backbone()
        self.neck = nn.Sequential(block(48 + 80, 64), Light(64))
        self.head8, self.head16 = nn.Conv2d(64, 15, 1), nn.Sequential(Light(80), nn.Conv2d(80, 15, 1))
        for head in (self.head8, self.head16[1]):
            nn.init.constant_(head.bias, 0.0)
            head.bias.data[0::5] = -4.0
        grids = []
        for stride, shapes in SHAPES.items():
            centre = cells(HEIGHT // stride, WIDTH // stride, stride)
            boxes = [
                torch.cat([centre, torch.tensor(shape).expand(len(centre), 2)], dim=1) for shape in shapes
            ]
            grids.append(torch.stack(boxes, dim=1).reshape(-1, 4))
        self.register_buffer("anchors", torch.cat(grids), persistent=False)

    def raw(self, image: Tensor) -> Tensor:
        """Return (batch, N, 5): objectness and the four corrections of every anchor."""
        _, at8, at16 = self.backbone(image)
        wide = nn.functional.interpolate(at16, scale_factor=2.0, mode="nearest")
        maps = (self.head8(self.neck(torch.cat([at8, wide], dim=1))), self.head16(at16))
        return torch.cat([one.permute(0, 2, 3, 1).reshape(image.shape[0], -1, 5) for one in maps], dim=1)

    def forward(self, image: Tensor) -> Tensor:
        """Return (batch, N, 6) for the decoder."""
        raw = self.raw(image)
        centre = self.anchors[:, :2] + raw[..., 1:3] * self.anchors[:, 2:] * 0.3
        size = self.anchors[:, 2:] * torch.exp(raw[..., 3:5].clamp(-2.0, 2.0) * 0.5)
        score = torch.sigmoid(raw[..., :1])
        return torch.cat([centre, size, score, torch.ones_like(score)], dim=2)

    def loss(self, images: Tensor, boxes: Tensor, ignore: Tensor) -> Tensor:
        """Return the loss of a batch: focal loss of the scores, smooth L1 of the corrections."""
        raw = self.raw(images)
        corners = torch.cat(
            [self.anchors[:, :2] - self.anchors[:, 2:] / 2, self.anchors[:, :2] + self.anchors[:, 2:] / 2], 1
        )
        total, found = raw.new_zeros(()), 1
        for row in range(len(images)):
            real = boxes[row, :, 2] > 0
            mine, skip = boxes[row][real], ignore[row][real]
            target, weight = raw.new_zeros(len(corners)), raw.new_ones(len(corners))
            if len(mine):
                table = overlap(corners, mine)
                best, owner = table.max(dim=1)
                hit = best >= HIT
                forced = table.argmax(dim=0)
                hit[forced], owner[forced] = True, torch.arange(len(mine))
                weight[(best >= MISS) & ~hit] = 0
                target[hit] = 1
                weight[skip[owner] & (best > 0.1)] = 0
                take = hit & (weight > 0)
                goal = mine[owner[take]]
                anchors = self.anchors[take]
                shift = ((goal[:, :2] + goal[:, 2:]) / 2 - anchors[:, :2]) / (anchors[:, 2:] * 0.3)
                scale = torch.log((goal[:, 2:] - goal[:, :2]) / anchors[:, 2:]) / 0.5
                wanted = torch.cat([shift, scale], dim=1)
                total = total + nn.functional.smooth_l1_loss(raw[row, take, 1:], wanted, reduction="sum")
                found += int(take.sum())
            total = total + 2 * focal(raw[row, :, 0], target, weight)
        return total / found
