"""Trade-off curves: their area, what is left of them under mutation, and how sure that is."""

from adverse.curves.adr import adr
from adverse.curves.bootstrap import Sample, estimate
from adverse.curves.curve import area, hypervolume
from adverse.curves.interval import Interval
from adverse.curves.predict import predict_contextual
from adverse.curves.quantities import Area, Difference, Expected, Mean, Ratios, Recall, Share
from adverse.curves.ranking import changes, rank
from adverse.curves.rates import clopper_pearson, korn_graubard
from adverse.curves.required import required_rates
from adverse.curves.resample import Resamples, draw
from adverse.curves.robustness import expected_curve, mean_over_mutations, robustness, robustness_roc
from adverse.curves.studentized import interval, intervals
from adverse.curves.table import ScoreTable, read_table, riot_2018

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
