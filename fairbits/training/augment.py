"""Random changes of images before every step: their geometry, and their colours."""

import math

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

ANGLE, STRETCH, SHEAR, SHIFT = math.radians(15), 0.15, 0.2, 0.1  # at most, at strength 1; a shift is of the side
GAIN, OFFSET = 0.5, 0.5  # at most, at strength 1; an offset is of the range of a byte, or of 1


def numbers_needed(affine: float, recolour: float, channels: int) -> int:
    """Return how many uniform numbers `augmented` takes of one image."""
    return 5 * (affine > 0) + 2 * channels * (recolour > 0)


@torch.no_grad()
def augmented(x: Tensor, uniforms: Tensor, affine: float, recolour: float) -> Tensor:
    """Return images (..., channels, height, width), each changed by its own uniforms (..., numbers); bytes stay bytes.

    With a strength a = `affine`, every image is turned by up to 15 a degrees, scaled by exp(+-0.15 a), sheared by up to
    0.2 a and shifted by up to 0.1 a of its sides, and its border continued. With a strength a = `recolour`, every
    channel of every image becomes (1 + g) x + o, g and o up to +-0.5 a (of 255 for bytes). Strength 0 changes nothing.

    >>> x = torch.arange(18, dtype=torch.uint8).view(1, 2, 3, 3)
    >>> bool((augmented(x, torch.full((1, 9), 0.5), 1.0, 1.0) == x).all())  # the middle of all ranges
    True
    """
    channels = x.shape[-3]
    images = x.reshape(-1, *x.shape[-3:]).float()
    u = 2 * uniforms.reshape(len(images), -1) - 1
    if affine > 0:
        images = _moved(images, affine * u[:, :5])
    if recolour > 0:
        gain, offset = (recolour * u[:, -2 * channels :, None, None]).chunk(2, 1)
        images = (1 + GAIN * gain) * images + OFFSET * offset * (1 if x.is_floating_point() else 255)
    images = images.reshape(x.shape)
    return images.to(x.dtype) if x.is_floating_point() else images.round_().clamp_(0, 255).to(x.dtype)


def _moved(images: Tensor, u: Tensor) -> Tensor:
    """Look every pixel up at its place before the move."""
    height, width = images.shape[-2:]
    angle, stretch, shear = ANGLE * u[:, 0], torch.exp(STRETCH * u[:, 1]), SHEAR * u[:, 2]
    cos, sin = stretch * angle.cos(), stretch * angle.sin()
    # rotation times shear, in coordinates from -1 to 1 along each side
    rows = (
        torch.stack([cos, (shear * cos - sin) * height / width, 2 * SHIFT * u[:, 3]], -1),
        torch.stack([sin * width / height, shear * sin + cos, 2 * SHIFT * u[:, 4]], -1),
    )
    grid = affine_grid(torch.stack(rows, 1), list(images.shape), align_corners=False)
    return grid_sample(images, grid, padding_mode="border", align_corners=False)
