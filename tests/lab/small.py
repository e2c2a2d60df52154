"""A small problem that a search takes a second for."""

import numpy as np

RNG = np.random.default_rng(0)
N = 240
S = RNG.integers(2, size=(N, 1))
X = (RNG.normal(size=(N, 3)) + S).astype(np.float32)
Y = (X[:, 0] + X[:, 1] + RNG.normal(size=N) > 1).astype(int)
BRIEF = {"max_epochs": 4, "min_steps": 0, "code_size": 2, "batch_size": 64, "selection": "paper"}
