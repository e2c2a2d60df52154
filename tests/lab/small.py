"""A small problem that a search takes a second for."""

import numpy as np

from fairbits import Schedule

RNG = np.random.default_rng(0)
N = 240
S = RNG.integers(2, size=(N, 1))
X = (RNG.normal(size=(N, 3)) + S).astype(np.float32)
Y = (X[:, 0] + X[:, 1] + RNG.normal(size=N) > 1).astype(int)
SCHEDULE = Schedule(min_steps=0, selection="paper")
BRIEF = {"max_epochs": 4, "schedule": SCHEDULE, "code_size": 2, "batch_size": 64}
