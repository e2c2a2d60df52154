"""ReBias: features that are independent of those of a model too simple to see more than the bias."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from fairbits.estimators import VanillaClassifier, setting, tunable
from fairbits.estimators.base import log_softmax
from fairbits.nn.code_networks import ConvolutionalFeatures, HeadedNet, HiddenOutput, Inputs
from fairbits.rivals.hsic import gaussian_kernel, hsic
from fairbits.training import Batch


class ReBiasClassifier(VanillaClassifier):
    """Learn features independent of those of a biased model that sees too little (ReBias, Bahng et al. 2020).

    min over f of CE(f) + gamma HSIC(f, g), and in turn min over g of CE(g) - gamma HSIC(f, g), with cross-entropies in
    bits and the HSIC of Gaussian kernels on both models' last hidden layers. Only f predicts. Whatever g can see counts
    as the bias: for images its receptive field is small (colour, texture), for tables it is linear. The fit does not
    use the sensitive features, and protects them only if g sees little else.

    Parameters
    ----------
    gamma : weight of the HSIC; 0 is the plain network
    biased_kernel : size of g's first convolution, the side of its receptive field; its others are 1 x 1
    opponent_steps, opponent_learning_rate : g's steps before each step of f, and their size

    The other parameters are those of all methods; see `InvariantClassifier`. Differences from the published version:
    the HSIC is the centred one (the authors' code subtracts the diagonal from every row instead of taking it out), its
    bandwidths are the mean distances; the epoch is chosen by CE(f) + gamma HSIC(f, g) on at most 2048 validation rows.
    """

    gamma: float = tunable(1.0, 0.0, 10.0, at_least=0)
    biased_kernel: int = setting(1, one_of=(1, 3, 5))
    opponent_steps: int = setting(1, at_least=1, whole=True)
    opponent_learning_rate: float = tunable(1e-3, 1e-4, 1e-2, log=True, above=0)

    stacked_settings: ClassVar[tuple[str, ...]] = ("learning_rate", "weight_decay", "gamma", "opponent_learning_rate")

    opponent = "biased"
    max_validation_rows = 2048  # the HSIC costs the square of the rows

    def build(self, inputs: Inputs, n_classes: int) -> Any:
        net = super().build(inputs, n_classes)
        if isinstance(inputs, int):  # a linear model of the row
            width = net.head.in_features
            net.biased = HeadedNet(nn.Linear(inputs, width), width, n_classes)
        else:
            patches = PatchFeatures(inputs, self.channels, self.biased_kernel)
            net.biased = HeadedNet(patches, patches.width, n_classes)
        return net

    def loss(self, net: Any, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        own = net(batch.x)
        with torch.no_grad():
            other = net.biased(batch.x)
        return self._game(own, other, batch, scalars["gamma"] * scalars["ramp"])

    def opponent_loss(self, net: Any, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        with torch.no_grad():
            other = net(batch.x)
        return self._game(net.biased(batch.x), other, batch, -scalars["gamma"] * scalars["ramp"])

    def _game(self, own: HiddenOutput, other: HiddenOutput, batch: Batch, weight: Tensor) -> dict[str, Tensor]:
        """Return a player's loss: cross-entropy and the weighted dependence on the other's features."""
        cross_entropy = self.cross_entropy(log_softmax(own.logits), batch)
        k, l = (gaussian_kernel(out.hidden, batch.weight) for out in (own, other))
        dependence = hsic(k, l, batch.weight)
        return {"total": cross_entropy + weight * dependence, "cross_entropy": cross_entropy, "hsic": dependence}


class PatchFeatures(ConvolutionalFeatures):
    """Features of every second kernel x kernel patch, averaged over the image: one convolution, then 1 x 1 ones.

    A 1 x 1 convolution of stride 2 corrupts the heap in torch 2.13 (oneDNN, AVX2, channels-last, backward to the
    weights), so 1 x 1 patches are picked by slicing and convolved with stride 1, which gives the same numbers.
    """

    def __init__(self, shape: tuple[int, ...], channels: Sequence[int], kernel: int):
        super().__init__(shape, ())
        blocks: list[nn.Module] = []
        self.step = 2 if kernel == 1 else 1
        for n_in, n_out in pairwise((shape[0], *channels)):
            side, stride = (1, 1) if blocks else (kernel, 2 // self.step)
            convolution = nn.Conv2d(n_in, n_out, side, stride, padding=side // 2, bias=False)
            blocks += [convolution, nn.BatchNorm2d(n_out), nn.ReLU()]
        self.blocks = nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1))
        self.width = (shape[0], *channels)[-1]

    def _features(self, x: Tensor) -> Tensor:
        return super()._features(x[..., :: self.step, :: self.step])
