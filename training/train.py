"""Train one of the bundled detectors and export it: python training/train.py anchor|centre|two-stage.

Needs PyTorch (pip install torch==2.13.0), which adverse itself never imports. Two cores, well under an hour.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from anchor import Anchor
from centre import Centre
from scenes import HEIGHT, WIDTH, Frames, frames
from twostage import TwoStage

NETS = {"anchor": Anchor, "centre": Centre, "two-stage": TwoStage}
BUNDLED = Path(__file__).parents[1] / "src" / "adverse" / "suts" / "bundled"
LOGS, PER_LOG = 240, 6
SEED = 7
BATCH = 8
RATE = 2e-3
THREADS = 1
"""One thread sums in one order: the same seed gives the same weights."""


def main() -> None:
    """Train, export, and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("net", choices=sorted(NETS))
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--out", type=Path, default=BUNDLED)
    told = parser.parse_args()
    torch.manual_seed(SEED)
    torch.set_num_threads(THREADS)
    torch.use_deterministic_algorithms(mode=True)
    net = NETS[told.net]().to(memory_format=torch.channels_last)  # a third faster on a CPU
    train(net, frames("orchard", "train", LOGS, PER_LOG), told.epochs)
    export(net, told.out / f"orchard-{told.net}.onnx")


def train(net: nn.Module, data: Frames, epochs: int) -> None:
    """Fit a network by AdamW with one cycle of the learning rate."""
    rng = np.random.default_rng(SEED)
    optimizer = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=1e-3)
    steps = epochs * (len(data.images) // BATCH)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step / steps))
    net.train()
    started = time.monotonic()
    for epoch in range(epochs):
        order = rng.permutation(len(data.images))
        losses = []
        for start in range(0, len(order) - BATCH + 1, BATCH):
            images, boxes, ignore = _batch(data, order[start : start + BATCH], rng)
            optimizer.zero_grad()
            loss = net.loss(images, boxes, ignore)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        print(
            f"epoch {epoch + 1}: loss {np.mean(losses):.3f} after {time.monotonic() - started:.0f} s",
            flush=True,
        )
    net.eval()


def export(net: nn.Module, path: Path) -> None:
    """Write the network as ONNX with an open batch axis."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sample = torch.zeros(1, 3, HEIGHT, WIDTH)
    several = isinstance(net(sample), tuple)
    outputs = ["boxes", "scores", "labels"] if several else ["predictions"]
    open_axis = {name: {0: "batch"} for name in ("images", *outputs)}
    torch.onnx.export(
        net,
        (sample,),
        str(path),
        input_names=["images"],
        output_names=outputs,
        dynamic_axes=open_axis,
        opset_version=17,
        dynamo=False,
    )
    print(f"{path}: {path.stat().st_size / 1e3:.0f} kB")


def _batch(data: Frames, rows: np.ndarray, rng: np.random.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Return images (B,3,H,W) in 0..1 with boxes; half are mirrored, brightness and contrast shaken."""
    images = data.images[rows].astype(np.float32) / 255
    boxes = data.boxes[rows].copy()
    for row in range(len(rows)):
        if rng.random() < 0.5:
            images[row] = images[row, :, ::-1]
            real = boxes[row, :, 2] > 0
            boxes[row, real] = boxes[row, real][:, [2, 1, 0, 3]] * [-1, 1, -1, 1] + [WIDTH, 0, WIDTH, 0]
        middle = images[row].mean()
        images[row] = (images[row] - middle) * rng.uniform(0.85, 1.15) + middle + rng.uniform(-0.06, 0.06)
    shown = torch.from_numpy(np.clip(images, 0, 1)).permute(0, 3, 1, 2)
    return shown, torch.from_numpy(boxes), torch.from_numpy(data.ignore[rows])


def _rate(part: float) -> float:
    """Return the learning rate as a share of the highest: a warm-up, then half a cosine."""
    return min(part / 0.05, 1.0) * (0.5 + 0.5 * math.cos(math.pi * min(part, 1.0)))


if __name__ == "__main__":
    main()
