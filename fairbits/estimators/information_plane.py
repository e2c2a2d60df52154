"""The information plane: what a code reveals about rows, label and groups while it trains."""

import math
from typing import Any

import torch
from torch import Tensor

from fairbits.estimators.fitting import fit_stack
from fairbits.information import binary_entropy, joint_information, word_tables

ABOUT = ("about_x", "about_y", "about_s")


def information_plane(estimator: Any, X: Any, y: Any, *, sensitive_features: Any) -> list[dict[str, float]]:
    """Fit a copy of a method with a code; return what its code reveals on the validation rows, epoch by epoch, in bits.

    I(X;T) as `about_x`, I(T;Y) as `about_y` and I(T;S) as `about_s` (of several columns the most), exact for these
    rows, which are few: the last two err upwards. The copy measures all this after every epoch; the method itself does
    not, so that nobody else pays for it. At most 20 bits.

    Examples
    --------
    >>> from fairbits import BinaryMIClassifier, Schedule
    >>> from fairbits.datasets import make_shifted_bits
    >>> data = make_shifted_bits(400, random_state=0)
    >>> model = BinaryMIClassifier(code_size=3, max_epochs=2, schedule=Schedule(min_steps=50), random_state=0)
    >>> sorted(information_plane(model, data.X, data.y, sensitive_features=data.s)[-1])
    ['about_s', 'about_x', 'about_y', 'epoch']
    """
    method = type(estimator)

    def evaluate(self: Any, net: Any, batch: Any, scalars: Any) -> dict[str, Tensor]:
        return method.evaluate(self, net, batch, scalars) | _measured(self, net.theta(batch.x), batch)

    watched = type(method.__name__, (method,), {"evaluate": evaluate})(**estimator.get_params())
    fit_stack([watched], X, y, sensitive_features=sensitive_features)
    return [
        {"epoch": epoch["epoch"], **{name: epoch[f"validation_{name}"] for name in ABOUT}} for epoch in watched.history_
    ]


def _measured(model: Any, theta: Tensor, batch: Any) -> dict[str, Tensor]:
    def about(groups: Tensor, count: int) -> Tensor:
        return joint_information(theta, groups, weights=batch.weight, n_groups=count)

    columns = [about(batch.s[:, i], len(names)) for i, names in enumerate(model.groups_)]
    return {
        "about_x": _about_rows(theta, batch.weight),
        "about_y": about(batch.y, len(model.classes_)),
        "about_s": torch.stack(columns).amax(0),
    }


def _about_rows(theta: Tensor, weight: Tensor) -> Tensor:
    """Return I(X;T) = H(T) - H(T|X) of rows that are all different; without a table for every row."""
    theta, share = theta.double(), (weight / weight.sum()).double()
    (table,), _ = word_tables(theta, torch.zeros(len(share), dtype=torch.int64), weights=share, n_groups=1)
    return (torch.special.entr(table).sum() / math.log(2) - share @ binary_entropy(theta).sum(-1)).float()
