"""Refits in tables: means over seeds first, intervals over folds, forests beside the model they belong to."""

import numpy as np
import pytest
from paper_records import VIEW, drawn, ordered, refit, scores, search
from scipy import stats

from fairbits.lab.paper.refitted_methods import informativeness, informativeness_views, refits

NOISE = np.random.default_rng(0).normal(size=(2, 3, 5)) / 50  # method, fold, seed


def own(method, name, fold, seed, **more):
    gpa = 0.1 + NOISE[method, fold, seed]
    return refit(name, fold, {**scores(0.7, gpa), **ordered(-gpa)}, seed, origin="searched", **more)


RECORDS = [own(m, n, f, s) for m, n in enumerate(("BinaryMI", "AdvCls")) for f in range(3) for s in range(5)]
ONCE = [search("BinaryMI", f, scores(0.7, 0.1 + f / 10)) for f in range(3)]
ONCE += [search("AdvCls", f, scores(0.7, 0.1)) for f in range(3)]


def interval(values):
    return stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)


def tables(records):
    (section,) = refits(records)
    return {table.name: table for table in section.tables}


def test_seeds_are_averaged_before_folds_are():
    row = tables(RECORDS)["compas-refits"].rows[1]
    assert row[:4] == ("BinaryMI", "searched", "3", "5")
    means = 0.1 + NOISE[0].mean(1)
    assert row[5] == f"{means.mean():.3f} ± {interval(means):.3f}"
    assert row[6] == f"{-means.mean():.3f} ± {interval(means):.3f}"
    assert row[-1] == f"{NOISE[0].std(1, ddof=1).mean():.3f}"


def test_differences_are_paired_by_fold_and_stand_beside_those_of_one_fit():
    (row,) = tables([*RECORDS, *ONCE])["compas-refit-differences"].rows
    means = (NOISE[0] - NOISE[1]).mean(1)
    assert row[:4] == ("BinaryMI", "AdvCls", "3", f"{means.mean():+.3f} ± {interval(means):.3f}")
    before = np.array([0.0, 0.1, 0.2])
    assert row[5] == f"+0.100 ± {interval(before):.3f}"
    (row,) = tables(RECORDS)["compas-refit-differences"].rows
    assert row[5] == "–"


def test_the_papers_settings_are_not_compared_as_if_they_were_searched():
    paper = [refit(n, f, scores(0.7, 0.1), origin="paper") for n in ("BinaryMI", "AdvCls") for f in range(3)]
    assert "compas-refit-differences" not in tables(paper)
    assert [row[:2] for row in tables([*RECORDS, *paper])["compas-refits"].rows] == [
        (name, origin) for origin in ("paper", "searched") for name in ("AdvCls", "BinaryMI")
    ]


def test_a_refits_forests_count_before_the_searchs_and_old_records_have_none():
    seen = {**VIEW, "auc_of_y": 0.9, "model_auc": 0.8}
    old, code = search("BinaryMI", 0, scores(0.7, 0.1)), scores(0.7, 0.1, **drawn(0.6, 0.1))
    assert informativeness([old]) == []
    new = refit("BinaryMI", 0, code, representation={"one draw": seen}, origin="searched")
    again = search("BinaryMI", 0, scores(0.7, 0.1))
    again["result"]["representation"] = {"one draw": {**seen, "auc_of_y": 0.1}}
    for order in ([again, new], [new, again]):
        (view,) = informativeness_views(order).to_dict("records")
        assert (view["auc_of_y"], view["model_auc"], view["hidden"]) == (0.9, 0.8, pytest.approx(0.95))
    paper = refit("BinaryMI", 0, code, representation={"one draw": seen}, origin="paper")
    (section,) = informativeness([new, paper])
    assert [row[0] for row in section.tables[0].rows] == ["BinaryMI", "BinaryMI (the paper)"]
