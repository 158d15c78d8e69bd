"""The packaged model and sentences of the built-in corpus, for claims about a trained model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from pellucid.bundle import Bundle
from pellucid.corpora import Example, make_split
from pellucid.inside.pair import PairData, make_pair
from pellucid.model import Transformer, initialize
from pellucid.translate.translator import load


@cache
def load_packaged() -> Bundle:
    """Load the packaged model once, with its tokenizer."""
    bundle = load("demo").bundle
    assert bundle is not None  # A translator that was loaded has one.
    return bundle


def packaged_name() -> str:
    """Name the packaged model, so that what was kept of another one is not taken for its own."""
    return f"packaged model {load_packaged().model_hash[:8]}"


def write_examples_of(count: int, *, seed: int) -> list[Example]:
    """Draw new sentences of the built-in corpus, with links and antecedents."""
    return make_split("test", seed=seed, count=count)


def pairs_of(bundle: Bundle, examples: Sequence[Example]) -> list[PairData]:
    """Pair the sentences with their translations in the corpus."""
    return [make_pair(bundle, example.source, example.target) for example in examples]


def untrained_twin(bundle: Bundle, *, seed: int) -> Transformer:
    """Make a model of the same shape with random weights."""
    # The configuration does not say whether there is one.
    has_bias = bundle.model.output_bias is not None
    twin = Transformer(bundle.model.config, has_output_bias=has_bias)
    initialize(twin, seed)
    return twin.eval()
