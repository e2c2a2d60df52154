"""What all methods share, the scikit-learn contract around a network and a loss, and the network without protection."""

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, ClassVar, Self, dataclass_transform

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from fairbits.encoding import GroupEncoder, take_rows
from fairbits.encoding.table_encoder import read_numbers
from fairbits.errors import InputWarning
from fairbits.estimators.fitting import fit_stack
from fairbits.information import weigh_groups
from fairbits.information.words import normalised
from fairbits.nn import Inputs, PlainNet
from fairbits.settings import layer_sizes, setting, tunable
from fairbits.training import Batch, Replica, Schedule, TrainingData, train

PREDICTION_ROWS = 4096  # rows predicted at a time: their hidden units stay in the processor's cache
CONCERNED_ROWS = 10_000  # rows of a fit that its concerns are judged by
softmax = partial(torch.softmax, dim=-1)  # logits of classes (..., n, classes) to their probabilities


class VanishedClassWarning(InputWarning):
    """The model never predicts one of the classes of the training rows."""


def log_softmax(logits: Tensor) -> Tensor:
    """Return the log-probabilities of classes (..., n, classes); with rows innermost, twice as fast for few classes."""
    return torch.log_softmax(logits.mT, -2).mT


def weigh_cells(y: Tensor, s: Tensor, weight: Tensor, sizes: Sequence[int], n_labels: int = 0) -> tuple[tuple, ...]:
    """Weigh the groups of every sensitive column as (groups, 1), or with `n_labels` as (groups, share) of each label.

    Labels, groups (..., columns) and weights may be those of many batches at once.
    """
    within = [weight * (y == label) for label in range(n_labels)]
    strata = [(w, w.sum(-1)) for w in within] or [(weight, torch.ones_like(weight[..., 0]))]
    columns = [(s[..., c], size) for c, size in enumerate(sizes)]
    return tuple((weigh_groups(g, weights=w, n_groups=k), share) for g, k in columns for w, share in strata)


def add_cells(values: Iterable[Tensor], cells: Iterable[tuple]) -> Tensor:
    """Add up the values of cells (groups, share), times their share."""
    return reduce(torch.add, (share * value for value, (_, share) in zip(values, cells, strict=True)))


def torch_device(value: Any) -> str | None:
    """Return what is wrong with the name of a device, or None."""
    try:
        torch.empty(0, device=value)
    except (RuntimeError, TypeError, AssertionError) as error:
        return f"is not a device that torch can use here ({str(error).splitlines()[0]}); 'cpu' always is"
    return None


def known_schedule(value: Any) -> str | None:
    """Return what is wrong with a schedule, or None; it has checked its own settings."""
    fits = value is None or isinstance(value, Schedule)
    return None if fits else "must be a Schedule, such as Schedule(patience=10), or None for the method's own"


