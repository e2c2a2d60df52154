"""Adam for a stack: every replica has its own learning rate, decay and step count."""

import numpy as np
import torch
from torch import Tensor


class StackAdam:
    """Adam (Kingma and Ba 2015) with decoupled weight decay on one flat parameter matrix.

    The same numbers as ``torch.optim.AdamW`` for each row, in a dozen operations whatever the number of tensors: for
    small networks the optimiser is otherwise half of a step.

    Parameters
    ----------
    parameters : (R, P), updated in place
    learning_rate, weight_decay : (R,)

    `rate_factor` (R, 1) multiplies the learning rates; a schedule sets it between steps.
    """

    def __init__(self, parameters: Tensor, learning_rate: Tensor, weight_decay: Tensor, betas=(0.9, 0.999), eps=1e-8):
        self.parameters = parameters
        # Per-replica scalars live in numpy: arithmetic on a few numbers is several times faster there.
        self.learning_rate, self.weight_decay = (
            a.cpu().double().numpy()[:, None] for a in (learning_rate, weight_decay)
        )
        self.rate_factor = np.ones_like(self.learning_rate)
        self.betas, self.eps = betas, eps
        self.mean, self.square = torch.zeros_like(parameters), torch.zeros_like(parameters)
        self.steps = np.zeros_like(self.learning_rate)
        self._decays = bool(weight_decay.any())

    def step(self, gradient: Tensor, active: Tensor | None = None) -> None:
        """Move one step; replicas whose `active` (R,) is 0 keep parameters and state."""
        before = None if active is None else [t.clone() for t in (self.parameters, self.mean, self.square)]
        self._step(gradient)
        if active is not None and before is not None:
            for now, old in zip((self.parameters, self.mean, self.square), before, strict=True):
                now.copy_(torch.where(active.unsqueeze(-1) > 0, now, old))
            self.steps -= active.cpu().numpy()[:, None] == 0

    def _step(self, gradient: Tensor) -> None:
        first, second = self.betas
        rate = self.learning_rate * self.rate_factor
        self.steps += 1
        if self._decays:
            self.parameters.mul_(self._column(1 - rate * self.weight_decay))
        self.mean.lerp_(gradient, 1 - first)
        self.square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
        # mean_hat rate / (sqrt(square_hat) + eps), with all that is one number per replica in the denominator
        factor = (1 - first**self.steps) / rate
        scale = self._column(factor / np.sqrt(1 - second**self.steps))
        denominator = self.square.sqrt().mul_(scale).add_(self._column(factor * self.eps))
        self.parameters.addcdiv_(self.mean, denominator, value=-1)

    def _column(self, values: np.ndarray) -> Tensor | float:
        """Return one number per replica, (R, 1), to be broadcast over its parameters."""
        if len(values) == 1:
            return float(values[0, 0])
        return torch.from_numpy(values.astype(np.float32)).to(self.parameters)

    def keep(self, replicas: Tensor, parameters: Tensor) -> None:
        """Go on with some of the replicas, whose parameters now live in `parameters`."""
        self.parameters = parameters
        self.mean, self.square = self.mean[replicas], self.square[replicas]
        for name in ("learning_rate", "rate_factor", "weight_decay", "steps"):
            setattr(self, name, getattr(self, name)[replicas.cpu().numpy()])
