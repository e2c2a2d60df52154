"""Your own table: turn a pandas frame into codes that you may share, with a bound on what they reveal.

Usage: python examples/own_table.py CODES.csv [ROWS] [SEED]. The ledger CODES.csv.ledger records who has a code, so a
second run refuses to draw again; delete it to start over. The seed makes training repeatable, never the codes.
"""

import sys

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from fairbits import BinaryMIClassifier, CertifiedClassifier, TableEncoder, release
from fairbits.metrics import discrimination


def loans(n: int) -> pd.DataFrame:
    """Make up a table, in place of your pd.read_csv(...): more women are nurses, and engineers repay more often."""
    rng = np.random.default_rng(0)
    sex, income = rng.choice(["f", "m"], n), rng.lognormal(10, 0.5, n)
    job = np.where(rng.random(n) < np.where(sex == "f", 0.7, 0.3), "nurse", "engineer")
    repaid = rng.random(n) < 1 / (1 + np.exp(4 - income / 6_000 - (job == "engineer")))
    return pd.DataFrame({"income": income, "job": job, "sex": sex, "repaid": repaid})


def main(file: str, n: int = 20_000, seed: int | None = None) -> None:
    everybody = loans(2 * n)
    table, later = everybody[:n], everybody[n:]
    method = make_pipeline(TableEncoder(), BinaryMIClassifier(max_epochs=30, random_state=seed))
    gammas = (0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
    model = CertifiedClassifier(method, max_disparity=0.15, path=gammas, random_state=seed)
    model.fit(table[["income", "job"]], table["repaid"], sensitive_features=table["sex"])
    print(model.certificate_)

    # One code per person, once: two codes of the same person would reveal more. The row's index identifies the person.
    codes = release(model, later[["income", "job"]], ledger=f"{file}.ledger", person=later.index).codes
    pd.DataFrame(codes, later.index, model.get_feature_names_out()).to_csv(file)
    decision = LogisticRegression().fit(codes, later["repaid"]).predict(codes)  # what a recipient may do
    disparity = discrimination(decision, sensitive_features=later["sex"])
    print(f"A recipient's decisions have a disparity of {disparity:.3f}")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
