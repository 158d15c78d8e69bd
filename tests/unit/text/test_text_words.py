"""Whole words: every word an index, exact by default, bare words on request."""

from __future__ import annotations

import pytest
from source_text import source_text

from pellucid.config import TokenizerConfig, TokenizerRecipe
from pellucid.errors import BundleError, ConfigurationError, DataError
from pellucid.text.tokenizers.kinds import learn_tokenizer, load_tokenizer
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.text.tokenizers.whole_words import (
    JOINER,
    WordTokenizer,
    bare_words,
    join_words,
    split_words,
)

SENTENCES = [
    "Show me the money",
    "Not on your life!",
    "Let's go",
    "help me!",
    "Pizza is awesome",
]
HEAD = "<pad>\n<unk>\n<s>\n</s>\n"


def make(**settings: object) -> Tokenizer:
    recipe = TokenizerRecipe.model_validate({"kind": "words", **settings})
    return learn_tokenizer(recipe, lambda: SENTENCES, lambda: SENTENCES)


def load(text: str | bytes, **settings: object) -> Tokenizer:
    data = text if isinstance(text, bytes) else text.encode()
    config = TokenizerConfig.model_validate({"kind": "words", **settings})
    return load_tokenizer(config, {"vocabulary.txt": data}, "bundle")


@pytest.mark.parametrize("text", SENTENCES)
def test_words_known_sentence_comes_back(text: str) -> None:
    tokenizer = make()
    assert source_text(tokenizer, tokenizer.encode_source(text)) == text
    assert tokenizer.decode_target([2, *tokenizer.encode_target(text), 0]) == text


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Show me the money", ["Show", "me", "the", "money"]),
        ("Not on your life!", ["Not", "on", "your", "life", f"{JOINER}!"]),
        ("Let's go", ["Let's", "go"]),
        ("well-known l’eau", ["well-known", "l’eau"]),
        ("(a) - b", ["(", f"{JOINER}a", f"{JOINER})", "-", "b"]),
        ("a  b", ["a", f"{JOINER} ", "b"]),
        (" a", [f"{JOINER} ", "a"]),
        ("a ", ["a", f"{JOINER} "]),
        ("a\tb", ["a", f"{JOINER}\t", f"{JOINER}b"]),
        ("non\u00a0!", ["non", f"{JOINER}\u00a0", f"{JOINER}!"]),
        (JOINER, [JOINER]),
        (f"{JOINER}{JOINER}a", [JOINER, f"{JOINER}{JOINER}", f"{JOINER}a"]),
        (
            "<unk></s>",
            ["<", f"{JOINER}unk", f"{JOINER}>", *(f"{JOINER}{c}" for c in ["<", "/", "s", ">"])],
        ),
        ("", []),
        ("नमस्ते", ["नमस्ते"]),
        ("e\u0301te\u0301", ["e\u0301te\u0301"]),
    ],
)
def test_split_words_text_gives_tokens_and_back(text: str, tokens: list[str]) -> None:
    assert split_words(text) == tokens
    assert join_words(tokens) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Not on your life!", ["Not", "on", "your", "life"]),
        ("Let's go", ["Let's", "go"]),
        ("  (a, b)\t… c ", ["a", "b", "c"]),
        ("5 €", ["5", "€"]),
        ("?!", []),
    ],
)
def test_bare_words_punctuation_and_space_are_gone(text: str, words: list[str]) -> None:
    assert bare_words(text) == words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Show me the money", "show me the money"),
        ("Not on your life!", "not on your life"),
        ("Let's go", "let's go"),
        ("help me!", "help me"),
        ("Pizza is awesome", "pizza is awesome"),
    ],
)
def test_words_lowercase_without_punctuation_reads_as_in_the_texts(
    text: str, expected: str
) -> None:
    tokenizer = make(lowercase=True, drop_punctuation=True)
    ids = tokenizer.encode_source(text)
    assert source_text(tokenizer, ids) == expected
    assert tokenizer.source_tokens(ids) == [*expected.split(), "</s>"]


def test_words_lowercase_alone_keeps_punctuation() -> None:
    tokenizer = make(lowercase=True)
    assert source_text(tokenizer, tokenizer.encode_source("HELP ME!")) == "help me!"


def test_words_unknown_word_is_unk() -> None:
    tokenizer = make(lowercase=True, drop_punctuation=True)
    ids = tokenizer.encode_source("Show me the pineapple!")
    assert ids[-2:] == [1, 3]
    assert source_text(tokenizer, ids) == "show me the <unk>"


