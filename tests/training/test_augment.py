"""Augmentation: identities, known moves, and what a fit makes of it."""

import numpy as np
import pytest
import torch
from battery import quick

from fairbits import BiasBalancedClassifier, DebiasedBernoulliClassifier, VanillaClassifier
from fairbits.datasets import biased_digits
from fairbits.encoding import GroupEncoder
from fairbits.estimators import fit_stack
from fairbits.training.augment import ANGLE, augmented, numbers_needed

MIDDLE = 0.5


def some(n=5, *, dtype=torch.uint8, side=(8, 6)):
    x = torch.randint(0, 256, (n, 3, *side), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    return x if dtype == torch.uint8 else x.to(dtype) / 127.5 - 1


def uniforms(n, affine, recolour):
    return torch.rand(n, numbers_needed(affine, recolour, 3), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
@pytest.mark.parametrize("strength", [1e-9, 1e-7])
def test_next_to_no_strength_is_the_identity(dtype, strength):
    x = some(dtype=dtype)
    found = augmented(x, uniforms(5, strength, strength), strength, strength)
    assert found.dtype == dtype
    torch.testing.assert_close(found, x, atol=1e-4 if dtype == torch.float32 else 0, rtol=0)


def test_a_quarter_turn_is_that_of_torch():
    x, u = some(1, dtype=torch.float32, side=(7, 7)), torch.full((1, 5), MIDDLE)
    u[:, 0] = 1.0
    found = augmented(x, u, torch.pi / 2 / ANGLE, 0)
    turned = [torch.rot90(x, k, (-2, -1)) for k in (1, -1)]
    assert min(float((found - t).abs().max()) for t in turned) < 1e-4


def test_a_turn_keeps_angles_where_sides_differ():
    """In a wide image, too, a point stays at its distance from the middle."""
    x = torch.zeros(1, 1, 31, 61)
    x[0, 0, 15, 40] = 1.0  # 10 pixels to the right of the middle
    u = torch.full((1, 5), MIDDLE)
    u[:, 0] = 1.0
    found = augmented(x, u, torch.pi / 2 / ANGLE, 0)[0, 0]
    row, column = divmod(int(found.argmax()), 61)
    assert (abs(row - 15), column) == (10, 30)


def test_a_shift_moves_by_a_tenth_of_the_side_and_continues_the_border():
    x, u = some(1, dtype=torch.float32, side=(10, 10)), torch.full((1, 5), MIDDLE)
    u[:, 3] = 1.0
    found = augmented(x, u, 1.0, 0)
    torch.testing.assert_close(found[..., :-1], x[..., 1:], atol=1e-4, rtol=0)
    torch.testing.assert_close(found[..., -1], x[..., -1], atol=1e-4, rtol=0)


def test_recolouring_is_linear_in_every_channel_and_keeps_to_bytes():
    x = some(2, dtype=torch.float32)
    u = uniforms(2, 0, 1.0)
    gain, offset = (u - 0.5)[:, :, None, None].chunk(2, 1)
    torch.testing.assert_close(augmented(x, u, 0, 1.0), (1 + gain) * x + offset)
    extreme = augmented(torch.full((1, 3, 2, 2), 250, dtype=torch.uint8), torch.ones(1, 6), 0, 1.0)
    assert (extreme == 255).all()


def test_images_are_changed_one_by_one():
    x = some(1).expand(4, -1, -1, -1)
    found = augmented(x, uniforms(4, 1.0, 0), 1.0, 0)
    assert not (found[1:] == found[:1]).all()
    torch.testing.assert_close(found[2:3], augmented(x[:1], uniforms(4, 1.0, 0)[2:3], 1.0, 0))


SHORT = {"channels": (4,), "max_epochs": 2, "min_steps": 0, "batch_size": 200, "hidden_sizes": ()}


@pytest.mark.parametrize("cls", [VanillaClassifier, BiasBalancedClassifier, DebiasedBernoulliClassifier])
def test_a_stack_draws_as_its_members_do_alone(cls):
    data = biased_digits(0.9)
    settings = {**SHORT, "groups": GroupEncoder(min_group_size=1), "affine": 1.0, "recolour": 0.5, "cell_share": 0.5}
    parts = [np.arange(900), np.arange(297, 1197)]
    stacked, alone = ([quick(cls, random_state=k, **settings) for k in range(2)] for _ in range(2))
    fit_stack(stacked, data.X, data.y, sensitive_features=data.s, rows=parts)
    for together, solo, rows in zip(stacked, alone, parts, strict=True):
        fit_stack([solo], data.X, data.y, sensitive_features=data.s, rows=[rows])
        np.testing.assert_allclose(together.predict_proba(data.X), solo.predict_proba(data.X), atol=1e-4)


def test_a_fit_sees_changed_images_and_predicts_from_unchanged_ones():
    data = biased_digits(0.9)
    plain, changed = (quick(VanillaClassifier, **SHORT, affine=a) for a in (0.0, 1.0))
    for model in (plain, changed):
        fit_stack([model], data.X, data.y)
    assert plain.history_[0]["total"] != changed.history_[0]["total"]
    np.testing.assert_array_equal(changed.predict_proba(data.X), changed.predict_proba(data.X))


@pytest.mark.parametrize("name", ["affine", "recolour"])
def test_tables_are_not_augmented(name):
    with pytest.raises(ValueError, match=f"{name}=1.0 changes images"):
        quick(VanillaClassifier, **{name: 1.0}).fit(np.random.default_rng(0).random((40, 3)), np.arange(40) % 2)
