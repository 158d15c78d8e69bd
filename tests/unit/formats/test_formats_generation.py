"""Generation settings of a folder of Hugging Face's: carried over, or named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pellucid.config import DecodingConfig, ModelConfig
from pellucid.errors import ConfigurationError
from pellucid.formats.generation import Generation, read_generation

PAD = 96
USUAL = {
    "bad_words_ids": [[PAD]],
    "bos_token_id": 0,
    "decoder_start_token_id": PAD,
    "eos_token_id": 0,
    "max_length": 47,
    "num_beams": 4,
    "pad_token_id": PAD,
    "renormalize_logits": True,
    "transformers_version": "4.32.0.dev0",
}


MODEL = ModelConfig(
    max_target_length=47,
    source_vocabulary_size=97,
    target_vocabulary_size=97,
    tied_embeddings="none",
)


def read(folder: Path, *, beam: int | None = 4, **changes: Any) -> Generation:
    """Read settings, which are the usual ones with some changes; None leaves one out."""
    values = {**USUAL, "num_beams": beam, **changes}
    (folder / "generation_config.json").write_text(json.dumps(values))
    return read_generation(folder, USUAL, MODEL, [PAD])


def test_usual_settings_are_all_carried_over(tmp_path: Path) -> None:
    found = read(tmp_path)
    assert found.decoding == DecodingConfig(beam=4, length_penalty="average", alpha=1.0)
    assert found.dropped == ()
    assert found.silenced == (PAD,)
    assert read(tmp_path, renormalize_logits=None).silenced == ()


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"no_repeat_ngram_size": 3, "renormalize_logits": None}, {"no_repeat_ngram": 3}),
        ({"repetition_penalty": 1.3}, {"repetition_penalty": 1.3}),
        ({"min_length": 5}, {"min_length": 5}),
        ({"min_length": 5, "min_new_tokens": 7}, {"min_length": 8}),
        ({"max_length": 31}, {"max_length": 30}),
        ({"max_length": 31, "max_new_tokens": 13}, {"max_length": 13}),
        ({"length_penalty": 0.7}, {"alpha": 0.7}),
        ({"num_beam_groups": 2, "diversity_penalty": 0.3}, {"diverse_groups": 2, "diversity": 0.3}),
        (
            {"bad_words_ids": [[PAD], [1], [5, 7], [0]], "renormalize_logits": None},
            {"forbidden_tokens": ((1,), (5, 7))},
        ),
        (
            {"suppress_tokens": [5, 1, 0], "bad_words_ids": [[5]], "renormalize_logits": None},
            {"forbidden_tokens": ((5,), (1,))},
        ),
    ],
    ids=lambda value: "-".join(value),
)
def test_setting_with_the_same_meaning_is_carried_over(
    theirs: dict[str, Any], ours: dict[str, Any], tmp_path: Path
) -> None:
    found = read(tmp_path, **theirs)
    usual = {"beam": 4, "length_penalty": "average", "alpha": 1.0}
    assert found.decoding == DecodingConfig.model_validate({**usual, **ours})
    assert found.dropped == ()


@pytest.mark.parametrize(
    ("theirs", "named"),
    [
        ({"bad_words_ids": [[PAD], [1], [5, 97], "x"]}, "bad_words_ids [[5, 97], 'x']"),
        ({"bad_words_ids": [[5]]}, "renormalize_logits True"),
        ({"suppress_tokens": [5, -1, 97]}, "suppress_tokens [-1, 97]"),
        ({"do_sample": True}, "do_sample True (a beam of 4 is searched instead; see --sample)"),
        ({"beam": 1, "do_sample": True, "min_p": 0.1}, "min_p 0.1"),
        ({"begin_suppress_tokens": [5]}, "begin_suppress_tokens [5]"),
        ({"forced_bos_token_id": 7}, "forced_bos_token_id 7"),
        ({"forced_eos_token_id": 0}, "forced_eos_token_id 0 (only a translation of the maximum"),
        ({"early_stopping": True}, "early_stopping True (see decoding.stopping)"),
        ({"num_return_sequences": 3}, "num_return_sequences 3 (see --n-best)"),
        ({"repetition_penalty": 0.9}, "repetition_penalty 0.9"),
        (
            {"beam": 1, "repetition_penalty": 1.3},
            "repetition_penalty 1.3 (decoding.repetition_penalty",
        ),
        ({"length_penalty": -0.5}, "length_penalty -0.5 (the length has no influence instead)"),
        ({"no_repeat_ngram_size": 3}, "renormalize_logits True"),
        ({"decoder_start_token_id": 7}, "decoder_start_token_id 7 (config.json has 96)"),
        ({"a_setting_of_tomorrow": [1, 2]}, "a_setting_of_tomorrow [1, 2]"),
        ({"sequence_bias": [[[5], -2.0]] * 20}, "…"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_setting_without_a_form_here_is_named(
    theirs: dict[str, Any], named: str, tmp_path: Path
) -> None:
    found = read(tmp_path, **theirs)
    assert any(named in dropped for dropped in found.dropped), found.dropped
    assert all(len(dropped) < 130 for dropped in found.dropped)


def test_sampling_becomes_the_default_with_their_settings(tmp_path: Path) -> None:
    found = read(tmp_path, beam=1, do_sample=True, temperature=0.7, top_p=0.9, typical_p=1.0)
    assert found.decoding == DecodingConfig(sample=True, temperature=0.7, top_p=0.9, top_k=50)
    assert found.dropped == ()
    # Without sampling its settings have no effect.
    found = read(tmp_path, do_sample=False, temperature=0.7, top_p=0.9)
    assert found.decoding.temperature == 1.0
    assert found.dropped == ()


@pytest.mark.parametrize(
    "theirs",
    [
        {"do_sample": False, "early_stopping": False, "num_return_sequences": 1},
        {"no_repeat_ngram_size": 0, "repetition_penalty": 1.0, "min_length": 0},
        {"suppress_tokens": [], "bad_words_ids": None, "guidance_scale": 1.0},
        {"use_cache": True, "output_scores": True, "_from_model_config": True},
    ],
)
def test_setting_without_effect_is_not_named(theirs: dict[str, Any], tmp_path: Path) -> None:
    assert read(tmp_path, **theirs).dropped == ()


def test_older_folder_keeps_its_settings_with_the_model(tmp_path: Path) -> None:
    config = {**USUAL, "suppress_tokens": [5], "min_length": 3, "d_model": 512, "dropout": 0.1}
    found = read_generation(tmp_path, config, MODEL, [PAD])
    assert (found.decoding.beam, found.decoding.min_length) == (4, 3)
    assert found.decoding.forbidden_tokens == ((5,),)
    assert found.dropped == ("renormalize_logits True (scores are those of the whole softmax)",)


def test_impossible_value_is_refused_by_its_file(tmp_path: Path) -> None:
    for name in ("num_beams", "no_repeat_ngram_size"):
        with pytest.raises(ConfigurationError, match=r"generation_config\.json"):
            read(tmp_path, **{name: "four"})
