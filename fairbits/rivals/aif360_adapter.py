"""AIF360's LFR."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from fairbits.errors import InputError
from fairbits.estimators import setting
from fairbits.rivals.adapter import ComparedClassifier, optional_import


@dataclass(kw_only=True, eq=False, repr=False)
class AIF360LFRClassifier(ComparedClassifier):
    """Learning fair representations (Zemel et al. 2013) as in AIF360: each row is shared out among a few prototypes.

    This is `LearnedFairRepresentations` of `aif360.sklearn`, which computes gradients; the older `LFR` takes finite
    differences and stops after 5,000 evaluations, far too early on wide tables. Two groups only. Predictions need no S.

    Differs from Zemel et al., and from our `LFRClassifier`: memberships fall with the distance, not its square; columns
    have no weights; the terms are means over columns and prototypes, not sums; all rows at once, by L-BFGS.

    Parameters
    ----------
    fairness_weight : the strength: weight of the difference between the groups' mean memberships
    n_prototypes, reconstruct_weight, target_weight : as in AIF360
    max_iter : most steps of L-BFGS

    The other parameters are those of `ComparedClassifier`; the seed chooses where the prototypes start.

    References
    ----------
    Zemel et al. 2013, "Learning fair representations".
    """

    fairness_weight: float = setting(50.0, at_least=0)
    n_prototypes: int = setting(5, at_least=1, whole=True)
    reconstruct_weight: float = setting(0.01, at_least=0)
    target_weight: float = setting(1.0, at_least=0)
    max_iter: int = setting(1000, at_least=1, whole=True)

    title: ClassVar[str] = "AIF360's LFR"

    def train(self, x: np.ndarray, y: np.ndarray, s: np.ndarray, seed: int) -> None:
        if len(names := self.groups_[0]) > 2:
            raise InputError(f"sensitive_features has {len(names)} groups, {names}; {self.title} takes two.")
        with without_root_warnings():
            methods = optional_import("aif360.sklearn.preprocessing")
        self.model_ = methods.LearnedFairRepresentations(
            prot_attr="group",
            n_prototypes=self.n_prototypes,
            reconstruct_weight=self.reconstruct_weight,
            target_weight=self.target_weight,
            fairness_weight=self.fairness_weight,
            max_iter=self.max_iter,
            random_state=seed,
        )
        self.model_.fit(pd.DataFrame(x, index=pd.Index(s, name="group")), y)

    def chance(self, x: np.ndarray) -> np.ndarray:
        return self.model_.predict_proba(x)[:, 1]


@contextmanager
def without_root_warnings() -> Iterator[None]:
    """Keep AIF360's import from logging to the root logger that some of its own extras are not installed."""

    def drop(record: logging.LogRecord) -> bool:
        return False

    root, silent = logging.getLogger(), logging.NullHandler()  # without any handler, logging would install one
    root.addHandler(silent)
    root.addFilter(drop)
    try:
        yield
    finally:
        root.removeHandler(silent)
        root.removeFilter(drop)
