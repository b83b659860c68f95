"""Train one of the bundled detectors and export it: python training/train.py anchor|centre|two-stage.

Most steps see crops; the last ones see whole frames, half of them without people, and half of those the ones
that the network was most wrong about. What is exported is a moving average of the weights, and of several
cycles the mean of those that each ended with. A training that was stopped goes on from its last checkpoint
when the command is given again. Needs PyTorch (pip install torch==2.13.0), which adverse never imports.
"""

from __future__ import annotations

import argparse
import copy
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from adverse.content import digest
from adverse.data.worlds.writing import cache_folder
from anchor import Anchor
from centre import Centre
from export import export
from exported import take_weights
from recipe import ADVERSE, CROPS_BATCH, CYCLES, LOGS, PER_LOG, RATES, SEED, WHOLE_BATCH
from samples import Batch, Sampler
from scenes import Frames, frames
from twostage import TwoStage

NETS = {"anchor": Anchor, "centre": Centre, "two-stage": TwoStage}
BUNDLED = Path(__file__).parents[1] / "src" / "adverse" / "suts" / "bundled"
LOOKED, HARD, MINE_EVERY = 900, 5, 1000
"""So many frames without people are looked at for hard ones, one in so many is taken, and all of it is done
again after so many steps."""
AVERAGED = 0.998
"""What the moving average keeps of itself at each step."""
CALIBRATED = 64
"""Crops that set the statistics of the batch norms of a network that is trained on."""
SAVE_S = 120.0
THREADS = 1
"""One thread sums in one order: the same seed gives the same weights."""


