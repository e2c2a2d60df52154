"""Weights as safetensors, read only if the header matches the network."""

from collections.abc import Mapping
from math import prod
from typing import Annotated, Literal

import safetensors
import safetensors.torch
import torch
from pydantic import Field, TypeAdapter
from torch import Tensor

from fairbits.modelfile.sealed_files import Count, State, need, read_json, said_of

BYTES = {"F32": 4, "I64": 8}  # numbers, and the counters of batch normalisation


class TensorEntry(State):
    dtype: Literal["F32", "I64"]
    shape: list[Count]
    data_offsets: Annotated[list[Count], Field(min_length=2, max_length=2)]


HEADER = TypeAdapter(dict[str, TensorEntry])


def write_weights(tensors: Mapping[str, Tensor]) -> bytes:
    """Return tensors as the content of a safetensors file."""
    return safetensors.torch.save({name: t.detach().cpu().contiguous().clone() for name, t in tensors.items()})


def file_sizes(expected: Mapping[str, Tensor]) -> range:
    """Return how many bytes a file with these tensors (on any device, "meta" too) may have."""
    numbers = sum(t.numel() * BYTES[_dtype(t)] for t in expected.values())
    return range(numbers + 8, numbers + sum(2 * len(name) + 256 for name in expected) + 256)


def read_weights(data: bytes, expected: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
    """Return the tensors of the file `name`; names, shapes and types must be the expected ones, numbers finite."""
    with said_of(f"{name} cannot be read"):
        _check_header(data, expected, name)
        try:
            tensors = {part: tensor.clone() for part, tensor in safetensors.torch.load(data).items()}
        except safetensors.SafetensorError as error:
            raise ValueError(str(error)) from error
        for part, tensor in tensors.items():
            need(bool(torch.isfinite(tensor).all()), f"{part!r} holds values that are infinite or not numbers")
    return tensors


def _check_header(data: bytes, expected: Mapping[str, Tensor], name: str) -> None:
    start = 8 + int.from_bytes(data[:8], "little")
    need(start <= len(data), "it is cut off, or not a safetensors file")
    entries = HEADER.validate_python(read_json(data[8:start], name))
    other = sorted(set(entries) ^ set(expected))
    if other:
        raise ValueError(f"{other[0][:80]!r} is missing, or not a part of the network in model.json")
    for part, tensor in expected.items():
        needed, found = (_dtype(tensor), list(tensor.shape)), (entries[part].dtype, entries[part].shape)
        need(needed == found, f"{part!r} is {found}, but the network in model.json needs {needed}")
    end = 0
    for entry in sorted(entries.values(), key=lambda entry: entry.data_offsets):
        begin, end = end, end + prod(entry.shape) * BYTES[entry.dtype]
        need(entry.data_offsets == [begin, end], "the tensors overlap, or leave gaps")
    need(end == len(data) - start, f"it has {len(data) - start} bytes of weights where {end} are expected")


def _dtype(tensor: Tensor) -> str:
    return "F32" if tensor.is_floating_point() else "I64"
