"""Any text comes back from its tokens, whatever characters it holds."""

from __future__ import annotations

import random
from functools import cache

from hypothesis import given
from hypothesis import strategies as st
from source_text import source_text

from pellucid.config import TokenizerRecipe
from pellucid.text.normalization import Normalization, normalize
from pellucid.text.tokenizers.kinds import learn_tokenizer, load_tokenizer
from pellucid.text.tokenizers.subwords import SentencePieceTokenizer
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.text.tokenizers.whole_words import bare_words, join_words, split_words

# Any line; the second kind is full of characters that tokenizers get wrong.
LINES = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=60),
    st.text(
        st.sampled_from(
            "aé '-!\u2581\u2585\uffed\t\r\x00\u00a0\u202f\u2028\u0301\ufdd0<s/>_\u65e5"
        ),
        max_size=30,
    ),
)


FORMS: tuple[Normalization, ...] = ("nfc", "nfkc", "none")


@cache
def subwords(model_type: str) -> Tokenizer:
    text = "the black cat eats a red apple le chat noir mange une pomme été\u00a0!"
    dice, words = random.Random(5), text.split(" ")
    lines = [" ".join(dice.choices(words, k=8)) for _ in range(200)]
    recipe = TokenizerRecipe.model_validate({"model_type": model_type, "vocabulary_size": 295})
    return learn_tokenizer(recipe, lambda: lines, lambda: lines)


@given(LINES)
def test_subwords_any_line_comes_back_normalized(text: str) -> None:
    for model_type in ("bpe", "unigram"):
        tokenizer = subwords(model_type)
        ids = tokenizer.encode_source(text)
        assert source_text(tokenizer, ids) == normalize(text, "nfc")
        assert not {0, 1, 2, 3} & set(ids[:-1])
        assert ids[-1] == 3


@given(LINES)
def test_left_out_merges_cut_any_line_otherwise_and_lose_nothing(text: str) -> None:
    tokenizer = subwords("bpe")
    assert isinstance(tokenizer, SentencePieceTokenizer)
    usual = tokenizer.encode_source(text)
    for dropout in (0.0, 0.3, 1.0):
        cut = tokenizer.segmenter("source", 3, dropout=dropout, seed=1)
        ways = [ids for ids, _ in cut(text)]
        assert len(ways) == 3
        for ids in ways:
            assert source_text(tokenizer, ids) == normalize(text, "nfc")
            assert len(ids) >= len(usual)
            assert dropout or ids == usual


@given(LINES)
def test_words_any_line_comes_back(text: str) -> None:
    tokens = split_words(text)
    assert join_words(tokens) == text
    assert not {"<pad>", "<unk>", "<s>", "</s>", ""} & set(tokens)
    assert not any(word.isspace() for word in bare_words(text))


@given(st.lists(LINES.filter(bool), min_size=1, max_size=5))
def test_words_learned_lines_come_back_through_the_file(lines: list[str]) -> None:
    recipe = TokenizerRecipe(kind="words")
    learned = learn_tokenizer(recipe, lambda: lines, lambda: lines)
    tokenizer = load_tokenizer(learned.config, learned.files(), "bundle")
    for line in lines:
        ids = tokenizer.encode_target(line)
        assert 1 not in ids
        assert tokenizer.decode_target(ids) == normalize(line, "nfc")


@given(LINES)
def test_normalize_twice_changes_nothing(text: str) -> None:
    for form in FORMS:
        once = normalize(text, form)
        assert normalize(once, form) == once
        assert "\n" not in once
