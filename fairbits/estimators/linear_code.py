"""A narrow hard code whose words have linear scores: of p(y,s|x), the form of the best code."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.tree import DecisionTreeRegressor
from torch import Tensor, nn
from torch.utils.data import default_collate

from fairbits.errors import InputError
from fairbits.estimators.decision_rule import joint_estimates, scored_rules
from fairbits.estimators.exact_code import ExactCodeNet, LimitedCode, disparity_slope
from fairbits.information import WeighedGroups
from fairbits.nn import Inputs
from fairbits.settings import setting
from fairbits.training import Batch, Replica, Schedule, TrainingData
from fairbits.training.stacks import Stack, StackAdam, load_replica, map_tensors

CELLS = 1024  # in which training gathers the rows
CELL_ROWS = 50_000  # that say where the cells lie
RATE = 0.05  # of Adam, lowered to 0
FIRST_HARDNESS = 4.0  # of the words before training
SMALLEST = 1e-3  # probability of a label in a word before training
COLLINEAR = 1e-4  # of the largest singular value: columns as alike as this count as one
SMALLEST_SCALE = 1e-6  # of a column
CLOSED = -1e9  # score of a word that no row may get: training never moves it
SAMPLES = 2  # the training rows and those to come: both err, so training counts the variance of both


class LinearCodeNet(ExactCodeNet):
    """Every word has a score, linear in x; a row gets the word with the highest."""

    mean: Tensor
    scale: Tensor

    def __init__(self, inputs: Inputs, code_size: int, sizes: Sequence[int], max_words: int):
        super().__init__(inputs, (), code_size, sizes, ())
        self.code_size, self.words = code_size, min(max_words, 2**code_size)
        self.logits = nn.Linear(inputs, 2**code_size)  # type: ignore[arg-type]
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
    def start(self, batch: Batch) -> None:
        """Let the words differ in the label alone: they are the leaves of a tree on a linear estimate of it."""
        batch = map_tensors(Tensor.cpu, batch)  # LAPACK and scikit-learn
        share = batch.weight
        self.cpu()
        self.mean.copy_(share @ batch.x)
        self.scale.copy_((share @ (batch.x - self.mean) ** 2).sqrt().clamp(min=SMALLEST_SCALE))
        root = share.sqrt().unsqueeze(-1)
        columns = torch.cat([(batch.x - self.mean) / self.scale, torch.ones_like(root)], -1)
        known = batch.y.mT / share.clamp(min=torch.finfo(share.dtype).tiny).unsqueeze(-1)  # p(y) of a cell
        pair = ((root * part).double() for part in (columns, known))
        slopes = torch.linalg.lstsq(*pair, rcond=COLLINEAR, driver="gelsd").solution  # probabilities add up to 1
        estimates = columns.double() @ slopes  # (cells, classes)
        tree = DecisionTreeRegressor(max_leaf_nodes=self.words, random_state=0)
        tree.fit(estimates, estimates, share.numpy())
        leaves = tree.tree_.value[tree.tree_.feature < 0, :, 0]  # (at most as many as there are words, classes)
        words = torch.from_numpy(np.resize(leaves, (self.words, len(batch.y)))).clamp(SMALLEST, 1).log2()
        weight = FIRST_HARDNESS * words @ slopes.mT  # a word scores sum_y p(y|x) log p(y|word)
        self.set_scores(weight[:, :-1], weight[:, -1])


class LinearCodeClassifier(LimitedCode):
    """Give each row the word with the highest score, linear in X, trained to a limit as an `ExactCodeClassifier` is.

    Of X = p(y,s|x), this is the form of the best code (`PosteriorEncoder(features="probabilities")`). At the optimum a
    row goes to the word that costs it least, and the cost of a word is linear in p(y,s|x): its label costs
    -sum_y p(y|x) log2 p(y|t), and its disparity the price times sum_s p(s|x) / p(s), with the sign of what the word
    adds to the difference between the groups. So the words are cells with straight edges, and there are few numbers to
    learn by heart. Other rows still show more disparity than the training rows do: `certify` says how much.

    A regression tree gathers the rows in up to 1,024 cells of similar X. Every epoch is one step of Adam on all of
    them, from words that differ in the label alone. The words are soft at first and hard at the end. Training counts
    the variance of a disparity twice: the training rows err, and those to come will.

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
    max_epochs : steps of training

    The other parameters are those of all methods; see `InvariantClassifier`.
    """

    code_size: int = setting(4, at_least=1, at_most=10, whole=True)
    objective: str = setting("information", one_of=("information", "accuracy"))
    max_words: int = setting(1024, at_least=2, whole=True)
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
        for replica in replicas:
            own = replica.rows.numpy().tobytes()
            if own not in gathered:
                gathered[own] = self.gather(*(part[replica.rows.to(part.device)] for part in data[:4]))
        if self.objective == "accuracy":
            return self._choose_rules(replicas, data, gathered)
        for replica in replicas:
            own = replica.rows.numpy().tobytes()
            replica.net.start(gathered[own])  # type: ignore[operator]
            replica.net.to(self.device)
        batch = default_collate([gathered[replica.rows.numpy().tobytes()] for replica in replicas])
        stack = Stack([replica.net for replica in replicas])
        scalars = {"limit": data.weight.new_tensor([replica.scalars["limit"] for replica in replicas])}
        rate = data.weight.new_full((len(replicas),), RATE)
        adam = StackAdam(stack.flat, rate, torch.zeros_like(rate))
        for step in range(steps := self.max_epochs):
            adam.rate_factor = np.full((len(replicas), 1), 1 - step / steps)
            terms = stack.map(self.loss, batch, scalars)
            adam.step(stack.gradient(terms["total"]))
            if how.get("on_epoch") is not None:
                how["on_epoch"](step + 1, steps)
        for place, replica in enumerate(replicas):
            load_replica(replica.net, *stack.state(place))
            last = {name: float(term[place].detach()) for name, term in terms.items()}
            replica.history, replica.best_epoch = [{"epoch": step, **last}], step

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

    def _choose_rules(self, replicas: Sequence[Replica], data: TrainingData, gathered: dict[bytes, Batch]) -> None:
        """Give every model the most accurate rule that keeps its limit on its rows, or the one that comes closest."""
        tried: dict[bytes, list[tuple[float, float, Tensor]]] = {}
        for replica in replicas:
            own = replica.rows.numpy().tobytes()
            if own not in tried:
                rows = (part[replica.rows.to(part.device)].cpu() for part in data[:4])
                tried[own] = self._rules(gathered[own], *rows)
            within = [rule for rule in tried[own] if rule[0] <= replica.scalars["limit"]]
            apart, error, scores = within[0] if within else min(tried[own], key=lambda rule: rule[0])
            replica.net.set_scores(scores[:, :-1], scores[:, -1])  # type: ignore[operator]
            replica.net.to(self.device)
            replica.history, replica.best_epoch = [{"epoch": 0, "total": error, "disparity": apart}], 0

    def _rules(
        self, cells: Batch, x: Tensor, y: Tensor, s: Tensor, weight: Tensor
    ) -> list[tuple[float, float, Tensor]]:
        """Return rules with their disparity and error on the rows, as scores (classes, features + 1)."""
        n_classes, sizes = len(self.classes_), self.group_sizes
        joint = joint_estimates(x.numpy(), y.numpy(), s.numpy(), weight.numpy(), n_classes, sizes)
        used = cells.weight.cpu() > 0
        centres, mass = (part.cpu()[used].double().numpy() for part in (cells.x, cells.weight))
        groups, found = self.prepare(y, s, weight), []
        for scores in map(torch.from_numpy, scored_rules(joint, centres, mass, sizes, self.condition_on_label)):
            decided = (x.double() @ scores[:, :-1].mT + scores[:, -1]).argmax(1)
            words = torch.eye(n_classes)[decided]
            apart = max((float(disparity_slope(own.row_weights @ words)[0]) for own, _ in groups), default=0.0)
            found.append((apart, float((weight * (decided != y)).sum() / weight.sum()), scores))
        return found
