"""The first command, from the shell to the files it leaves."""

import contextlib
import io
import json
import subprocess
import sys
from dataclasses import replace

import pandas as pd
import pytest
from paper_records import draw_no_pixels
from people import population

from fairbits import TradeoffPath, datasets
from fairbits.commands import main
from fairbits.estimators import tradeoff_path

SMALL = ("--gammas", "2", "--folds", "2", "--code-size", "4")


def brief_path(estimator, *arguments, **settings):
    return TradeoffPath(estimator.set_params(max_epochs=30, learning_rate=0.003), *arguments, **settings)


def from_the_shell(*arguments):
    command = [sys.executable, "-c", "from fairbits.commands import main; main()", "path", "compas"]
    result = subprocess.run([*command, *arguments, *SMALL], capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stderr
    return result.stdout


def on_some_rows(*arguments):
    """Run the command here, on every eighth row of the table and for fewer epochs."""
    data, out = datasets.load_compas(), io.StringIO()
    few = replace(data, X=data.X[::8], y=data.y[::8], s=data.s[::8])
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.setattr(datasets, "load_compas", lambda: few)
        patch.setattr(tradeoff_path, "TradeoffPath", brief_path)
        patch.setattr(sys, "argv", ["fairbits", "path", "compas", *arguments, *SMALL])
        with pytest.raises(SystemExit) as ended:
            main()
    assert not ended.value.code
    return out.getvalue()


WAYS = [(on_some_rows, "769 rows"), pytest.param((from_the_shell, "6,150 rows"), marks=pytest.mark.slow)]


@pytest.fixture(scope="module", params=WAYS, ids=["some rows", "all rows, from the shell"])
def finished(request, tmp_path_factory):
    """Return what runs the command, the folder it left, what it printed and how many rows it must have named."""
    run, rows = request.param
    folder = tmp_path_factory.mktemp("path") / "deep" / "run"
    return run, folder, run("-o", str(folder)), rows


def test_it_prints_a_table_and_says_where_things_are(finished):
    _, folder, output, rows = finished
    assert rows in output
    assert "AUC" in output
    assert "bits" in output
    assert str(folder / "scores.csv") in output.replace("\n", "")


def test_it_writes_scores_settings_and_a_figure(finished):
    _, folder, _, _ = finished
    scores = pd.read_csv(folder / "scores.csv")
    assert len(scores) == 4
    assert scores.groupby("gamma").information.mean().is_monotonic_decreasing
    assert scores[scores.gamma == 0].auc.mean() > 0.68
    assert (scores[scores.gamma == 0].auc > scores[scores.gamma == 0].one_draw_auc).all()
    assert json.loads((folder / "settings.json").read_text())["table"] == "compas"
    assert (folder / "frontier.png").read_bytes()[1:4] == b"PNG"
    assert "<svg" in (folder / "frontier.svg").read_text()
    assert len(list(folder.iterdir())) == 4


@pytest.mark.slow
def test_the_same_seed_gives_the_same_scores(finished, tmp_path, monkeypatch):
    run, folder, _, _ = finished
    draw_no_pixels(monkeypatch)
    output = run("-o", str(tmp_path), "--json")
    assert (tmp_path / "scores.csv").read_text() == (folder / "scores.csv").read_text()
    assert len(json.loads(output)["scores"]) == 4


def test_your_own_table_has_a_path_too(fairbits, tmp_path, monkeypatch):
    draw_no_pixels(monkeypatch)
    population(400, 0).to_csv(tmp_path / "t.csv", index=False)
    asked = ["--label", "paid", "--sensitive", "sex", "--drop", "day", "-o", tmp_path / "out", *SMALL]
    ended = fairbits("path", tmp_path / "t.csv", *asked)
    assert ended.code == 0, ended.err
    said = " ".join(ended.out.split())
    assert "t.csv: 400 rows; predicting paid; protected: sex (F" in said
    assert "- id was left out: it looks like an identifier" in said
    assert "GPA: how much that differs between groups. AUDC: how far the scores of two groups lie apart." in said
    settings = json.loads((tmp_path / "out" / "settings.json").read_text())
    assert (settings["label"], settings["sensitive"]) == ("paid", ["sex"])
    assert len(pd.read_csv(tmp_path / "out" / "scores.csv")) == 4


def test_the_recommended_code_has_a_path_over_limits(fairbits, tmp_path, monkeypatch):
    draw_no_pixels(monkeypatch)
    population(400, 0).to_csv(tmp_path / "t.csv", index=False)
    asked = ["--label", "paid", "--sensitive", "sex", "--drop", "day", "-o", tmp_path / "out", "--folds", "2"]
    ended = fairbits("path", tmp_path / "t.csv", *asked, "--method", "fair", "--limits", "0.1, 0.5")
    assert ended.code == 0, ended.err
    assert "Disparity: the largest difference between groups of any decision" in " ".join(ended.out.split())
    assert list(pd.read_csv(tmp_path / "out" / "scores.csv").limit) == [0.1, 0.5, 0.1, 0.5]
    settings = json.loads((tmp_path / "out" / "settings.json").read_text())
    assert (settings["limits"], settings["code_size"]) == ([0.1, 0.5], 4)
    assert "optimal front, estimated" in (tmp_path / "out" / "frontier.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("path", "titanic"), "There is no file titanic"),
        (("path", "compas", "--gammas", "1"), "gammas"),
        (("path", "compas", "--limits", "0.1"), "--limits are for --method fair"),
        (("path", "compas", "--method", "fair", "--limits", "small"), "is not a list of numbers"),
        (("path", "compas", "--method", "fair", "--code-size", "12"), "at most 10 bits"),
        (("path", "compas", "-o", "/dev/null/run"), "/dev/null/run"),
        (("fly",), "fly"),
    ],
)
def test_nonsense_gets_a_sentence_and_no_traceback(fairbits, arguments, message):
    ended = fairbits(*arguments)
    assert ended.code != 0
    assert message in ended.err
    assert "Traceback" not in ended.err
