"""Settings without effect are named, and no others."""

from __future__ import annotations

from typing import Any

import pytest
from small_runs import make_recipe

from pellucid.config import ModelConfig
from pellucid.training.console.messages import settings_without_effect


@pytest.mark.parametrize(
    ("training", "expected"),
    [
        ({}, []),
        (
            {"weight_decay": 0.1, "muon_learning_rate": 0.02},
            [
                "training.muon_learning_rate has no effect with training.optimizer = 'adam'.",
                "training.weight_decay has no effect with training.optimizer = 'adam'.",
            ],
        ),
        ({"optimizer": "muon", "weight_decay": 0.1, "muon_learning_rate": 0.02}, []),
        (
            {"min_learning_rate": 0.001},
            [
                "training.min_learning_rate has no effect with "
                "training.schedule = 'inverse_square_root'."
            ],
        ),
        ({"schedule": "cosine", "min_learning_rate": 0.001}, []),
        (
            {"averaging_count": 3},
            ["training.averaging_count has no effect with training.averaging = 'none'."],
        ),
        (
            {"averaging": "last", "averaging_decay": 0.5},
            ["training.averaging_decay has no effect with training.averaging = 'last'."],
        ),
        (
            {"r_drop": 3.0, "dropout": 0.0},
            [
                "training.r_drop has no effect with no dropout: both readings of a pair are the "
                "same."
            ],
        ),
        ({"r_drop": 3.0, "dropout": 0.0, "token_dropout": 0.1}, []),
        ({"r_drop": 3.0, "dropout": 0.0, "token_cut": 0.1}, []),
        ({"token_cut": 0.1}, ["training.token_cut has no effect with no training.r_drop."]),
        ({"score_penalty": 0.1, "score_penalty_decoder": 0.2}, []),
        ({"score_penalty_cross": 0.1, "score_penalty_margin_decoder": 2.0}, []),
        (
            {"score_penalty": 0.1, "score_penalty_margin_decoder": 2.0},
            [
                "training.score_penalty_margin_decoder has no effect with no score penalty of the "
                "decoder."
            ],
        ),
        (
            {"score_penalty_margin": 2.0, "score_penalty_cross": 0.1},
            ["training.score_penalty_margin has no effect with no training.score_penalty."],
        ),
        (
            {"guided_weight": 0.5},
            ["training.guided_weight has no effect with no training.guided_head."],
        ),
    ],
)
def test_a_setting_that_nothing_asks_for_is_named(
    training: dict[str, Any], expected: list[str]
) -> None:
    assert settings_without_effect(make_recipe(training=training)) == expected


@pytest.mark.parametrize(
    ("settings", "kind", "expected"),
    [
        ({"subword_samples": 7, "subword_dropout": 0.5}, "bpe", ""),
        ({"subword_samples": 7, "subword_alpha": 0.5}, "unigram", ""),
        ({"subword_dropout": 0.5}, "bpe", "subword_dropout has no effect with no training.subword"),
        ({"subword_samples": 7, "subword_alpha": 0.5}, "bpe", "subword_alpha has no effect with"),
        ({"subword_samples": 7, "subword_dropout": 0.5}, "unigram", "model_type = 'unigram'"),
    ],
)
def test_drawing_of_subwords_belongs_to_samples_and_to_a_kind_of_vocabulary(
    settings: dict[str, Any], kind: str, expected: str
) -> None:
    recipe = make_recipe(tokenizer={"model_type": kind}, training=settings)
    found = settings_without_effect(recipe)
    assert len(found) == bool(expected)
    assert all(expected in one for one in found)


def test_a_score_penalty_has_no_effect_without_self_attention() -> None:
    names = ("score_penalty", "score_penalty_decoder", "score_penalty_cross")
    recipe = make_recipe(training=dict.fromkeys(names, 0.1))
    recipe = recipe.model_copy(update={"model": ModelConfig(architecture="recurrent")})
    assert settings_without_effect(recipe) == [
        f"training.{name} has no effect with model.architecture = 'recurrent'." for name in names
    ]


def test_a_score_penalty_of_the_decoder_has_no_effect_without_its_self_attention() -> None:
    recipe = make_recipe(training={"score_penalty_decoder": 0.2, "score_penalty_cross": 0.1})
    recipe = recipe.model_copy(update={"model": ModelConfig(decoder="ssru")})
    assert settings_without_effect(recipe) == [
        "training.score_penalty_decoder has no effect with model.decoder = 'ssru'."
    ]
