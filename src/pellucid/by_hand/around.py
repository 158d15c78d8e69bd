"""What may surround the attention of a user's matrices: positions, heads, W⁰, norms, a network.

Each is a key of a TOML file. `read_surroundings` checks them; `add_layers` works them out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pellucid.attention.positions import sinusoidal_positions
from pellucid.by_hand.layer import (
    FeedForward,
    Norm,
    add_step,
    feed_forward_steps,
    joined_steps,
    norm_steps,
)
from pellucid.by_hand.reading import Given, shorten
from pellucid.by_hand.sheet import AttentionByHand, Part, Step, make_step, table
from pellucid.by_hand.sums import shown_lines, write_added
from pellucid.errors import DataError, suggestion

KEYS = ("heads", "w_output", "positions", "norm", "feed_forward")

_NORM_PLACES = ("post", "pre", "none")
_POSITIONS = ("sinusoidal", "none")
_NORM_KEYS = ("place", "epsilon", "gain", "bias")
_NETWORK_KEYS = ("inner", "inner_bias", "outer", "outer_bias")
_LARGEST_EPSILON = 1.0


@dataclass(frozen=True, eq=False)
class NormPlace:
    """A layer norm, and whether it stands before the sub-layer or after the addition."""

    norm: Norm
    is_before: bool


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What stands around the attention; None for what is left out."""

    num_heads: int
    output_XD: Tensor | None
    norm: NormPlace | None
    network: FeedForward | None


def _read_heads(given: Given) -> int:
    heads = given.values.get("heads", 1)
    if isinstance(heads, bool) or not isinstance(heads, int) or heads < 1:
        raise DataError(
            f"heads must be a whole number of 1 or more, but is {shorten(heads)} "
            f"({given.where('heads')}). Write it so."
        )
    return heads


def read_surroundings(
    given: Given, x_LD: Tensor | None, key_width: int, value_width: int
) -> Surroundings:
    """Read and check everything around the attention.

    Args:
        given: the file.
        x_LD: the input; None if queries, keys and values are given.
        key_width: of queries and keys, all heads together.
        value_width: of values, all heads together.

    Raises:
        DataError: a value is wrong or sizes do not fit.
    """
    heads = _read_heads(given)
    for name, width in (("queries and keys", key_width), ("values", value_width)):
        if width % heads:
            raise DataError(
                f"heads must divide the width of {name} evenly, but {width} columns do not split "
                f"into {heads} ({given.where('heads')}). Change one of them."
            )
    output_XD = _read_output(given, value_width)
    width = value_width if output_XD is None else output_XD.shape[-1]
    norm = read_norm(given, x_LD)
    if norm is not None and x_LD is not None and width != x_LD.shape[-1]:
        raise DataError(
            f"With norm, x is added to the attention's output, so both must have the same width, "
            f"but x has {x_LD.shape[-1]} columns and the output {width} ({given.where('norm')}). "
            f"Give w_output with {x_LD.shape[-1]} columns."
        )
    network = _read_network(given, width, norm is not None)
    return Surroundings(heads, output_XD, norm, network)


def _read_output(given: Given, value_width: int) -> Tensor | None:
    if "w_output" not in given.values:
        return None
    output_XD = given.matrix("w_output")
    if len(output_XD) != value_width:
        raise DataError(
            f"w_output must have one row for each of the {value_width} columns of the joined "
            f"heads, but has {len(output_XD)} ({given.where('w_output')}). If it is stored the "
            "other way round, transpose it."
        )
    return output_XD


def read_norm(given: Given, x_LD: Tensor | None) -> NormPlace | None:
    """Read the place of a layer norm and its numbers; None without one.

    Raises:
        DataError: a value is wrong, or x to add to is missing.
    """
    setting: Any = given.values.get("norm", "none")
    table = Given({}, {}, given.path)
    if isinstance(setting, dict):
        table = given.table("norm", _NORM_KEYS)
        setting = table.values.get("place", "post")
    if isinstance(setting, bool):
        setting = "post" if setting else "none"
    if setting not in _NORM_PLACES:
        hint = suggestion(setting, _NORM_PLACES) if isinstance(setting, str) else "Write it so."
        raise DataError(
            'norm must be "post", "pre" or "none", or a table with '
            f"{', '.join(_NORM_KEYS)}, but is {shorten(setting)} ({given.where('norm')}). {hint}"
        )
    if setting == "none":
        return None
    if x_LD is None:
        raise DataError(
            "norm must come with x, to which the attention's output is added, but x is missing "
            f"({given.where('norm')}). Give x, or leave norm out."
        )
    return NormPlace(_read_norm_numbers(table, x_LD.shape[-1]), setting == "pre")


def _read_norm_numbers(table: Given, width: int) -> Norm:
    epsilon = table.values.get("epsilon", Norm().epsilon)
    is_number = isinstance(epsilon, int | float) and not isinstance(epsilon, bool)
    if not is_number or not 0 < epsilon <= _LARGEST_EPSILON:
        raise DataError(
            f"norm.epsilon must be above 0 and at most {_LARGEST_EPSILON:g}, but is "
            f"{shorten(epsilon)} ({table.where('epsilon')}). The usual is {Norm().epsilon:g}."
        )
    meaning = "one for each column of x"
    gain, bias = (
        table.vector(name, width, meaning) if name in table.values else None
        for name in ("gain", "bias")
    )
    return Norm(float(epsilon), gain, bias)


