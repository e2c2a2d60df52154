"""A narrow code trained by its exact objective, to a limit on what it reveals, and released without a draw."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from fairbits.errors import InputError
from fairbits.estimators.base import softmax
from fairbits.estimators.codes import CodeClassifier, TrainedCode
from fairbits.information.exact import LN2, mixture_ratio, table_information
from fairbits.nn import CodeNet, Inputs, WordHead, draw_bits, word_probabilities
from fairbits.settings import setting, tunable
from fairbits.training import Batch, Schedule

BETA = 0.95  # share of the past in the running tables
FASTEST = 5.0  # times as fast as it falls, a multiplier rises at most: a label may be worth many bits per disparity
MISTAKE = 0.5  # bits that a wrong class costs, beside what its probability costs
STIFFNESS = 10.0  # of the price of a leakage above its limit, beside the multiplier
SHARPNESS = 100.0  # by how much the two groups that differ most outweigh other pairs
SMALL_INFORMATION = 1e-4  # bits; the root of information is about a disparity, so it is priced by its root's slope
ABSENT = 1e6  # lowers the logit of a pair with a group that has no rows, so that it takes no share
PRIOR_MASS = 1e-5  # of the labels' shares, added to every word of the running decoder
COUNTED_ROWS = 16_384  # at a time, for the decoder


class ExactCodeNet(CodeNet):
    """A code network with a table for a head; running tables and multipliers serve its training."""

    draws = False  # whether training sees one word of each row, or the probability of every word

    def __init__(
        self, inputs: Inputs, hidden_sizes: Sequence[int], code_size: int, sizes: Sequence[int], channels: Sequence[int]
    ):
        n_classes, *groups = sizes
        super().__init__(inputs, hidden_sizes, code_size, n_classes, channels=channels)
        self.head = WordHead(code_size, n_classes)  # type: ignore[assignment]
        for number, size in enumerate(sizes):  # of the labels, then of every cell's groups
            self.register_buffer(f"running{number}", torch.zeros(size, 2**code_size), persistent=False)
        for number, size in enumerate(groups):  # one over the rows of every group (effective, if weighted)
            self.register_buffer(f"noise{number}", torch.zeros(size), persistent=False)
        self.register_buffer("multipliers", torch.zeros(len(groups)), persistent=False)
        self.register_buffer("progress", torch.zeros(2), persistent=False)  # share of the steps done, and of one step

    def word_shares(self, x: Tensor, hardness: Tensor | float, noise: Tensor) -> Tensor:
        """Return each row's probability of every word, or the one word that the noise draws.  (n, words)"""
        theta = torch.sigmoid(hardness * self.logits(self.features(x)))
        return word_probabilities(draw_bits(theta, noise) if self.draws else theta)

    @torch.no_grad()
    def run(self, number: int, tables: Tensor) -> Tensor:
        """Blend the tables of a batch into the running ones and return those; what is absent keeps its table."""
        old = self.get_buffer(f"running{number}")
        present, started = (t.sum(-1, keepdim=True) > 0 for t in (tables, old))
        new = torch.where(present, torch.where(started, torch.lerp(tables, old, BETA), tables), old)
        old.copy_(new)
        return new


