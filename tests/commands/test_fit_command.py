"""`fairbits fit`, from a file to a folder, and a sentence where it cannot."""

import contextlib
import io
import json
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import fairbits
from fairbits.commands import main
from fairbits.errors import InputError
from fairbits.workflow import fit_task, rival_models
from fairbits.workflow.fit_records import attempt_number
from fairbits.workflow.rival_models import uncompared


def pay(folder):
    """Write a table in a folder and return the file."""
    rng = np.random.default_rng(0)
    n = 600
    sex = rng.choice(["F", "M"], n)
    frame = pd.DataFrame(
        {
            "id": np.arange(n),
            "grade": rng.normal(size=n).round(3),
            "height": (rng.normal(size=n) + (sex == "M")).round(3),
            "day": pd.date_range("2024-01-01", periods=n).strftime("%Y-%m-%d"),
            "sex": sex,
        }
    )
    frame["paid"] = np.where(frame.grade + rng.normal(size=n) > 0, "yes", "no")
    frame.to_csv(folder / "pay.csv", sep=";", index=False)
    return folder / "pay.csv"


@pytest.fixture
def table(tmp_path):
    return pay(tmp_path)


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["fairbits", "fit", *map(str, arguments)])
    try:
        main()
    except SystemExit as stopped:
        return stopped.code or 0
    return 0


BRIEF = ["--epochs", 2, "--code-size", 3, "--seed", 0]
NAMED = ["--label", "paid", "--sensitive", "sex"]
FILED = ["--owner", "Ann", "--purpose", "a test", "--approved-by", "Bo", "--favourable", "no"]


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """Return a folder with a table and a model in a, and what its fit printed."""
    home, printed = tmp_path_factory.mktemp("first"), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        assert run(patch, pay(home), *NAMED, "--max-disparity", 0.9, *BRIEF, *FILED, "--compare", "-o", home / "a") == 0
    return home, " ".join(printed.getvalue().split())


def record_of(folder):
    return json.loads((folder / "audit.json").read_text())


def test_a_table_becomes_a_folder(first):
    folder, printed = first[0] / "a", first[1]
    assert printed.index("- id was left out") < printed.index("Certified at")  # you may answer before the training
    for words in ("Certified at 95% confidence", "separated by semicolon", "Read as dates: day", "F ", "test rows"):
        assert words in printed
    model = fairbits.load(folder / "model")
    assert model.random_state is None if hasattr(model, "random_state") else model[-1].random_state is None
    frame = pd.read_csv(first[0] / "pay.csv", sep=";", parse_dates=["day"])
    assert set(model.predict(frame[["grade", "height", "day"]])) <= {"yes", "no"}
    record = record_of(folder)
    assert "id was left out: it looks like an identifier" in " ".join(record["task"]["notes"])
    rivals = [one for one in record["alternatives"] if one["name"] in ("parity penalty", "exponentiated gradient")]
    assert [one["value"] for one in rivals] == [0.5, 0.9, 0.45, 0.225]
    page = (folder / "report.html").read_text()
    for one in rivals:  # the same rows prove their bounds, and the lottery is scored by what it decides
        assert one["proved"]["class_total_variation"] >= one["proved"]["shown_class_total_variation"]
        assert f"{one['value']:g} {one['scores']['accuracy']:.3f}" in printed
    assert rivals[2]["scores"]["disparity"] == pytest.approx(rivals[2]["scores"]["discrimination"])
    for text in (printed, page.replace("&#39;", "'")):
        assert "fairlearn's ExponentiatedGradient" in text
    assert (folder / "model_card.md").read_text().startswith("# Model card: Predicting paid; protected: sex")
    assert "model_card.md, report.html" in printed
    assert "Predicting paid; protected: sex" in (folder / "report.html").read_text(encoding="utf-8")


def test_a_seed_repeats_a_fit_and_attempts_on_a_table_are_counted(first, monkeypatch, capsys):
    home, fit = first[0], [*NAMED, "--max-disparity", 0.9, *BRIEF]
    run(monkeypatch, home / "pay.csv", *fit, "-o", home / "b")
    turned = home / "turned.csv"  # the same rows in another order are the same table
    pd.read_csv(home / "pay.csv", sep=";").iloc[::-1].to_csv(turned, sep=";", index=False)
    run(monkeypatch, turned, *fit, "--seed", 1, "-o", home / "c")
    records = [record_of(home / place) for place in "abc"]
    first, again, other = records
    assert [record["attempt"] for record in records] == [1, 2, 3]
    assert len({record["table_hash"] for record in records}) == 1
    assert attempt_number(home / "elsewhere" / "d", first["table_hash"]) == 1
    assert [record["seed"] for record in records] == [0, 0, 1]
    assert again["audit"]["task"] == first["audit"]["task"]
    assert again["tested"] == first["tested"] != other["tested"]
    assert first["filed"] == {"owner": "Ann", "purpose": "a test", "approved_by": "Bo"}
    assert (first["decision"]["positive"], again["decision"]["positive"]) == ("no", "yes")
    share = {r["group"]: r["selected"] for r in first["decision"]["rates"]}
    assert {r["group"]: 1 - r["selected"] for r in again["decision"]["rates"]} == pytest.approx(share)
    assert "This is attempt 3 on this table." in capsys.readouterr().out


def test_without_a_seed_every_fit_has_another(table, tmp_path, monkeypatch, capsys):
    seeds = []

    def fit(*_, seed):
        seeds.append(seed)
        raise InputError("Enough is known.")

    monkeypatch.setattr(fit_task, "fit_task", fit)
    for _ in range(2):
        assert run(monkeypatch, table, *NAMED, "--max-disparity", 0.9, "-o", tmp_path / "m") == 1
    assert len(set(seeds)) == 2


