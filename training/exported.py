"""Start a training with the weights of a network that was exported before.

The export has folded each batch norm into the convolution before it. Here every convolution takes the folded
weights, and its batch norm what some pictures make of them: the network computes what the exported one does,
in training as well, and can be trained on.
"""

from __future__ import annotations

from pathlib import Path

import onnx
import torch
from onnx import numpy_helper
from torch import Tensor, nn


def take_weights(net: nn.Module, path: Path, pictures: Tensor) -> None:
    """Give a network the weights of its export; pictures (B,3,H,W) set the statistics of its batch norms."""
    layers = _in_order(net, pictures)
    graph = onnx.load(path).graph
    values = {one.name: torch.from_numpy(numpy_helper.to_array(one).copy()) for one in graph.initializer}
    nodes = [node for node in graph.node if node.op_type in ("Conv", "Gemm")]
    with torch.no_grad():
        for (layer, norm), node in zip(layers, nodes, strict=True):
            weight, *bias = (values[name] for name in node.input[1:])
            layer.weight.copy_(weight)
            if norm is not None:
                norm.bias.copy_(bias[0])
                nn.init.ones_(norm.weight)
                norm.running_mean.zero_()
                norm.running_var.fill_(1 - norm.eps)
            elif bias:
                layer.bias.copy_(bias[0])
        _set_norms(net, [norm for _, norm in layers if norm is not None], pictures)


def _in_order(net: nn.Module, pictures: Tensor) -> list[tuple[nn.Module, nn.BatchNorm2d | None]]:
    """Return convolutions and linear layers as they are called, each with the batch norm that follows it."""
    called: list[nn.Module] = []
    kinds = (nn.Conv2d, nn.Linear, nn.BatchNorm2d)
    hooks = [
        one.register_forward_hook(lambda layer, _inputs, _output: called.append(layer))
        for one in net.modules()
        if isinstance(one, kinds)
    ]
    with torch.inference_mode():
        net.eval()(pictures[:1])
    for hook in hooks:
        hook.remove()
    after = [*called[1:], None]
    return [
        (layer, follower if isinstance(follower, nn.BatchNorm2d) else None)
        for layer, follower in zip(called, after, strict=True)
        if not isinstance(layer, nn.BatchNorm2d)
    ]


def _set_norms(net: nn.Module, norms: list[nn.BatchNorm2d], pictures: Tensor) -> None:
    """Give batch norms that pass on what comes in its mean and variance, without changing what they do."""

    def measure(layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        variance, mean = torch.var_mean(inputs[0], dim=(0, 2, 3))
        seen[layer] = mean, variance

    seen: dict[nn.Module, tuple[Tensor, Tensor]] = {}
    hooks = [norm.register_forward_pre_hook(measure) for norm in norms]
    net.eval()(pictures)
    for hook in hooks:
        hook.remove()
    for norm in norms:
        mean, variance = seen[norm]
        norm.running_mean.copy_(mean)
        norm.running_var.copy_(variance)
        norm.weight.copy_(torch.sqrt(variance + norm.eps))
        norm.bias.add_(mean)
