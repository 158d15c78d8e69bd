r"""Causal tracing: spoil a word with noise, restore one vector, and see how much comes back.

The embeddings of some words get Gaussian noise, so that the model no longer knows what they are.
Then one array of the unspoiled run, at one position, is put back. With $m$ the probability of the
answer, the mean over samples of the noise of

$$\text{IE} = m(\text{spoiled, restored}) - m(\text{spoiled}), \qquad
\text{TE} = m(\text{whole}) - m(\text{spoiled})$$

is the indirect effect of that vector and the total effect. The deviation of the noise is 3 times
that of all numbers of the source's embeddings, as they enter the encoder.

Source:
    Meng et al. 2022, "Locating and Editing Factual Associations in GPT", section 2.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from pellucid.arguments import checked
from pellucid.errors import InputError, not_together
from pellucid.inside.ask import check_number
from pellucid.inside.changes.given_changes import join_probes
from pellucid.inside.changes.written_changes import MARKS, find_word, positions_of_word
from pellucid.inside.measures.contrast import find_contrast
from pellucid.inside.measures.maps import Map
from pellucid.inside.measures.registry import Measure
from pellucid.inside.pair import PairData, Replace
from pellucid.inside.patches.patched_places import expand_sites, list_sites, way_of
from pellucid.inside.patches.patching import SOURCES, patch, patched_map
from pellucid.inside.patches.two_runs import Metric, Patching
from pellucid.machine.randomness import generator
from pellucid.model import EncoderDecoder
from pellucid.text.token_words import source_pieces

NAME = "causal-tracing"

_OF_WORDS = "A word to spoil must be a word of the source"


@checked
@torch.inference_mode()
def causal_trace(
    pair: PairData,
    words: str | Iterable[str],
    sites: str | Iterable[str] | None = None,
    positions: Iterable[int] | None = None,
    *,
    why: str | int | None = None,
    other: str | None = None,
    row: int | None = None,
    metric: Metric | None = None,
    num_samples: int = 10,
    scale: float = 3.0,
    seed: int = 1,
) -> Map:
    """Spoil words of the source with noise, and restore one vector at a time.

    Args:
        pair: the sentence with its translation.
        words: the words to spoil, each by its letters or its number from 0.
        sites: the arrays to restore, as for `patch`; by default ``encoder``.
        positions: of the source, or decoder rows; by default all.
        why: the word of the translation whose probability is asked for, or its number.
        other: another word: the effects are then of the difference of the two logits.
        row: the decoder row to ask about, instead of a word.
        metric: a number of that row's logits, instead of the probability of its token.
        num_samples: samples of the noise.
        scale: the deviation of the noise, in deviations of the embeddings.
        seed: of the noise.

    Returns:
        A map of mean indirect effects: a row for each array (and head), a column for each of these
        positions and one for all of them together. Its title has the mean total effect.

    Raises:
        InputError: a word, a place or a position does not exist, no word is asked about, or the
            noise changes nothing.
    """
    if num_samples < 1 or not 0 < scale < math.inf:
        raise InputError(
            "num_samples must be at least 1 and scale above 0, but they are "
            f"{num_samples} and {scale:g}. Change them."
        )
    given = [words] if isinstance(words, str) else list(words)
    pieces = source_pieces(pair.tokenizer, pair.source_text)
    # A word that is given by its number, too.
    found_words = [pieces[find_word(word, pieces, _OF_WORDS)] for word in given]
    names = [word.strip(MARKS) or word for word in found_words]
    tokens = [
        positions_of_word(pair.tokenizer, pair.source_text, pair.source_ids, word, _OF_WORDS)
        for word in given
    ]
    places = expand_sites(pair, list_sites(sites))
    way = way_of(places)
    row, asked, metric = _question(pair, why, other, row, metric)
    spoiled = sorted({place for word in tokens for place in word})
    if not spoiled:
        raise InputError("No word to spoil was given. Name one of the source.")
    size = scale * _deviation(pair.model)
    total = 0.0
    effects = []
    for sample in range(num_samples):
        drawn = generator(seed, NAME, sample).standard_normal(
            (len(spoiled), pair.model.config.d_model)
        )
        noise_LD = pair.to_tensor(size * drawn)

        def spoil(x: Tensor, noise_LD: Tensor = noise_LD) -> Tensor:
            x[:, spoiled] += noise_LD.to(x.dtype)
            return x

        probe = join_probes(pair.changes, Replace({"encoder.embedding": spoil}))
        task = Patching(pair, replace(pair, changes=probe), row, metric)
        found = patched_map(task, places, positions)
        first, second = task.preferences
        total += (first - second) / num_samples
        effects.append(found.matrix * (first - second))
    return replace(
        found,
        name=NAME,
        source=SOURCES[NAME],
        matrix=np.mean(effects, axis=0),
        note=f"{asked} without {' and '.join(names)}, total effect {total:.3f}{way}",
    )


def _question(
    pair: PairData,
    why: str | int | None,
    other: str | None,
    row: int | None,
    metric: Metric | None,
) -> tuple[int, str, Metric]:
    """Find the row that is asked about, name the question, and measure the answer.

    Raises:
        InputError: the word or row does not exist, or not exactly one of the two was given.
    """
    if why is None and other is not None:
        raise InputError("other needs why: the word of the first answer. Give it, too.")
    second = None
    if why is not None:
        if row is not None:
            raise not_together("why", "row", "a word has its row")
        text = pair.tokenizer.decode_target(pair.target_ids)
        contrast = find_contrast(pair, text, str(why), other)
        row = contrast.start
        if other is not None:
            second = contrast.other.target_ids[row]
    if row is None:
        raise InputError("A word of the translation (why) or a row must be named. Name one.")
    check_number("row", row, len(pair.target_ids), "the translation", advice="Name another.")
    first = pair.target_ids[row]
    asked = pair.predicted_tokens[row]
    if metric is not None:
        return row, getattr(metric, "__name__", "metric").strip("<>"), metric
    if second is None:
        return row, f"probability of {asked}", lambda logits: logits.double().softmax(dim=-1)[first]
    return row, f"logits of {asked} against {other}", lambda logits: logits[first] - logits[second]


def _deviation(model: EncoderDecoder) -> float:
    """Compute the standard deviation of embeddings as they enter the encoder."""
    config = model.config
    factor = math.sqrt(config.d_model) if config.embedding_scale == "sqrt" else 1.0
    return factor * float(model.embedding_of("source").weight.double().std())


_MEANINGS = {
    "patching": "the share of the difference between two sentences that a vector restores",
    "path-patching": "the share that a vector restores through its readers only",
    "attribution-patching": "the share that a vector restores, to first order",
    "causal-tracing": "what a vector restores of the answer when words are spoiled with noise",
}

PATCHINGS: dict[str, Measure] = {
    name: Measure(
        name,
        SOURCES[name],
        meaning,
        ("encoder.whole", "decoder.whole"),
        causal_trace if name == "causal-tracing" else patch,
        is_signed=True,
        is_of_word=True,
        takes_changes=True,
        is_of_parts=True,
    )
    for name, meaning in _MEANINGS.items()
}
"""Every way to patch, by the name that its map has; `patch` and `causal_trace` make them."""
