"""Ten classifiers that receive the codes in ``python -m benchmarks.proof``, and what they do with them."""

from typing import Any

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.naive_bayes import BernoulliNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

from fairbits.metrics import discrimination


def ten_classifiers() -> dict[str, Any]:
    """Return the classifiers by name."""
    return {
        "logistic regression": LogisticRegression(),
        "linear discriminant": LinearDiscriminantAnalysis(),
        "naive Bayes": BernoulliNB(),
        "nearest neighbours": KNeighborsClassifier(25, algorithm="brute"),
        "tree": DecisionTreeClassifier(random_state=0),
        "random forest": RandomForestClassifier(random_state=0),
        "extra trees": ExtraTreesClassifier(random_state=0),
        "AdaBoost": AdaBoostClassifier(random_state=0),
        "boosted trees": HistGradientBoostingClassifier(random_state=0),
        "neural network": MLPClassifier((32,), early_stopping=True, random_state=0),
    }


def outcome(classifier: Any, train: tuple, fresh: tuple) -> dict[str, float]:
    """Train a classifier for the label, and then as an adversary for S; return how well it does.

    The adversary sees both groups equally often, because it is judged by its balanced accuracy.
    """
    (seen, y_seen, s_seen, even), (code, y, s) = train, fresh
    decision = classifier.fit(seen, y_seen).predict(code)
    guess = classifier.fit(seen[even], s_seen[even]).predict(code)
    return {
        "accuracy": float((decision == y).mean()),
        "gap": float(discrimination(decision, sensitive_features=s)),
        "adversary": float(balanced_accuracy_score(s, guess)),
    }