def test_a_class_that_is_not_in_the_table_is_told_before_the_training(table, tmp_path, monkeypatch, capsys):
    assert run(monkeypatch, table, *NAMED, "--favourable", "maybe", *BRIEF, "-o", tmp_path / "m") == 1
    assert "--favourable maybe is not among the labels no, yes." in capsys.readouterr().err


@pytest.mark.parametrize(("place", "words"), [("pay.csv", "is a file"), ("pay.csv/m", "Cannot make a folder in")])
def test_a_place_that_cannot_be_a_folder_is_told_before_the_training(
    table, tmp_path, monkeypatch, capsys, place, words
):
    monkeypatch.setattr(fit_task, "fit_task", lambda *_: pytest.fail("trained all the same"))
    assert run(monkeypatch, table, *NAMED, "-o", tmp_path / place) == 1
    assert words in capsys.readouterr().err


def test_without_the_packages_that_draw_everything_else_is_written(table, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "fairbits.report.sections", None)
    assert run(monkeypatch, table, *NAMED, "--gamma", 0.5, *BRIEF, "-o", tmp_path / "m") == 0
    assert "report.html needs packages that are not installed. pip install 'fairbits[report]'." in " ".join(
        capsys.readouterr().out.split()
    )
    assert sorted(f.name for f in (tmp_path / "m").iterdir()) == ["audit.json", "model", "model_card.md"]


def test_what_cannot_be_proved_is_said_and_has_its_own_exit_code(table, tmp_path, monkeypatch, capsys):
    """A terminal shows a bar meanwhile, and JSON stays JSON."""
    monkeypatch.setenv("FORCE_COLOR", "1")  # as if stderr were a terminal
    monkeypatch.setenv("COLUMNS", "120")
    code = run(
        monkeypatch, table, *NAMED, "--for", "codes", "--max-disparity", 0.14, *BRIEF, "-o", tmp_path / "m", "--json"
    )
    assert code == 3
    out, err = capsys.readouterr()
    assert "step 1 of 4, training and certifying" in err
    assert "step 4 of 4" in err
    assert "\u2501" in err  # of the bar
    record = json.loads(out)
    assert record["format"] == 2
    assert not record["certified"]
    assert "No model could be certified to a disparity of at most 0.14" in record["refusal"]
    assert (tmp_path / "m" / "model" / "manifest.json").exists()
    for name in ("model_card.md", "report.html"):
        text = (tmp_path / "m" / name).read_text(encoding="utf-8")
        assert "could be certified to a disparity of at most 0.14" in text
        assert "max_disparity=" not in text


def test_a_copy_of_the_sensitive_column_is_named(table, tmp_path, monkeypatch, capsys):
    frame = pd.read_csv(table, sep=";")
    frame.assign(title=np.where(frame.sex == "M", "Mr", "Ms")).to_csv(table, sep=";", index=False)
    run(monkeypatch, table, *NAMED, "--gamma", 0.5, *BRIEF, "-o", tmp_path / "m")
    out = " ".join(capsys.readouterr().out.split())
    assert "column 'title=Mr' is one-to-one with the sensitive column 'sex'" in out
    assert "Leave it out with --drop; if the model is meant to read the groups, pass --encode-sensitive, too." in out
    for name in ("model_card.md", "report.html", "audit.json"):
        assert "from X" not in (tmp_path / "m" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Name the column to predict with --label"),
        (["--label", "payed", "--sensitive", "sex"], "did you mean 'paid'?"),
        ([*NAMED, "--gamma", 0.1, "--max-disparity", 0.1], "one of the two"),
        ([*NAMED, "--gamma", 0.1, "--encode-sensitive"], "--encode-sensitive needs a limit. Leave --gamma out."),
        ([*NAMED, "--gamma", 0.1, "--for", "decisions"], "--for decisions needs a limit. Leave --gamma out."),
        ([*NAMED, "--odds-label", "yes"], "--odds-label needs a limit. Pass --max-odds-disparity."),
        (
            [*NAMED, "--max-odds-disparity", 0.1, "--odds-label", "maybe"],
            "--odds-label maybe is not among the labels no, yes.",
        ),
        ([*NAMED, "--code-size", 12], "--code-size 12 must be a whole number at least 1 and at most 10"),
        ([*NAMED, "--encoding", "klingon"], "--encoding klingon is unknown"),
    ],
)
def test_nonsense_gets_a_sentence_and_writes_nothing(table, tmp_path, monkeypatch, capsys, arguments, words):
    assert run(monkeypatch, table, *arguments, "-o", tmp_path / "m") == 1
    error = capsys.readouterr().err
    assert words in error
    assert "Traceback" not in error
    assert not (tmp_path / "m").exists()


def test_a_folder_with_something_in_it_is_left_alone(table, tmp_path, monkeypatch, capsys):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "mine.txt").write_text("mine")
    assert run(monkeypatch, table, *NAMED, "-o", tmp_path / "m") == 1
    assert "is not empty" in capsys.readouterr().err
    assert [f.name for f in (tmp_path / "m").iterdir()] == ["mine.txt"]


def test_what_cannot_be_compared_is_named(monkeypatch):
    three = SimpleNamespace(y=np.array([0, 1, 2]), label="paid")
    assert uncompared(three) == ["fairlearn takes two classes, and paid has 3: --compare leaves it out."]
    assert uncompared(SimpleNamespace(y=np.array([0, 1]), label="paid")) == []
    monkeypatch.setattr(rival_models, "find_spec", lambda name: None)
    assert "fairlearn is not installed" in uncompared(three)[0]
