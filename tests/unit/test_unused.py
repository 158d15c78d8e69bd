"""Settings without effect are named, and no others."""

from __future__ import annotations

from typing import Any

import pytest
from small_runs import make_recipe

from pellucid.config import ModelConfig
from pellucid.train.console.messages import settings_without_effect


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
            {"averaging": "last", "average_decay": 0.9, "average_count": 3},
            ["training.average_decay has no effect with training.averaging = 'last'."],
        ),
        (
            {"r_drop": 3.0, "dropout": 0.0},
            [
                "training.r_drop has no effect with no dropout: both readings of a pair are the "
                "same."
            ],
        ),
        ({"r_drop": 3.0, "dropout": 0.0, "token_dropout": 0.1}, []),
        ({"score_penalty": 0.1, "score_penalty_decoder": 0.2}, []),
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
    ("kind", "samples", "expected"),
    [
        ("bpe", 7, {"subword_alpha": "tokenizer.model_type = 'bpe'"}),
        ("unigram", 7, {"subword_dropout": "tokenizer.model_type = 'unigram'"}),
        (
            "bpe",
            0,
            dict.fromkeys(("subword_alpha", "subword_dropout"), "training.subword_samples = 0"),
        ),
    ],
)
def test_how_subwords_are_drawn_depends_on_the_vocabulary(
    kind: str, samples: int, expected: dict[str, str]
) -> None:
    recipe = make_recipe(
        tokenizer={"model_type": kind},
        training={"subword_samples": samples, "subword_alpha": 0.5, "subword_dropout": 0.3},
    )
    assert settings_without_effect(recipe) == [
        f"training.{name} has no effect with {reason}." for name, reason in expected.items()
    ]


def test_a_score_penalty_has_no_effect_without_self_attention() -> None:
    recipe = make_recipe(training={"score_penalty": 0.1, "score_penalty_decoder": 0.2})
    recipe = recipe.model_copy(update={"model": ModelConfig(architecture="recurrent")})
    assert settings_without_effect(recipe) == [
        f"training.{name} has no effect with model.architecture = 'recurrent'."
        for name in ("score_penalty", "score_penalty_decoder")
    ]
