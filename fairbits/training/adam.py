"""Adam for a stack: every replica has its own learning rate, decay and step count."""

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
    """

    def __init__(self, parameters: Tensor, learning_rate: Tensor, weight_decay: Tensor, betas=(0.9, 0.999), eps=1e-8):
        self.parameters = parameters
        self.learning_rate, self.weight_decay = learning_rate.unsqueeze(-1), weight_decay.unsqueeze(-1)
        self.betas, self.eps = betas, eps
        self.mean, self.square = torch.zeros_like(parameters), torch.zeros_like(parameters)
        self.steps = torch.zeros_like(self.learning_rate)
        self._decays = bool(weight_decay.any())

    def step(self, gradient: Tensor, active: Tensor | None = None) -> None:
        """Move one step; replicas whose `active` (R,) is 0 keep parameters and state."""
        on: Tensor | float = 1.0 if active is None else active.unsqueeze(-1)
        first, second = self.betas
        self.steps += on
        self.mean.lerp_(gradient, (1 - first) * on)
        self.square.lerp_(gradient * gradient, (1 - second) * on)
        count = self.steps.clamp(min=1)  # a replica may not have begun
        rate = self.learning_rate * on
        scale = (self.square / (1 - second**count)).sqrt_().add_(self.eps)
        if self._decays:
            self.parameters.mul_(1 - rate * self.weight_decay)
        self.parameters.addcdiv_(self.mean * (-rate / (1 - first**count)), scale)

    def keep(self, replicas: Tensor, parameters: Tensor) -> None:
        """Go on with some of the replicas, whose parameters now live in `parameters`."""
        self.parameters = parameters
        for name in ("learning_rate", "weight_decay", "mean", "square", "steps"):
            setattr(self, name, getattr(self, name)[replicas])
