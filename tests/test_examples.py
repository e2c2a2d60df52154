"""The examples run as they stand."""

import runpy
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(name, *arguments, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out


def test_a_forest_reads_what_the_correlation_remover_leaves(capsys, monkeypatch):
    text = run("correlation_remover.py", "compas", capsys=capsys, monkeypatch=monkeypatch)
    auc = {line.split()[0]: float(line.split()[2]) for line in text.splitlines() if " AUC " in line}
    assert auc["logistic"] < 0.55
    assert auc["forest"] > 0.999
