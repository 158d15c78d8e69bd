"""Unicode normalization: the only change to a text before it is cut into tokens."""

from __future__ import annotations

import unicodedata
from itertools import groupby
from typing import Literal

Normalization = Literal["nfc", "nfkc", "none"]

# Python orders combining marks by insertion, in quadratic time: 100,000 marks on one letter take
# half a minute. In texts longer than this, runs of marks are therefore sorted first.
_LONG_TEXT = 1000


def normalize(text: str, form: Normalization) -> str:
    r"""Bring a text into one Unicode form.

    ``nfc`` composes letters and accents, and replaces the few characters that Unicode calls the
    same by the one it prefers (the Kelvin sign by K). Spaces of every kind, their number, tabs,
    control characters and no-break spaces survive. ``nfkc`` also replaces compatibility forms,
    so no-break spaces become plain ones. ``none`` does not change the text.

    Lone surrogates, which no UTF-8 file can hold, become U+FFFD in every form.

    Args:
        text: any text.
        form: ``"nfc"``, ``"nfkc"`` or ``"none"``.

    Returns:
        The text in that form; normalizing it again changes nothing.

    Source:
        Unicode Standard Annex 15.
    """
    # ASCII is the same in every form, and so common that the test pays.
    if text.isascii():
        return text
    text = _replace_surrogates(text)
    if form == "none":
        return text
    if len(text) > _LONG_TEXT:
        text = _order_marks(text)
    return unicodedata.normalize("NFC" if form == "nfc" else "NFKC", text)


def _replace_surrogates(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= letter <= "\udfff" else letter for letter in text)
    return text


def _order_marks(text: str) -> str:
    """Put runs of combining marks into canonical order, in n log n steps."""
    parts: list[str] = []
    for is_mark, letters in groupby(text, key=lambda letter: unicodedata.combining(letter) != 0):
        run = list(letters)
        if is_mark:
            # Marks of one class must keep their order: Python's sort is stable.
            run.sort(key=unicodedata.combining)
        parts.extend(run)
    return "".join(parts)
