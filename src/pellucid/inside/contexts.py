"""One word's vectors in several sentences, layer by layer: how far its context changes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch

from pellucid.bundle import Bundle
from pellucid.errors import InputError, suggestion
from pellucid.inside.pair import Keeper, problem_of, states_of
from pellucid.shapes import Brief
from pellucid.text.language_tokens import split_code
from pellucid.text.line_words import line_words
from pellucid.text.token_words import words_of_tokens


@dataclass(frozen=True, repr=False)
class Occurrence(Brief):
    """One place where the word stands.

    Attributes:
        sentence: the number of the sentence, from 0.
        position: the position of the word's first token in it, from 0.
        tokens: the word's tokens.
        vectors: its vector after each of `Contexts.places`, the mean over its tokens.
    """

    sentence: int
    position: int
    tokens: tuple[str, ...]
    vectors: np.ndarray


@dataclass(frozen=True, repr=False)
class Contexts(Brief):
    """A word's vectors in several sentences.

    Attributes:
        word: the word.
        places: names of the encoder's states, as in a trace: the embedding, the input of layer 0,
            then the output of each layer.
        occurrences: the places where the word stands, sentence by sentence.
    """

    word: str
    places: tuple[str, ...]
    occurrences: tuple[Occurrence, ...]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of occurrences, by their numbers."""
        return list(combinations(range(len(self.occurrences)), 2))

    def cosines(self) -> np.ndarray:
        """Compute the cosine of the vectors of each pair at each place: places by pairs."""
        vectors = np.stack([one.vectors for one in self.occurrences])
        norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
        # A vector of zeros has no direction; its cosine is 0, not an error.
        units = vectors / np.maximum(norms, np.finfo(vectors.dtype).tiny)
        return np.stack([(units[i] * units[j]).sum(axis=-1) for i, j in self.pairs], axis=1)


def compare_contexts(bundle: Bundle, word: str, sentences: Sequence[str]) -> Contexts:
    """Collect a word's vectors in several source sentences.

    In the embedding a word is the same everywhere. The input of layer 0 adds its position. Each
    layer of self-attention adds what it takes from the other words, and the vectors differ more
    or less: the representation is aware of its context.

    Args:
        bundle: the model.
        word: a word of the sentences; capitals do not matter.
        sentences: at least one; the word must stand at least twice in all.

    Returns:
        Vectors in float64, computed by the model in double precision.

    Raises:
        InputError: a sentence lacks the word or cannot be read, or there is only one occurrence.
    """
    model = bundle.exact_model
    states = states_of(model, "encoder")
    places = ("encoder.embedding", *states)
    found: list[Occurrence] = []
    for number, sentence in enumerate(map(bundle.tokenizer.masked, sentences)):
        ids = bundle.tokenizer.encode_source(sentence)
        # Only the encoder runs, so there is no target that could be too long.
        problem = problem_of(model, ids, ())
        if problem is not None:
            raise InputError(f"{problem} (sentence {number + 1})")
        # A state is a name such as encoder.0.feed_forward.norm: its site, and its stage.
        keeper = Keeper({name.rsplit(".", 1)[1] for name in places})
        with torch.inference_mode():
            model.encode(torch.tensor([list(ids)], device=model.output_weight.device), probe=keeper)
        vectors_SPD = np.stack([keeper.found[name][0].numpy(force=True) for name in places], axis=1)
        tokens = bundle.tokenizer.source_tokens(ids)
        found += [
            Occurrence(
                number,
                group[0],
                tuple(tokens[index] for index in group),
                vectors_SPD[group].mean(axis=0),
            )
            for group in _tokens_of(bundle, word, sentence, ids)
        ]
    if len(found) < 2:
        raise InputError(
            f"{word!r} must stand at least twice to be compared, but stands once. Give another "
            "sentence that has it."
        )
    return Contexts(word, places, tuple(found))


def _tokens_of(bundle: Bundle, word: str, sentence: str, ids: Sequence[int]) -> list[list[int]]:
    """Find the tokens of every occurrence of a word in a sentence.

    Raises:
        InputError: the sentence does not have the word.
    """
    tokenizer = bundle.tokenizer
    # A language code in front is no word of the sentence.
    words = line_words(split_code(tokenizer, sentence)[1])
    bare = [_bare(one) for one in words]
    owners = words_of_tokens(tokenizer, "source", sentence, ids, words)
    # A final mark belongs to the word for links, but is a separate token.
    has_letters = [any(map(str.isalnum, token)) for token in tokenizer.source_tokens(ids[:-1])]
    found = []
    for index, one in enumerate(bare):
        group = [at for at, owner in enumerate(owners) if index in owner and has_letters[at]]
        if one == _bare(word) and group:
            found.append(group)
    if not found:
        raise InputError(
            f"The sentence must have the word {word!r}, but {sentence!r} does not. "
            f"{suggestion(word, [one for one in bare if one])}"
        )
    return found


def _bare(word: str) -> str:
    letters = [index for index, letter in enumerate(word) if letter.isalnum()]
    return word[letters[0] : letters[-1] + 1].casefold() if letters else word
