"""Records as runs leave them, with made-up numbers."""

from typing import Any

import vl_convert

from fairbits.lab.run_settings import RUN

GAMMAS = [0.0, 0.25, 0.5, 0.75, 1.0]
BETAS = [0.0, 10.0, 100.0, 1000.0]
VIEW = {"adrg": 0.05, "auc_of_s": 0.55}


def record(result: dict[str, Any], **settings: Any) -> dict[str, Any]:
    """Return a record of a run with these settings, which must be those of a run."""
    run = RUN.validate_python({"threads": 1, **settings})
    made = {"date": "2026-01-01", "commit": "abc", "seconds": 1.5}
    return {"format": 1, "hash": run.hash, "run": RUN.dump_python(run, mode="json"), "result": result, "made": made}


def scores(auc: float, gpa: float, audc: float = 0.02, **more: float) -> dict[str, float]:
    return {"auc": auc, "accuracy": 0.6, "gpa": gpa, "audc": audc, "discrimination": 0.05, **more}


def ordered(gap: float) -> dict[str, float]:
    return {"signed_gpa": gap, "rank_audc": 0.05}


def drawn(auc: float, gpa: float) -> dict[str, float]:
    return {"one_draw_auc": auc, "one_draw_gpa": gpa, "information": 0.0123}


def reference(name: str, fold: int, test: dict[str, float], dataset: str = "compas") -> dict[str, Any]:
    seen = {"nothing": {"adrg": 0.0, "auc_of_s": 0.5}} if name == "constant" else {"the columns": VIEW}
    return record({"test": test, "representation": seen}, kind="reference", name=name, dataset=dataset, fold=fold)


def search(name: str, fold: int, test: dict[str, float], **more: Any) -> dict[str, Any]:
    """Return the record of a search; `more` are settings of the run, and `best`, the setting it chose."""
    result = {
        "best": more.pop("best", {"gamma": 0.16049, "depth": 2, "batch_size": 128}),
        "inner": scores(0.7, 0.2),
        "trials": {"complete": 6, "pruned": 2, "failed": 1},
        "test": test,
        "representation": {"one draw": VIEW, "theta": VIEW} if "information" in test else {"representation": VIEW},
    }
    settings = {"dataset": "compas", "method": {"estimator": "Any"}, **more}
    return record(result, kind="search", name=name, fold=fold, **settings)


def refit(name: str, fold: int, test: dict[str, float], seed: int = 0, **more: Any) -> dict[str, Any]:
    """Return the record of a refit; the first seed has forests."""
    seen = {**VIEW, "auc_of_y": 0.7, "model_auc": 0.72}
    views = {"one draw": seen, "theta": seen} if "information" in test else {"representation": seen}
    result = {"test": test} | ({} if seed else {"representation": more.pop("representation", views)})
    settings = {"dataset": "compas", "method": {"estimator": "Any"}, "settings": {"gamma": 0.2}, **more}
    return record(result, kind="refit", name=name, fold=fold, seed=seed, **settings)


def strengths(name: str, score: Any, values: list[float] = GAMMAS, **more: Any) -> dict[str, Any]:
    """Return the record of a run over strengths; score(value, fold) returns the scores."""
    found = [{"strength": value, "fold": fold, **score(value, fold)} for fold in (0, 1) for value in values]
    method = {"estimator": "Any", "strength": more.pop("strength", "gamma")}
    settings = {"dataset": "compas", "method": method, "values": values, "folds": 2, **more}
    return record({"scores": found}, kind="strengths", name=name, **settings)


def plane(name: str, gamma: float, seed: int, epochs: int = 3) -> dict[str, Any]:
    heard = [0.1, 0.2, 0.0]
    told = [{"about_x": 0.5 * e + 0.1 * seed, "about_y": heard[e], "about_s": 0.05 * e} for e in range(epochs)]
    settings = {"dataset": "compas", "method": {"estimator": "Any"}, "gamma": gamma, "epochs": epochs, "seed": seed}
    return record({"epochs": told}, kind="plane", name=name, **settings)


def domain(name: str, seed: int, strength: float | None, target: float, **more: Any) -> dict[str, Any]:
    found = {"source_accuracy": 0.9, "source_auc": 0.95, "target_accuracy": target - 0.1, "target_auc": target}
    values = [] if strength is None else [strength]
    settings = {"experiment": "other colours", "method": {"estimator": "Any"}, "values": values, "seed": seed, **more}
    return record({"scores": [{"strength": strength, **found}]}, kind="domain", name=name, **settings)


