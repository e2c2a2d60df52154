"""fairlearn's AdversarialFairnessClassifier."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from fairbits.estimators import setting
from fairbits.estimators.settings import layer_sizes
from fairbits.rivals.adapter import ComparedClassifier, optional_import


class WholeSeeds(np.random.RandomState):
    """Random states whose `random` is a whole number.

    Fairlearn 0.15 seeds torch by int(random_state.random()): 0 for every fraction, so `random_state` has no effect.
    """

    def random(self, size=None):
        return self.randint(2**31, size=size)


@dataclass(kw_only=True, eq=False, repr=False)
class FairlearnAdversarialClassifier(ComparedClassifier):
    """Hide the group from an adversary that looks for it in the predicted probability (Zhang et al. 2018).

    Fairlearn's `AdversarialFairnessClassifier` under demographic parity, on torch. The predictor follows
    g_y - proj(g_y on g_s) - alpha g_s, with g_y and g_s the gradients of its own loss and of the adversary's.
    Predictions need no S.

    In fairlearn 0.15 the projection is wrong for predictors with a hidden layer: it adds the products of all pairs of
    rows of two weight matrices, not of equal rows. Compare with a linear predictor (``hidden_sizes=()``) too, for
    which it is right, with weights and bias taken apart. The game is not stable: large alphas may turn predictions
    round (AUC below 0.5).

    Parameters
    ----------
    alpha : the strength; 0 still has the projection
    hidden_sizes : widths of the predictor's hidden layers; () is a linear predictor
    adversary_sizes : widths of the adversary's hidden layers; () is a linear adversary
    learning_rate, epochs, batch_size : of both players' Adam; rows are shuffled at every epoch

    The other parameters are those of `ComparedClassifier`.

    References
    ----------
    Zhang, Lemoine and Mitchell 2018, "Mitigating unwanted biases with adversarial learning".
    """

    alpha: float = setting(1.0, at_least=0)
    hidden_sizes: tuple[int, ...] = setting((64,), check=layer_sizes)
    adversary_sizes: tuple[int, ...] = setting((64,), check=layer_sizes)
    learning_rate: float = setting(1e-3, above=0)
    epochs: int = setting(100, at_least=1, whole=True)
    batch_size: int = setting(256, at_least=1, whole=True)

    title: ClassVar[str] = "fairlearn's AdversarialFairnessClassifier"

    def train(self, x: np.ndarray, y: np.ndarray, s: np.ndarray, seed: int) -> None:
        model = optional_import("fairlearn.adversarial").AdversarialFairnessClassifier(
            backend="torch",
            predictor_model=dense(self.hidden_sizes, "relu"),
            adversary_model=dense(self.adversary_sizes, "leaky_relu"),  # where all ReLUs are dead, fairlearn gives NaN
            alpha=float(self.alpha),
            learning_rate=float(self.learning_rate),
            epochs=int(self.epochs),
            batch_size=int(self.batch_size),
            shuffle=True,
            random_state=WholeSeeds(seed),
        )
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            try:
                model.fit(x, y, sensitive_features=s)
            except RuntimeError as error:  # torch's, of probabilities that are not
                raise RuntimeError(f"{self.title} has diverged ({error}); lower alpha or learning_rate.") from error
        self.net_ = nn.Sequential(*model.backendEngine_.predictor_model.layers_)

    def chance(self, x: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return self.net_(torch.from_numpy(x).float())[:, 0].double().numpy()


def dense(widths: tuple[int, ...], activation: str) -> list[Any]:
    """Describe hidden layers to fairlearn.

    >>> dense((64, 8), "relu")
    [64, 'relu', 8, 'relu']
    """
    return [part for width in widths for part in (int(width), activation)]
