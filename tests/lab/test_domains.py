"""Domain adaptation: domains share no rows, labels of one are never seen, and differences are paired by seed."""

import numpy as np
import pytest
from paper_records import domain
from scipy import stats

from fairbits.lab import domains as lab
from fairbits.lab.paper.domain_shift import domains
from fairbits.lab.run_settings import Domain, Method

BRIEF = {"hidden_sizes": (8,), "channels": (4,), "min_steps": 0, "selection": "last"}


def run(estimator="VanillaClassifier", **settings):
    facts = {"kind": "domain", "name": "own", "experiment": "biased digits", "epochs": 3, **settings}
    return Domain(**facts, method=Method(estimator=estimator, settings=BRIEF))


def test_colours_tell_the_digit_in_the_source_alone_and_domains_share_no_image():
    train, test = lab.biased_source_digits(0)
    for part in (train, test):
        brightest = part.X.reshape(len(part.X), 3, -1)
        background = [tuple(image[:, np.argmin(image.sum(0))]) for image in brightest]
        for number, least, most in ((0, 0.85, 1.0), (1, 0.0, 0.4)):
            rows = part.domain == number
            colours = {c: i for i, c in enumerate(sorted(set(background)))}
            table = np.zeros((10, len(colours)))
            for y, colour in zip(part.y[rows], np.array([colours[b] for b in background])[rows], strict=True):
                table[y, colour] += 1
            assert least <= table.max(1).sum() / rows.sum() <= most
    shapes = [(image != image.min(axis=(1, 2), keepdims=True)).any(0).tobytes() for image in train.X]
    shared = set(np.array(shapes)[train.domain == 0]) & set(np.array(shapes)[train.domain == 1])
    assert len(shared) < 0.02 * len(shapes)


def test_other_colours_are_other_colours():
    for part in lab.other_colours_digits(0):
        ink = part.X.reshape(len(part.X), 3, -1)
        colours = [{tuple(image[:, image.sum(0).argmin()]) for image in ink[part.domain == d]} for d in (0, 1)]
        assert not colours[0] & colours[1]
        assert 0.3 < part.domain.mean() < 0.7


def test_the_age_that_makes_the_domains_of_adult_is_no_column():
    train, test = lab.adult_by_age(0)
    assert len(train.y) + len(test.y) == 32561
    assert train.X.shape[1] == test.X.shape[1]
    assert 0.4 < train.domain.mean() < 0.5
    assert abs(train.domain.mean() - test.domain.mean()) < 0.002


@pytest.mark.parametrize("labels", ["source", "target"])
def test_labels_of_the_other_domain_change_nothing(labels, monkeypatch):
    """Whatever they are: the same result with the hidden labels replaced."""
    first = lab.adapt(run(labels=labels))
    digits = lab.biased_source_digits

    def spoilt(seed):
        train, test = digits(seed)
        hidden = train.domain == (labels == "source")
        return train._replace(y=np.where(hidden, (train.y + 1) % 10, train.y)), test

    monkeypatch.setitem(lab.EXPERIMENTS, "biased digits", spoilt)
    assert lab.adapt(run(labels=labels)) == first


def test_every_strength_has_its_scores_and_at_0_coral_is_the_plain_network():
    (plain,) = lab.adapt(run())["scores"]
    none, some = lab.adapt(run("fairbits.rivals.coral:CoralClassifier", values=[0.0, 0.9]))["scores"]
    assert [plain.pop("strength"), none.pop("strength"), some.pop("strength")] == [None, 0.0, 0.9]
    assert none == pytest.approx(plain, abs=1e-3)  # in a stack, to the last digits
    assert some != none


def test_differences_to_the_plain_network_are_paired_by_seed():
    noise = [0.0, 0.1, 0.05]
    records = [domain("plain network", s, None, 0.7 + noise[s]) for s in range(3)]
    records += [domain("DANN", s, 0.5, 0.75 + noise[s] + 0.01 * s) for s in range(3)]
    records += [domain("plain network", s, None, 0.9, labels="target") for s in range(3)]
    (section,) = domains(records)
    rows = {row[0]: row for row in section.tables[0].rows}
    margin = stats.t.ppf(0.975, 2) * stats.sem([0.0, 0.01, 0.02])
    assert rows["DANN"][1:3] == ("0.5", "3")
    assert rows["DANN"][-1] == f"+0.060 ± {margin:.3f}"
    assert rows["plain network"][-1] == "–"
    assert rows["plain network, with the target's labels"][4] == "0.900 ± 0.000"
