"""Trade-off curves: their area, what is left of them under mutation, and how sure that is."""

from adverse.curves.bootstrap import Resamples, Sample, draw, estimate
from adverse.curves.curve import area, hypervolume
from adverse.curves.detection_rates import adr, required_rates
from adverse.curves.interval import Interval, clopper_pearson, korn_graubard
from adverse.curves.predict import ScoreTable, predict_contextual, read_table, riot_2018
from adverse.curves.quantities import Area, Difference, Expected, Mean, Ratios, Recall, Share
from adverse.curves.ranking import changes, rank
from adverse.curves.robustness import expected_curve, mean_over_mutations, robustness, robustness_roc
from adverse.curves.studentized import interval, intervals

__all__ = [
    "Area",
    "Difference",
    "Expected",
    "Interval",
    "Mean",
    "Ratios",
    "Recall",
    "Resamples",
    "Sample",
    "ScoreTable",
    "Share",
    "adr",
    "area",
    "changes",
    "clopper_pearson",
    "draw",
    "estimate",
    "expected_curve",
    "hypervolume",
    "interval",
    "intervals",
    "korn_graubard",
    "mean_over_mutations",
    "predict_contextual",
    "rank",
    "read_table",
    "required_rates",
    "riot_2018",
    "robustness",
    "robustness_roc",
]