class LimitedCode(TrainedCode):
    """What `ExactCodeClassifier` shares with a code that needs no batches: objective, limit and decoder."""

    limit: float = tunable(0.05, 0.005, 0.5, log=True, at_least=0, at_most=1)
    measure: str = setting("disparity", one_of=("disparity", "information"))

    weaker: ClassVar[str] = "Raise the limit"
    hardness: ClassVar[float] = 5.0  # by how much the logits of a hard code are scaled up by the end of its training
    rise: ClassVar[float] = 1.0  # of a multiplier, in a fit whose leakage is as far above its limit as `clips` say
    clips: ClassVar[tuple[float, float]] = (0.01, 0.01)  # half a limit within these; a tight one needs a high price

    def table_sizes(self, n_classes: int) -> list[int]:
        """Return how many labels there are, and how many groups in each column, or in each within each label."""
        labels = n_classes if self.condition_on_label else 1
        return [n_classes, *(size for size in self.group_sizes for _ in range(labels))]

    def initialise(self, net: Any, y: Tensor, s: Tensor, weight: Tensor) -> None:
        """Note in the network how many steps are to come, and how many rows the groups have."""
        for number, (groups, _) in enumerate(self.prepare(y, s, weight)):
            net.get_buffer(f"noise{number}").copy_((groups.row_weights**2).sum(-1))
        net.progress[1] = 1 / self.max_epochs

    def loss(self, net: Any, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        done, step = net.progress.clone()
        hardness = 1 + (self.hardness - 1) * done if self.is_hard else 1.0
        words = net.word_shares(batch.x, hardness, batch.noise)
        labels = self._label_shares(words, batch)
        shares = decoder(net.run(0, labels))
        cross_entropy = -(labels * shares.log()).sum() / LN2
        error = (labels * (shares < shares.amax(0))).sum()
        total = cross_entropy + MISTAKE * error
        told = {"cross_entropy": cross_entropy, "loss": total}
        multipliers, leakages, limit = net.multipliers.clone(), [], scalars["limit"]
        scale = 1.0 if self.measure == "disparity" else (limit.clamp(min=SMALL_INFORMATION) * 4).rsqrt()
        for i, (groups, _) in enumerate(batch.prepared):
            tables = groups.row_weights @ words  # (groups, words)
            leakage, slope = self._leakage(net.run(i + 1, tables), groups.prior, net.get_buffer(f"noise{i}"))
            price = (multipliers[i] + STIFFNESS * scale * (leakage - limit)).clamp(min=0)
            total = total + price * scale * (slope * tables).sum()
            leakages.append(leakage)
        with torch.no_grad():
            step = step * (batch.weight.sum() > 0)  # padding is no step
            net.progress[0] += step
            if not leakages:
                return {"total": total, **told}
            found = torch.stack(leakages)
            pace = (scale * (found - limit) / (limit / 2).clamp(*self.clips)).clamp(-1, FASTEST)
            moved = (multipliers + step * self.rise * pace).clamp(min=0)
            net.multipliers.copy_(moved)
        return {"total": total, **told, self.measure: found.amax(), "multiplier": moved.amax()}

    def complete(self, x: Tensor, y: Tensor, weight: Tensor) -> None:
        """Count the decoder, p(y|t) of the words as they are released, half a row added to every count."""
        self.net_.head.hard.fill_(self.is_hard)
        labels = torch.full((len(self.classes_), 2**self.code_size), 0.5)
        for rows in torch.arange(len(y)).split(COUNTED_ROWS):
            words = word_probabilities(self._released(self.net_, x[rows].to(self.device)).cpu())
            labels += self._label_table(words, y[rows], weight[rows])
        self.net_.head.log_probabilities.copy_((labels / labels.sum(0)).log().mT)

    def code_probabilities(self, X: Any) -> np.ndarray:
        """Return the probability that each released bit is 1: 0 or 1 of a hard code.  (n, code_size)"""
        return self._by_rows(X, lambda net, x: self._released(net, x))

    def probabilities(self, net: Any, x: Tensor) -> Tensor:
        return net.expected(self._released(net, x), softmax)

    def _released(self, net: Any, x: Tensor) -> Tensor:
        if bool(net.head.hard) != self.is_hard:
            problem = f"The code was fitted for another release than {'hard' if self.is_hard else 'random'!r}."
            raise InputError(problem, remedy="Fit again with this release.")
        theta = net.theta(x)
        return (theta > 0.5).to(theta.dtype) if self.is_hard else theta

    def _label_shares(self, words: Tensor, batch: Batch) -> Tensor:
        """Return the table of a batch; of rows some of which have no label, that of the others.  (classes, words)"""
        labels = self._label_table(words, batch.y, batch.weight)
        return labels / labels.sum().clamp(min=torch.finfo(labels.dtype).tiny) if self.has_unlabelled_ else labels

    def _label_table(self, words: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        """Return how much weight each label has in each word, without the rows that have no label.  (classes, words)"""
        member = y.unsqueeze(0) == torch.arange(len(self.classes_), device=y.device).unsqueeze(-1)
        return (member * weight) @ words

    def _leakage(self, tables: Tensor, prior: Tensor, noise: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return information_slope(tables, prior) if self.measure == "information" else disparity_slope(tables, noise)


class ExactCodeClassifier(LimitedCode, CodeClassifier):
    """Train a code of at most 10 bits exactly: the most information about the label, within a limit on the leakage.

    All 2^m words of a batch are one matrix product, so nothing is drawn in training. With N(y,t) the share of rows with
    label y in word t and P_s(t) the share of group s in it, minimise

        H(Y|T) + error / 2 + price (leakage - limit),  H(Y|T) = -sum_yt N(y,t) log2 N(y,t)/N(t)

    where the error is that of the word's most frequent label, and the leakage is the largest total variation between
    two groups, (1/2) sum_t |P_s(t) - P_r(t)|, or I(T;S). Of two groups that are alike, a sample shows some total
    variation by chance, more with more words, and a certificate has to allow for it. So training counts
    sqrt(d^2 + 2 v / pi) for |d|, with v the variance of d = P_s(t) - P_r(t): about what as many other rows would show.
    The price is a multiplier, which rises while the leakage is above its limit and falls below it, and a stiffness
    times the excess (an augmented Lagrangian: a fixed price makes the leakage jump). The tables run over the batches,
    because those of a few rows err. The bits of a hard code become harder in training, so that the limit binds what is
    released. The decoder p(y|t) is counted on the training rows; no head is trained.

    Parameters
    ----------
    limit : on the leakage that the training rows let expect; what other rows show is for `certify` to bound
    measure : "disparity", the total variation, or "information", in bits
    release : "hard" releases 1[theta > 1/2]: a person has one code however often you ask for it, and `predict_proba` is
        a function of it. "random" releases one draw
    gradient : "exact", or "straight-through" one draw of each row

    The other parameters are those of `CodeClassifier`.
    """

    code_size: int = setting(6, at_least=1, at_most=10, whole=True)
    release: str = setting("hard", one_of=("hard", "random"))
    gradient: str = setting("exact", one_of=("exact", "straight-through"))
    learning_rate: float = tunable(3e-3, 1e-4, 1e-2, log=True, above=0)
    max_epochs: int = setting(30, at_least=1, whole=True)

    stacked_settings: ClassVar[tuple[str, ...]] = ("learning_rate", "weight_decay", "limit")
    own_schedule: ClassVar[Schedule] = Schedule(
        min_steps=1_000, learning_rate_decay="linear", validation_fraction=0.05, selection="last"
    )

    def build(self, inputs: Inputs, n_classes: int) -> ExactCodeNet:
        net = ExactCodeNet(inputs, self.hidden_sizes, self.code_size, self.table_sizes(n_classes), self.channels)
        net.draws = self.gradient == "straight-through"
        return net

    def initialise(self, net: Any, y: Tensor, s: Tensor, weight: Tensor) -> None:
        super().initialise(net, y, s, weight)
        each = -(-len(y) // self.batch_size)
        net.progress[1] = 1 / (each * max(self.max_epochs, -(-self.training.min_steps // each)))

    def evaluate(self, net: Any, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the cross-entropy and the leakage of the random code on validation rows."""
        words = word_probabilities(net.theta(batch.x))
        labels, shares = self._label_shares(words, batch), decoder(net.running0)
        cross_entropy = -(labels * shares.log()).sum() / LN2
        terms = {"total": cross_entropy, "cross_entropy": cross_entropy, "probabilities": words @ shares.mT}
        found = [self._leakage(groups.row_weights @ words, groups.prior)[0] for groups, _ in batch.prepared]
        return terms | ({self.measure: torch.stack(found).amax()} if found else {})

    @property
    def is_hard(self) -> bool:
        return self.release == "hard"


def decoder(labels: Tensor) -> Tensor:
    """Return p(y|t) from a table of p(y,t), with a little of p(y) in every word.  (classes, words)"""
    smooth = labels + PRIOR_MASS * labels.sum(-1, keepdim=True).clamp(min=PRIOR_MASS)
    return smooth / smooth.sum(0)


@torch.no_grad()
def disparity_slope(tables: Tensor, noise: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the largest total variation between two groups' tables (K, words), and a slope that lowers it.

    With noise (K,), one over the rows of the groups, it is about what so many rows would show: see ExactCodeClassifier.
    The slope is that of a mean over pairs in which those that differ most count most, so that it does not jump from one
    pair to the other. Groups without rows are left out.
    """
    first, second = torch.triu_indices(len(tables), len(tables), 1, device=tables.device)
    apart, known = tables[first] - tables[second], tables.sum(-1) > 0
    both = known[first] & known[second]
    noise = torch.zeros_like(tables[:, :1]) if noise is None else noise.unsqueeze(-1)
    variance = noise * tables * (1 - tables)
    length = (apart**2 + 2 / math.pi * (variance[first] + variance[second])).sqrt()
    distance = length.sum(-1) / 2 * both
    share = torch.softmax(SHARPNESS * distance - ABSENT * ~both, 0) * both
    each = share.unsqueeze(-1) / (2 * length.clamp(min=torch.finfo(length.dtype).tiny))
    steeper = noise * (1 - 2 * tables) / math.pi
    slopes = [each * (sign * apart + steeper[own]) for sign, own in ((1, first), (-1, second))]
    return distance.amax(0), torch.zeros_like(tables).index_add(0, first, slopes[0]).index_add(0, second, slopes[1])


@torch.no_grad()
def information_slope(tables: Tensor, prior: Tensor) -> tuple[Tensor, Tensor]:
    """Return I(T;S) of the groups' tables (K, words), in bits, and its slope."""
    _, _, log_ratio = mixture_ratio(tables, prior)
    return table_information(tables, prior), prior.unsqueeze(-1) * log_ratio / LN2
