"""A narrow hard code whose words have linear scores: of p(y,s|x), the form of the best code."""

import copy
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from sklearn.tree import DecisionTreeRegressor
from torch import Tensor
from torch.utils.data import default_collate

from fairbits.errors import InputError
from fairbits.estimators.decision_rule import Cells, estimated_cells, joint_estimates, scored_rules, scored_words
from fairbits.estimators.exact_code import MISTAKE, ExactCodeNet, LimitedCode, disparity_slope
from fairbits.information import WeighedGroups
from fairbits.information.exact import LN2
from fairbits.nn import Inputs
from fairbits.nn.code_networks import Linear
from fairbits.settings import setting
from fairbits.training import Batch, Replica, Schedule, TrainingData
from fairbits.training.stacks import Stack, StackAdam, load_replica

CELLS = 1024  # in which training gathers the rows
CELL_ROWS = 50_000  # that say where the cells lie
SMALLEST_SCALE = 1e-6  # of a column
WITHIN = 0.002  # above its limit, a leakage still counts as within
EXCESS = 100.0  # bits that a leakage of 1 above that costs, in the choice of a start
CLOSED = -1e9  # score of a word that no row may get: training never moves it
SAMPLES = 2  # the training rows and those to come: both err, so training counts the variance of both


class Start(NamedTuple):
    """Where training starts from: words by linear programmes, of the label alone or within the limit."""

    words: int  # at most
    limited: bool
    hardness: float  # of their scores, in bits
    rate: float  # of Adam, lowered to 0


LABELS, OPTIMUM = Start(1024, False, 4.0, 0.05), Start(8, True, 30.0, 0.02)
STARTS = {"labels": (LABELS,), "optimum": (OPTIMUM,), "best": (LABELS, OPTIMUM)}


