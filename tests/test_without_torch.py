"""Certificates, scores and audits of tables work where torch cannot be imported."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from fairbits import certify
from fairbits.certificate.certificate_record import at_most

PROGRAM = """
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ImportError("torch is blocked")
sys.meta_path.insert(0, NoTorch())
import numpy as np
import pandas as pd
import fairbits
from fairbits import metrics
from fairbits.commands import main
from fairbits.auditing import auditor
auditor.QUICK = ("logistic",)  # the fastest probe
table = pd.read_csv("table.csv")
s, d = table.sex.to_numpy(), table.decision.to_numpy()
print(round(fairbits.certify(d, sensitive_features=s).total_variation, 2))
print(round(fairbits.certify(np.full((400, 2), 0.5), sensitive_features=s).total_variation, 2))
print(metrics.auc(d, d * 1.0))
for columns in (["decision"], ["score"], ["age", "job"]):
    found = fairbits.audit(table[columns], sensitive_features=table.sex)
    leak, attack = found.leakage[0], found.adversaries[0]
    numbers = [leak.entropy, leak.joint, leak.lower, leak.each_bit and leak.each_bit[0], attack.at_most]
    print(*[None if number is None else round(number, 12) for number in numbers])
named = ["--decision", "decision", "--sensitive", "sex"]
for command in (
    ["audit", "table.csv", "--sensitive", "sex", "--columns", "decision"],
    ["certify", "table.csv", *named],
    ["plan", "table.csv", "--label", "decision", "--sensitive", "sex"],
    ["watch", "table.csv", *named, "--max-disparity", "0.5", "--state", "state.json"],
):
    sys.argv = ["fairbits", *command]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code
assert "torch" not in sys.modules
"""


@pytest.fixture(scope="module")
def without_torch(tmp_path_factory):
    """Return the table, and the lines that the program prints about it."""
    folder, i = tmp_path_factory.mktemp("table"), np.arange(400)
    table = pd.DataFrame({"sex": i % 2, "decision": i // 2 % 2, "score": np.sin(i), "age": i % 7, "job": i % 5 // 2})
    table.to_csv(folder / "table.csv", index=False)
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, cwd=folder)
    assert run.returncode == 0, run.stderr
    return table, run.stdout.splitlines()


def test_certificates_and_measures_work_without_torch(without_torch):
    assert without_torch[1][:3] == ["0.09", "0.11", "1.0"]


def test_audits_of_tables_say_the_same_with_torch_and_without(without_torch):
    import torch

    from fairbits.information import information_sandwich, neuronwise_information

    table, lines = without_torch
    groups = torch.tensor(table.sex)
    for line, columns in zip(lines[3:6], (["decision"], ["score"], ["age", "job"]), strict=True):
        number = torch.tensor(table.groupby(columns).ngroup())
        words = (number[:, None] >> torch.arange(8) & 1).double()
        lower, joint = information_sandwich(words, groups, generator=torch.Generator().manual_seed(0))
        entropy, *found = line.split()
        assert float(entropy) == 1
        if columns == ["score"]:  # continuous: nothing is summed over its words
            assert found == ["None"] * 4
        else:
            assert [float(value) for value in found[:2]] == pytest.approx([float(joint), float(lower)], abs=1e-11)
        if columns == ["decision"]:
            alone = neuronwise_information(torch.tensor(table[columns].to_numpy(float)), groups)
            assert float(found[2]) == pytest.approx(float(alone), abs=1e-11)
    assert any("Audit of the decision on 400 rows" in line for line in lines[6:])


def test_decisions_are_certified_watched_and_planned_without_torch(without_torch):
    table, lines = without_torch
    proved = certify(table.decision, sensitive_features=table.sex).total_variation
    assert any(f"rates of two groups differ by at most {at_most(proved, 4)}" in line for line in lines)
    assert any(line.startswith("Proved (1 batch, 400 rows)") for line in lines)
    assert any(
        line.startswith("224 rows to train, 96 to certify and 80 to test, in the split of --seed 0.") for line in lines
    )
