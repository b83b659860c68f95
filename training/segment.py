"""Train the bundled segmenter of the street and export it with its card: python training/segment.py.

A small encoder and decoder with skips (U-Net), trained on whole frames by cross-entropy in which rare
classes weigh more. Needs PyTorch; the scores in the card are counted with NumPy on the test split.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from adverse.content import file_sha256
from adverse.data.worlds import classes
from export import export
from nets import Backbone, Light, block, doubled
from scenes import Frames, frames
from score import BUNDLED, confusion, intersection_over_union

CHANNELS = {
    classes.ROAD: "road",
    classes.SIDEWALK: "sidewalk",
    classes.BUILDING: "building",
    classes.POLE: "pole",
    classes.TRAFFIC_SIGN: "traffic sign",
    classes.VEGETATION: "vegetation",
    classes.TERRAIN: "terrain",
    classes.SKY: "sky",
    classes.PERSON: "person",
    classes.CAR: "car",
}
"""The Cityscapes id and the name of each channel, in their order."""
STRIDE = 2
TRAIN_LOGS, PER_LOG = 400, 4
TEST_LOGS, TEST_PER_LOG = 24, 6
SEED = 7
STEPS, BATCH, RATE = 800, 5, 3e-3
CARD = """\
# street-segmenter.onnx

A segmenter of the rendered street (encoder and decoder with skips), {kilobytes:.0f} kB.
**Synthetic: it makes curves to look at and must not be used on anything real.**

| | |
|---|---|
| recipe | training/segment.py: {recipe} |
| input | `images` (batch, 3, 240, 320), RGB in 0..1 |
| output | `logits` (batch, {channels}, 120, 160), at half the size; the highest channel is the class |
| sha256 | `{sha}` |

Scores on {frames} frames of {test_logs} test logs of `street-world` (seed 1), with the logits enlarged
bilinearly to 320 x 240: pixel accuracy {accuracy:.4f}, mean IoU {mean:.4f} over the classes that occur.

| channel | Cityscapes id | class | share of pixels | IoU |
|---|---|---|---|---|
{rows}
"""


class Segmenter(nn.Module):
    """The network: logits at half the size of the image."""

    outputs = ("logits",)

    def __init__(self) -> None:
        super().__init__()
        self.backbone = Backbone((16, 32, 64, 96))
        self.deep = nn.Sequential(Light(96), Light(96))
        self.up8 = nn.Sequential(block(64 + 96, 64), Light(64))
        self.up4 = block(32 + 64, 56)
        self.head = nn.Sequential(nn.Conv2d(56, len(CHANNELS) * 4, 1), nn.PixelShuffle(2))

    def forward(self, image: Tensor) -> Tensor:
        """Return (batch, classes, H/2, W/2)."""
        at4, at8, at16 = self.backbone(image)
        at8 = self.up8(torch.cat([at8, doubled(self.deep(at16))], 1))
        return self.head(self.up4(torch.cat([at4, doubled(at8)], 1)))


def main() -> None:
    """Train, export, score, write the card."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--out", type=Path, default=BUNDLED)
    told = parser.parse_args()
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(mode=True)
    net = Segmenter().to(memory_format=torch.channels_last)
    train(net, frames("street", "train", TRAIN_LOGS, PER_LOG), told.steps)
    path = told.out / "street-segmenter.onnx"
    export(net, path)
    card = _card(path, frames("street", "test", TEST_LOGS, TEST_PER_LOG), told.steps)
    path.with_suffix(".md").write_text(card)
    print(card)


def train(net: nn.Module, data: Frames, steps: int) -> None:
    """Fit the network by AdamW with one cycle of the learning rate."""
    rng = np.random.default_rng(SEED)
    optimizer = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps, pct_start=0.1)
    truth = channel_of()[data.labels]
    counts = np.bincount(truth.reshape(-1), minlength=len(CHANNELS) + 1)[: len(CHANNELS)]
    weight = torch.tensor(np.maximum(counts / counts.sum(), 1e-3) ** -0.4, dtype=torch.float32)
    net.train()
    started, losses = time.monotonic(), []
    for step in range(1, steps + 1):
        images, wanted = _batch(data.images, truth, rng)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(images), wanted, weight, ignore_index=len(CHANNELS))
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if step % 100 == 0 or step == steps:
            seconds = time.monotonic() - started
            print(f"step {step}: loss {np.mean(losses[-100:]):.3f} after {seconds:.0f} s", flush=True)
    net.eval()


def channel_of() -> NDArray[np.uint8]:
    """Return (256,): the channel of every label id; one more than the last where there is none."""
    table = np.full(256, len(CHANNELS), np.uint8)
    table[list(CHANNELS)] = np.arange(len(CHANNELS))
    return table


def _batch(
    images: NDArray[np.uint8], truth: NDArray[np.uint8], rng: np.random.Generator
) -> tuple[Tensor, Tensor]:
    """Return frames (B,3,H,W), mirrored half of the time, and the channels (B,H/2,W/2) that are wanted.

    Of every four pixels one is asked for, any of them, so that what is learnt is not shifted.
    """
    rows = rng.integers(len(images), size=BATCH)
    shown, wanted = images[rows].astype(np.float32) / 255, []
    for at, row in enumerate(rows):
        turn = int(rng.choice((-1, 1)))
        shown[at] = shown[at, :, ::turn]
        middle = shown[at].mean()
        shown[at] = (shown[at] - middle) * rng.uniform(0.8, 1.2) + middle + rng.uniform(-0.06, 0.06)
        y, x = rng.integers(STRIDE, size=2)
        wanted.append(truth[row, :, ::turn][y::STRIDE, x::STRIDE].astype(np.int64))
    pixels = torch.from_numpy(np.clip(shown, 0, 1)).permute(0, 3, 1, 2)
    return pixels, torch.from_numpy(np.stack(wanted))


def _card(path: Path, data: Frames, steps: int) -> str:
    table = confusion(path, data, channel_of(), len(CHANNELS))
    share, fit = table.sum(axis=1) / table.sum(), intersection_over_union(table)
    rows = [
        f"| {at} | {label} | {name} | {share[at]:.4f} | {'-' if math.isnan(fit[at]) else f'{fit[at]:.3f}'} |"
        for at, (label, name) in enumerate(CHANNELS.items())
    ]
    return CARD.format(
        kilobytes=path.stat().st_size / 1e3,
        recipe=f"{TRAIN_LOGS} train logs of {PER_LOG} frames; AdamW, {steps} steps of {BATCH}, seed {SEED}",
        channels=len(CHANNELS),
        sha=file_sha256(path),
        frames=len(data.images),
        test_logs=TEST_LOGS,
        accuracy=np.trace(table) / table.sum(),
        mean=np.nanmean(fit),
        rows="\n".join(rows),
    )


if __name__ == "__main__":
    main()
