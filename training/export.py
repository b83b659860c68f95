"""Write a trained network as ONNX, with the input that all bundled networks have."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from scenes import HEIGHT, WIDTH


def export(net: nn.Module, path: Path) -> None:
    """Write the network as ONNX with an open batch axis."""
    path.parent.mkdir(parents=True, exist_ok=True)
    net.eval()
    sample = torch.zeros(1, 3, HEIGHT, WIDTH)
    outputs = net.outputs
    torch.onnx.export(
        net,
        (sample,),
        str(path),
        input_names=["images"],
        output_names=list(outputs),
        dynamic_axes={name: {0: "batch"} for name in ("images", *outputs)},
        opset_version=17,
        dynamo=False,
    )
    print(f"{path}: {path.stat().st_size / 1e3:.0f} kB")
