"""Trade-off curves: their area, and what is left of them in the worst case."""

from adverse.curves.curve import area
from adverse.curves.robustness import robustness, robustness_roc

__all__ = ["area", "robustness", "robustness_roc"]
