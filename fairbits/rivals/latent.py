"""Normal distributions that networks give, in bits, and the base of the methods with such a representation."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from fairbits.estimators import InvariantClassifier, setting
from fairbits.estimators.fitting import fit_seed
from fairbits.nn.code_networks import dense_layers
from fairbits.training import Batch

LOG_VARIANCES = (-6.0, 4.0)  # limits of every normal a network gives, which keep exponentials and their gradients small


class Normal(NamedTuple):
    """Independent normal distributions, one for each entry."""

    mean: Tensor
    log_variance: Tensor

    def draw(self, uniforms: Tensor) -> Tensor:
        """Return one draw, by uniforms of the same shape."""
        return self.mean + torch.exp(self.log_variance / 2) * normal_quantiles(uniforms)

    def bits(self, x: Tensor) -> Tensor:
        """Return -log2 of the density of rows x, summed over columns.  (n, d) -> (n,)"""
        square = (x - self.mean).square() * torch.exp(-self.log_variance)
        return (square + self.log_variance + math.log(2 * math.pi)).sum(-1) / (2 * math.log(2))


def normal_quantiles(uniforms: Tensor) -> Tensor:
    """Turn uniforms in [0, 1) into standard normals.

    >>> normal_quantiles(torch.tensor([0.5, 0.975])).round(decimals=2)
    tensor([0.0000, 1.9600])
    """
    return math.sqrt(2) * torch.erfinv((2 * uniforms - 1).clamp(-1 + 1e-6, 1 - 1e-6))


def divergence(q: Normal, p: Normal | None = None) -> Tensor:
    """Return KL(q || p) of every row in bits, summed over columns; p is N(0, 1) unless given.  (n,)

    >>> divergence(Normal(torch.ones(1, 2), torch.zeros(1, 2))) * math.log(2)
    tensor([1.])
    """
    mean, log_variance = (0, torch.zeros_like(q.log_variance)) if p is None else p
    log_ratio = q.log_variance - log_variance
    square = (q.mean - mean).square() * torch.exp(-log_variance)
    return (log_ratio.exp() - 1 - log_ratio + square).sum(-1) / (2 * math.log(2))


class NormalLayers(nn.Module):
    """Dense layers that give a normal: its mean and its log-variance within limits; without spread, variance 1."""

    def __init__(self, sizes: Sequence[int], n_outputs: int, *, spread: bool = True):
        super().__init__()
        self.hidden = dense_layers(sizes)
        self.mean = nn.Linear(sizes[-1], n_outputs)
        self.log_variance = nn.Linear(sizes[-1], n_outputs) if spread else None

    def forward(self, *parts: Tensor) -> Normal:
        hidden = self.hidden(torch.cat(parts, -1))
        mean, spread = self.mean(hidden), self.log_variance
        return Normal(mean, torch.zeros_like(mean) if spread is None else spread(hidden).clamp(*LOG_VARIANCES))


class LatentClassifier(TransformerMixin, InvariantClassifier):
    """Base of the methods whose representation z is drawn from a normal distribution that the network gives.

    Predictions use its mean, a function of the row; a statement about the drawn z does not cover them. The decoder
    p(x|z,s) is normal with variance 1 for every column, or pixel, so standardise the columns. Learnt variances fit
    better but work worse: z is spent on the rarest categories of a table.

    Parameters
    ----------
    latent_size : numbers per row
    representation : what `transform` returns: "sampled" is one draw of z, which the loss is about; "mean" is its mean,
        which may reveal far more

    The other parameters are those of all methods; see `InvariantClassifier`.
    """

    latent_size: int = setting(8, at_least=1, whole=True)
    representation: str = setting("sampled", one_of=("sampled", "mean"))

    protects: ClassVar[bool] = True

    def criterion(self, terms: dict[str, Tensor], scalars: dict[str, Tensor]) -> Tensor:
        """Return what chooses the epoch, of the terms on validation rows."""
        raise NotImplementedError(f"{type(self).__name__} does not define how to choose an epoch.")

    def evaluate(self, net: Any, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the loss, with noise that is the same at every epoch and the cross-entropy of the predictions."""
        terms, probabilities = self.loss(net, batch, scalars), net.probabilities(batch.x)
        smallest = torch.finfo(probabilities.dtype).tiny
        terms["cross_entropy"] = self.cross_entropy(probabilities.clamp(min=smallest).log(), batch)
        terms["total"] = self.criterion(terms, scalars)
        if self.training.selection == "paper":
            terms["probabilities"] = probabilities
        return terms

    def probabilities(self, net: Any, x: Tensor) -> Tensor:
        return net.probabilities(x)

    def transform(self, X: Any) -> np.ndarray:
        """Return one draw of each row's representation, or its mean.  (n, latent_size)"""
        if self.representation == "mean":
            return self._by_rows(X, lambda net, x: net.latent_mean(x))
        rng = np.random.default_rng(fit_seed(self.random_state))

        def draw(net: Any, x: Tensor) -> Tensor:
            uniforms = rng.random((len(x), net.noise_size), dtype=np.float32)
            return net.latent_draw(x, torch.from_numpy(uniforms).to(x.device))

        return self._by_rows(X, draw)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Name the numbers: latent0, latent1, ..."""
        check_is_fitted(self)
        return np.array([f"latent{i}" for i in range(self.latent_size)], dtype=object)


def mean_over_pairs(values: Tensor, share: Tensor) -> Tensor:
    """Return the mean of values (K, K) over pairs of different groups, which count by the product of their shares."""
    pairs = share.unsqueeze(-1) * share.unsqueeze(-2) * (1 - torch.eye(len(share), device=share.device))
    pairs = pairs / pairs.sum().clamp(min=torch.finfo(pairs.dtype).tiny)  # here: a gradient over tiny would overflow
    return (pairs * values).sum()


def added(values: Iterable[Tensor], like: Tensor) -> Tensor:
    """Return the sum of numbers, one for each sensitive column; 0 if there is none."""
    return torch.stack([torch.zeros_like(like.flatten()[0]), *values]).sum()