class LinearCodeNet(ExactCodeNet):
    """Every word has a score, linear in x; a row gets the word with the highest."""

    mean: Tensor
    scale: Tensor

    def __init__(self, inputs: Inputs, code_size: int, sizes: Sequence[int], max_words: int):
        super().__init__(inputs, (), code_size, sizes, ())
        self.code_size, self.words = code_size, min(max_words, 2**code_size)
        self.logits = Linear(inputs, 2**code_size)  # type: ignore[arg-type]
        self.register_buffer("mean", torch.zeros(inputs))
        self.register_buffer("scale", torch.ones(inputs))

    def scores(self, x: Tensor) -> Tensor:
        """Return the score of every word.  (n, words)"""
        return self.logits((x - self.mean) / self.scale)

    def word_shares(self, x: Tensor, hardness: Tensor | float, noise: Tensor) -> Tensor:
        return torch.softmax(hardness * self.scores(x), -1)

    def theta(self, x: Tensor) -> Tensor:
        """Return the bits of the word with the highest score, 0 or 1.  (n, m)"""
        place = 2 ** torch.arange(self.code_size - 1, -1, -1, device=x.device)
        return (self.scores(x).argmax(-1, keepdim=True) // place % 2).to(x.dtype)

    def run(self, number: int, tables: Tensor) -> Tensor:
        return tables.detach()  # of all rows: there is nothing to average

    @torch.no_grad()
    def set_scores(self, weight: Tensor, bias: Tensor) -> None:
        """Let the first words have these scores of (x - mean) / scale, and close the others.  (words, features)"""
        self.logits.weight.zero_()[: len(weight)] = weight.to(self.mean)
        self.logits.bias.fill_(CLOSED)[: len(bias)] = bias.to(self.mean)

    @torch.no_grad()
    def start(self, batch: Batch, scores: np.ndarray) -> None:
        """Start from words with these scores.  (words, features + 1)"""
        weight, bias = torch.from_numpy(scores).float().split([scores.shape[1] - 1, 1], 1)
        share, x = batch.weight.cpu(), batch.x.cpu()
        self.cpu()
        self.mean.copy_(share @ x)
        self.scale.copy_((share @ (x - self.mean) ** 2).sqrt().clamp(min=SMALLEST_SCALE))
        self.set_scores(weight * self.scale, bias[:, 0] + weight @ self.mean)


class LinearCodeClassifier(LimitedCode):
    """Give each row the word with the highest score, linear in X, trained to a limit as an `ExactCodeClassifier` is.

    Of X = p(y,s|x), this is the form of the best code (`PosteriorEncoder(features="probabilities")`). At the optimum a
    row goes to the word that costs it least, and the cost of a word is linear in p(y,s|x): its label costs
    -sum_y p(y|x) log2 p(y|t), and its disparity the price times sum_s p(s|x) / p(s), with the sign of what the word
    adds to the difference between the groups. So the words are cells with straight edges, and there are few numbers to
    learn by heart. Other rows still show more disparity than the training rows do: `certify` says how much.

    A regression tree gathers the rows in up to 1,024 cells of similar X. Every epoch is one step of Adam on all of
    them. The words become harder on the way. Training counts the variance of a disparity twice: the training rows err,
    and those to come will. It ends in a local optimum, so there are two starts: words that differ in the label alone
    merge until they keep the limit; words of linear programmes (`scored_words`), eight at most, keep it from the start.

    For decisions rather than codes, `objective="accuracy"` has a word for every class and takes the most accurate rule
    whose decisions on the training rows keep the limit: the class with the largest p(y|x), less a price for every group
    (`decision_rules`). With a limit of 1 it is the most probable class. It takes X for p(y,s|x) if X looks like it, and
    else estimates that linearly.

    Parameters
    ----------
    limit : on the leakage that the training rows let expect; what other rows show is for `certify` to bound
    objective : "information", that of the code about the label, or "accuracy", that of a word for every class
    code_size : bits per row, at most 10; few of the 2^m words are used under a limit
    max_words : words that may be used at most
    measure : "disparity", the total variation, or "information", in bits
    condition_on_label : limit the leakage among rows of the same label (equalised odds)
    start : "labels", "optimum", or of both the one that ends with the smaller loss within the limit, "best"
    max_epochs : steps of training

    The other parameters are those of all methods; see `InvariantClassifier`.
    """

    code_size: int = setting(4, at_least=1, at_most=10, whole=True)
    objective: str = setting("information", one_of=("information", "accuracy"))
    max_words: int = setting(1024, at_least=2, whole=True)
    start: str = setting("best", one_of=tuple(STARTS))
    max_epochs: int = setting(400, at_least=1, whole=True)

    stacked_settings: ClassVar[tuple[str, ...]] = ("limit", "max_words")
    is_hard = True
    own_schedule: ClassVar[Schedule] = Schedule(validation_fraction=0)
    hardness: ClassVar[float] = 30.0
    rise: ClassVar[float] = 2.0
    clips: ClassVar[tuple[float, float]] = (1e-3, 1e-2)

    def build(self, inputs: Inputs, n_classes: int) -> LinearCodeNet:
        if not isinstance(inputs, int):
            raise InputError("LinearCodeClassifier takes tables, not images.", remedy="Use ExactCodeClassifier.")
        if self.objective == "accuracy" and n_classes > 2**self.code_size:
            problem = f"has {2**self.code_size} words for {n_classes} classes, and each needs one."
            raise InputError(problem, argument="code_size", value=self.code_size, remedy="Raise it.")
        return LinearCodeNet(inputs, self.code_size, self.table_sizes(n_classes), self.max_words)

    def initialise(self, net: Any, y: Tensor, s: Tensor, weight: Tensor) -> None:
        super().initialise(net, y, s, weight)
        for number in range(len(net.multipliers)):
            net.get_buffer(f"noise{number}").mul_(SAMPLES)

    def train(self, replicas: Sequence[Replica], data: TrainingData, **how: Any) -> None:
        """Train a stack of models on their cells, all at every step."""
        gathered: dict[bytes, Batch] = {}
        cells: dict[bytes, Cells] = {}
        for replica in replicas:
            own = replica.rows.numpy().tobytes()
            if own not in gathered:
                rows = [part[replica.rows.to(part.device)] for part in data[:4]]
                gathered[own] = self.gather(*rows)
                cells[own] = self._cells(gathered[own], *rows)
        if self.objective == "accuracy":
            return self._choose_rules(replicas, data, cells)
        nets: list[Any] = []
        starts = STARTS[self.start]
        for replica in replicas:
            own = replica.rows.numpy().tobytes()
            nets += self._starts(replica, gathered[own], cells[own])
        batch = default_collate([gathered[r.rows.numpy().tobytes()] for r in replicas for _ in starts])
        stack = Stack(nets)
        limits = data.weight.new_tensor([replica.scalars["limit"] for replica in replicas for _ in starts])
        rate = data.weight.new_tensor([start.rate for start in starts]).repeat(len(replicas))
        adam = StackAdam(stack.flat, rate, torch.zeros_like(rate))
        for step in range(steps := self.max_epochs):
            adam.rate_factor = np.full((len(nets), 1), 1 - step / steps)
            terms, gradient = stack.differentiate(self.loss, batch, {"limit": limits})
            adam.step(gradient)
            if how.get("on_epoch") is not None:
                how["on_epoch"](step + 1, steps)
        terms = {name: term.view(len(replicas), len(starts)) for name, term in terms.items()}
        for number, replica in enumerate(replicas):
            best = self._best({name: term[number] for name, term in terms.items()}, replica.scalars["limit"])
            load_replica(replica.net, *stack.state(number * len(starts) + best))
            last = {name: float(term[number, best]) for name, term in terms.items()}
            replica.history, replica.best_epoch = [{"epoch": step, **last}], step

    def _starts(self, replica: Replica, batch: Batch, cells: Cells) -> list[Any]:
        """Return the network of a model once for every start."""
        limit, nets = replica.scalars["limit"], []
        if self.measure == "information":
            limit = min((2 * LN2 * limit) ** 0.5, 1.0)  # the total variation that Pinsker's inequality allows
        for start in STARTS[self.start]:
            net: Any = copy.deepcopy(replica.net)
            words = scored_words(cells, min(start.words, net.words), limit if start.limited else None, MISTAKE)
            net.start(batch, start.hardness * words)
            nets.append(net.to(self.device))
        replica.net.to(self.device)
        return nets

    def _best(self, terms: dict[str, Tensor], limit: float) -> int:
        """Return which start has led to the smallest loss within the limit, or closest to the limit."""
        excess = (terms[self.measure] - limit - WITHIN).clamp(min=0) if self.measure in terms else 0.0
        return int((terms["loss"] + EXCESS * excess).argmin())

    def gather(self, x: Tensor, y: Tensor, s: Tensor, weight: Tensor) -> Batch:
        """Return cells of rows in place of rows: their means, and how much of each label and group they hold.

        Cells without rows fill up to a fixed number, so that models with other rows fit in one stack.
        """
        rows, share = x.cpu().numpy(), weight / weight.sum()
        some = np.linspace(0, len(rows) - 1, min(len(rows), CELL_ROWS)).astype(np.int64)
        tree = DecisionTreeRegressor(max_leaf_nodes=CELLS, random_state=0)
        tree.fit(rows[some], rows[some], share.cpu().numpy()[some])
        cell = torch.from_numpy(np.unique(tree.apply(rows), return_inverse=True)[1]).to(x.device)

        def sums(parts: Tensor) -> Tensor:
            return parts.new_zeros(len(parts), CELLS).index_add_(1, cell, parts)

        size = sums(share.unsqueeze(0)).squeeze(0)
        centres = sums(x.mT * share) / size.clamp(min=torch.finfo(size.dtype).tiny)
        labels = (y == torch.arange(len(self.classes_), device=y.device).unsqueeze(-1)) * share
        groups = ((WeighedGroups(sums(g.row_weights), g.prior), prior) for g, prior in self.prepare(y, s, share))
        return Batch(centres.mT, sums(labels), s[:0], size, x[:0], tuple(groups))

    def _label_shares(self, words: Tensor, batch: Batch) -> Tensor:
        labels = batch.y @ words
        return labels / labels.sum()

    def _cells(self, batch: Batch, x: Tensor, y: Tensor, s: Tensor, weight: Tensor) -> Cells:
        """Return the cells with what their X says of p(y,s|x), by itself or by least squares on the rows."""
        sizes, (X, labels, groups, share) = self.group_sizes, (part.cpu().numpy() for part in (x, y, s, weight))
        joint = joint_estimates(X, labels, groups, share, len(self.classes_), sizes)
        used = batch.weight.cpu() > 0
        centres, mass = (part.cpu()[used].double().numpy() for part in (batch.x, batch.weight))
        return estimated_cells(joint, centres, mass, sizes, self.condition_on_label)

    def _choose_rules(self, replicas: Sequence[Replica], data: TrainingData, cells: dict[bytes, Cells]) -> None:
        """Give every model the most accurate rule that keeps its limit on its rows, or the one that comes closest."""
        tried: dict[bytes, list[tuple[float, float, Tensor]]] = {}
        for replica in replicas:
            own = replica.rows.numpy().tobytes()
            if own not in tried:
                rows = (part[replica.rows.to(part.device)].cpu() for part in data[:4])
                tried[own] = self._rules(cells[own], *rows)
            within = [rule for rule in tried[own] if rule[0] <= replica.scalars["limit"]]
            apart, error, scores = within[0] if within else min(tried[own], key=lambda rule: rule[0])
            replica.net.set_scores(scores[:, :-1], scores[:, -1])  # type: ignore[operator]
            replica.net.to(self.device)
            replica.history, replica.best_epoch = [{"epoch": 0, "total": error, "disparity": apart}], 0

    def _rules(
        self, cells: Cells, x: Tensor, y: Tensor, s: Tensor, weight: Tensor
    ) -> list[tuple[float, float, Tensor]]:
        """Return rules with their disparity and error on the rows, as scores (classes, features + 1)."""
        groups, found = self.prepare(y, s, weight), []
        for scores in map(torch.from_numpy, scored_rules(cells)):
            decided = (x.double() @ scores[:, :-1].mT + scores[:, -1]).argmax(1)
            words = torch.eye(len(self.classes_))[decided]
            apart = max((float(disparity_slope(own.row_weights @ words)[0]) for own, _ in groups), default=0.0)
            found.append((apart, float((weight * (decided != y)).sum() / weight.sum()), scores))
        return found
