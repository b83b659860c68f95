"""One stage, centre points: a map of where people's middles are, with the box seen from there.

CenterNet (Zhou et al. 2019), trained on all cells near a middle as in TTFNet (Liu et al. 2020).
Output (batch, 100, 5) for the decoder `yolo-v8`: centre, size, score; the best 100 peaks.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nets import Backbone, Light, block, cells, doubled, misfit

STRIDE = 4
NEAR = 0.3
"""Cells whose bump is higher than this learn the box."""
KEPT = 100


class Centre(nn.Module):
    """The network; `outputs` are the names of what it gives."""

    outputs = ("predictions",)

    def __init__(self) -> None:
        super().__init__()
        self.backbone = Backbone()
        self.up8 = nn.Sequential(block(48 + 80, 48), Light(48))
        self.up4 = block(24 + 48, 40)
        self.head = nn.Conv2d(40, 5, 1)
        nn.init.constant_(self.head.bias, 0.0)
        self.head.bias.data[0] = -4.0
        self.head.bias.data[3:] = torch.tensor([2.5, 3.4])  # log of a typical size in pixels

    def found(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return heat (batch, H/4, W/4) as logits, boxes (batch, N, 4) xyxy, the cells' centres (N, 2)."""
        at4, at8, at16 = self.backbone(image)
        at8 = self.up8(torch.cat([at8, doubled(at16)], 1))
        raw = self.head(self.up4(torch.cat([at4, doubled(at8)], 1)))
        centres = cells(raw.shape[2], raw.shape[3], STRIDE)
        flat = raw[:, 1:].flatten(2).permute(0, 2, 1)
        middle, half = centres + flat[..., :2] * STRIDE, torch.exp(flat[..., 2:].clamp(0.0, 5.5)) / 2
        return raw[:, 0], torch.cat([middle - half, middle + half], dim=2), centres

    def forward(self, image: Tensor) -> Tensor:
        """Return (batch, 100, 5) for the decoder."""
        logits, boxes, _ = self.found(image)
        heat = torch.sigmoid(logits)[:, None]
        peak = nn.functional.max_pool2d(heat, 3, 1, 1)
        heat = torch.where(heat >= peak, heat, torch.zeros_like(heat))
        score, index = torch.topk(heat.flatten(1), KEPT, dim=1)
        boxes = torch.gather(boxes, 1, index[..., None].expand(-1, -1, 4))
        low, high = boxes[..., :2], boxes[..., 2:]
        return torch.cat([(low + high) / 2, high - low, score[..., None]], dim=2)

    def loss(self, images: Tensor, boxes: Tensor, ignore: Tensor) -> Tensor:
        """Return the loss of a batch: the penalty-reduced focal loss of CornerNet, generalized IoU."""
        logits, found, centres = self.found(images)
        logits = logits.flatten(1)
        heat, weight = torch.zeros_like(logits), torch.ones_like(logits)
        total, count = logits.new_zeros(()), 1
        for row in range(len(images)):
            for box, skip in zip(boxes[row], ignore[row], strict=True):
                if box[2] <= 0:
                    continue
                if skip:
                    weight[row][((centres >= box[:2] - 4) & (centres <= box[2:] + 4)).all(dim=1)] = 0
                    continue
                middle, size = (box[:2] + box[2:]) / 2, box[2:] - box[:2]
                spread = torch.clamp(size / 8, min=2.5)
                bump = torch.exp(-(((centres - middle) / spread) ** 2).sum(dim=1) / 2)
                bump[bump.argmax()] = 1
                heat[row] = torch.maximum(heat[row], bump)
                near = bump > NEAR
                share = bump[near] / bump[near].sum()
                total = total + 4 * (misfit(found[row, near], box.expand(int(near.sum()), 4)) * share).sum()
                count += 1
        sure = torch.sigmoid(logits).clamp(1e-4, 1 - 1e-4)
        on = heat == 1
        plus = -((1 - sure[on]) ** 2 * torch.log(sure[on])).sum()
        minus = -(sure**2 * torch.log(1 - sure) * (1 - heat) ** 4 * weight)[~on].sum()
        return (plus + minus + total) / count
