"""Kernels and HSIC against brute force, and their laws."""

from itertools import permutations

import pytest
import torch
from torch.func import grad, vmap

from fairbits.rivals.hsic import centred, gaussian_kernel, hsic, unbiased_hsic

MEASURES = [hsic, unbiased_hsic]


def rows(n, d=3, seed=0):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def kernels(n, seed=0):
    return gaussian_kernel(rows(n, seed=seed)), gaussian_kernel(rows(n, d=2, seed=seed + 1))


def trace_form(k, l):
    n = len(k)
    h = torch.eye(n, dtype=k.dtype) - 1 / n
    return torch.trace(k @ h @ l @ h) / n**2


def over_distinct_rows(k, l, w):
    """The definition of the unbiased HSIC, tuple by tuple."""
    n = len(k)

    def mean(size, value):
        tuples = list(permutations(range(n), size))
        shares = torch.stack([w[list(t)].prod() for t in tuples])
        return (shares * torch.stack([value(*t) for t in tuples])).sum() / shares.sum()

    two = mean(2, lambda i, j: k[i, j] * l[i, j])
    three = mean(3, lambda i, j, q: k[i, j] * l[i, q])
    return two + mean(4, lambda i, j, q, r: k[i, j] * l[q, r]) - 2 * three


def test_gaussian_kernel_against_cdist():
    x = rows(7)
    distances = torch.cdist(x, x)
    torch.testing.assert_close(gaussian_kernel(x, 0.7), torch.exp(-distances.square() / (2 * 0.7**2)))
    torch.testing.assert_close(gaussian_kernel(x), gaussian_kernel(x, distances.mean()))


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_default_kernel_knows_no_scale_and_no_origin(scale):
    x = rows(20)
    torch.testing.assert_close(gaussian_kernel(scale * x + 5 * scale), gaussian_kernel(x))
    torch.testing.assert_close(gaussian_kernel((x + 100).float()), gaussian_kernel(x).float(), atol=2e-5, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e6])
def test_equal_rows_give_a_constant_kernel_and_finite_gradients(dtype, value):
    x = torch.full((8, 3), value, dtype=dtype, requires_grad=True)
    k = gaussian_kernel(x)
    measured = hsic(k, k) + unbiased_hsic(k, k)
    (slope,) = torch.autograd.grad(measured, x)
    assert float(measured.detach()) == pytest.approx(0, abs=1e-6)
    assert slope.isfinite().all()


def test_hsic_is_the_trace_form():
    k, l = kernels(9)
    torch.testing.assert_close(hsic(k, l), trace_form(k, l))


def test_whole_weights_are_copies():
    k, l = kernels(5)
    counts = torch.tensor([1, 2, 0, 3, 1])
    copies = torch.arange(5).repeat_interleave(counts)
    copied = [m[copies][:, copies] for m in (k, l)]
    torch.testing.assert_close(hsic(k, l, counts), trace_form(*copied))
    x = rows(5)
    torch.testing.assert_close(gaussian_kernel(x, weights=counts)[copies][:, copies], gaussian_kernel(x[copies]))


def test_unbiased_hsic_is_its_definition():
    k, l = kernels(6)
    w = torch.tensor([0.2, 0.1, 0.3, 0.15, 0.05, 0.2], dtype=torch.float64)
    torch.testing.assert_close(unbiased_hsic(k, l, w), over_distinct_rows(centred(k, w), centred(l, w), w))
    torch.testing.assert_close(unbiased_hsic(k, l), over_distinct_rows(k, l, torch.ones(6, dtype=torch.float64)))


@pytest.mark.parametrize("measure", MEASURES)
def test_padding_rows_have_no_part(measure):
    x, z = rows(8), rows(8, seed=1)
    weight = torch.full((8,), 1 / 8, dtype=torch.float64)
    padding = torch.full((3, 3), 50.0, dtype=torch.float64)
    padded = [torch.cat([a, padding]) for a in (x, z)]
    padded_weight = torch.cat([weight, weight.new_zeros(3)])
    plain = measure(*(gaussian_kernel(a, weights=weight) for a in (x, z)), weight)
    other = measure(*(gaussian_kernel(a, weights=padded_weight) for a in padded), padded_weight)
    torch.testing.assert_close(plain, other)


@pytest.mark.parametrize("measure", MEASURES)
def test_scale_of_weights_and_order_of_rows_do_not_matter(measure):
    k, l = kernels(8)
    w = torch.rand(8, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    order = torch.randperm(8, generator=torch.Generator().manual_seed(6))
    torch.testing.assert_close(measure(k, l, 7 * w), measure(k, l, w))
    torch.testing.assert_close(measure(k[order][:, order], l[order][:, order], w[order]), measure(k, l, w))


def test_independent_rows_have_no_hsic_on_average_and_dependent_ones_do():
    pairs = [[gaussian_kernel(a) for a in (rows(40, seed=2 * i), rows(40, seed=2 * i + 1))] for i in range(300)]
    unbiased = torch.stack([unbiased_hsic(*pair) for pair in pairs])
    assert abs(float(unbiased.mean())) < 3 * float(unbiased.std()) / 300**0.5
    biased = torch.stack([hsic(*pair) for pair in pairs])
    expected = torch.stack([(1 - k.mean()) * (1 - l.mean()) / 40 for k, l in pairs])
    assert float(biased.mean()) == pytest.approx(float(expected.mean()), rel=0.1)
    x = rows(40)
    assert unbiased_hsic(gaussian_kernel(x), gaussian_kernel(x.square())) > 4 * unbiased.std()


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("level", [1.0, 1 / 3])
def test_nothing_depends_on_a_constant(measure, level):
    k = gaussian_kernel(rows(50).float())
    weights = torch.rand(50, generator=torch.Generator().manual_seed(1))
    assert float(measure(k, torch.full((50, 50), level), weights)) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("measure", MEASURES)
def test_gradients(measure):
    weight = torch.tensor([0.3, 0.0, 0.2, 0.1, 0.2, 0.2], dtype=torch.float64)

    def value(x, z):
        return measure(gaussian_kernel(x, 1.3), gaussian_kernel(z, 0.8), weight)

    x, z = (rows(6, seed=k).requires_grad_() for k in (0, 1))
    assert torch.autograd.gradcheck(value, (x, z))


@pytest.mark.parametrize("measure", MEASURES)
def test_vmap_equals_one_by_one(measure):
    x, z, w = torch.stack([rows(6, seed=k) for k in range(4)]), rows(6, seed=9), torch.rand(4, 6, dtype=torch.float64)

    def value(x, w):
        return measure(gaussian_kernel(x, weights=w), gaussian_kernel(z, weights=w), w)

    mapped = vmap(grad(value))(x, w)
    alone = torch.stack([grad(value)(*pair) for pair in zip(x, w, strict=True)])
    torch.testing.assert_close(mapped, alone)
    together = measure(gaussian_kernel(x, weights=w), gaussian_kernel(z.expand_as(x), weights=w), w)
    torch.testing.assert_close(together, vmap(value)(x, w))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_too_few_rows_stay_finite_and_small(n):
    weight = torch.tensor([1.0] * n + [0.0] * (8 - n))
    x = rows(8).float().requires_grad_()
    value = unbiased_hsic(gaussian_kernel(x, weights=weight), torch.eye(8), weight)
    (slope,) = torch.autograd.grad(value, x)
    assert slope.isfinite().all()
    assert abs(float(value.detach())) < 2
