"""Characters that a model has not learned: replaced, dropped or named."""

from __future__ import annotations

import pytest

from pellucid.config import TokenizerRecipe
from pellucid.text.cleaning import Cleaner, character_name
from pellucid.text.tokenizers.kinds import learn_tokenizer
from pellucid.text.tokenizers.tokenizer import Tokenizer

LINES = ["The soup is salty.", "a cat's dog - no", "A bus, 3.5 km"] * 7


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    recipe = TokenizerRecipe(kind="sentencepiece", vocabulary_size=290)
    return learn_tokenizer(recipe, lambda: LINES, lambda: LINES)


@pytest.fixture(scope="module")
def cleaner(tokenizer: Tokenizer) -> Cleaner:
    return Cleaner(dict.fromkeys("".join(LINES), 100), tokenizer)


@pytest.mark.parametrize("line", [*LINES[:3], "", " ", "  The soup  is ", "salty"])
def test_line_of_known_characters_is_not_touched(line: str, cleaner: Cleaner) -> None:
    cleaned = cleaner.clean(line)
    assert cleaned.text is line
    assert (cleaned.replaced, cleaned.dropped, cleaned.unknown) == ({}, {}, {})


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("The\u00a0soup\u202fis\u3000salty.", "The soup is salty."),
        ("The\tsoup\u2003\u2003is \u00a0salty.", "The soup is salty."),
        ("\u00a0The soup is\u00a0 salty.\u00a0", "The soup is salty."),
        ("\ufeffThe so\u00adup\u200b is\u2060 salty.", "The soup is salty."),
        ("The▁soup▁is\x0bsalty.", "The soup is salty."),
        ("\u200fThe soup is salty.\u200e", "The soup is salty."),
        ("Ｔｈｅ soup ｉｓ salty．", "The soup is salty."),
        ("The soup is salty…", "The soup is salty..."),
        ("a cat’s dog – no", "a cat's dog - no"),
        ("3.5 ㎞", "3.5 km"),
        ("The soup\x00 is\x1b salty.", "The soup is salty."),
        ("The soup\ufe0f is\u3164 salty.", "The soup is salty."),
    ],
)
def test_spaces_and_marks_are_mapped_to_known_ones(
    line: str, expected: str, cleaner: Cleaner
) -> None:
    cleaned = cleaner.clean(line)
    assert cleaned.text == expected
    assert not cleaned.unknown
    assert sum(cleaned.replaced.values()) + sum(cleaned.dropped.values()) > 0


def test_characters_without_a_stand_in_are_named_and_stay(cleaner: Cleaner) -> None:
    cleaned = cleaner.clean("The 😀 sœup 日日")
    assert cleaned.text == "The 😀 sœup 日日"
    assert cleaned.unknown == {"😀": 1, "œ": 1, "日": 2}


def test_direction_marks_around_a_line_are_kept_for_its_translation(cleaner: Cleaner) -> None:
    cleaned = cleaner.clean(" \u202aThe soup\u202c")
    assert (cleaned.before, cleaned.text, cleaned.after) == ("\u202a", " The soup", "\u202c")
    inside = cleaner.clean("The \u202asoup\u202c is")
    assert (inside.before, inside.text, inside.after) == ("", "The soup is", "")
    alone = cleaner.clean("\u202a\u202c")
    assert (alone.before, alone.text, alone.after) == ("", "", "")


def test_characters_that_training_had_often_stay(tokenizer: Tokenizer) -> None:
    characters = dict.fromkeys("".join(LINES), 100) | {"\u00a0": 10, "\u200c": 500, "\t": 9}
    cleaner = Cleaner(characters, tokenizer)
    assert cleaner.clean("The\u00a0so\u200cup is").text == "The\u00a0so\u200cup is"
    assert cleaner.clean("The\tsoup").text == "The soup"


def test_share_of_rare_characters_counts_visible_ones(cleaner: Cleaner) -> None:
    assert cleaner.rare_share("The é") == 0.25
    assert cleaner.rare_share("  ") == 0.0


@pytest.mark.parametrize(
    ("character", "name"),
    [
        ("\u00a0", "U+00A0 NO-BREAK SPACE"),
        ("\t", "U+0009 TAB"),
        ("\x01", "U+0001"),
        ("é", "é U+00E9"),
        ("\u0301", "◌\u0301 U+0301"),
        ("\ud800", "U+D800"),
    ],
)
def test_character_is_named_so_that_it_can_be_seen(character: str, name: str) -> None:
    assert character_name(character) == name
