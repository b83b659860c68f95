"""Turn an adapter and its options into a system under test.

Building runs foreign code (a model loader, a plug-in), so everything it can throw becomes a SutError.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast, get_type_hints

from adverse.errors import AdverseError, SutError, one_line
from adverse.plugins import Plugin
from adverse.process_settings import settings_of
from adverse.processes import one_process
from adverse.suts.ask import task_of
from adverse.suts.child import Child
from adverse.suts.recorded_check import Review
from adverse.suts.recorded_rows import Needed
from adverse.types import Recorded, System


def build(
    plugin: Plugin, options: Mapping[str, Any], *, name: str | None = None, default_class: str
) -> System | Recorded:
    """Call an adapter's factory and check that it gave a system under test, or a Recorded.

    `name` is what the study calls the system. One without `classes` knows one class,
    `default_class`.
    """
    title = name or plugin.name
    try:
        with one_process(), settings_of(f"SUT {title}", begin=plugin.function.__module__):
            built = plugin.function(**options)
    except AdverseError:
        raise
    except (Exception, SystemExit) as error:
        raise SutError(
            "the system under test cannot be built",
            where=title,
            got=one_line(error),
            fix=f"Check the options of adapter {plugin.name!r}, and the files they name.",
        ) from error
    if callable(getattr(built, "recall", None)):
        return cast("Recorded", built)
    if not isinstance(built, Child) and task_of(built) is None:
        raise SutError(
            "the adapter did not return a system under test",
            where=f"{title} (adapter {plugin.name!r})",
            got=type(built).__name__,
            wanted="an object with detect, segment or classify(images), or with recall(image_id, setting)",
            fix="Return such an object from the function under @sut.",
        )
    if not hasattr(type(built), "classes") and not hasattr(built, "classes"):
        return cast("System", _Named(built, (default_class,)))
    return cast("System", built)


def is_recorded(plugin: Plugin) -> bool:
    """Return whether an adapter replays recorded answers, by its signature."""
    return hasattr(get_type_hints(plugin.function).get("return"), "recall")


def watches_itself(plugin: Plugin) -> bool:
    """Return whether an adapter's system enforces its own limits, by its signature."""
    return getattr(get_type_hints(plugin.function).get("return"), "watches_itself", False) is True


def missing_recordings(plugin: Plugin, options: Mapping[str, Any], settings: Sequence[str]) -> list[Path]:
    """Return the files that an adapter of recorded answers would need for some settings and has not got."""
    if not is_recorded(plugin):
        return []
    missing = getattr(build(plugin, options, default_class=""), "missing", None)
    return list(missing(settings)) if callable(missing) else []


def review_recordings(plugin: Plugin, options: Mapping[str, Any], needed: Mapping[str, Needed]) -> Review:
    """Check recorded answers against the frames that each setting of a study needs, where an adapter can."""
    if not is_recorded(plugin):
        return Review()
    review = getattr(build(plugin, options, default_class=""), "review", None)
    return cast("Review", review(needed)) if callable(review) else Review()


class _Named:
    """A system that does not say what its labels mean, with that said."""

    def __init__(self, system: Any, classes: tuple[str, ...]) -> None:
        self._system = system
        self.classes = classes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._system, name)
