"""Masks: symbols that a model reads and writes in the place of placeholders such as ``%s``.

A model that never sees a placeholder cannot spell it wrongly. The k-th placeholder of a line is the
k-th symbol, on both sides of a training pair; what a model writes gets its placeholders back.
"""

from __future__ import annotations

from collections.abc import Sequence

from pellucid.config.bundle import MASKS
from pellucid.documents.placeholders import find_placeholders


def mask(line: str) -> tuple[str, tuple[str, ...]]:
    """Write a symbol in the place of each placeholder; of more than 20 the others stay.

    Returns:
        The line with symbols, and its placeholders in their order.
    """
    parts, copies, place = list[str](), list[str](), 0
    for found, token in find_placeholders(line):
        if token is None and len(copies) < len(MASKS):
            parts += [line[place : found.start()], MASKS[len(copies)]]
            copies.append(found[0])
            place = found.end()
    return "".join((*parts, line[place:])), tuple(copies)


def mask_pair(source: str, target: str) -> tuple[str, str]:
    """Write symbols for the placeholders of a source, and for equal parts of its translation."""
    masked, copies = mask(source)
    return masked, mask_with(target, copies)


def mask_with(text: str, copies: Sequence[str]) -> str:
    """Write symbols for given placeholders, each once."""
    for symbol, copy in zip(MASKS, copies, strict=False):
        text = text.replace(copy, symbol, 1)
    return text


def unmask(text: str, copies: Sequence[str]) -> str:
    """Write placeholders in the place of their symbols; a symbol without one goes."""
    for number, symbol in enumerate(MASKS):
        text = text.replace(symbol, copies[number] if number < len(copies) else "")
    return text
