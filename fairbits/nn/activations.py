"""Binary activations: a stochastic neuron and its deterministic twin."""

import torch
from torch import Tensor, nn

from fairbits.errors import InputError


def draw_bits(theta: Tensor, noise: Tensor | float) -> Tensor:
    """Draw T = [noise < theta], with the gradient of theta itself (straight-through).

    With uniform noise T_i ~ Bernoulli(theta_i), independent given theta; noise 1/2 is the threshold.

    >>> draw_bits(torch.tensor([0.2, 0.9]), torch.tensor([0.5, 0.5]))
    tensor([0., 1.])
    """
    return (noise < theta) + (theta - theta.detach())  # exactly 0 or 1, and theta's gradient


class StochasticBinary(nn.Module):
    """A layer of stochastic binary neurons (the paper's Eq. theta).

    forward         T ~ Bernoulli(theta),  theta = eps + (1 - 2 eps) sigmoid(z / temperature)
    pseudo-gradient dT/dz := dtheta/dz = (1 - 2 eps) sigmoid'(z / temperature) / temperature

    It draws in training and in evaluation alike: a thresholded code would be a function of x about which the
    information of the drawn one says nothing. The paper's mean over inputs is ``temperature = fan_in``; the authors'
    code, sigmoid(6 z), is ``temperature = 1/6``.

    Parameters
    ----------
    temperature : float
        Divides the logits; smaller means harder bits.
    noise_floor : float in [0, 0.5)
        eps: no bit is ever surer than 1 - eps.

    >>> StochasticBinary()(torch.tensor([-100.0, 100.0]))
    tensor([0., 1.])
    """

    def __init__(self, temperature: float = 1.0, noise_floor: float = 0.0):
        super().__init__()
        if not temperature > 0:
            raise InputError(f"temperature is {temperature!r}; it divides the logits and must be positive.")
        if not 0 <= noise_floor < 0.5:
            raise InputError(
                f"noise_floor is {noise_floor!r}; it must lie in [0, 0.5): at 0.5 every bit is a fair coin."
            )
        self.temperature, self.noise_floor = temperature, noise_floor

    def theta(self, logits: Tensor) -> Tensor:
        """Return the Bernoulli parameters, same shape as the logits."""
        scaled = logits if self.temperature == 1 else logits / self.temperature
        theta = torch.sigmoid(scaled)
        return theta if self.noise_floor == 0 else self.noise_floor + (1 - 2 * self.noise_floor) * theta

    def forward(self, logits: Tensor, noise: Tensor | None = None) -> Tensor:
        """Draw one code; `noise` are uniforms of the logits' shape, drawn here when not given."""
        return draw_bits(self.theta(logits), torch.rand_like(logits) if noise is None else noise)

    def extra_repr(self) -> str:
        return f"temperature={self.temperature}, noise_floor={self.noise_floor}"


class DeterministicBinary(nn.Module):
    """The threshold neuron, deterministic twin of :class:`StochasticBinary`.

    forward         T = [z > 0]
    pseudo-gradient dT/dz := sigmoid'(z / temperature) / temperature

    >>> DeterministicBinary()(torch.tensor([-0.1, 0.3]))
    tensor([0., 1.])
    """

    def __init__(self, temperature: float = 1.0):
        super().__init__()
        self.twin = StochasticBinary(temperature)

    def forward(self, logits: Tensor) -> Tensor:
        return draw_bits(self.twin.theta(logits), 0.5)
