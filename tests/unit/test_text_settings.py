"""Tokenizer settings that contradict each other are refused, not ignored."""

from __future__ import annotations

import pytest

from pellucid.config import TokenizerConfig, TokenizerRecipe, validate
from pellucid.errors import ConfigurationError


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
    ],
)
def test_tokenizer_recipe_contradiction_is_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        validate(TokenizerRecipe, values, "recipe.toml")


def test_tokenizer_config_of_another_toolkit_may_have_other_ids() -> None:
    config = TokenizerConfig(pad_id=58100, eos_id=0, bos_id=7, target_start_id=58100)
    assert config.pad_id == 58100
