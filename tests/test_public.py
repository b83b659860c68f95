"""The public surface: small, sorted, documented, typed, and quick to import."""

from __future__ import annotations

import inspect
import subprocess
import sys
from types import ModuleType
from typing import Any, get_origin

import pytest

import adverse

HEAVY = (
    *("cv2", "numba", "onnxruntime", "pandas", "pyarrow", "matplotlib"),
    *("duckdb", "scipy", "pydantic", "numpy", "PIL"),
)


def public_values() -> dict[str, Any]:
    """Return all public names: those of the package, and those of its public modules below it."""
    values = {name: getattr(adverse, name) for name in adverse.__all__}
    modules = {name: value for name, value in values.items() if isinstance(value, ModuleType)}
    for name, module in modules.items():
        values |= {f"{name}.{inner}": getattr(module, inner) for inner in module.__all__}
    return values


def own_methods(value: type) -> dict[str, Any]:
    """Return the public methods and properties that a class itself defines."""
    members = {name: item for name, item in vars(value).items() if not name.startswith("_")}
    plain = {
        name: getattr(item, "__func__", None) or getattr(item, "fget", item) for name, item in members.items()
    }
    plain |= {name: item.func for name, item in members.items() if hasattr(item, "func")}  # cached_property
    return {name: item for name, item in plain.items() if inspect.isfunction(item)}


def untyped(function: Any) -> list[str]:
    """Return the parameters of a function without a type, and `return`."""
    signature = inspect.signature(function)
    missing = [
        name
        for name, parameter in signature.parameters.items()
        if parameter.annotation is parameter.empty and name not in ("self", "cls")
    ]
    return missing + (["return"] if signature.return_annotation is signature.empty else [])


def test_names_are_sorted_and_there() -> None:
    assert adverse.__all__ == sorted(adverse.__all__)
    assert adverse.__all__ == sorted([*adverse._HOMES, *adverse._MODULES])


def test_dir_lists_the_public_names_and_no_more() -> None:
    import adverse.cli.app  # noqa: PLC0415 - importing parts of the package adds no names

    assert dir(adverse) == adverse.__all__


@pytest.mark.parametrize("name", public_values())
def test_every_public_name_is_documented_and_typed(name: str) -> None:
    value = public_values()[name]
    if get_origin(value) or not (callable(value) or isinstance(value, ModuleType)):
        return  # the name of a type, or a constant
    assert value.__doc__, f"{name} has no docstring"
    assert not value.__doc__.startswith(f"{getattr(value, '__name__', '')}("), f"{name} has a generated one"
    if inspect.isfunction(value):
        assert untyped(value) == []
    if inspect.isclass(value):
        for method, function in own_methods(value).items():
            assert function.__doc__, f"{name}.{method} has no docstring"
            assert untyped(function) == [], f"{name}.{method}"


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = adverse.nothing


def test_import_loads_nothing_heavy() -> None:
    code = f"import sys, adverse; dir(adverse); print([name for name in {HEAVY} if name in sys.modules])"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert output.stdout.strip() == "[]"
