"""The first command, from the shell to the files it leaves."""

import json
import subprocess
import sys

import pandas as pd
import pytest

SMALL = ("--gammas", "2", "--folds", "2", "--code-size", "4")


def fairbits(*arguments, **options):
    command = [sys.executable, "-c", "from fairbits.commands import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, **options)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("path") / "deep" / "run"
    result = fairbits("path", "compas", "-o", str(folder), *SMALL)
    assert result.returncode == 0, result.stderr
    return folder, result.stdout


def test_it_prints_a_table_and_says_where_things_are(finished):
    folder, output = finished
    assert "6,150 rows" in output
    assert "AUC" in output
    assert "bits" in output
    assert str(folder / "scores.csv") in output.replace("\n", "")


def test_it_writes_scores_settings_and_a_figure(finished):
    folder, _ = finished
    scores = pd.read_csv(folder / "scores.csv")
    assert len(scores) == 4
    assert scores.groupby("gamma").information.mean().is_monotonic_decreasing
    assert scores[scores.gamma == 0].auc.mean() > 0.68
    assert (scores[scores.gamma == 0].auc > scores[scores.gamma == 0].one_draw_auc).all()
    assert json.loads((folder / "settings.json").read_text())["table"] == "compas"
    assert (folder / "frontier.png").read_bytes()[1:4] == b"PNG"
    assert "<svg" in (folder / "frontier.svg").read_text()
    assert len(list(folder.iterdir())) == 4


def test_the_same_seed_gives_the_same_scores(finished, tmp_path):
    folder, _ = finished
    result = fairbits("path", "compas", "-o", str(tmp_path), *SMALL, "--json")
    assert (tmp_path / "scores.csv").read_text() == (folder / "scores.csv").read_text()
    assert len(json.loads(result.stdout)["scores"]) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("path", "titanic"), "compas"),
        (("path", "compas", "--gammas", "1"), "gammas"),
        (("path", "compas", "-o", "/dev/null/run"), "/dev/null/run"),
        (("fly",), "fly"),
    ],
)
def test_nonsense_gets_a_sentence_and_no_traceback(arguments, message):
    result = fairbits(*arguments)
    assert result.returncode != 0
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_help_needs_no_torch():
    code = "from fairbits.commands.app import app; app(['--help'], standalone_mode=False)"
    code += "; import sys; print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "path" in result.stdout
    assert "torch" not in result.stdout.split()
