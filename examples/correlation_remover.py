"""A representation that looks fair and is not: fairlearn's CorrelationRemover under the audit.

Needs ``pip install 'fairbits[compare]'``. Usage: python examples/correlation_remover.py [compas] [adult] [bank]
"""

import sys

import numpy as np
from fairlearn.preprocessing import CorrelationRemover
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from fairbits import TableEncoder, audit
from fairbits.auditing import run_probes
from fairbits.datasets import load_adult, load_bank, load_compas
from fairbits.metrics import discrimination

LOADERS = {"compas": load_compas, "adult": load_adult, "bank": load_bank}


def main(names: list[str]) -> None:
    for name in names or list(LOADERS):
        data = LOADERS[name]()
        X = np.asarray(TableEncoder().fit_transform(data.X))
        s = np.unique(data.s, return_inverse=True)[1]
        train, test = train_test_split(np.arange(len(s)), test_size=0.5, stratify=s, random_state=0)
        # The sensitive column is the first input column; the output does not contain it.
        remover = CorrelationRemover(sensitive_feature_ids=[0]).fit(np.column_stack([s, X])[train])
        Z = remover.transform(np.column_stack([s, X]))

        on_top = LogisticRegression(max_iter=1000).fit(Z[train], data.y.iloc[train])
        found = audit(Z[test], sensitive_features=s[test])
        some = np.random.default_rng(0).permutation(test)[:5_000]
        forest = run_probes(Z[some], s[some], view="as given", column="s", models=["forest"])[0]
        print(
            f"{name}: a logistic regression on top has a disparity of "
            f"{discrimination(on_top.predict(Z[test]), sensitive_features=s[test]):.3f} and accuracy "
            f"{on_top.score(Z[test], data.y.iloc[test]):.3f}; attacks that predict S:"
        )
        for probe in (*found.probes, forest):
            print(f"  {probe.model:<9} AUC {probe.auc:.3f} [{probe.auc_low:.3f}, {probe.auc_high:.3f}]")
        adversary = found.adversaries[0]
        most = (
            "nothing is certified" if adversary.at_most is None else f"the certificate allows {adversary.at_most:.3f}"
        )
        print(f"  proved: an attack predicts S with a balanced accuracy of at least {adversary.reached:.3f}; {most}")


if __name__ == "__main__":
    main(sys.argv[1:])
