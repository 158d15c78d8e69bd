r"""Why a word: hide each source word, translate again, and see what becomes of the choice.

No position looks at a hidden word, in any layer. The sentence is then translated again from its
beginning, because what was already written may follow from the hidden word too: *sortie* agrees
with *La pizza*, and both go with *pizza*. Where the word or its rival now stands, their odds are
taken:

$$\Delta_j = \log\frac{p(a)}{p(b)} - \log\frac{p_{\setminus j}(a)}{p_{\setminus j}(b)}$$

A word without a rival loses probability instead, in its own place or that of what replaced it.
`benchmarks/exchanged_words.py` compares this and other measures with real exchanges of words.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch

from pellucid.errors import InputError
from pellucid.inside.changes.change import cut_source_word
from pellucid.inside.changes.what_if import decode_under
from pellucid.inside.measures.maps import source_words, target_words
from pellucid.inside.pair import PairData
from pellucid.text.tokenizers.tokenizer import SPACE_SIGN

LEAST_CAUSE = math.log(2)
"""A word is a reason if hiding it halves the odds or the probability, at least."""
SHARE_OF_MOST = 0.6
"""And if it takes at least this share of what the first reason takes."""
MOST_REASONS = 3


@dataclass(frozen=True)
class HiddenWord:
    """What hiding one source word does.

    Attributes:
        word: as the model reads it.
        fall: how far the odds of the written word fall, in nats; its probability if it has no
            rival. NaN if the rival is a form of the word and neither is written any more.
        stands: the word that now stands in the place; empty if none does.
        text: the translation without the word.
    """

    word: str
    fall: float
    stands: str
    text: str


@dataclass(frozen=True)
class WordChoice:
    """A written word and its rival.

    Attributes:
        pair: the sentence and its whole translation.
        word: the number of the word in the translation, as `target_words` counts.
        own: what was written, without an elided word before it: ``elle`` of ``qu'elle``.
        rival: what might stand there, without it; empty for none.
        is_form: whether the rival is another form of the same word. Then only one of the two
            answers the question, wherever it stands.
    """

    pair: PairData
    word: int
    own: str
    rival: str
    is_form: bool = False


def hide_each(choice: WordChoice) -> tuple[HiddenWord, ...]:
    """Hide each source word in turn, and translate again.

    Raises:
        InputError: the model is recurrent, which has no positions to hide.
    """
    pair = choice.pair
    if pair.model.config.is_recurrent:
        raise InputError(
            "Only a Transformer can hide a word, but the model is recurrent: its states carry each "
            "word on. Use --measure occlusion, which leaves the word out."
        )
    before = _lead(choice, pair, choice.word)
    special = {pair.tokenizer.config.eos_id}
    found = []
    for places in source_words(pair):
        if pair.source_ids[places[0]] in special:
            continue
        hidden = replace(pair, changes=pair.read(cut_source_word(places)))
        limit = 2 * len(pair.target_ids) + 20
        written = decode_under(hidden, hidden.changes, max_length=limit)
        after = replace(hidden, target_ids=tuple(written.ids))
        place = _place(choice, after)
        words = _texts(after)
        fall = math.nan if place is None else before - _lead(choice, after, place)
        stands = words[place] if place is not None else _instead(choice, words)
        word = "".join(pair.source_tokens[one] for one in places).strip(SPACE_SIGN)
        found.append(HiddenWord(word, fall, stands, written.text))
    return tuple(found)


def find_reasons(hidden: Iterable[HiddenWord]) -> list[HiddenWord]:
    """Choose the words that a word is written because of, the first one first."""
    ordered = sorted((one for one in hidden if one.fall >= LEAST_CAUSE), key=lambda one: -one.fall)
    return [one for one in ordered if one.fall >= SHARE_OF_MOST * ordered[0].fall][:MOST_REASONS]


_ELISIONS = "'’"


def _texts(pair: PairData) -> list[str]:
    """Return the words of a translation; the end is one."""
    tokens = pair.predicted_tokens
    words = ("".join(tokens[place] for place in word) for word in target_words(pair))
    return [word.strip(SPACE_SIGN) for word in words]


def without_elision(word: str) -> tuple[str, str]:
    """Split *qu'elle* into *qu'* and *elle*."""
    cut = max(word.rfind(sign) for sign in _ELISIONS) + 1
    return word[:cut], word[cut:]


def _place(choice: WordChoice, after: PairData) -> int | None:
    """Find the word or its rival in another translation, nearest to where it would stand."""
    words = _texts(after)
    usual = aligned_place(_texts(choice.pair), words, choice.word)
    if not choice.rival:
        return usual if words else None
    forms = {choice.own.lower(), choice.rival.lower()}
    places = [at for at, word in enumerate(words) if without_elision(word)[1].lower() in forms]
    if not places and not choice.is_form:
        return usual if words else None
    return min(places, key=lambda at: abs(at - usual), default=None)


def _instead(choice: WordChoice, words: Sequence[str]) -> str:
    place = aligned_place(_texts(choice.pair), words, choice.word)
    return words[place] if place < len(words) else ""


def aligned_place(before: Sequence[str], after: Sequence[str], word: int) -> int:
    """Find where a word of a translation stands, or would stand, in another one.

    Words that both have in the same order stay; between two such words the others are paired in
    order. The page has the same rule.
    """
    common = [[0] * (len(after) + 1) for _ in range(len(before) + 1)]
    for i in range(len(before) - 1, -1, -1):
        for j in range(len(after) - 1, -1, -1):
            is_same = before[i] == after[j]
            common[i][j] = (
                common[i + 1][j + 1] + 1 if is_same else max(common[i + 1][j], common[i][j + 1])
            )
    partners: dict[int, int] = {}
    old: list[int] = []
    new: list[int] = []
    i = 0
    j = 0
    while i < len(before) or j < len(after):
        if i < len(before) and j < len(after) and before[i] == after[j]:
            partners |= dict(zip(old, new, strict=False))
            partners[i] = j
            old = []
            new = []
            i += 1
            j += 1
        elif j == len(after) or (i < len(before) and common[i + 1][j] >= common[i][j + 1]):
            old.append(i)
            i += 1
        else:
            new.append(j)
            j += 1
    partners |= dict(zip(old, new, strict=False))
    if word in partners:
        return partners[word]
    # A word that is gone would stand after the last one before it that is still there.
    earlier = [partners[one] for one in partners if one < word]
    return min(max(earlier, default=-1) + 1, max(len(after) - 1, 0))


@torch.inference_mode()
def _lead(choice: WordChoice, pair: PairData, word: int) -> float:
    """Return how much likelier the written word is than its rival where a word stands, in nats."""
    places = target_words(pair)[word]
    begin, stands = without_elision(_texts(pair)[word])
    if not choice.rival:
        return _score(pair, places[0], written_word(choice))
    own, rival = (_like(stands, form) for form in (choice.own, choice.rival))
    return _score(pair, places[0], begin + own) - _score(pair, places[0], begin + rival)


def written_word(choice: WordChoice) -> str:
    """Return the whole written word."""
    return _texts(choice.pair)[choice.word]


def _like(stands: str, form: str) -> str:
    return form.capitalize() if stands[:1].isupper() else form.lower()


def _score(pair: PairData, start: int, text: str) -> float:
    """Return the log-probability of a word after the beginning of a translation."""
    ids = pair.tokenizer.encode_target(text)[:-1]
    logs_T = replace(pair, target_ids=(*pair.target_ids[:start], *ids)).log_probabilities()
    return float(logs_T[start:].sum())
