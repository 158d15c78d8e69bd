"""Normalization: composes accents, keeps every kind of space, survives anything."""

from __future__ import annotations

import unicodedata

import pytest

from pellucid.text.normalization import Normalization, normalize


def test_normalize_nfc_composes_accents() -> None:
    assert normalize("e\u0301te\u0301", "nfc") == "\u00e9t\u00e9"


@pytest.mark.parametrize(
    "text",
    [
        "Vraiment\u00a0?",
        "10\u202f000\u00a0€",
        "  two  spaces\tand a tab ",
        "\x00\x01\x1b\x7f",
        "a\u2028b\u2029c\x85d",
        "\U0001f469\u200d\U0001f4bb ﬁ ½ ①",
        "\u200fשלום عليكم",
        "ᚠᛇᚻ 𐎀 ꙮ",
        "",
    ],
)
def test_normalize_nfc_keeps_everything_else(text: str) -> None:
    assert normalize(text, "nfc") == text


def test_normalize_nfkc_makes_no_break_spaces_plain() -> None:
    assert normalize("ﬁn\u00a0?", "nfkc") == "fin ?"


def test_normalize_none_changes_nothing() -> None:
    assert normalize("e\u0301 \u212a", "none") == "e\u0301 \u212a"


@pytest.mark.parametrize("form", ["nfc", "nfkc", "none"])
def test_normalize_lone_surrogate_becomes_replacement_character(form: Normalization) -> None:
    assert normalize("a\ud800b", form) == "a\ufffdb"


@pytest.mark.parametrize("form", ["nfc", "nfkc"])
def test_normalize_many_marks_agrees_with_unicodedata(form: Normalization) -> None:
    text = "xé" + "\u0301\u0323\u0345" * 500 + " b\u0323\u0307"
    assert normalize(text, form) == unicodedata.normalize(form.upper(), text)  # type: ignore[arg-type]


def test_normalize_100_000_marks_ends() -> None:
    # Python's own function needs half a minute for this.
    text = "a" + "\u0301" * 50_000 + "\u0323" * 50_000
    assert len(normalize(text, "nfc")) == 100_000
