"""The arena: one certificate for all methods, a choice that rows of the test part never see, and its tables."""

import numpy as np
import pytest
from paper_records import record
from sklearn.linear_model import LogisticRegression

from fairbits import LinearCodeClassifier, PosteriorEncoder, VanillaClassifier, certify
from fairbits.lab import arena
from fairbits.lab.arena import Rows
from fairbits.lab.paper.arena_tables import arena as arena_sections
from fairbits.lab.paper.arena_tables import arena_charts, arena_choices
from fairbits.lab.plan_files import read_plan


@pytest.fixture(scope="module")
def split():
    """Rows whose columns are p(y,s|x), in the three parts of a run."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), 4_000)
    cell = (rng.random((4_000, 1)) > p.cumsum(1)).sum(1).clip(max=3)
    return [Rows(p[part], cell[part] // 2, cell[part] % 2) for part in np.split(np.arange(4_000), [2_000, 3_300])]


def test_what_a_hard_code_proves_is_what_certify_says(split):
    train, held, test = split
    model = LinearCodeClassifier(limit=0.1, max_epochs=20, random_state=0)
    model.fit(train.X, train.y, sensitive_features=train.s)
    found = arena.point(model, *split)
    assert found["code"]["bound"] == pytest.approx(model.certify(held.X, sensitive_features=held.s).total_variation)
    decided = certify(model.predict(held.X), sensitive_features=held.s).total_variation
    assert found["decision"]["bound"] == pytest.approx(decided)
    assert found["code"]["accuracy"] == found["decision"]["accuracy"] == np.mean(model.predict(test.X) == test.y)
    assert found["decision"]["disparity"] <= found["code"]["disparity"] + 1e-12, "a class is a function of its code"


def test_a_score_is_released_in_levels_of_the_training_rows(split):
    train, held, _ = split
    model = VanillaClassifier(max_epochs=2, random_state=0).fit(train.X, train.y)
    seen, calibrated = arena.releases(model, train, held)
    counts = np.bincount(seen.words, minlength=arena.LEVELS)
    assert counts.max() - counts.min() <= 2
    score, order = model.predict_proba(held.X)[:, 1], calibrated.words
    assert (np.diff(order[np.argsort(score)]) >= 0).all()
    level = train.y[seen.words == 3]
    assert calibrated.chance[calibrated.words == 3] == pytest.approx((level.sum() + 0.5) / (len(level) + 1))


def points(*bounds):
    """Points of which later ones are expected to show more, and lose less."""
    one = {"accuracy": 0.8, "auc": 0.85, "disparity": 0.01, "auc_of_s": 0.51}
    return [
        {part: {"expected": place, "bound": bound, "loss": 1 / (1 + place), **one} for part in ("code", "decision")}
        for place, bound in enumerate(bounds)
    ]


def run(name, bounds, seed=0):
    settings = {"dataset": "compas", "method": {"estimator": "LinearCodeClassifier"}, "inputs": "columns"}
    return record({"points": points(*bounds), "constant": 0.55}, kind="arena", name=name, seed=seed, **settings)


def test_the_sequence_stops_at_the_first_failure_and_nothing_leaves_the_constant():
    found = arena_choices([run("FairCode", (0.03, 0.04, 0.2, 0.04)), run("Parity", (0.06, 0.01))])
    kept = found[found.release == "code"].set_index(["method", "limit"])
    assert kept.loss["FairCode", 0.05] == 1 / 2, "the fourth comes after a failure"
    assert not kept.certified["Parity", 0.05]
    assert (kept.accuracy["Parity", 0.05], kept.auc["Parity", 0.05]) == (0.55, 0.5)
    assert kept.certified["Parity", 0.1]


def test_tables_have_the_best_method_first_and_pair_it_with_the_recommended_one():
    records = [run(*one, seed) for one in (("FairCode", (0.03,)), ("Parity", (0.07,))) for seed in (0, 1)]
    (section,) = arena_sections(records)
    table, pairs, *_ = section.tables
    assert [row[0] for row in table.rows] == ["FairCode", "Parity"]
    assert table.rows[1][2] == "0 of 2"
    assert pairs.rows[0][3:] == ("-0.350 ± 0.000", "ahead")


def test_the_picture_has_a_panel_for_every_rival_and_release():
    charts = dict(arena_charts([run("FairCode", (0.03, 0.04)), run("Parity", (0.07,)), run("HSIC", (0.02, 0.09))]))
    panels = [panel["title"]["text"] for row in charts["compas-arena"].to_dict()["vconcat"] for panel in row["concat"]]
    assert panels == ["HSIC", "Parity"] * 2
    assert not dict(arena_charts([run("FairCode", (0.03,))]))


def test_the_front_is_drawn_behind_every_panel_and_is_no_method(split):
    train, _, test = split
    rows = [part._replace(X=part.X[:, :3]) for part in (train, test)]
    found = arena.front(PosteriorEncoder(LogisticRegression(), features="probabilities", random_state=0), *rows)
    for curve, score in ((found["code"], "auc"), (found["decision"], "accuracy")):
        values = [[point["disparity"], point[score]] for point in curve]
        assert len(values) > 2
        assert (np.diff(values, axis=0) >= 0).all(), "more disparity, no worse"
    front = record(
        {"points": [], "front": found, "constant": 0.5},
        **{**run("optimal front", ())["run"], "method": {"estimator": "PosteriorEncoder"}},
    )
    records = [run("FairCode", (0.03,)), run("Parity", (0.07,)), front]
    assert set(arena_choices(records).method) == {"FairCode", "Parity"}
    (chart,) = [chart.to_dict() for _, chart in arena_charts(records)]
    assert [panel["title"]["text"] for row in chart["vconcat"] for panel in row["concat"]] == ["Parity"] * 2
    assert "best there is, estimated" in str(chart["datasets"])


def test_the_plan_has_every_method_on_every_table():
    runs = read_plan("arena").runs
    assert {run.dataset for run in runs} == {"adult", "adult-crossed", "bank", "compas"}
    assert {"FairCode", "FARE", "LEACE", "VFAE", "fairlearn EG"} <= {run.name for run in runs}
