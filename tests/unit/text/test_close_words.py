"""Words outside a vocabulary of whole words, and what it has that is close."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from of_subwords import SUBWORDS

from pellucid import load
from pellucid.config import TokenizerRecipe
from pellucid.corpora.seen import SeenSentences
from pellucid.text.outside import close_words, say_unknown_words, unknown_words
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.text.tokenizers.whole_words import WordTokenizer
from pellucid.translate.text_translator import examine

SOURCES = ["The cats eat apples.", "A cat translates", "the old dog eats an apple", "He ate it"]


@pytest.fixture(scope="module")
def make() -> Callable[..., Tokenizer]:
    def learn(**options: object) -> Tokenizer:
        recipe = TokenizerRecipe.model_validate(
            {"kind": "words", "sharing": "separate", "vocabulary_size": 50, **options}
        )
        return WordTokenizer.learn(recipe, lambda: iter(SOURCES), lambda: iter(["chats"]))

    return learn


def test_unknown_words_come_once_and_in_order_without_those_that_are_known(
    make: Callable[..., Tokenizer],
) -> None:
    assert unknown_words(make(), "The zebra eats a chats, zebra.") == ("zebra", "a", "chats", ",")
    lowered = make(lowercase=True, drop_punctuation=True)
    assert unknown_words(lowered, "THE zebra, EATS.") == ("zebra",)
    assert unknown_words(make(), "The cats eat apples.") == ()


def test_unknown_words_of_subwords_are_none() -> None:
    assert unknown_words(load(SUBWORDS).tokenizer, "The zebra xylophones!") == ()


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("Apples", ["apples", "apple"]),  # Only the capital differs: that comes first.
        ("translated", ["translates"]),  # The same stem.
        ("aplpe", ["apple"]),  # Two letters exchanged.
        ("caat", ["cat"]),
        ("xylophone", []),
    ],
)
def test_close_words_are_those_written_alike_or_of_one_stem(
    word: str, expected: list[str], make: Callable[..., Tokenizer]
) -> None:
    vocabulary = [token for token in make().vocabulary("source") if token.isalpha()]
    assert close_words(word, vocabulary)[: len(expected)] == expected
    assert (close_words(word, vocabulary) == []) is (expected == [])


def test_sentence_names_each_word_and_what_is_close(make: Callable[..., Tokenizer]) -> None:
    said = say_unknown_words(["aple", "zzz"], make())
    assert said == '"aple" (close: "apple"), "zzz" (nothing close)'


def test_seen_sentences_are_found_whatever_their_marks_and_others_hardly_ever(
    tmp_path: Path,
) -> None:
    sentences = [f"The {number} cats, they sleep." for number in range(2000)]
    SeenSentences.of(sentences, model_hash="ab" * 32).write(tmp_path / "seen")
    seen = SeenSentences.read(tmp_path / "seen")
    assert seen.model_hash == "ab" * 32
    assert all(sentence in seen for sentence in sentences)
    assert "the 7 cats they sleep" in seen
    others = [f"The {number} dogs sleep." for number in range(2000)]
    assert sum(sentence in seen for sentence in others) < 40


@pytest.mark.parametrize(
    ("text", "expected", "said"),
    [
        ('The "cats" eat', ('"', '"cats'), '\'"cats\' (known with a space before it: "cats")'),
        ("The “cats” eat", ("“", "“cats", "”"), '"“cats" (known with a space before it: "cats")'),
        ("The (cats) eat", ("(", "(cats", ")"), '"(cats" (known with a space before it: "cats")'),
        ("The cats/dog eat", ("/", "/dog"), '"/dog" (known with a space before it: "dog")'),
        ("The _cats eat", ("_", "_cats"), '"_cats" (known with a space before it: "cats")'),
        ("The cats .", (".",), '"." (known without the space before it)'),
        ("The 'zebra'", ("'", "zebra"), '"zebra" (nothing close)'),
        ("The «CATS»", ("«", "CATS", "»"), '"CATS" (close: "cats"'),
    ],
)
def test_known_word_beside_a_sign_is_not_called_unknown(
    text: str, expected: tuple[str, ...], said: str, make: Callable[..., Tokenizer]
) -> None:
    tokenizer = make()
    found = unknown_words(tokenizer, text)
    assert found == expected
    assert said in say_unknown_words(found, tokenizer)


def test_sign_has_nothing_close(make: Callable[..., Tokenizer]) -> None:
    assert say_unknown_words(["!", "“"], make()) == '"!" (nothing close), "“" (nothing close)'


def test_text_in_capitals_is_told_once_with_words_in_small_letters(
    make: Callable[..., Tokenizer],
) -> None:
    tokenizer = make()
    said = say_unknown_words(unknown_words(tokenizer, "THE CATS EAT APPLES."), tokenizer)
    for word in ("the", "cats", "eat", "apples"):
        assert f'"{word.upper()}" (close: "{word}"' in said
    assert said.count("text in capitals is unlike the text that the model learned from") == 1
    assert "capitals" not in say_unknown_words(["CATS", "zebra", "xylophone"], tokenizer)
    assert "capitals" not in say_unknown_words(["NASA", "CATS"], tokenizer)


def test_words_beyond_the_most_are_counted(make: Callable[..., Tokenizer]) -> None:
    said = say_unknown_words(["zzz", "yyy", "xxx"], make(), most=1)
    assert said == '"zzz" (nothing close), and 2 more'


def test_notes_of_a_translation_list_what_became_unknown() -> None:
    translator = load("demo")
    (quoted,) = translator.translate(['The "pizza" is good.'])
    assert quoted.notes.unknown_words == ('"', '"pizza')
    assert examine(translator, 'The "pizza" is good.').unknown_words == ('"', '"pizza')


@pytest.mark.parametrize("word", ["3", "12", "b", "?"])
def test_letters_and_numbers_have_no_close_words(word: str) -> None:
    assert close_words(word, ["!", "'", "2", "10", "a", "by", "B"]) == (
        ["B"] if word == "b" else []
    )
