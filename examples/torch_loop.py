"""Use the stochastic binary layer in your own network and training loop, with the exact information as a penalty.

Usage: python examples/torch_loop.py [STEPS]
"""

import math
import sys

import torch
from torch import nn

from fairbits.datasets import make_shifted_bits
from fairbits.information import joint_information
from fairbits.nn import StochasticBinary


def main(steps: int = 1_000) -> None:
    data = make_shifted_bits(4_000, delta=0.4, random_state=0)  # four columns depend on the group, the fifth does not
    x, s = torch.tensor(data.X).float(), torch.tensor(data.groups)
    y = (x.sum(1) > 2).float()  # a label that depends on all five
    train, test = slice(0, 2_000), slice(2_000, None)
    for gamma in (0.0, 0.5, 0.9):
        torch.manual_seed(0)
        encoder = nn.Sequential(nn.Linear(x.shape[1], 32), nn.ReLU(), nn.Linear(32, 6))
        draw, head = StochasticBinary(), nn.Linear(6, 1)  # the head sees drawn bits and nothing else
        adam = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=0.01)
        for _ in range(steps):
            logits = encoder(x[train])
            answer = head(draw(logits)).squeeze(1)
            cross_entropy = nn.functional.binary_cross_entropy_with_logits(answer, y[train]) / math.log(2)  # bits
            leak = joint_information(draw.theta(logits), s[train])  # exact: it needs no draws
            adam.zero_grad()
            ((1 - gamma) * cross_entropy + gamma * leak).backward()
            adam.step()
        with torch.no_grad():
            logits = encoder(x[test])
            right = ((head(draw(logits)).squeeze(1) > 0) == (y[test] > 0)).float().mean()
            leaked = joint_information(draw.theta(logits), s[test])
        print(f"gamma {gamma}: accuracy from one draw {right:.3f}; it reveals {leaked:.4f} bits about the group")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
