"""Loops that are compiled when they are first called, and kept on disk for the next process.

numba is imported by the first call, not before, so importing the mutations stays quick. Each kernel has one
signature, so there is one thing to compile and nothing to guess; the machine code of a kernel is cached next
to its source (or in the user's cache folder where that cannot be written) and shared between processes.
Kernels run on one thread and let go of the interpreter lock; the engine runs several of them at once.
"""

from __future__ import annotations

import functools
import threading
import types
from collections.abc import Callable
from typing import Any, Generic, ParamSpec

P = ParamSpec("P")
_LOCK = threading.RLock()


class Kernel(Generic[P]):
    """A compiled loop that fills its last arguments; it may call other kernels.

    The cache notices when the file of a kernel changes, not when that of another one does which it calls.
    The only kernel called from another file, `random_words`, cannot change: its values are published.
    """

    def __init__(self, function: Callable[P, Any], signature: str, *, reorder: bool) -> None:
        functools.update_wrapper(self, function)
        self._plain = function
        self._signature = signature
        self._reorder = reorder
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Run the loop; the first call compiles it or loads it."""
        return (self._compiled or self.compiled())(*args, **kwargs)

    def compiled(self) -> Callable[..., Any]:
        """Return the machine code: from memory, from disk, or made now."""
        with _LOCK:
            if self._compiled is None:
                import numba  # noqa: PLC0415 - slow to import, and many uses need none of it

                globals_ = self._plain.__globals__
                code: types.CodeType = self._plain.__code__
                used = {
                    name: globals_[name].compiled()
                    for name in code.co_names
                    if isinstance(globals_.get(name), Kernel)
                }
                body = types.FunctionType(code, {**globals_, **used}, code.co_name)
                body.__module__, body.__qualname__ = self._plain.__module__, code.co_name
                self._compiled = numba.njit(
                    self._signature,
                    cache=True,
                    nogil=True,
                    error_model="numpy",
                    fastmath={"contract", "nnan", "nsz"} | ({"reassoc"} if self._reorder else set()),
                )(body)
            return self._compiled


def kernel(signature: str, *, reorder: bool = False) -> Callable[[Callable[P, Any]], Kernel[P]]:
    """Compile the function below for arrays of these types; `reorder` lets sums be taken in another order.

    Kernels never meet NaN. The result depends on the machine and its compiler, not on the number of threads.
    """

    def mark(function: Callable[P, Any]) -> Kernel[P]:
        return Kernel(function, signature, reorder=reorder)

    return mark
