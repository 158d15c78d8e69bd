"""Characters that are parts of words, and scripts in which every place is a word's edge."""

from __future__ import annotations

import pytest

from pellucid.languages.letters import is_unspaced, is_word_letter, word_pattern


@pytest.mark.parametrize(
    "letter", ["a", "É", "ß", "7", "²", "\u0301", "ж", "ש", "ع", "क", "ी", "한"]
)
def test_word_letters_of_scripts_with_spaces(letter: str) -> None:
    assert is_word_letter(letter)
    assert not is_unspaced(letter)


@pytest.mark.parametrize(
    "letter", ["猫", "の", "カ", "ｶ", "々", "ก", "ี", "ກ", "မ", "ក", "\U00020000"]
)
def test_word_letters_are_none_in_scripts_without_spaces(letter: str) -> None:
    assert not is_word_letter(letter)
    assert is_unspaced(letter)


@pytest.mark.parametrize(
    "letter", ["", " ", "\u00a0", "_", "-", "'", "!", "。", "€", "😀", "\ufffd"]
)
def test_word_letters_are_no_signs(letter: str) -> None:
    assert not is_word_letter(letter)
    assert not is_unspaced(letter)


def test_word_pattern_takes_whole_runs() -> None:
    text = "l'e\u0301te\u0301 2x, well-known 猫x हिन्दी"
    words = ["l", "e\u0301te\u0301", "2x", "well", "known", "x", "हिन्दी"]
    assert word_pattern().findall(text) == words
