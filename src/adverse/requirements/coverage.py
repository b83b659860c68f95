"""How much of a battery people tolerate: the visual change of its images against thresholds, by severity.

A corruption benchmark asks the same of a system at every severity, whether or not people could still answer
(Hu et al. 2022, RQ2). Here every setting is applied to real images and its visual change measured with the
backend of the threshold: what lies within [0, t] may be demanded of a system, the rest may not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from adverse.errors import AdverseError, StudyError
from adverse.humans.thresholds import Kind, Threshold, threshold
from adverse.mutations.hazards import mutations_of
from adverse.mutations.settings import apply_setting
from adverse.plugins import Registry
from adverse.requirements.versions import BATTERIES
from adverse.types import Image, Setting
from adverse.visual import Backend, Reference

TRANSFORMATIONS = {corruption: name for name, corruption in BATTERIES.items() if name.startswith("t.")}
"""The transformation that people were asked about and that a corruption is nearest to."""


@dataclass(frozen=True, eq=False)
class Example:
    """An image of a setting with its visual change, near to the threshold."""

    image: Image
    name: str
    visual_change: float


@dataclass(eq=False)
class SettingCoverage:
    """One setting: the visual change of every image, and how many lie within what people tolerate."""

    setting: str
    family: str
    severity: str
    limit: Threshold | None
    backend: Backend = "vif"
    visual_change: list[float] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    inside: Example | None = None
    outside: Example | None = None
    no_estimate: str = ""
    """Why there is no threshold although people were asked."""

    @property
    def at_least(self) -> bool:
        """Whether people may tolerate more than is counted: no drop was found."""
        return self.limit is not None and (self.limit.value is None or self.limit.fallback)

    @property
    def within(self) -> int | None:
        """How many images lie within what people tolerate; None where no threshold is known."""
        if self.limit is None:
            return None
        return sum(change <= self.limit.tolerated_to for change in self.visual_change)

    @property
    def share(self) -> float | None:
        """The same as a share; None where nothing was measured or no threshold is known."""
        if self.within is None or not self.visual_change:
            return None
        return self.within / len(self.visual_change)

    def take(self, name: str, image: Image, change: float) -> None:
        """Count an image, and keep it where it is the nearest to the threshold on its side."""
        self.visual_change.append(change)
        if self.limit is None:
            return
        example = Example(image, name, change)
        end = self.limit.tolerated_to
        if change <= end and (self.inside is None or change > self.inside.visual_change):
            self.inside = example
        if change > end and (self.outside is None or change < self.outside.visual_change):
            self.outside = example


def thresholds_of(
    settings: Sequence[Setting],
    source: str | float,
    kind: Kind,
    backend: Backend | None = None,
    *,
    no_estimate: dict[str, str] | None = None,
) -> dict[str, Threshold]:
    """Return the threshold of each setting that has one: of its mutation, or of what that is nearest to.

    Where people were asked and gave no estimate, `no_estimate` gets the reason.
    """
    found = {}
    for setting in settings:
        names = [name for name, _ in mutations_of(setting.id)]
        if len(names) != 1:
            continue  # nobody was asked about one mutation after another
        for name in (names[0], TRANSFORMATIONS.get(names[0])):
            try:
                if name is not None:
                    found[setting.id] = threshold(
                        source, name, kind, backend=backend, where="--thresholds", option="--backend"
                    )
                    break
            except StudyError as error:
                if "human study could not estimate" in error.what:
                    if no_estimate is not None:
                        no_estimate[setting.id] = f"{error.what}: {error.got}"
                    break
                if "no threshold is published" not in error.what and "human study has no" not in error.what:
                    raise
    return found


def coverage(
    images: Iterable[tuple[str, Image]],
    settings: Sequence[Setting],
    limits: Mapping[str, Threshold],
    registry: Registry,
    *,
    seed: int = 0,
    backend: Backend = "vif",
    no_estimate: Mapping[str, str] | None = None,
) -> list[SettingCoverage]:
    """Measure every setting on every image; `backend` is for settings without a threshold.

    `no_estimate` says of some of those why people's answers gave none.
    A setting that cannot be applied, or an image that is too small or constant, is listed with the reason.
    """
    found = [
        SettingCoverage(
            setting.id,
            setting.family,
            _severity(setting),
            limit,
            limit.backend if limit else backend,
            no_estimate=(no_estimate or {}).get(setting.id, ""),
        )
        for setting in settings
        for limit in [limits.get(setting.id)]
    ]
    for name, image in images:
        references: dict[Backend, Reference] = {}
        for setting, row in zip(settings, found, strict=True):
            by = row.backend
            try:
                if by not in references:
                    references[by] = Reference(image, backend=by)
                changed = apply_setting(image, setting, registry, seed=seed, key=name)
                row.take(name, changed, references[by].visual_change(changed))
            except AdverseError as error:
                row.refused.append(f"{name}: {error.what}")
    return found


def needs_only_the_image(setting: Setting) -> bool:
    """Tell whether a setting can be applied to an image by itself: depth and labels are not at hand."""
    return not setting.needs & {"depth_m", "labels"}


def _severity(setting: Setting) -> str:
    """Return what tells the settings of one family apart.

    >>> _severity(Setting("c.fog(severity=3)", (), "mild", frozenset()))
    '3'
    """
    ((_, options),) = [*mutations_of(setting.id)][:1]
    if list(options) == ["severity"]:
        return str(options["severity"])
    return ", ".join(f"{name}={value}" for name, value in options.items())


def family_rows(rows: Sequence[SettingCoverage]) -> dict[str, list[SettingCoverage]]:
    """Return the settings of each family, in their order."""
    families: dict[str, list[SettingCoverage]] = {}
    for row in rows:
        families.setdefault(row.family, []).append(row)
    return families


BINS = 20


def histogram(values: Sequence[float], bins: int = BINS) -> tuple[list[float], list[float]]:
    """Return the outline of a histogram from 0 to 1: x, and the share of the values.

    >>> histogram([0.1, 0.9], bins=2)
    ([0.0, 0.5, 0.5, 1.0], [0.5, 0.5, 0.5, 0.5])
    """
    count, edges = np.histogram(values, bins=bins, range=(0, 1))
    share = count / max(len(values), 1)
    return np.repeat(edges, 2)[1:-1].tolist(), np.repeat(share, 2).tolist()
