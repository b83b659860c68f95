"""Two stages: proposals from one grid, then a second look at what lies inside each (Faster R-CNN).

Outputs boxes, scores, labels for the decoder `decoded`; the adapter's NMS removes repeats.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nets import Pyramid, Slim, cells, focal, misfit, overlap

STRIDE = 8
PROPOSALS = 48
"""The best cells, neighbours too: with peaks alone, who stands close to somebody gets no proposal."""
PATCH = (8, 5)
"""Rows and columns of the samples taken inside a proposal."""


class TwoStage(nn.Module):
    """The network; `outputs` are the names of what it gives."""

    outputs = ("boxes", "scores", "labels")

    def __init__(self) -> None:
        super().__init__()
        self.backbone = Pyramid()
        self.neck = Slim(64)
        self.propose = nn.Conv2d(64, 5, 1)
        self.detail = nn.Conv2d(32, 16, 1)
        rows, columns = PATCH
        self.look = nn.Sequential(
            nn.Conv2d(80, 32, 1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * rows * columns, 96),
            nn.ReLU(),
        )
        self.judge = nn.Linear(96, 5)
        for layer in (self.propose, self.judge):
            nn.init.constant_(layer.bias, 0.0)
            layer.bias.data[0] = -3.0
        self.propose.bias.data[3:] = torch.tensor([2.5, 3.4])

    def features(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return proposals (batch, N, 5) as score and box xyxy, their cells' centres, features at 4 and 8."""
        at4, at8, _, _ = self.backbone(image)
        at8 = self.neck(at8)
        centres = cells(at8.shape[2], at8.shape[3], STRIDE)
        raw = self.propose(at8).flatten(2).permute(0, 2, 1)
        middle = centres + raw[..., 1:3] * STRIDE
        half = torch.exp(raw[..., 3:5].clamp(1.0, 5.5)) / 2
        proposals = torch.cat([raw[..., :1], middle - half, middle + half], dim=2)
        return proposals, centres, self.detail(at4), at8

    def second(self, boxes: Tensor, at4: Tensor, at8: Tensor) -> Tensor:
        """Return (batch, K, 5) for boxes (batch, K, 4): score and corrections in parts of the box."""
        batch, count = boxes.shape[:2]
        rows, columns = PATCH
        y = (torch.arange(rows, dtype=torch.float32) + 0.5) / rows * 1.3 - 0.15
        x = (torch.arange(columns, dtype=torch.float32) + 0.5) / columns * 1.5 - 0.25
        size = boxes[..., 2:] - boxes[..., :2]
        gx = (boxes[..., :1] + size[..., :1] * x) / (at8.shape[3] * STRIDE) * 2 - 1
        gy = (boxes[..., 1:2] + size[..., 1:] * y) / (at8.shape[2] * STRIDE) * 2 - 1
        grid = torch.stack(
            [gx[:, :, None, :].expand(-1, -1, rows, -1), gy[:, :, :, None].expand(-1, -1, -1, columns)],
            dim=-1,
        ).reshape(batch, count * rows, columns, 2)
        taken = [nn.functional.grid_sample(one, grid, align_corners=False) for one in (at4, at8)]
        patches = torch.cat(taken, dim=1).reshape(batch, -1, count, rows, columns).permute(0, 2, 1, 3, 4)
        return self.judge(self.look(patches.reshape(batch * count, -1, rows, columns))).reshape(
            batch, count, 5
        )

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return boxes (batch, K, 4), scores (batch, K) and labels (batch, K)."""
        proposals, _, at4, at8 = self.features(image)
        first, index = torch.topk(proposals[..., 0], PROPOSALS, dim=1)
        boxes = torch.gather(proposals[..., 1:], 1, index[..., None].expand(-1, -1, 4))
        judged = self.second(boxes, at4, at8)
        scores = torch.sigmoid(judged[..., 0]) * torch.sigmoid(first).sqrt()
        return corrected(boxes, judged[..., 1:]), scores, torch.zeros_like(scores)

    def loss(self, images: Tensor, boxes: Tensor, ignore: Tensor) -> Tensor:
        """Return the loss of both stages."""
        proposals, centres, at4, at8 = self.features(images)
        total, count = proposals.new_zeros(()), 1
        chosen, goals = [], []
        for row in range(len(images)):
            real = boxes[row, :, 2] > 0
            mine, skip = boxes[row][real], ignore[row][real]
            target, weight = proposals.new_zeros(len(centres)), proposals.new_ones(len(centres))
            for box, unseen in zip(mine, skip, strict=True):
                middle, size = (box[:2] + box[2:]) / 2, box[2:] - box[:2]
                near = ((centres - middle).abs() <= torch.clamp(size * 0.2, min=STRIDE * 0.6)).all(dim=1)
                inside = ((centres >= box[:2] - 4) & (centres <= box[2:] + 4)).all(dim=1)
                weight[inside] = 0
                if not unseen:
                    weight[near], target[near] = 1, 1
                    total = total + 2 * misfit(proposals[row, near, 1:], box.expand(int(near.sum()), 4)).sum()
                    count += int(near.sum())
            total = total + 2 * focal(proposals[row, :, 0], target, weight)
            chosen.append(self._samples(proposals[row].detach(), mine))
            goals.append((mine, skip))
        judged = self.second(torch.stack(chosen), at4, at8)
        return total / count + _judging_loss(judged, chosen, goals)

    @staticmethod
    def _samples(proposals: Tensor, mine: Tensor) -> Tensor:
        """Return 32 boxes to judge: the best proposals, and shaken copies of the true boxes."""
        best = proposals[torch.topk(proposals[:, 0], 22).indices, 1:]
        if not len(mine):
            return torch.cat([best, best[:10]])
        copies = mine.repeat(10 // len(mine) + 1, 1)[:10]
        size = (copies[:, 2:] - copies[:, :2]).repeat(1, 2)
        return torch.cat([best, copies + torch.randn_like(copies) * 0.12 * size])


def corrected(boxes: Tensor, change: Tensor) -> Tensor:
    """Return boxes xyxy moved by corrections in tenths of their size."""
    size = torch.cat([boxes[..., 2:] - boxes[..., :2]] * 2, dim=-1)
    return boxes + 0.1 * change.clamp(-10, 10) * size


def _judging_loss(judged: Tensor, chosen: list[Tensor], goals: list[tuple[Tensor, Tensor]]) -> Tensor:
    total, count = judged.new_zeros(()), 1
    for row, (boxes, (mine, skip)) in enumerate(zip(chosen, goals, strict=True)):
        target, weight = judged.new_zeros(len(boxes)), judged.new_ones(len(boxes))
        if len(mine):
            best, owner = overlap(boxes, mine).max(dim=1)
            good = best >= 0.5
            target[good] = 1
            weight[(best > 0.35) & ~good] = 0
            weight[skip[owner] & (best > 0.1)] = 0
            take = good & (weight > 0)
            size = torch.cat([boxes[take][:, 2:] - boxes[take][:, :2]] * 2, dim=1)
            wanted = (mine[owner[take]] - boxes[take]) / (0.1 * size)
            total = total + 0.5 * nn.functional.smooth_l1_loss(judged[row, take, 1:], wanted, reduction="sum")
            count += int(take.sum())
        total = total + 2 * focal(judged[row, :, 0], target, weight, alpha=0.4)
    return total / count
