"""One stage, anchors: every cell of three grids scores three box shapes and corrects them (SSD, YOLOv2).

Output (batch, 100, 6) for the decoder `yolo`, the best 100: centre, size, objectness, 1 for the one class.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nets import Pyramid, Slim, cells, flattened, focal, misfit, overlap

SHAPES = {
    8: ((8.0, 22.0), (12.0, 34.0), (22.0, 24.0)),
    16: ((20.0, 56.0), (44.0, 48.0), (34.0, 84.0)),
    32: ((52.0, 130.0), (100.0, 92.0), (86.0, 190.0)),
}
"""Widths and heights in pixels of the anchors at each stride: people who stand, and those who bend or sit."""
HIT, MISS, BEST = 0.5, 0.35, 5
"""Overlap from which an anchor shall find a person, and below which it shall not; so many find him anyway."""
KEPT = 100


class Anchor(nn.Module):
    """The network; `outputs` are the names of what it gives."""

    outputs = ("predictions",)

    def __init__(self) -> None:
        super().__init__()
        self.backbone = Pyramid()
        self.heads = nn.ModuleList(nn.Sequential(Slim(64), nn.Conv2d(64, 15, 1)) for _ in SHAPES)
        for head in self.heads:
            nn.init.constant_(head[1].bias, 0.0)
            head[1].bias.data[0::5] = -4.0

    def found(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return scores (batch, N) as logits, boxes (batch, N, 4) xyxy, and the anchors (N, 4) xyxy."""
        maps = [head(one) for head, one in zip(self.heads, self.backbone(image)[1:], strict=True)]
        raw = flattened(maps, 5)
        anchors = torch.cat(
            [
                _anchors(one.shape[2], one.shape[3], stride, shapes)
                for one, (stride, shapes) in zip(maps, SHAPES.items(), strict=True)
            ]
        )
        size = anchors[:, 2:]
        centre = anchors[:, :2] + raw[..., 1:3] * size * 0.3
        half = size * torch.exp(raw[..., 3:5].clamp(-2.5, 2.5) * 0.5) / 2
        corners = torch.cat([anchors[:, :2] - size / 2, anchors[:, :2] + size / 2], dim=1)
        return raw[..., 0], torch.cat([centre - half, centre + half], dim=2), corners

    def forward(self, image: Tensor) -> Tensor:
        """Return (batch, 100, 6) for the decoder."""
        logits, boxes, _ = self.found(image)
        score, index = torch.topk(torch.sigmoid(logits), KEPT, dim=1)
        boxes = torch.gather(boxes, 1, index[..., None].expand(-1, -1, 4))
        low, high = boxes[..., :2], boxes[..., 2:]
        score = score[..., None]
        return torch.cat([(low + high) / 2, high - low, score, torch.ones_like(score)], dim=2)

    def loss(self, images: Tensor, boxes: Tensor, ignore: Tensor) -> Tensor:
        """Return the loss of a batch: focal loss of the scores, generalized IoU of the boxes."""
        logits, found, corners = self.found(images)
        total, count = logits.new_zeros(()), 1
        for row in range(len(images)):
            real = boxes[row, :, 2] > 0
            mine, skip = boxes[row][real], ignore[row][real]
            target, weight = logits.new_zeros(len(corners)), logits.new_ones(len(corners))
            if len(mine):
                table = overlap(corners, mine)
                best, owner = table.max(dim=1)
                hit = best >= HIT
                nearest = torch.topk(table, BEST, dim=0).indices
                hit[nearest], owner[nearest] = True, torch.arange(len(mine)).expand(BEST, -1)
                weight[(best >= MISS) & ~hit] = 0
                target[hit] = 1
                weight[skip[owner] & (best > 0.1)] = 0
                take = hit & (weight > 0)
                total = total + 2 * misfit(found[row, take], mine[owner[take]]).sum()
                count += int(take.sum())
            total = total + 2 * focal(logits[row], target, weight)
        return total / count


def _anchors(height: int, width: int, stride: int, shapes: tuple[tuple[float, float], ...]) -> Tensor:
    """Return (H*W*3, 4): centre and size of the anchors of a grid."""
    centre = cells(height, width, stride)
    boxes = [torch.cat([centre, torch.tensor(shape).expand(len(centre), 2)], dim=1) for shape in shapes]
    return torch.stack(boxes, dim=1).reshape(-1, 4)