def _read_network(given: Given, width: int, has_residual: bool) -> FeedForward | None:
    if "feed_forward" not in given.values:
        return None
    table = given.table("feed_forward", _NETWORK_KEYS)
    for name in ("inner", "outer"):
        if name not in table.values:
            raise DataError(
                f"feed_forward must have inner and outer, but {name} is missing "
                f"({given.where('feed_forward')}). Add it, with one row for each input."
            )
    inner, outer = table.matrix("inner"), table.matrix("outer")
    for name, weight, rows, what in (
        ("inner", inner, width, "columns that come in"),
        ("outer", outer, inner.shape[-1], "columns of feed_forward.inner"),
    ):
        if len(weight) != rows:
            raise DataError(
                f"feed_forward.{name} must have one row for each of the {rows} {what}, but has "
                f"{len(weight)} ({table.where(name)}). If it is stored the other way round, "
                "transpose it."
            )
    if has_residual and outer.shape[-1] != width:
        raise DataError(
            "With norm, the network's input is added to its output, so both must have the same "
            f"width, but they have {width} and {outer.shape[-1]} columns "
            f"({table.where('outer')}). Give feed_forward.outer {width} columns."
        )
    biases = [
        table.vector(name, weight.shape[-1], f"one for each column of feed_forward.{name[:5]}")
        if name in table.values
        else None
        for name, weight in (("inner_bias", inner), ("outer_bias", outer))
    ]
    return FeedForward(inner, outer, *biases)


def position_part(given: Given, names: tuple[str, ...], x_LD: Tensor) -> tuple[Part | None, Tensor]:
    """Add positions to x, if the file asks for them.

    Returns:
        The part that shows it, and the sum.

    Raises:
        DataError: the positions do not fit x.
    """
    setting = given.values.get("positions", "none")
    if isinstance(setting, bool):
        setting = "sinusoidal" if setting else "none"
    if setting == "none":
        return None, x_LD
    if isinstance(setting, list):
        positions_LD = given.matrix("positions")
        if positions_LD.shape != x_LD.shape:
            raise DataError(
                f"positions must have as many rows and columns as x, {len(x_LD)} × "
                f"{x_LD.shape[-1]}, but has {len(positions_LD)} × {positions_LD.shape[-1]} "
                f"({given.where('positions')}). Give one row for each token."
            )
        formula = "as given"
    elif setting == "sinusoidal":
        if x_LD.shape[-1] % 2:
            raise DataError(
                "Sinusoidal positions must have an even width, for pairs of a sine and a cosine, "
                f"but x has {x_LD.shape[-1]} columns ({given.where('positions')}). Add a column, "
                "or write the positions as rows."
            )
        positions_LD = sinusoidal_positions(*x_LD.shape, dtype=x_LD.dtype)
        formula = "sin(i ÷ 10000^(2j÷d)), cos(i ÷ 10000^(2j÷d))"
    else:
        hint = suggestion(setting, _POSITIONS) if isinstance(setting, str) else "Write it so."
        raise DataError(
            'positions must be "sinusoidal", "none" or rows of numbers to add to x, but is '
            f"{shorten(setting)} ({given.where('positions')}). {hint}"
        )
    sums = write_added(names, x_LD, positions_LD, "x")
    total_LD = x_LD + positions_LD
    steps = (
        make_step("x", "as given", table(names, x_LD, "x"), is_given=True),
        make_step("positions", formula, table(names, positions_LD, "p")),
        make_step(
            "x",
            "x + positions",
            table(names, total_LD, "x"),
            lines=shown_lines(sums),
            arithmetic=sums,
        ),
    )
    note = "Attention does not see order, so each place adds its own vector to the word's."
    return Part("Positions", note, steps), total_LD


def add_layers(
    around: Surroundings,
    names: tuple[str, ...],
    x_LD: Tensor | None,
    attentions: list[AttentionByHand],
) -> tuple[Part, ...]:
    """Work out everything after the attention: W⁰, add and norm, feed-forward network."""
    parts: list[Part] = []
    steps, state_LD = joined_steps(names, attentions, around.output_XD, "w_output")
    if steps:
        parts.append(Part("The heads joined", _JOINED_NOTE, steps))
    norm = around.norm
    if norm is not None and x_LD is not None:
        state_LD, part = _close(names, x_LD, state_LD, norm, "x + output")
        parts.append(part)
    if around.network is None:
        return tuple(parts)
    before: tuple[Step, ...] = ()
    entering_LD = state_LD
    if norm is not None and norm.is_before:
        before, entering_LD = norm_steps(names, state_LD, norm.norm)
    network, change_LD = feed_forward_steps(names, entering_LD, around.network)
    parts.append(Part("Feed-forward network", _NETWORK_NOTE, (*before, *network)))
    if norm is not None:
        _, part = _close(names, state_LD, change_LD, norm, "input + feed-forward")
        parts.append(part)
    return tuple(parts)


def _close(
    names: tuple[str, ...], x_LD: Tensor, change_LD: Tensor, place: NormPlace, formula: str
) -> tuple[Tensor, Part]:
    """Add the residual connection, and for post-norm the layer norm."""
    added, total_LD = add_step(names, x_LD, change_LD, formula)
    if place.is_before:
        return total_LD, Part("Residual connection", _ADDED_NOTE, (added,))
    normed, normed_LD = norm_steps(names, total_LD, place.norm)
    return normed_LD, Part("Add and norm", _NORM_NOTE, (added, *normed))


def split_heads(values_LX: Tensor, heads: int) -> tuple[Tensor, ...]:
    """Cut columns into equal blocks, one for each head."""
    return tuple(torch.chunk(values_LX, heads, dim=-1))


_JOINED_NOTE = "The contexts of all heads stand side by side and are mixed by one matrix."
_ADDED_NOTE = "The input is added to what was made of it, so nothing is lost."
_NORM_NOTE = (
    "The input is added to what was made of it, so nothing is lost. Then each row is shifted to "
    "mean 0 and stretched to variance 1, by itself."
)
_NETWORK_NOTE = "Each row goes through the same two matrices by itself."