class OwnDtypeMixin(TransformerMixin):
    """A transformer whose output has a dtype of its own, whatever that of the rows."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags


@dataclass_transform(kw_only_default=True)
class SettingsClassifier(ClassifierMixin, BaseEstimator):
    """A classifier by `predict_proba`; a subclass's annotated settings are its constructor's keyword arguments."""

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        dataclass(kw_only=True, eq=False, repr=False)(cls)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class of `classes_`, one row per row of X."""
        raise NotImplementedError(f"{type(self).__name__} does not define how it predicts.")

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row."""
        best = self.predict_proba(X).argmax(1)  # first, so that an unfitted estimator says so
        return self.classes_[best]


class TrainedClassifier(SettingsClassifier):
    """What every method has, however it may `train` its network; see `InvariantClassifier` for the parameters."""

    max_epochs: int = setting(100, at_least=1, whole=True)
    groups: str | GroupEncoder = "intersection"
    device: str = setting("cpu", check=torch_device)
    verbose: bool = False
    random_state: Any = None

    #: Settings in which the replicas of one stack may differ; the loss finds them among its scalars.
    stacked_settings: ClassVar[tuple[str, ...]] = ()
    #: How the method trains, unless its setting `schedule` says otherwise.
    own_schedule: ClassVar[Schedule] = Schedule()
    #: What to do where the method protects too much.
    weaker: ClassVar[str] = "Lower gamma"
    #: Whether a fit without sensitive features deserves a warning.
    protects: ClassVar[bool] = False

    @property
    def max_validation_rows(self) -> int | None:
        """Validation rows worth looking at, at most."""
        return None

    def build(self, inputs: Inputs, n_classes: int) -> nn.Module:
        """Return a fresh network for so many features, or images of a shape; `groups_` has each column's groups.

        `loss` and `probabilities` call it; unless you define them, as `net(x, noise)` and `net(x)`, and they read the
        `logits` (n, classes) of what it returns. If the network draws, its `noise_size` is how many uniform numbers it
        needs per row.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define its network.")

    def initialise(self, net: nn.Module, y: Tensor, s: Tensor, weight: Tensor) -> None:
        """Let the fresh network see the labels, groups and weights of the training rows."""

    def prepare(self, y: Tensor, s: Tensor, weight: Tensor) -> Any:
        """Return what the loss needs of labels, groups and weights, as nested tuples of tensors: the groups, weighed.

        Called once for all batches of an epoch, (replicas, steps, rows); each loss gets its part as ``batch.prepared``.
        """
        within = getattr(self, "condition_on_label", False)
        return weigh_cells(y, s, weight, self.group_sizes, len(self.classes_) if within else 0)

    def probabilities(self, net: nn.Module, x: Tensor) -> Tensor:
        """Return the class probabilities of a batch of rows.  (n, classes)"""
        return softmax(net(x).logits)

    def complete(self, x: Tensor, y: Tensor, weight: Tensor) -> None:
        """Let the trained network, `net_`, see the rows of the fit once more."""

    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None, unlabelled: Any = None
    ) -> Self:
        """Fit to rows X with labels y.

        Parameters
        ----------
        X : (n, features) numbers; put a `TableEncoder` in front of a mixed table. Or images (n, channels, height,
            width), bytes or numbers; bytes stay bytes in memory
        y : (n,) labels of two or more classes
        sensitive_features : one or several columns (array, pandas, polars); needed here only, never for predictions
        sample_weight : (n,) non-negative; a whole number counts as so many copies of the row
        unlabelled : a value of y that marks rows without a label, such as -1; they count in the leakage only. With the
            domain as sensitive feature this is domain adaptation: the target's labels are not needed
        """
        given = {"sensitive_features": sensitive_features, "sample_weight": sample_weight, "unlabelled": unlabelled}
        fit_stack([self], X, y, **given)
        parts, n = (X, y, sensitive_features), len(np.asarray(y))
        if n > CONCERNED_ROWS:
            some = np.linspace(0, n - 1, CONCERNED_ROWS).astype(np.int64)
            parts = tuple(take_rows(part, some) for part in parts)
        for concern in self.concerns(*parts):
            warnings.warn(concern, stacklevel=2)
        return self

    def concerns(self, X: Any, y: Any = None, sensitive_features: Any = None) -> list[Warning]:
        """Return what you should know about this fit, judged by rows X; `fit` warns of what its own rows show."""
        best = self._by_rows(X, self.probabilities).argmax(1)  # not by `predict`, which may draw
        never = [repr(str(name)) for number, name in enumerate(self.classes_) if number not in best]
        if not never:
            return []
        problem = f"The model never predicts the class {', '.join(never)} on these {len(best):,} rows."
        remedy = f"{self.weaker}, merge rare classes, or compare predict_proba with a threshold of your own."
        return [VanishedClassWarning(problem, remedy=remedy)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class of `classes_`, one row per row of X.

        A function of the row itself: a certificate or the information of a drawn code does not cover it.
        """
        return self._by_rows(X, self.probabilities)

    def _by_rows(self, X: Any, function: Callable[[Any, Tensor], Tensor]) -> np.ndarray:
        """Apply function(net, x) to the rows of X, a slice at a time."""
        check_is_fitted(self)
        x = torch.from_numpy(np.require(read_numbers(self, X, reset=False), requirements="W"))
        with torch.inference_mode():
            parts = [function(self.net_, part.to(self.device)).cpu().numpy() for part in x.split(PREDICTION_ROWS)]
        return np.concatenate(parts).astype(np.float64 if parts[0].dtype == np.float32 else parts[0].dtype)

    @property
    def training(self) -> Schedule:
        """The schedule that a fit follows."""
        return getattr(self, "schedule", None) or self.own_schedule

    @property
    def group_sizes(self) -> list[int]:
        """How many groups each sensitive column has."""
        return [len(names) for names in self.groups_]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags


def method_path(method: Any) -> str:
    """Return in what the models of a path differ: the limit that they are trained to, gamma, or the candidate."""
    return next(name for name in ("limit", "gamma", "candidate") if name in method.stacked_settings)


def has_path(method: Any) -> bool:
    """Return whether a method has a limit or a gamma, whose values train as one stack."""
    return not {"limit", "gamma"}.isdisjoint(getattr(method, "stacked_settings", ()))


class NetworkSettings(SettingsClassifier):
    """Settings of a network that is trained by batches."""

    hidden_sizes: tuple[int, ...] = setting((64,), check=layer_sizes)
    channels: tuple[int, ...] = setting((16, 32, 64), check=layer_sizes)
    learning_rate: float = tunable(1e-3, 1e-4, 1e-2, log=True, above=0)
    weight_decay: float = tunable(0.0, 0.0, 0.1, at_least=0)
    batch_size: int = setting(256, at_least=1, whole=True)
    max_epochs: int  # of every method; this is its place in the constructor
    schedule: Schedule | None = setting(None, check=known_schedule)


class InvariantClassifier(TrainedClassifier, NetworkSettings):
    """Base of methods: a method is a network (`build`) and a loss; everything else is here.

    Parameters
    ----------
    hidden_sizes : widths of the hidden layers before the representation
    channels : widths of the convolutional blocks in front of them for images; a table has none
    learning_rate, weight_decay : of Adam; the decay is decoupled
    batch_size, max_epochs : rows per step, and passes over the training rows at most
    schedule : a `Schedule`: patience, warm-up, validation rows, choice of the epoch; None for the method's own
    groups : several sensitive columns form their "intersection", or "each" is protected on its own and their
        leakages add up. A `GroupEncoder` also sets the bins of numbers and the smallest group
    device : where torch computes
    verbose : show a progress bar
    random_state : seed of the fit; an int also makes every draw of `transform` repeatable, and then hides nothing from
        anyone who knows it. None takes fresh randomness from the operating system
    """

    stacked_settings: ClassVar[tuple[str, ...]] = ("learning_rate", "weight_decay")

    @property
    def opponent(self) -> str | None:
        """A part of the network that is trained in turn on the method's `opponent_loss`, by settings `opponent_...`."""
        return None

    @property
    def balanced_rows(self) -> int:
        """Rows of an extra batch at every step, drawn evenly from the (label, group) cells: `batch.extra`."""
        return 0

    def loss(self, net: nn.Module, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the terms of the training loss of a batch, in bits; "total" is minimised.

        Written for one network; the loop maps it over a stack by `torch.func.vmap`, so no data-dependent branches
        or boolean indexing. `scalars` holds the `stacked_settings` and "ramp", which rises from 0 to 1 in the warm-up.
        """
        cross_entropy = self.cross_entropy(log_softmax(net(batch.x, batch.noise).logits), batch)
        return {"total": cross_entropy, "cross_entropy": cross_entropy}

    def evaluate(self, net: nn.Module, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the terms of a full pass over validation rows; the loss itself unless a method knows better."""
        terms = self.loss(net, batch, scalars)
        if self.training.selection == "paper":
            terms["probabilities"] = self.probabilities(net, batch.x)
        return terms

    def train(self, replicas: Sequence[Replica], data: TrainingData, **how: Any) -> None:
        """Train a stack of models with these settings; `how` as in `fairbits.training.train`."""
        train(replicas, data, self, **how)

    def cross_entropy(self, log_probabilities: Tensor, batch: Batch) -> Tensor:
        """Return the weighted mean of -log2 p(y), in bits, over the rows that have a label."""
        y, weight = batch.y, batch.weight
        if getattr(self, "has_unlabelled_", False):
            y, weight = y.clamp(min=0), normalised(weight * (y >= 0))
        own = log_probabilities.mT.gather(-2, y.unsqueeze(-2)).squeeze(-2)
        return weight @ own / -math.log(2)


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