def image(name: str, rho: float, seed: int, accuracy: float, **more: float) -> dict[str, Any]:
    settings = {"rho": rho, "seed": seed, "epochs": 10, "method": {"estimator": "Any"}}
    return record({"accuracy": accuracy, **more}, kind="images", name=name, **settings)


def everything() -> list[dict[str, Any]]:
    """Return records of all kinds; no method has all of them."""
    tuned = [reference("constant", fold, scores(0.5, 0.0, 0.0)) for fold in range(3)]
    tuned += [reference("logistic regression", fold, scores(0.72 + 0.01 * fold, 0.25, 0.1)) for fold in range(3)]
    for fold in range(3):
        noise = 0.01 * (fold - 1) ** 2
        tuned.append(search("BinaryMI", fold, scores(0.7 + noise, 0.1, **drawn(0.65, 0.08))))
        tuned.append(search("AdvCls", fold, scores(0.68 - noise, 0.15 + noise), best={"gamma": 0.5, "alpha": 2000.0}))
    tuned.append(search("mine, 50 %", 0, scores(0.6, 0.1)))
    paths = [_path("BinaryMI", seed, **drawn(0.6, 0.1)) for seed in (0, 1)] + [_path("AdvCls", 0)]
    paths += [strengths("VFAE", _beta_scores, BETAS, strength="beta", depth=depth) for depth in (1, 3)]
    planes = [plane("BinaryMI", gamma, seed) for gamma in (0.0, 0.5) for seed in (0, 1)]
    images = [image("BinaryBernoulli", 0.99, seed, 0.9 + 0.01 * seed, **drawn_image()) for seed in (0, 1)]
    return [*tuned, *paths, *planes, *images, image("Vanilla", 0.99, 0, 0.8)]


def one_kind_each() -> dict[str, list[dict[str, Any]]]:
    """Return records by name, each list of one kind of run, as a plan of that kind alone leaves them."""
    return {
        "constant": [reference("constant", 0, scores(0.5, 0.0, 0.0))],
        "constant, all folds": [reference("constant", fold, scores(0.5, 0.0, 0.0)) for fold in range(3)],
        "logistic regression": [reference("logistic regression", 0, scores(0.72, 0.25, 0.1))],
        "search": [search("mine", 0, scores(0.6, 0.1))],
        "search of a code": [search("BinaryMI", 0, scores(0.6, 0.1, **drawn(0.6, 0.1)))],
        "refit": [refit("mine", 0, {**scores(0.6, 0.1), **ordered(0.1)})],
        "refits of a code": [refit("BinaryMI", 0, scores(0.6, 0.1, **drawn(0.6, 0.1)), seed) for seed in (0, 1)],
        "strengths": [_path("HSIC", 0)],
        "one strength": [strengths("BinaryMI", lambda v, f: scores(0.7, 0.3, **drawn(0.6, 0.1)), [0.5])],
        "several depths": [strengths("VFAE", _beta_scores, BETAS, strength="beta", depth=depth) for depth in (1, 3)],
        "one deep network": [strengths("VFAE", _beta_scores, BETAS, strength="beta", depth=3)],
        "bound": [strengths("fairlearn EG", _beta_scores, BETAS, strength="difference_bound")],
        "common seeds": [strengths("HSIC", lambda v, f: {**scores(0.7, 0.1), **ordered(v - 0.6)}, common=True)],
        "plane": [plane("BinaryMI", 0.5, 0)],
        "plane of one epoch": [plane("BinaryMI", 0.5, 0, epochs=1)],
        "domain": [domain("plain network", 0, None, 0.7), domain("DANN", 0, 0.5, 0.8)],
        "images": [image("Vanilla", 0.99, 0, 0.8)],
        "images of a code": [image("mine", 0.9, 0, 0.8, **drawn_image())],
    }


def draw_no_pixels(patch: Any) -> None:
    """Let an image in PNG be empty; the one in SVG is drawn of the same chart."""
    patch.setattr(vl_convert, "svg_to_png", lambda *_, **__: b"")


def drawn_image() -> dict[str, float]:
    return {"one_draw_accuracy": 0.89, "information": 0.5}


def _path(name: str, seed: int, **more: float) -> dict[str, Any]:
    return strengths(name, lambda v, f: scores(0.7 - 0.1 * v + 0.01 * seed, 0.3 - 0.2 * v, **more), seed=seed)


def _beta_scores(value: float, fold: int) -> dict[str, float]:
    return scores(0.7, 0.3 / (1 + value))
