"""One word's vectors in several sentences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.shared.small_runs import make_recipe

from pellucid.bundle import Bundle
from pellucid.config import TokenizerRecipe
from pellucid.errors import InputError
from pellucid.inside.contexts import compare_contexts
from pellucid.model import Transformer, initialize
from pellucid.text.tokenizers.kinds import learn_tokenizer
from pellucid.training.learner import make_bundle_config

TEXT = ["The bank is near the river.", "A man robbed the bank, then the bank called.", "Show me."]


def make_bundle(kind: str, norm: str = "post") -> Bundle:
    settings = {"kind": "words"} if kind == "words" else {"vocabulary_size": 290}
    recipe = TokenizerRecipe.model_validate(settings)
    tokenizer = learn_tokenizer(recipe, lambda: TEXT, lambda: TEXT)
    config = make_bundle_config(make_recipe(model={"norm": norm}), tokenizer)
    model = Transformer(config.model)
    initialize(model, 5)
    return Bundle(config, model.eval(), tokenizer, {"files": {}}, Path("nowhere"))


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("kind", ["words", "pieces"])
def test_contexts_are_the_encoders_states_at_the_words_tokens(kind: str, norm: str) -> None:
    bundle = make_bundle(kind, norm)

    found = compare_contexts(bundle, "Bank", TEXT[:2])

    assert [one.sentence for one in found.occurrences] == [0, 1, 1]
    for one in found.occurrences:
        assert "".join(one.tokens).strip("▁") == "bank"
        ids = bundle.tokenizer.encode_source(TEXT[one.sentence])
        places = range(one.position, one.position + len(one.tokens))
        tokens = bundle.tokenizer.source_tokens(ids)
        assert tuple(tokens[place] for place in places) == one.tokens
    assert found.places[0] == "encoder.embedding"
    depth = bundle.model.config.num_encoder_layers
    assert len(found.places) == depth + 2
    if norm == "post":  # Then the last state is what the decoder reads.
        with torch.inference_mode():
            memory_BSD = bundle.exact_model.encode(
                torch.tensor([bundle.tokenizer.encode_source(TEXT[0])])
            )
        first = found.occurrences[0]
        own_D = memory_BSD[0, first.position : first.position + len(first.tokens)].mean(dim=0)
        np.testing.assert_allclose(first.vectors[-1], own_D.numpy(), rtol=0, atol=1e-12)


def test_cosines_of_the_embedding_are_one_and_later_ones_are_recomputed() -> None:
    found = compare_contexts(make_bundle("words"), "bank", TEXT[:2])

    cosines = found.cosines()

    assert cosines.shape == (len(found.places), 3)
    np.testing.assert_allclose(cosines[0], 1, rtol=0, atol=1e-12)
    assert (np.abs(cosines[1:] - 1) > 1e-3).all()
    first, last = found.occurrences[0].vectors[-1], found.occurrences[2].vectors[-1]
    expected = first @ last / np.sqrt((first @ first) * (last @ last))
    assert cosines[-1, 1] == pytest.approx(expected, abs=1e-12)


def test_the_same_sentence_twice_has_the_same_vectors() -> None:
    found = compare_contexts(make_bundle("words"), "bank", [TEXT[0], TEXT[0]])

    np.testing.assert_allclose(found.cosines(), 1, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("word", "sentences", "message"),
    [
        ("banks", TEXT[:2], "The sentence must have the word 'banks', but 'The bank is near the "),
        ("show", [TEXT[2]], "'show' must stand at least twice to be compared, but stands once. "),
        ("bank", [TEXT[0], "bank " * 2000], "A source must have at most "),
    ],
)
def test_contexts_of_bad_input_say_what_to_do(
    word: str, sentences: list[str], message: str
) -> None:
    with pytest.raises(InputError) as raised:
        compare_contexts(make_bundle("words"), word, sentences)

    assert str(raised.value).startswith(message)
