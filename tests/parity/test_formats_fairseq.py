"""Models of fairseq's families in Hugging Face's form: the same ids, scores and translations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from small_fairseq import random_sentences, write_model

from pellucid import convert, load
from pellucid.translate.translator import Translator

LANGUAGES = {
    "m2m": ("en", "fr", "__en__", "__fr__"),
    "nllb": ("eng_Latn", "fra_Latn", "eng_Latn", "fra_Latn"),
    "small": ("en", "fr", "__fr__", None),
    "mbart": ("en_XX", "fr_XX", "en_XX", "fr_XX"),
    "bart": ("", "", None, "<s>"),
}


def named(family: str, source: str, target: str) -> dict[str, Any]:
    """The languages of a text, for a model that has some."""
    return {"source_language": source, "to": target} if LANGUAGES[family][0] else {}


def converted(tmp_path: Path, family: str, **how: Any) -> tuple[Translator, Any, Any]:
    theirs, tokenizer = write_model(tmp_path / "theirs", family, **how)
    convert(tmp_path / "theirs", tmp_path / "ours")
    return load(tmp_path / "ours"), theirs, tokenizer


def their_source(tokenizer: Any, family: str, text: str) -> list[int]:
    source, target = LANGUAGES[family][:2]
    tokenizer.src_lang = target if family == "small" else source
    ids: list[int] = tokenizer(text).input_ids
    return ids


def their_target(tokenizer: Any, family: str, text: str) -> list[int]:
    tokenizer.src_lang = LANGUAGES[family][1]
    ids: list[int] = tokenizer(text).input_ids
    return ids[1:] if family == "small" else ids


@pytest.mark.parametrize("family", LANGUAGES)
@pytest.mark.parametrize(
    ("shape", "dtype"), [("deep", "float32"), ("narrow", "bfloat16"), ("wide", "float32")]
)
def test_log_probabilities_are_theirs(family: str, shape: str, dtype: str, tmp_path: Path) -> None:
    ours, theirs, tokenizer = converted(tmp_path, family, shape=shape, dtype=dtype)
    sources = random_sentences(50)
    targets = sources[::-1]
    found = ours.score(sources, targets, **named(family, "en", "fr"))
    for source, target, one in zip(sources, targets, found, strict=True):
        assert one.error is None
        source_ids = their_source(tokenizer, family, source)
        target_ids = their_target(tokenizer, family, target)
        assert list(one.ids) == target_ids
        with torch.inference_mode():
            logits = theirs(
                input_ids=torch.tensor([source_ids]),
                decoder_input_ids=torch.tensor([[2, *target_ids[:-1]]]),
            ).logits[0]
        logs = logits.log_softmax(-1)[range(len(target_ids)), target_ids]
        given = int(family != "small")
        # The first token is given: no part of the probability.
        assert one.token_log_probabilities[:given] == (0.0,) * given
        difference = torch.tensor(one.token_log_probabilities[given:]) - logs[given:]
        assert float(difference.abs().max()) <= 1e-4


@pytest.mark.parametrize("family", LANGUAGES)
@pytest.mark.parametrize("beam", [1, 4])
def test_translations_are_theirs(family: str, beam: int, tmp_path: Path) -> None:
    ours, theirs, tokenizer = converted(tmp_path, family)
    sources = random_sentences(8)
    found = ours.translate(
        sources,
        **named(family, "English", "fra"),
        beam=beam,
        max_length=20,
        length_penalty="average" if beam > 1 else "none",
        alpha=1.0,
    )
    exact = ours.translate(
        sources, **named(family, "en", "fr"), strict=True, beam=beam, max_length=20
    )
    first = LANGUAGES[family][3]
    forced = None if first is None else tokenizer.convert_tokens_to_ids(first)
    for source, one, other in zip(sources, found, exact, strict=True):
        expected = theirs.generate(
            torch.tensor([their_source(tokenizer, family, source)]),
            num_beams=beam,
            max_new_tokens=20,
            max_length=None,
            forced_bos_token_id=forced,
            bad_words_ids=[[0], [1]],
            early_stopping="never",
            length_penalty=1.0,
        )[0, 1:].tolist()
        assert list(one.ids) == expected, source
        # Both engines, and the language is no word of the text.
        assert other.ids[:1] == one.ids[:1]
        assert "fra_Latn" not in one.text
        assert "__" not in one.text
        assert "_XX" not in one.text