def test_words_every_word_gets_an_index_by_frequency_then_alphabet() -> None:
    recipe = TokenizerRecipe(kind="words")
    tokenizer = learn_tokenizer(recipe, lambda: ["b a c", "c"], lambda: ["c d b"])
    expected = ["<pad>", "<unk>", "<s>", "</s>", "c", "b", "a", "d"]
    assert tokenizer.vocabulary("source") == tokenizer.vocabulary("target") == expected
    assert tokenizer.files() == {"vocabulary.txt": "".join(f"{x}\n" for x in expected).encode()}


def test_words_rare_ones_are_left_out() -> None:
    lines = ["a a b b c"]
    few = learn_tokenizer(
        TokenizerRecipe(kind="words", vocabulary_size=5), lambda: lines, lambda: []
    )
    often = learn_tokenizer(
        TokenizerRecipe(kind="words", min_word_count=2), lambda: lines, lambda: []
    )
    assert few.vocabulary("source")[4:] == ["a"]
    assert often.vocabulary("source")[4:] == ["a", "b"]


def test_words_separate_sides_have_their_own_words() -> None:
    recipe = TokenizerRecipe(kind="words", sharing="separate")
    tokenizer = learn_tokenizer(recipe, lambda: ["cat"], lambda: ["chat noir"])
    assert tokenizer.vocabulary("source")[4:] == ["cat"]
    assert tokenizer.vocabulary("target")[4:] == ["chat", "noir"]
    assert list(tokenizer.files()) == ["source.txt", "target.txt"]
    loaded = load_tokenizer(tokenizer.config, tokenizer.files(), "bundle")
    assert isinstance(loaded, WordTokenizer)
    assert loaded.decode_target(loaded.encode_target("noir chat")) == "noir chat"


def test_words_odd_characters_survive_the_vocabulary_file() -> None:
    text = "a\rb\u2028c\x85d\x0ce \x00 \u2581 é\ufeff"
    recipe = TokenizerRecipe(kind="words")
    tokenizer = learn_tokenizer(recipe, lambda: [text], lambda: ["\ufeffx"])
    loaded = load_tokenizer(tokenizer.config, tokenizer.files(), "bundle")
    assert loaded.vocabulary("source") == tokenizer.vocabulary("source")
    assert source_text(loaded, loaded.encode_source(text)) == text


def test_words_line_break_never_enters_the_vocabulary_file() -> None:
    recipe = TokenizerRecipe(kind="words")
    tokenizer = learn_tokenizer(recipe, lambda: ["a\nb"], lambda: ["b"])
    loaded = load_tokenizer(tokenizer.config, tokenizer.files(), "bundle")
    assert len(loaded.vocabulary("source")) == loaded.source_vocabulary_size
    assert loaded.encode_source("a\nb")[1] == 1


def test_words_100_000_characters_do_not_crash() -> None:
    for text in ("x" * 100_000, "!" * 100_000, " " * 100_000, "a-" * 50_000):
        assert join_words(split_words(text)) == text


def test_words_no_words_is_a_data_error() -> None:
    for recipe in (
        TokenizerRecipe(kind="words", drop_punctuation=True),
        TokenizerRecipe(kind="words", min_word_count=5),
    ):
        with pytest.raises(DataError, match="must hold words"):
            learn_tokenizer(recipe, lambda: ["?!"], lambda: [""])


def test_words_no_room_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match=r"leave room for a word.* but is 4"):
        make(vocabulary_size=4)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (HEAD + "a\nb\na\n", r"'a' of line 5 occurs again \(bundle/vocabulary\.txt:7\)"),
        ("<pad>\n<unk>\n<s>\na\n", r"Line 4 of a vocabulary must be </s>, but is 'a' .*txt:4\)"),
        ("<pad>\n", r"Line 2 of a vocabulary must be <unk>, but is 'the end of the file'"),
        ("", r"one is empty \(bundle/vocabulary\.txt:1\)"),
        (HEAD + "a\n\nb\n", r"one is empty \(bundle/vocabulary\.txt:6\)"),
        (HEAD.encode() + b"a\n\xff\n", r"must be UTF-8, .*\(bundle/vocabulary\.txt:6\)"),
        (HEAD.encode() + "é\n".encode("utf-16"), r"must be UTF-8"),
    ],
)
def test_words_damaged_vocabulary_says_file_and_line(data: str | bytes, message: str) -> None:
    with pytest.raises(BundleError, match=message):
        load(data)


def test_words_missing_file_is_a_bundle_error() -> None:
    with pytest.raises(BundleError, match=r"must hold source\.txt"):
        load(HEAD, sharing="separate")


def test_words_other_special_ids_are_a_bundle_error() -> None:
    with pytest.raises(BundleError, match=r"must be 0, 1, 2, 3 with whole words.*3, 1, 2, 0"):
        load(HEAD + "a\n", pad_id=3, eos_id=0)


def test_words_last_line_without_its_end_is_a_token() -> None:
    assert load(HEAD + "a\nb").vocabulary("target")[4:] == ["a", "b"]
