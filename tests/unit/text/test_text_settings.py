"""Tokenizer settings that contradict each other are refused, not ignored."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pellucid.config import TokenizerConfig, TokenizerRecipe, validate
from pellucid.errors import ConfigurationError
from pellucid.text.tokenizers.kinds import learn_tokenizer, load_tokenizer


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"lowercase": True}, "tokenizer.lowercase must be false"),
        ({"drop_punctuation": True}, "tokenizer.drop_punctuation must be false"),
        ({"pad_id": 3}, "must differ from each other, but are 3, 1, 2, 3"),
        ({"pad_id": 3, "eos_id": 0}, "must be 0, 1, 2, 3 in a recipe"),
        ({"target_start_id": 9}, "must be 0, 1, 2, 3 in a recipe"),
        ({"min_word_count": 2}, "tokenizer.min_word_count must be left out"),
        ({"kind": "words", "byte_fallback": False}, "tokenizer.byte_fallback must be left out"),
        ({"kind": "words", "model_type": "unigram"}, "tokenizer.model_type must be left out"),
        ({"symbols": ["<a>", "<a>"]}, "tokenizer.symbols must be different texts .* has '<a>'"),
        ({"symbols": ["a b"]}, "without white space"),
        ({"symbols": [""]}, "has ''"),
        ({"symbols": ["</s>"]}, "special tokens"),
        ({"symbols": ["<0x41>"]}, "special tokens"),
        ({"symbols": ["\u2581a"]}, "signs of vocabularies"),
    ],
)
def test_tokenizer_recipe_contradiction_is_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        validate(TokenizerRecipe, values, "recipe.toml")


def test_tokenizer_config_of_another_toolkit_may_have_other_ids() -> None:
    config = TokenizerConfig(pad_id=58100, eos_id=0, bos_id=7, target_start_id=58100)
    assert config.pad_id == 58100


SYMBOLS = ("<news>", "2fr", ">>fra<<", "[MED]", "__fra__", "\u27e8formal\u27e9")
WORDS = ("two men and some other people walk home again while dogs bark near doors").split()  # noqa: SIM905
TAGGED = [f"{symbol} <news>x {a} {b}" for symbol in SYMBOLS for a in WORDS for b in WORDS]


@pytest.mark.parametrize(
    "values",
    [
        {"vocabulary_size": 320},
        {"vocabulary_size": 296, "model_type": "unigram"},
        {"vocabulary_size": 320, "normalization": "nfkc", "sharing": "separate"},
        {"kind": "words"},
        {"kind": "words", "lowercase": True, "drop_punctuation": True, "sharing": "separate"},
    ],
)
def test_tokenizer_symbols_stay_whole_after_loading_and_extending(values: dict[str, Any]) -> None:
    recipe = TokenizerRecipe(symbols=(*SYMBOLS, "<rare>"), **values)
    learned = learn_tokenizer(recipe, lambda: TAGGED, lambda: TAGGED)
    loaded = load_tokenizer(learned.config, learned.files(), "here")
    extended = loaded.extended(5, lambda: ["\u0436\u0443\u043a"], lambda: ["\u0436\u0443\u043a"])
    for tokenizer in (learned, loaded, extended):
        for symbol in (*SYMBOLS, "<rare>"):
            line = f"two {symbol} men {symbol}"
            ids = tokenizer.encode_source(line)
            assert tokenizer.source_tokens(ids).count(tokenizer.normalized(symbol)) == 2
            if not recipe.drop_punctuation:
                assert tokenizer.decode_target(ids) == tokenizer.normalized(line)
        assert "<news>" in tokenizer.source_tokens(tokenizer.encode_source("<news>x")), tokenizer


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
def test_tokenizer_symbols_stay_whole_in_every_segmentation(model_type: Any) -> None:
    recipe = TokenizerRecipe(vocabulary_size=296, model_type=model_type, symbols=SYMBOLS)
    tokenizer: Any = learn_tokenizer(recipe, lambda: TAGGED, lambda: TAGGED)
    cut = tokenizer.segmenter("source", 8, dropout=0.5, seed=1)
    for ids, _ in cut(" ".join(SYMBOLS)):
        assert {*SYMBOLS} <= {*tokenizer.source_tokens(ids)}


def test_tokenizer_config_without_symbols_is_written_as_earlier_versions_read_it() -> None:
    assert "symbols" not in TokenizerConfig().model_dump(mode="json")
    config = TokenizerConfig(symbols=("<a>",))
    assert validate(TokenizerConfig, config.model_dump(mode="json"), "config.json") == config


@pytest.mark.parametrize("size", [20, 80, 257])
def test_too_small_a_vocabulary_names_the_sizes_with_and_without_bytes(size: int) -> None:
    def learn(**values: Any) -> int:
        recipe = TokenizerRecipe(**values)
        return learn_tokenizer(recipe, lambda: TAGGED, lambda: TAGGED).source_vocabulary_size

    with pytest.raises(ConfigurationError) as caught:
        learn(vocabulary_size=size)
    message = str(caught.value)
    numbers = re.search(r"at least (\d+) .*byte_fallback=false, which needs (\d+) ", message)
    assert numbers, message
    least, without = map(int, numbers.groups())
    assert learn(vocabulary_size=least) == least
    assert learn(vocabulary_size=without, byte_fallback=False) == without
    with pytest.raises(ConfigurationError, match=rf"at least {without}.* lower tokenizer.char"):
        learn(vocabulary_size=without - 1, byte_fallback=False)
