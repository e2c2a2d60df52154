"""What the methods with a Gaussian representation share."""

from typing import ClassVar

import numpy as np
import torch
from sklearn.base import TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from fairbits.estimators.base import InvariantClassifier
from fairbits.estimators.cells import weigh_cells
from fairbits.estimators.settings import setting
from fairbits.information import WeighedGroups
from fairbits.training import Batch


class LatentClassifier(TransformerMixin, InvariantClassifier):
    """Base of the methods whose representation z is drawn from a normal distribution that the network gives.

    Predictions use its mean: a function of the row, like all predictions, about which a statement about z says nothing.

    Parameters
    ----------
    latent_size : numbers per row
    representation : what `transform` returns: "sampled" is one draw of z, which is what the loss is about; "mean" is
        its mean, which may tell far more

    The other parameters are those of all methods; see `InvariantClassifier`.
    """

    latent_size: int = setting(8, at_least=1, whole=True)
    representation: str = setting("sampled", one_of=("sampled", "mean"))

    protects: ClassVar[bool] = True

    def criterion(self, terms: dict[str, Tensor], scalars: dict[str, Tensor]) -> Tensor:
        """Return what chooses the epoch, of the terms on validation rows."""
        raise NotImplementedError(f"{type(self).__name__} does not say how to choose an epoch.")

    def prepare(self, y: Tensor, s: Tensor, weight: Tensor) -> tuple[WeighedGroups, ...]:
        """Weigh the groups of every sensitive column."""
        return tuple(groups for (groups,) in weigh_cells(y, s, weight, self.group_sizes))

    def evaluate(self, net, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        """The loss with noise that is the same at every epoch, but the cross-entropy is that of the predictions."""
        terms, probabilities = self.loss(net, batch, scalars), net.probabilities(batch.x)
        smallest = torch.finfo(probabilities.dtype).tiny
        terms["cross_entropy"] = self.cross_entropy(probabilities.clamp(min=smallest).log(), batch)
        terms["total"] = self.criterion(terms, scalars)
        if self.training.selection == "paper":
            terms["probabilities"] = probabilities
        return terms

    def probabilities(self, net, x: Tensor) -> Tensor:
        return net.probabilities(x)

    def transform(self, X) -> np.ndarray:
        """Return one draw of each row's representation, or its mean.  (n, latent_size)"""
        if self.representation == "mean":
            return self._by_rows(X, lambda net, x: net.latent_mean(x))
        seed = None if self.random_state is None else check_random_state(self.random_state).randint(2**31)
        rng = np.random.default_rng(seed)

        def draw(net, x: Tensor) -> Tensor:
            uniforms = rng.random((len(x), net.noise_size), dtype=np.float32)
            return net.latent_draw(x, torch.from_numpy(uniforms).to(x.device))

        return self._by_rows(X, draw)

    def get_feature_names_out(self, input_features=None) -> np.ndarray:
        """Name the numbers: latent0, latent1, ..."""
        check_is_fitted(self)
        return np.array([f"latent{i}" for i in range(self.latent_size)], dtype=object)
