"""The network without protection."""

from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from fairbits.estimators.base import InvariantClassifier
from fairbits.nn import Inputs, PlainNet


class VanillaClassifier(TransformerMixin, InvariantClassifier):
    """A plain network without any protection, trained by the same loop: the point of comparison.

    `sensitive_features` are accepted and used only by ``selection="paper"``.

    >>> from fairbits.datasets import make_shifted_bits
    >>> data = make_shifted_bits(200, random_state=0)
    >>> VanillaClassifier(random_state=0).fit(data.X, data.y).predict_proba(data.X).shape
    (200, 2)
    """

    def build(self, inputs: Inputs, n_classes: int) -> Any:
        return PlainNet(inputs, self.hidden_sizes, n_classes, channels=self.channels)

    def transform(self, X: Any) -> np.ndarray:
        """Return the last hidden layer: what a network without protection would share."""
        return self._by_rows(X, lambda net, x: net(x).hidden)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Name the hidden units: hidden0, hidden1, ..."""
        check_is_fitted(self)
        return np.array([f"hidden{i}" for i in range(self.net_.head.in_features)], dtype=object)
