"""The information plane against its own definition."""

import pytest
import torch

from fairbits import BinaryBernoulliClassifier, BinaryMIClassifier, Schedule
from fairbits.datasets import make_shifted_bits
from fairbits.information import joint_information
from fairbits.lab.runs import _about_rows, information_plane

BRIEF = {"code_size": 4, "max_epochs": 5, "schedule": Schedule(min_steps=0), "batch_size": 64, "random_state": 0}


def test_the_information_about_rows_is_that_of_one_group_per_row():
    theta = torch.rand(50, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    weight = torch.rand(50, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    expected = joint_information(theta, torch.arange(50), weights=weight)
    assert float(_about_rows(theta, weight)) == pytest.approx(float(expected), abs=1e-6)


@pytest.mark.parametrize("method", [BinaryMIClassifier, BinaryBernoulliClassifier])
def test_watching_changes_nothing(method):
    data = make_shifted_bits(600, random_state=0)
    model = method(**BRIEF)
    epochs = information_plane(model, data.X, data.y, sensitive_features=data.s)
    assert not hasattr(model, "net_")
    model.fit(data.X, data.y, sensitive_features=data.s)
    assert [epoch["epoch"] for epoch in epochs] == [epoch["epoch"] for epoch in model.history_]
    assert all(0 <= epoch["about_s"] <= epoch["about_x"] <= 4 for epoch in epochs)
    assert "validation_about_x" not in model.history_[0]


def test_of_several_columns_the_most_counts():
    data = make_shifted_bits(600, random_state=0)
    s = torch.stack([torch.as_tensor(data.groups), torch.arange(600) % 2], 1).numpy()
    both, first = (
        information_plane(BinaryMIClassifier(**BRIEF, gamma=0.0, groups="each"), data.X, data.y, sensitive_features=z)
        for z in (s, s[:, :1])
    )
    assert len(both) == len(first)
    assert all(0 <= epoch["about_s"] <= epoch["about_x"] for epoch in both)
