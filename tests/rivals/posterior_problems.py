"""Populations whose posteriors are known, for the rules on posteriors."""

import numpy as np


def population(n, n_groups=2, n_classes=2, seed=0):
    """Return x (n, 2), y, s and p(y,s|x) (n, C, K): the label follows x0 and x1, the group x1, both logistic."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    p_label = _softmax(np.outer(1.5 * x[:, 0] + x[:, 1], np.arange(n_classes)))
    p_group = _softmax(np.outer(1.5 * x[:, 1], np.arange(n_groups)))
    y, s = ((rng.random((n, 1)) > p.cumsum(1)).sum(1).clip(max=p.shape[1] - 1) for p in (p_label, p_group))
    return x, y, s, p_label[:, :, None] * p_group[:, None, :]


def _softmax(logits):
    odds = np.exp(logits - logits.max(1, keepdims=True))
    return odds / odds.sum(1, keepdims=True)
