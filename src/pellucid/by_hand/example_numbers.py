"""The numbers of our examples, which stand in the TOML file next to each, with its words."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

import torch
from torch import Tensor


@cache
def read_example_file(name: str) -> dict[str, Any]:
    """Read the file of an example."""
    source = files("pellucid.by_hand.examples").joinpath(f"{name}.toml")
    return tomllib.loads(source.read_text(encoding="utf-8"))


def read_numbers(name: str) -> list[Any]:
    """Read a row or rows of an example: ``pizza.embeddings``."""
    example, _, key = name.partition(".")
    found: list[Any] = read_example_file(example)["numbers"][key]
    return found


def read_matrix(name: str) -> Tensor:
    """Read numbers of an example as a tensor."""
    return torch.tensor(read_numbers(name), dtype=torch.float64)
