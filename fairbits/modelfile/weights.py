"""Weights as safetensors, read only where the header is the one that the network calls for."""

from collections.abc import Mapping
from math import prod
from typing import Annotated, Literal

import safetensors
import safetensors.torch
import torch
from pydantic import Field, TypeAdapter
from torch import Tensor

from fairbits.errors import InputError
from fairbits.modelfile.encoder_schema import Count, State
from fairbits.modelfile.error import ModelFileError, said_of
from fairbits.modelfile.strict_json import read_json

BYTES = {"F32": 4, "I64": 8}  # floating-point numbers, and counters of batch normalisation


class TensorEntry(State):
    dtype: Literal["F32", "I64"]
    shape: list[Count]
    data_offsets: Annotated[list[Count], Field(min_length=2, max_length=2)]

    @property
    def size(self) -> int:
        return prod(self.shape) * BYTES[self.dtype]


HEADER = TypeAdapter(dict[str, TensorEntry])


def write_weights(tensors: Mapping[str, Tensor]) -> bytes:
    """Return tensors as the content of a safetensors file."""
    return safetensors.torch.save({name: t.detach().cpu().contiguous().clone() for name, t in tensors.items()})


def file_sizes(expected: Mapping[str, Tensor]) -> range:
    """Return how many bytes a file with these tensors (of any device, also "meta") may have."""
    numbers = sum(t.numel() * BYTES[_dtype(t)] for t in expected.values())
    return range(numbers + 8, numbers + sum(2 * len(name) + 256 for name in expected) + 256)


def read_weights(data: bytes, expected: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
    """Return the tensors of the file `name`; they must be the expected ones, their numbers finite."""
    with said_of(f"{name} cannot be read"):
        _check_header(data, expected, name)
        try:
            tensors = {part: tensor.clone() for part, tensor in safetensors.torch.load(data).items()}
        except safetensors.SafetensorError as error:
            raise InputError(str(error)) from error
    wrong = [part for part, tensor in tensors.items() if not bool(torch.isfinite(tensor).all())]
    if wrong:
        raise ModelFileError(f"{name}: {wrong[0]!r} holds values that are infinite or no numbers.")
    return tensors


def _check_header(data: bytes, expected: Mapping[str, Tensor], name: str) -> None:
    start = 8 + int.from_bytes(data[:8], "little")
    if start > len(data):
        raise InputError("it is cut off, or no safetensors file")
    entries = HEADER.validate_python(read_json(data[8:start], name))
    other = sorted(set(entries) ^ set(expected))
    if other:
        raise InputError(f"{other[0][:80]!r} is missing, or no part of the network in model.json")
    for part, tensor in expected.items():
        needed, found = (_dtype(tensor), list(tensor.shape)), (entries[part].dtype, entries[part].shape)
        if needed != found:
            raise InputError(f"{part!r} is {found}, but the network in model.json needs {needed}")
    end = 0
    for entry in sorted(entries.values(), key=lambda entry: entry.data_offsets):
        if entry.data_offsets != [end, end + entry.size]:
            raise InputError("the tensors overlap, or leave gaps")
        end += entry.size
    if end != len(data) - start:
        raise InputError(f"it has {len(data) - start} bytes of weights where {end} are expected")


def _dtype(tensor: Tensor) -> str:
    return "F32" if tensor.is_floating_point() else "I64"
