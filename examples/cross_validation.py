"""scikit-learn around fairbits: sensitive features through a pipeline, cross_validate and GridSearchCV.

Usage: python examples/cross_validation.py. If fairlearn is installed, it also shows fairlearn's MetricFrame.
"""

from importlib.util import find_spec

import sklearn
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, cross_validate, train_test_split
from sklearn.pipeline import make_pipeline

from fairbits import BinaryMIClassifier, TableEncoder
from fairbits.datasets import load_compas


def main() -> None:
    data = load_compas()
    X, X_test, y, y_test, s, s_test = train_test_split(data.X, data.y, data.s, test_size=0.3, random_state=0)
    method = BinaryMIClassifier(gamma=0.6, max_epochs=10, random_state=0).set_fit_request(sensitive_features=True)
    model = make_pipeline(TableEncoder(), method)
    scores = cross_validate(model, X, y, params={"sensitive_features": s}, cv=3, scoring="roc_auc")
    print("AUC of three folds", *scores["test_score"].round(3))

    # AUC alone would choose gamma 0: search the other settings at the gamma you want, or use CertifiedClassifier.
    search = GridSearchCV(model, {"binarymiclassifier__code_size": [2, 8]}, cv=2, scoring="roc_auc")
    search.fit(X, y, sensitive_features=s)
    print("chosen", search.best_params_)
    if find_spec("fairlearn"):
        from fairlearn.metrics import MetricFrame, selection_rate

        frame = MetricFrame(
            metrics={"accuracy": accuracy_score, "selection rate": selection_rate},
            y_true=y_test,
            y_pred=search.predict(X_test),
            sensitive_features=s_test,
        )
        print(frame.by_group.round(3))


if __name__ == "__main__":
    with sklearn.config_context(enable_metadata_routing=True):
        main()
