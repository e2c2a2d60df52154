"""Kernels and HSIC against brute force, and their laws."""

import pytest
import torch
from torch.func import grad, vmap

from fairbits.rivals.hsic import gaussian_kernel, hsic


def rows(n, d=3, seed=0):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def even(n):
    return torch.ones(n, dtype=torch.float64)


def kernel(x):
    return gaussian_kernel(x, even(len(x)))


def kernels(n, seed=0):
    return kernel(rows(n, seed=seed)), kernel(rows(n, d=2, seed=seed + 1))


def trace_form(k, l):
    n = len(k)
    h = torch.eye(n, dtype=k.dtype) - 1 / n
    return torch.trace(k @ h @ l @ h) / n**2


def test_gaussian_kernel_against_cdist():
    x = rows(7)
    distances = torch.cdist(x, x)
    torch.testing.assert_close(kernel(x), torch.exp(-distances.square() / (2 * distances.mean() ** 2)))
    w = torch.arange(7.0, dtype=torch.float64)
    width = w @ distances @ w / w.sum() ** 2
    torch.testing.assert_close(gaussian_kernel(x, w), torch.exp(-distances.square() / (2 * width**2)))


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_default_kernel_knows_no_scale_and_no_origin(scale):
    x = rows(20)
    torch.testing.assert_close(kernel(scale * x + 5 * scale), kernel(x))
    torch.testing.assert_close(kernel((x + 100).float()), kernel(x).float(), atol=2e-5, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e6])
def test_equal_rows_give_a_constant_kernel_and_finite_gradients(dtype, value):
    x = torch.full((8, 3), value, dtype=dtype, requires_grad=True)
    k = kernel(x)
    measured = hsic(k, k, even(8))
    (slope,) = torch.autograd.grad(measured, x)
    assert float(measured.detach()) == pytest.approx(0, abs=1e-6)
    assert slope.isfinite().all()


def test_hsic_is_the_trace_form():
    k, l = kernels(9)
    torch.testing.assert_close(hsic(k, l, even(9)), trace_form(k, l))


def test_whole_weights_are_copies():
    k, l = kernels(5)
    counts = torch.tensor([1, 2, 0, 3, 1])
    copies = torch.arange(5).repeat_interleave(counts)
    copied = [m[copies][:, copies] for m in (k, l)]
    torch.testing.assert_close(hsic(k, l, counts), trace_form(*copied))
    x = rows(5)
    torch.testing.assert_close(gaussian_kernel(x, counts)[copies][:, copies], kernel(x[copies]))


def test_padding_rows_have_no_part():
    x, z = rows(8), rows(8, seed=1)
    weight = torch.full((8,), 1 / 8, dtype=torch.float64)
    padding = torch.full((3, 3), 50.0, dtype=torch.float64)
    padded = [torch.cat([a, padding]) for a in (x, z)]
    padded_weight = torch.cat([weight, weight.new_zeros(3)])
    plain = hsic(*(gaussian_kernel(a, weight) for a in (x, z)), weight)
    other = hsic(*(gaussian_kernel(a, padded_weight) for a in padded), padded_weight)
    torch.testing.assert_close(plain, other)


def test_scale_of_weights_and_order_of_rows_do_not_matter():
    k, l = kernels(8)
    w = torch.rand(8, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    order = torch.randperm(8, generator=torch.Generator().manual_seed(6))
    torch.testing.assert_close(hsic(k, l, 7 * w), hsic(k, l, w))
    torch.testing.assert_close(hsic(k[order][:, order], l[order][:, order], w[order]), hsic(k, l, w))


def test_independent_rows_have_little_hsic_and_dependent_ones_more():
    pairs = [[kernel(a) for a in (rows(40, seed=2 * i), rows(40, seed=2 * i + 1))] for i in range(300)]
    found = torch.stack([hsic(*pair, even(40)) for pair in pairs])
    expected = torch.stack([(1 - k.mean()) * (1 - l.mean()) / 40 for k, l in pairs])
    assert float(found.mean()) == pytest.approx(float(expected.mean()), rel=0.1)
    x = rows(40)
    assert hsic(kernel(x), kernel(x.square()), even(40)) > found.mean() + 4 * found.std()


@pytest.mark.parametrize("level", [1.0, 1 / 3])
def test_nothing_depends_on_a_constant(level):
    k = kernel(rows(50).float())
    weights = torch.rand(50, generator=torch.Generator().manual_seed(1))
    assert float(hsic(k, torch.full((50, 50), level), weights)) == pytest.approx(0, abs=1e-6)


def test_gradients():
    weight = torch.tensor([0.3, 0.0, 0.2, 0.1, 0.2, 0.2], dtype=torch.float64)

    def with_constant_width(x):
        distances = (x.unsqueeze(1) - x).square().sum(-1)
        width = weight @ distances.detach().sqrt() @ weight / weight.sum() ** 2
        return torch.exp(distances / width**2 / -2)

    def value(x, z):
        return hsic(x @ x.mT, z @ z.mT, weight)

    x, z = (rows(6, seed=k).requires_grad_() for k in (0, 1))
    assert torch.autograd.gradcheck(value, (x, z))
    found, expected = (torch.autograd.grad(k[0].sum(), x) for k in (gaussian_kernel(x, weight), with_constant_width(x)))
    torch.testing.assert_close(found, expected)


def test_vmap_equals_one_by_one():
    x, z, w = torch.stack([rows(6, seed=k) for k in range(4)]), rows(6, seed=9), torch.rand(4, 6, dtype=torch.float64)

    def value(x, w):
        return hsic(gaussian_kernel(x, w), gaussian_kernel(z, w), w)

    mapped = vmap(grad(value))(x, w)
    alone = torch.stack([grad(value)(*pair) for pair in zip(x, w, strict=True)])
    torch.testing.assert_close(mapped, alone)
    together = hsic(gaussian_kernel(x, w), gaussian_kernel(z.expand_as(x), w), w)
    torch.testing.assert_close(together, vmap(value)(x, w))
