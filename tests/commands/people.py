"""People to try the commands on."""

import numpy as np
import pandas as pd


def population(n, seed, told=0.0):
    """Return people whose grade tells their sex as much as `told`; the label follows the grade."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    grade = rng.normal(size=n) + told * np.where(sex == "M", 1, -1)
    frame = pd.DataFrame(
        {
            "id": [f"{seed}-{i:05d}" for i in range(n)],
            "grade": grade.round(4),
            "height": (rng.normal(size=n) + (sex == "M")).round(4),
            "job": rng.choice(["clerk", "cook", "nurse"], n),
            "day": pd.date_range("2024-01-01", periods=n, freq="h").strftime("%Y-%m-%d %H:%M:%S"),
            "sex": sex,
        }
    )
    frame["paid"] = np.where(2 * grade + rng.normal(size=n) > 0, "yes", "no")
    return frame