class Training:
    """A network under training, and all that a checkpoint must hold."""

    def __init__(self, name: str, length: float, data: Frames | None = None, seed: int = SEED) -> None:
        torch.manual_seed(seed)
        self.net = NETS[name]().to(memory_format=torch.channels_last)  # a third faster on a CPU
        self.average = copy.deepcopy(self.net)
        rng = np.random.default_rng(seed)
        seen = frames("orchard", "train", LOGS[name], PER_LOG) if data is None else data
        self.sampler = Sampler(seen, rng, *ADVERSE[name])
        self.cycles = [(round(crops * length), round(whole * length)) for crops, whole in CYCLES[name]]
        self.rates = RATES[name]
        self.steps = sum(crops + whole for crops, whole in self.cycles)
        self._new_cycle()
        self._means, self._values = _values(self.average), _values(self.net)
        self.hard = self.sampler.empty
        self.ends: list[dict[str, torch.Tensor]] = []
        """The average at the end of each cycle so far."""
        self.step = 0

    def start_from(self, exported: Path, name: str) -> None:
        """Take the weights of an exported network; of one of another kind, those of its backbone."""
        other = NETS[name]()
        take_weights(other, exported, self.sampler.crops(CALIBRATED).images)
        same = type(other) is type(self.net)
        taken = {key: value for key, value in other.state_dict().items() if same or "backbone" in key}
        for net in (self.net, self.average):
            net.load_state_dict({**net.state_dict(), **taken})

    def run(self, checkpoint: Path, most_s: float = math.inf) -> bool:
        """Train to the end or for so long, from a checkpoint if there is one; return whether it ended."""
        if checkpoint.exists():
            self._load(checkpoint)
            print(f"goes on from step {self.step}", flush=True)
        self.net.train()
        started, saved, losses = time.monotonic(), time.monotonic(), []
        while self.step < self.steps:
            losses.append(self._learn())
            if self.step % 200 == 0:
                seconds = time.monotonic() - started
                print(
                    f"step {self.step}: loss {np.mean(losses[-200:]):.3f} after {seconds:.0f} s", flush=True
                )
            now = time.monotonic()
            if now - saved > SAVE_S or now - started > most_s or self.step == self.steps:
                self._save(checkpoint)
                saved = now
            if now - started > most_s:
                break
        return self.step == self.steps

    def _learn(self) -> float:
        """Take one step and return its loss."""
        cycle, at = self._place()
        if at == 0:
            self._new_cycle()
        crops, whole = self.cycles[cycle]
        for group in self.optimizer.param_groups:
            group["lr"] = self.rates[cycle] * _rate(at / (crops + whole))
        loss = self.net.loss(*self._batch(at - crops))
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), 5.0)
        self.optimizer.step()
        self.step += 1
        kept = min(AVERAGED, self.step / (self.step + 10))
        torch._foreach_lerp_(self._means, self._values, 1 - kept)
        if at + 1 == crops + whole:
            self.ends.append(copy.deepcopy(self.average.state_dict()))
        return float(loss.item())

    def made(self) -> nn.Module:
        """Return the network to export: the mean of what the cycles ended with."""
        net = copy.deepcopy(self.average)
        for name, value in net.state_dict().items():
            if value.is_floating_point():
                value.copy_(torch.stack([end[name] for end in self.ends]).mean(dim=0))
        return net

    def _new_cycle(self) -> None:
        """Start from the average of the last cycle, with a new optimizer."""
        self.net.load_state_dict(self.average.state_dict())
        self.optimizer = torch.optim.AdamW(self.net.parameters(), weight_decay=1e-3, fused=True)

    def _place(self) -> tuple[int, int]:
        """Return the cycle, and the step within it."""
        at = self.step
        for cycle, (crops, whole) in enumerate(self.cycles):
            if at < crops + whole:
                return cycle, at
            at -= crops + whole
        raise IndexError(self.step)

    def _batch(self, after_crops: int) -> Batch:
        if after_crops < 0:
            return self.sampler.crops(CROPS_BATCH)
        if after_crops % MINE_EVERY == 0:
            self.hard = self._hardest()
        rng, quarter = self.sampler.rng, WHOLE_BATCH // 4
        rows = [(self.sampler.peopled, 2 * quarter), (self.sampler.empty, quarter), (self.hard, quarter)]
        return self.sampler.whole(np.concatenate([rng.choice(some, count) for some, count in rows]))

    def _hardest(self) -> NDArray[np.int64]:
        """Return the frames without people that the network is most wrong about, by its loss."""
        net = self.average.eval()
        empty = self.sampler.rng.permutation(self.sampler.empty)[:LOOKED]
        with torch.inference_mode():
            losses = [net.loss(*self.sampler.whole(row[None])).item() for row in empty]
        return empty[np.argsort(losses, kind="stable")[::-1][: len(losses) // HARD]]

    def _save(self, path: Path) -> None:
        """Write a checkpoint whole or not at all."""
        parts = {name: getattr(self, name).state_dict() for name in ("net", "average", "optimizer")}
        state = {
            **parts,
            "step": self.step,
            "ends": self.ends,
            "hard": torch.from_numpy(self.hard),
            "torch": torch.get_rng_state(),
        }
        making = path.with_suffix(".part")
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save({**state, "numpy": self.sampler.rng.bit_generator.state}, making)
        making.replace(path)

    def _load(self, path: Path) -> None:
        state: dict[str, Any] = torch.load(path)
        for name in ("net", "average", "optimizer"):
            getattr(self, name).load_state_dict(state[name])
        self.step, self.ends, self.hard = state["step"], state["ends"], state["hard"].numpy()
        self.sampler.rng.bit_generator.state = state["numpy"]
        torch.set_rng_state(state["torch"])


def main() -> None:
    """Train, export, and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("net", choices=sorted(NETS))
    parser.add_argument("--length", type=float, default=1.0, help="of the training, as a part of the usual")
    parser.add_argument("--out", type=Path, default=BUNDLED)
    parser.add_argument("--checkpoints", type=Path, default=cache_folder() / "training")
    parser.add_argument(
        "--start",
        type=Path,
        help="the ONNX file of a network to start with, orchard-NAME.onnx; of another kind, its backbone",
    )
    told = parser.parse_args()
    kind = told.start.stem.removeprefix("orchard-") if told.start else told.net
    if kind not in NETS:
        parser.error(f"--start {told.start}: wanted orchard-NAME.onnx with a NAME of {', '.join(NETS)}")
    torch.set_num_threads(THREADS)
    torch.use_deterministic_algorithms(mode=True)
    training = Training(told.net, told.length)
    if told.start is not None:
        training.start_from(told.start, kind)
    training.run(_checkpoint(told.checkpoints, told.net, told.length, told.start))
    export(training.made(), told.out / f"orchard-{told.net}.onnx")


def _checkpoint(folder: Path, name: str, length: float, start: Path | None) -> Path:
    """Return where a training is kept, by a hash of the code that decides it: no other one is resumed."""
    modules = (
        "anchor",
        "centre",
        "conditions",
        "exported",
        "nets",
        "pasting",
        "recipe",
        "samples",
        "scenes",
        "train",
        "twostage",
    )
    files = [*(Path(__file__).parent / f"{module}.py" for module in modules), *([start] if start else [])]
    code = digest(*(file.read_bytes() for file in files), size=4)
    return folder / f"{name}-{length:g}-{code}.pt"


def _values(net: nn.Module) -> list[torch.Tensor]:
    """Return weights and statistics of a network, but for counters."""
    return [value for value in net.state_dict().values() if value.is_floating_point()]


def _rate(part: float) -> float:
    """Return the learning rate as a share of the highest: a warm-up, then half a cosine."""
    return min(part / 0.04, 1.0) * (0.5 + 0.5 * math.cos(math.pi * min(part, 1.0)))


if __name__ == "__main__":
    main()
