"""Write the network halfway between two exported ones: python training/mean.py ONE.onnx OTHER.onnx OUT.onnx.

Weights before and after some more training, averaged, are often better than either (Wortsman et al. 2022).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper


def mean(one: onnx.ModelProto, other: onnx.ModelProto) -> onnx.ModelProto:
    """Return a network whose numbers are the means of those of two that are alike but for them."""
    made = onnx.ModelProto()
    made.CopyFrom(one)
    pairs = zip(one.graph.initializer, other.graph.initializer, strict=True)
    for place, (first, second) in enumerate(pairs):
        a, b = numpy_helper.to_array(first), numpy_helper.to_array(second)
        if first.name != second.name or a.shape != b.shape or a.dtype != b.dtype:
            raise ValueError(f"the networks differ in kind: {first.name} {a.shape}, {second.name} {b.shape}")
        if a.dtype.kind == "f" and a.size > 1:
            halfway = (0.5 * a.astype(np.float64) + 0.5 * b).astype(a.dtype)
            made.graph.initializer[place].CopyFrom(numpy_helper.from_array(halfway, first.name))
    return made


def main() -> None:
    """Read two networks and write their mean."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("one", "other", "out"):
        parser.add_argument(name, type=Path)
    told = parser.parse_args()
    onnx.save(mean(onnx.load(told.one), onnx.load(told.other)), told.out)


if __name__ == "__main__":
    main()
