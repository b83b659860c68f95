"""Train one of the bundled detectors and export it: python training/train.py anchor|centre|two-stage.

Most steps see crops; the last ones see whole frames, half of them the frames without people that the network
was most wrong about. Needs PyTorch (pip install torch==2.13.0), which adverse itself never imports.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from anchor import Anchor
from centre import Centre
from export import export
from recipe import CROPS, CROPS_BATCH, LOGS, PER_LOG, SEED, WHOLE, WHOLE_BATCH
from samples import Batch, Sampler
from scenes import frames
from twostage import TwoStage

NETS = {"anchor": Anchor, "centre": Centre, "two-stage": TwoStage}
BUNDLED = Path(__file__).parents[1] / "src" / "adverse" / "suts" / "bundled"
HARD = 4
"""One in so many of the frames without people is a hard one."""
RATE = 2e-3
THREADS = 1
"""One thread sums in one order: the same seed gives the same weights."""


def main() -> None:
    """Train, export, and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("net", choices=sorted(NETS))
    parser.add_argument("--length", type=float, default=1.0, help="of the training, as a part of the usual")
    parser.add_argument("--out", type=Path, default=BUNDLED)
    told = parser.parse_args()
    torch.manual_seed(SEED)
    torch.set_num_threads(THREADS)
    torch.use_deterministic_algorithms(mode=True)
    net = NETS[told.net]().to(memory_format=torch.channels_last)  # a third faster on a CPU
    sampler = Sampler(frames("orchard", "train", LOGS, PER_LOG), np.random.default_rng(SEED))
    train(net, sampler, round(CROPS[told.net] * told.length), round(WHOLE * told.length))
    export(net, told.out / f"orchard-{told.net}.onnx")


def train(net: nn.Module, sampler: Sampler, crops: int, whole: int) -> None:
    """Fit a network by AdamW with one cycle of the learning rate."""
    optimizer = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=1e-3)
    steps = crops + whole
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step / steps))
    net.train()
    started, losses = time.monotonic(), []
    for step, batch in enumerate(_batches(net, sampler, crops, whole), start=1):
        optimizer.zero_grad()
        loss = net.loss(*batch)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if step % 100 == 0 or step == steps:
            seconds = time.monotonic() - started
            print(f"step {step}: loss {np.mean(losses[-100:]):.3f} after {seconds:.0f} s", flush=True)
    net.eval()


def _batches(net: nn.Module, sampler: Sampler, crops: int, whole: int) -> Iterator[Batch]:
    for _ in range(crops):
        yield sampler.crops(CROPS_BATCH)
    rng, half = np.random.default_rng(SEED + 1), WHOLE_BATCH // 2
    hard = _hardest(net, sampler) if whole else sampler.empty
    for step in range(whole):
        others = hard if step % 2 else sampler.empty
        yield sampler.whole(np.concatenate([rng.choice(sampler.peopled, half), rng.choice(others, half)]))


def _hardest(net: nn.Module, sampler: Sampler) -> NDArray[np.int64]:
    """Return the frames without people that the network is most wrong about, by its loss."""
    net.eval()
    with torch.inference_mode():
        losses = [net.loss(*sampler.whole(row[None])).item() for row in sampler.empty]
    net.train()
    worst = np.argsort(losses)[::-1][: len(losses) // HARD]
    return sampler.empty[worst]


def _rate(part: float) -> float:
    """Return the learning rate as a share of the highest: a warm-up, then half a cosine."""
    return min(part / 0.05, 1.0) * (0.5 + 0.5 * math.cos(math.pi * min(part, 1.0)))


if __name__ == "__main__":
    main()
