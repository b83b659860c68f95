"""Find out, from what an ONNX model declares, how to feed it and which output is which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from adverse.errors import SutError, suggestion
from adverse.suts.decoders import Candidates, Decoder, Head, Output, Role
from adverse.suts.preprocess import Layout

DTYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(uint8)": np.uint8}


class Port(NamedTuple):
    """The model's image input; `batch` is None where the model takes any number."""

    name: str
    dtype: np.dtype[Any]
    layout: Layout
    size: tuple[int, int]
    batch: int | None


def input_port(
    inputs: Sequence[Any], model: str, *, size: tuple[int, int] | None, layout: Layout | None
) -> Port:
    """Read the one image input of a model; what it leaves open must be given."""
    if len(inputs) != 1:
        raise SutError(
            "the model must have one input, the image",
            where=model,
            got=", ".join(f"{entry.name} {entry.shape}" for entry in inputs) or "none",
            fix="Export it with the image as its only input, or use the command adapter.",
        )
    name, shape = inputs[0].name, inputs[0].shape
    where = f"{model}, input {name!r}"
    if len(shape) != 4 or inputs[0].type not in DTYPES:
        raise SutError(
            "the model's input is not a batch of images",
            where=where,
            got=f"{inputs[0].type} {shape}",
            wanted="(batch, 3, height, width) or (batch, height, width, 3) of float, float16 or uint8",
        )
    order = layout or _layout(shape, where)
    colours, height, width = shape[1:] if order == "nchw" else (shape[3], shape[1], shape[2])
    if isinstance(colours, int) and colours != 3:
        raise SutError("the model does not take three channels", where=where, got=str(shape))
    settled = tuple(
        _length(declared, given, where)
        for declared, given in zip((width, height), size or (None, None), strict=True)
    )
    batch = shape[0] if isinstance(shape[0], int) and shape[0] > 0 else None
    return Port(name, np.dtype(DTYPES[inputs[0].type]), order, (settled[0], settled[1]), batch)


def assign_outputs(decoder: Decoder, names: list[str], given: list[str] | None, model: str) -> dict[str, str]:
    """Say which output plays which role: as `given` in order, the only one there is, or by its name."""
    for name in given or ():
        if name not in names:
            raise SutError(
                f"the model has no output {name!r}", where=f"{model}, outputs", fix=suggestion(name, names)
            )
    for form in decoder.forms:
        needed = [role for role in form if not role.optional]
        if given is not None:
            if len(needed) <= len(given) <= len(form):
                return {role.name: name for role, name in zip(form, given, strict=False)}
        elif len(needed) == len(names) == 1:
            return {form[0].name: names[0]}
        elif len(form) > 1 and (by_name := _outputs_by_name(form, names)):
            return by_name
    orders = " or ".join("[" + ", ".join(role.name for role in form) + "]" for form in decoder.forms)
    raise SutError(
        "the model's outputs cannot be told apart by their names",
        where=model,
        got=f"{len(given)} names in outputs:" if given else f"outputs {', '.join(names)}",
        wanted=orders,
        fix=f"Name the model's outputs in this order: outputs: {orders}.",
    )


def only_output(names: list[str], given: list[str] | None, model: str) -> str:
    """Return the one output to read: the given one, or the only one there is."""
    wanted = given or names
    if len(wanted) != 1 or wanted[0] not in names:
        raise SutError(
            "it is not clear which output of the model to read",
            where=model,
            got=", ".join(wanted),
            wanted=f"one of {', '.join(names)}",
            fix=f"Name it: outputs: [{names[0]}].",
        )
    return wanted[0]


def of_one(output: Output, number: int, batch: int, least_rank: int) -> Output:
    """Return one image's part of an output of at least so many axes; without a batch axis it is for one."""
    array = output.array
    if array.ndim > least_rank and len(array) == batch:
        return Output(output.name, array[number])
    if batch == 1:
        return output
    raise SutError(
        "an output of the model does not hold one part for each image",
        where=f"output {output.name!r}",
        got=str(array.shape),
        wanted=f"{batch} images",
        fix="Check outputs: if the model has several.",
    )


class Reader(NamedTuple):
    """Picks one image's part out of a batch of outputs and decodes it."""

    decoder: Decoder
    roles: dict[str, str]
    head: Head

    @property
    def names(self) -> list[str]:
        """The outputs to request from the model."""
        return list(self.roles.values())

    def read(self, outputs: Sequence[Output], number: int, batch: int) -> Candidates:
        """Return the candidates of one image of a batch."""
        ranks = {role.name: role.rank for form in self.decoder.forms for role in form}
        parts = {
            role: _part(output, ranks[role], number, batch)
            for role, output in zip(self.roles, outputs, strict=True)
        }
        return self.decoder.decode(parts, self.head)


def _part(output: Output, rank: int, number: int, batch: int) -> Output:
    """Return one image's part; an output without a batch axis belongs to a batch of one."""
    array = output.array
    if array.ndim == rank + 1 and len(array) == batch:
        return Output(output.name, array[number])
    if batch == 1 and array.ndim in (rank, rank + 1):
        return output
    raise SutError(
        "an output of the model does not have the shape that its decoder reads",
        where=f"output {output.name!r}",
        got=str(array.shape),
        wanted=f"{batch} images with {rank} axes each",
        fix="Check decoder:, and outputs: if the model has several.",
    )


def _layout(shape: Sequence[Any], where: str) -> Layout:
    if shape[1] == 3:
        return "nchw"
    if shape[3] == 3:
        return "nhwc"
    raise SutError(
        "the model does not say which axis holds the channels",
        where=where,
        got=str(shape),
        fix="Add layout: nchw or layout: nhwc.",
    )


def _length(declared: Any, given: int | None, where: str) -> int:
    fixed = declared if isinstance(declared, int) and declared > 0 else None
    if fixed is None and given is None:
        raise SutError(
            "the model takes any image size, so one must be chosen",
            where=where,
            fix="Add size: [width, height], as the model was trained.",
        )
    if fixed is not None and given not in (None, fixed):
        raise SutError("the model has another input size", where=where, got=str(given), wanted=str(fixed))
    return fixed or given or 0


def _outputs_by_name(form: Sequence[Role], names: list[str]) -> dict[str, str] | None:
    by_role: dict[str, str] = {}
    for role in form:
        fitting = [
            name
            for name in names
            if name not in by_role.values() and any(word in name.lower() for word in role.words)
        ]
        if len(fitting) == 1:
            by_role[role.name] = fitting[0]
        elif not role.optional:
            return None
    return by_role
