"""One stage, centre points: cells near the middle of a person tell how far his sides are; no anchors.

FCOS (Tian et al. 2019) on three grids, each for people of some heights.
Output (batch, 100, 5) for the decoder `yolo-v8`: centre, size, score; the best 100 cells.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nets import Pyramid, Slim, cells, flattened, focal, misfit

SIZES = {8: (0.0, 56.0), 16: (40.0, 120.0), 32: (90.0, 1e4)}
"""The longer side of the people in pixels whom each stride shall find."""
NEAR = 0.22
"""Cells within this share of a person's size from his middle, to each side, find him."""
KEPT = 100


class Centre(nn.Module):
    """The network; `outputs` are the names of what it gives."""

    outputs = ("predictions",)

    def __init__(self) -> None:
        super().__init__()
        self.backbone = Pyramid()
        self.heads = nn.ModuleList(nn.Sequential(Slim(64), nn.Conv2d(64, 5, 1)) for _ in SIZES)
        for head in self.heads:
            nn.init.constant_(head[1].bias, 0.0)
            head[1].bias.data[0] = -4.0

    def found(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return scores (batch, N) as logits, boxes (batch, N, 4) xyxy, cells (N, 2), strides (N,)."""
        maps = [head(one) for head, one in zip(self.heads, self.backbone(image)[1:], strict=True)]
        raw = flattened(maps, 5)
        grids = [cells(one.shape[2], one.shape[3], step) for one, step in zip(maps, SIZES, strict=True)]
        centres = torch.cat(grids)
        strides = torch.cat(
            [torch.full((len(grid),), float(step)) for grid, step in zip(grids, SIZES, strict=True)]
        )
        sides = torch.exp(raw[..., 1:].clamp(-4.0, 4.0)) * (2 * strides[:, None])
        return (
            raw[..., 0],
            torch.cat([centres - sides[..., :2], centres + sides[..., 2:]], 2),
            centres,
            strides,
        )

    def forward(self, image: Tensor) -> Tensor:
        """Return (batch, 100, 5) for the decoder."""
        logits, boxes, _, _ = self.found(image)
        score, index = torch.topk(torch.sigmoid(logits), KEPT, dim=1)
        boxes = torch.gather(boxes, 1, index[..., None].expand(-1, -1, 4))
        low, high = boxes[..., :2], boxes[..., 2:]
        return torch.cat([(low + high) / 2, high - low, score[..., None]], dim=2)

    def loss(self, images: Tensor, boxes: Tensor, ignore: Tensor) -> Tensor:
        """Return the loss of a batch: focal loss of the scores, generalized IoU of the boxes."""
        logits, found, centres, strides = self.found(images)
        total, count = logits.new_zeros(()), 1
        for row in range(len(images)):
            real = boxes[row, :, 2] > 0
            mine, skip = boxes[row][real], ignore[row][real]
            target, weight = logits.new_zeros(len(centres)), logits.new_ones(len(centres))
            if len(mine):
                owner, inside = _owners(mine, centres, strides)
                weight[inside] = 0
                hit = owner >= 0
                weight[hit], target[hit] = 1, 1
                weight[hit & skip[owner.clamp(min=0)]] = 0
                take = hit & (weight > 0)
                total = total + 2 * misfit(found[row, take], mine[owner[take]]).sum()
                count += int(take.sum())
            total = total + 2 * focal(logits[row], target, weight)
        return total / count


def _owners(boxes: Tensor, centres: Tensor, strides: Tensor) -> tuple[Tensor, Tensor]:
    """Return which box each cell shall find (N,), -1 for none, and which cells are too near to a box to say.

    Of two boxes the one with the smaller area; a box without a cell in its middle gets the nearest one.
    """
    owner = torch.full((len(centres),), -1, dtype=torch.long)
    close = torch.zeros(len(centres), dtype=torch.bool)
    limits = torch.tensor([SIZES[int(step)] for step in strides.unique().tolist()])
    level = torch.searchsorted(strides.unique(), strides)
    for number in torch.argsort((boxes[:, 2:] - boxes[:, :2]).prod(dim=1), descending=True).tolist():
        box = boxes[number]
        middle, size = (box[:2] + box[2:]) / 2, box[2:] - box[:2]
        off = (centres - middle).abs()
        fits = (size.max() >= limits[level, 0]) & (size.max() <= limits[level, 1])
        near = fits & (off <= torch.maximum(size * NEAR, 0.5 * strides[:, None])).all(dim=1)
        close |= (off <= size * 0.5 + 2).all(dim=1)
        owner[near] = number
    return owner, close
