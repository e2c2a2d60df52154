"""The most accurate decision within a limit of the disparity, of all that do not look at the group."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from fairbits.errors import InputError
from fairbits.estimators.optimal_front import constrained_law
from fairbits.metrics import discrimination
from fairbits.rivals.posterior_rule import PosteriorRule

PROGRAMME_ROWS = 20_000  # rows of the linear programme at most, evenly spaced
SHARES = (1.0, 0.9, 0.8, 0.65, 0.5, 0.25, 0.0)  # of the limit, tried until the training rows keep it
BEYOND = (1.02, 1.05, 1.1, 1.2, 1.4)  # times the multipliers of the limit 0, tried after these


class BayesRuleClassifier(PosteriorRule):
    """Decide by p(y=1|x) - 1/2 > sum_s lambda_s p(s|x) / pi_s, with one multiplier for each group, of either sign.

    No decision that looks at x alone is more accurate at the same disparity, if the posteriors are right (Chen et al.
    2023; Xian and Zhao 2024; Zeng et al. 2024). The multipliers are the prices of a linear programme on the posteriors
    of the training rows, out of fold. Its limit is lowered until the decisions on these rows differ in rate by at most
    `limit` between the groups as recorded; if that never happens, the rule that comes closest is taken.

    Two classes only. The decision is what is protected, so `predict_proba` is 1 for the class decided on, else 0.

    Parameters
    ----------
    limit : largest difference in the rate of positive decisions between two groups of the training rows

    The other parameters are those of `PosteriorRule`.

    Attributes
    ----------
    multipliers_ : (K,) lambda, in the order of the groups
    """

    def check_labels(self, classes: np.ndarray) -> None:
        if len(classes) > 2:
            raise InputError(f"y has {len(classes)} classes, {classes.tolist()}; the Bayes rule takes two.")

    def choose(self, joint: np.ndarray, y: np.ndarray, s: np.ndarray) -> None:
        some = np.linspace(0, len(joint) - 1, min(len(joint), PROGRAMME_ROWS)).astype(np.int64)
        gain, group = joint[some].sum(2) / len(some), joint[some].sum(1)
        self.prior_ = group.mean(0)
        rules = self._candidates(gain, (group / group.sum(0)).T)
        self.multipliers_ = self.first_within(
            (rule, discrimination(self._decide(joint, rule), sensitive_features=s)) for rule in rules
        )

    def _candidates(self, gain: np.ndarray, group: np.ndarray) -> Iterator[np.ndarray]:
        """Yield multipliers, from the most accurate rule to those of ever less disparity.  (K,)"""
        for share in SHARES:
            _, prices = constrained_law(gain, group, share * self.limit)
            # By prices, 1 beats 0 if 2 p(y=1|x) - 1 > sum_s (prices_s1 - prices_s0) p(s|x) / pi_s.
            multipliers = (prices[:, 1] - prices[:, 0]) / 2
            yield multipliers
        yield from (factor * multipliers for factor in BEYOND)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return 1 for the class decided on, and 0 for the other.  (n, 2)"""
        return np.eye(2)[self._decide(self.posterior(X), self.multipliers_)]

    def _decide(self, joint: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
        """Return 1 where the second class is decided on, else 0.  (n,)"""
        price = joint.sum(1) @ (multipliers / self.prior_)
        return (joint[:, 1].sum(1) - 0.5 > price).astype(np.int64)
