"""A figure of positional encodings: the vectors, and their products by offset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.colors import Normalize

from pellucid.bundle import Bundle
from pellucid.errors import InputError
from pellucid.inside.show.colors import scale_end
from pellucid.inside.show.figures.style import (
    INK,
    SIGNED,
    Lettering,
    Sheet,
    captioned,
    check_ending,
    draw_color_bar,
)
from pellucid.model import Transformer

WIDTH = 12.5
"""Inches."""


def draw_positions_figure(
    bundle: Bundle, path: str | Path, *, part: str = "encoder", num_positions: int = 64
) -> None:
    """Draw the positional encodings, all their products, and the products by offset.

    Args:
        bundle: the model.
        path: the file, ending in ``.svg``, ``.png`` or ``.pdf``.
        part: ``encoder`` or ``decoder``.
        num_positions: the number of positions, from position 0.

    Raises:
        InputError: the model has no positions, or fewer, or the file's ending is not known.
        OutputError: the file cannot be written.
    """
    path = check_ending(path)
    positions_LD = positions_of(bundle, part=part, num_positions=num_positions)
    products_LL = positions_LD @ positions_LD.T
    name = f"{bundle.folder.name} {bundle.model_hash[:8]}"
    kind = bundle.config.model.positions
    length, width = positions_LD.shape
    caption = [
        f"Positional encodings of the {part}, {kind}, positions 0 to {length - 1}, width {width}. "
        f"Model {name}, float64.",
        "1: each row is one position's vector. 2: the product of each two positions. "
        "3: the same products by how far apart the two are.",
        _describe_products(kind),
        "Color: blue below 0, orange above; each scale ends at its panel's largest magnitude.",
    ]
    lettering = Lettering(path, caption)
    with captioned(path, lettering, caption, WIDTH, 4.05, below=0.15) as sheet:
        _heat(sheet, positions_LD, 0.55, ("dimension", "position"), "1. Encodings")
        _heat(sheet, products_LL, 4.75, ("position j", "position i"), "2. Products PEᵢ · PEⱼ")
        _by_offset(sheet, products_LL, 9.1)


def positions_of(bundle: Bundle, *, part: str, num_positions: int) -> np.ndarray:
    """Compute the vectors that a model adds to its embeddings: ``positions_LD`` in float64.

    Raises:
        InputError: the model has no positions, or fewer.
    """
    config = bundle.config.model
    limit = config.max_source_length if part == "encoder" else config.max_target_length
    if not config.adds_positions:
        raise InputError(
            "The model adds no vectors of positions to draw (model.positions = "
            f'"{config.positions}"). Draw another model\'s.'
        )
    if not 1 <= num_positions <= limit:
        raise InputError(
            f"The number of positions must be from 1 to {limit} for this model, but is "
            f"{num_positions}. Take fewer."
        )
    assert isinstance(bundle.model, Transformer)  # No other model has positions.
    stack = bundle.model.encoder if part == "encoder" else bundle.model.decoder
    # In double precision, so that the picture shows the formula and not its rounding.
    like = torch.empty(1, config.d_model, dtype=torch.float64)
    with torch.inference_mode():
        positions_LD = stack.positions_of(0, num_positions, like=like)
    assert positions_LD is not None
    return positions_LD.double().numpy(force=True)


def products_by_offset(products_LL: np.ndarray) -> np.ndarray:
    """Compute the least, mean and largest product of two positions for each offset.

    Args:
        products_LL: the product of each two positions.

    Returns:
        A row of three for each offset from 0. For sinusoidal positions all three are equal.
    """
    length = len(products_LL)
    diagonals = [np.diagonal(products_LL, offset) for offset in range(length)]
    return np.array([[d.min(), d.mean(), d.max()] for d in diagonals])


def _describe_products(kind: str) -> str:
    if kind == "learned":
        return "Learned positions: products differ by place; line: their mean, band: their range."
    return (
        "Sinusoidal positions: the product of two depends on their distance alone, the sum of "
        "cos(δω) over all frequencies ω, and is the same in both directions."
    )


def _heat(
    sheet: Sheet, values_XX: np.ndarray, left: float, words: tuple[str, str], title: str
) -> None:
    num_rows, num_columns = values_XX.shape
    limit = scale_end(values_XX)
    colors = Normalize(-limit, limit)
    axes = sheet.axes(left, 0.45, 3.0, 3.0)
    axes.imshow(
        values_XX,
        cmap=SIGNED,
        norm=colors,
        aspect="auto",
        interpolation="none",
        extent=(-0.5, num_columns - 0.5, num_rows - 0.5, -0.5),
    )
    _style(axes, words, title)
    draw_color_bar(sheet, (left + 3.07, 0.45, 0.1, 3.0), SIGNED, colors, [-limit, 0, limit])


def _by_offset(sheet: Sheet, products_LL: np.ndarray, left: float) -> None:
    table_LX = products_by_offset(products_LL)
    offsets = np.arange(len(table_LX))
    axes = sheet.axes(left, 0.45, 3.1, 3.0)
    # Products are the same in both directions, so one side is mirrored.
    both = np.concatenate([-offsets[:0:-1], offsets])
    low, mean, high = np.concatenate([table_LX[:0:-1], table_LX]).T
    axes.fill_between(both, low, high, color="#8fb8e0", linewidth=0)
    axes.plot(both, mean, color="#08468b", linewidth=1.2)
    axes.axhline(0, color="#8a8a8a", linewidth=0.5)
    _style(axes, ("offset δ = j − i", ""), "3. Products by offset")
    axes.set_ylim(bottom=min(0.0, 1.08 * float(low.min())))
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _style(axes: Any, words: tuple[str, str], title: str) -> None:
    axes.set_title(title, loc="left", size=8, weight="bold", color=INK)
    axes.set_xlabel(words[0], size=7.5)
    axes.set_ylabel(words[1], size=7.5)
    axes.tick_params(labelsize=7, length=2, width=0.5)
    for spine in axes.spines.values():
        spine.set(color="#8a8a8a", linewidth=0.5)
