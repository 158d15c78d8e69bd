r"""Why this word and not that one: measures as the difference of two continuations.

A measure of one word answers "what made it likely?", and much of the answer is shared by every word
that could stand there: that a pronoun comes, that the sentence is past tense. The difference to
another word leaves what tells the two apart.

Both continuations follow the same beginning of the translation. The word that was written and the
other one may have several pieces, and their log-probabilities are added up:

$$F = \sum_t \log p(a_t \mid x, y, a_{<t}) - \sum_t \log p(b_t \mid x, y, b_{<t})$$

A measure of a contrast is the sum of the rows that predict the pieces of $a$, minus that of $b$;
for measures that are not of the predicted word but of the vector that a row works with, it is the
difference of the means. The first piece of both is predicted by the same row, which such a measure
cannot tell apart: with one piece each, all of its numbers are 0.

Source:
    Yin and Neubig 2022, "Interpreting Language Models with Contrastive Explanations", section 3.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isnan
from typing import Any

import numpy as np
import torch

from pellucid.arguments import checked
from pellucid.config.head_address import HeadAddress, parse_address
from pellucid.corpora.rival_forms import RivalForms
from pellucid.errors import InputError
from pellucid.inside.changes.written_changes import MARKS, find_word
from pellucid.inside.measures.hiding import (
    HiddenWord,
    WordChoice,
    find_reasons,
    hide_each,
    without_elision,
    written_word,
)
from pellucid.inside.measures.maps import OWN, Map, target_words
from pellucid.inside.measures.registry import Measure, find_measure, measure, measure_parts
from pellucid.inside.pair import PairData, problem_of
from pellucid.text.line_words import line_words
from pellucid.text.token_words import is_punctuation, mark_unknown, show_unknown, words_of_tokens

_LATER = "(later pieces)"
_LATER_BYTE = re.compile(r"<0x[89AB][0-9A-F]>")


@dataclass(frozen=True, eq=False, repr=False)
class Contrast:
    """Two continuations of the same beginning of a translation.

    Attributes:
        why: the source with the beginning and the continuation that was written.
        other: the source with the beginning and the other one.
        start: the decoder row that predicts the first piece of both.
        words: the two words.
        choice: the written word in the whole translation, and its rival if there is one: the other
            word if it was named, or is another form of the written one.
    """

    why: PairData
    other: PairData
    start: int
    words: tuple[str, str]
    choice: WordChoice

    @property
    def pieces(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The pieces of each continuation."""
        start = self.start
        return self.why.predicted_tokens[start:], self.other.predicted_tokens[start:]

    @cached_property
    def log_probabilities(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Natural logs of each piece."""
        with torch.inference_mode():
            # Both runs share the beginning, so only the rows from there on can differ.
            first, second = (
                tuple(pair.log_probabilities()[self.start :].tolist())
                for pair in (self.why, self.other)
            )
        return first, second

    @property
    def difference(self) -> float:
        """How much likelier the first continuation is, in nats."""
        first, second = self.log_probabilities
        return sum(first) - sum(second)

    def measure(self, name: str = "occlusion", head: str | None = None, **options: Any) -> Map:
        """Say which source words speak for the word that was written, as `contrast_measure`."""
        return contrast_measure(self, name, head, **options)

    @cached_property
    def hidden(self) -> tuple[HiddenWord, ...]:
        """What hiding each source word does to the choice."""
        return hide_each(self.choice)

    @property
    def written(self) -> str:
        """The whole written word, such as *qu'elle*."""
        return written_word(self.choice)

    @property
    def reasons(self) -> list[HiddenWord]:
        """The source words that the word was written because of, the first one first."""
        return find_reasons(self.hidden)

    def __repr__(self) -> str:
        """Name the two words and their difference, in one line."""
        return f"<Contrast of {self.words[0]} and {self.words[1]}: {self._said_difference}>"

    def __str__(self) -> str:
        """Say how much likelier the first word is, and which source words decide, as a table."""
        lines = [f"{self.words[0]} and not {self.words[1]}: {self._said_difference}"]
        if self.why.model.config.is_recurrent:
            return f"{lines[0]}\n{self.measure()}"
        width = max(len(one.word) for one in self.hidden)
        for one in self.hidden:
            # Without some words neither of the two is written.
            fall = "neither" if isnan(one.fall) else f"{one.fall:+.2f}".replace("-", "\u2212")
            lines.append(f"{one.word:{width}}  {fall:>7}  {one.text}")
        return "\n".join(lines)

    @property
    def _said_difference(self) -> str:
        return f"{self.difference:.2f} nats".replace("-", "\u2212")

    def _repr_html_(self) -> str:
        return self.measure()._repr_html_()


@checked
def find_contrast(pair: PairData, target: str, why: str, other: str | None) -> Contrast:
    """Find the word of a translation, and put another one in its place.

    The continuations begin where their pieces begin to differ.

    Args:
        pair: the sentence with its translation.
        target: the text of the translation.
        why: a word of it, or its number, from 0.
        other: what might stand there instead, one word or several; None takes the form of another
            gender or number, such as *il* for *elle*; of a word without one, the word that the
            model finds likeliest after it.

    Raises:
        InputError: there is no such word, or several; the other one is equal or empty, or cannot
            be written with the model's vocabulary.
    """
    tokenizer = pair.tokenizer
    target = mark_unknown(tokenizer, target)
    words = line_words(target)
    number = find_word(why, words, "The word to explain must be one of the translation")
    word = words[number]
    # A word named without its marks is compared without them.
    bare = word if why == word else word.strip(MARKS) or word
    first = _tokens(pair, target, pair.target_ids, words, range(number, number + 1))
    if first and pair.target_ids[first.start] == tokenizer.config.unk_id:
        shown = show_unknown(bare)
        sign = "its sign for all words that it does not know"
        if shown == bare:
            sign = "a word of the translation that it reads as <unk>"
        raise InputError(
            f"The word to explain must be one that the model knows, but is {shown!r}, {sign}. "
            "Name another word."
        )
    # A word that agrees is asked about with its other form, as in a grammar.
    form = _agreeing(pair, first.start, bare) if first and other is None else ""
    wanted = form or _second(pair, first.start, bare) if other is None else other.strip()
    shown = show_unknown(bare)
    if not wanted or wanted == bare:
        raise InputError(
            f"The other word must not be {shown!r} itself, but is {other!r}. Name the word that "
            "you would have expected."
        )
    others = list(words)
    # Its marks stay where they are.
    others[number] = word.replace(bare, wanted, 1)
    text = _replaced(target, words, number, others[number])
    other_ids = [*tokenizer.leading_ids(pair.target_ids), *tokenizer.encode_target(text)]
    new = line_words(text)
    last = number + max(len(new) - len(words), 0)  # the other may be several words
    second = _tokens(pair, text, other_ids, new, range(number, last + 1))
    if not first or not second:
        raise InputError(
            f"The words must have tokens of their own, but {shown!r} or {wanted!r} has none in "
            "this model. Name others."
        )
    rival = wanted if form or other is not None else ""
    choice = _choose(pair, first.start, bare, rival)
    return _make(pair, other_ids, first, second, (shown, wanted), choice)


def _choose(pair: PairData, row: int, written: str, rival: str) -> WordChoice:
    """Describe the choice of a word: an elided word before both forms belongs to neither."""
    forms = _agreement(pair).rivals(written)
    begin, own = without_elision(written)
    if rival.startswith(begin):
        rival = rival[len(begin) :]
    else:
        own = written
    number = next(at for at, places in enumerate(target_words(pair)) if row in places)
    return WordChoice(pair, number, own, rival, is_form=begin + rival in forms)


def _agreement(pair: PairData) -> RivalForms:
    return RivalForms(pair.tokenizer.vocabulary("target"))


def _agreeing(pair: PairData, row: int, written: str) -> str:
    """Find the likeliest form of another gender or number that a row predicts; empty if none."""
    tokenizer = pair.tokenizer
    unknown_id = tokenizer.config.unk_id
    ids = {form: tokenizer.encode_target(form) for form in _agreement(pair).rivals(written)}
    known = [form for form in ids if unknown_id not in ids[form]]
    if len(known) < 2:
        return "".join(known)
    with torch.inference_mode():
        logits_V = pair.logits()[row]
    return max(known, key=lambda form: float(logits_V[ids[form][0]]))


def _second(pair: PairData, row: int, written: str) -> str:
    """Find the likeliest word that a row predicts other than the written one; empty if none."""
    with torch.inference_mode():
        order = pair.logits()[row].argsort(descending=True)[:_MOST_TRIED].tolist()
    for token in order:
        begun = line_words(pair.tokenizer.decode_target([*pair.target_ids[:row], token]))
        word = begun[-1].strip(MARKS) if begun else ""
        # A token may be the beginning of a word only; then it is no word to compare with.
        if word and word != written and pair.tokenizer.encode_target(word)[:1] == [token]:
            return word
    return ""


_MOST_TRIED = 50


def contrast_measure(contrast: Contrast, name: str, head: str | None = None, **options: Any) -> Map:
    """Measure both continuations, and subtract the other from the one that was written.

    Args:
        contrast: the two.
        name: of the measure, one of `MEASURES` or `PART_MEASURES`.
        head: what to measure, as `measure` takes it.
        options: steps and baseline, as `measure` takes them.

    Returns:
        A signed map of one row: above 0 speaks for the word that was written. Of a measure of parts
        one with a row for each part.

    Raises:
        InputError: as `measure`; or the map is of the encoder, which reads no translation.
    """
    asked = find_measure(name)
    place = None if head is None else parse_address(head)
    if asked.is_of_parts:
        return _contrast_parts(contrast, asked, place)
    if place is not None and place.part == "encoder":
        raise InputError(
            f"A difference of two words needs the decoder, but {head} does not read them. Name "
            "another place, or leave it out."
        )
    maps = [measure(pair, name, head, **options) for pair in (contrast.why, contrast.other)]
    is_of_word = asked.is_of_word
    is_one = [len(pieces) for pieces in contrast.pieces] == [1, 1]
    rows = []
    for map_ in maps:
        matrix, labels = _without_later(map_, contrast.start, has_later=not is_one)
        # Rows before it predict the shared beginning and are equal in both.
        own = matrix[contrast.start :]
        # Log-probabilities of pieces add up; what describes a row does not, so it is averaged.
        rows.append(own.sum(axis=0) if is_of_word else own.mean(axis=0))
    first, second = contrast.pieces
    differences = None
    if all(map_.differences is not None for map_ in maps):
        sums = [sum((map_.differences or ())[contrast.start :]) for map_ in maps]
        differences = (sums[0] - sums[1],)
    return replace(
        maps[0],
        matrix=(rows[0] - rows[1])[None],
        row_tokens=(contrast.why.read_tokens[contrast.start],),
        predicted_tokens=(f"{''.join(first)} − {''.join(second)}",),
        column_tokens=labels,
        is_signed=True,
        sums_to_one=False,
        differences=differences,
        note=_note(maps[0], is_of_word=is_of_word, is_one=is_one),
    )


def _contrast_parts(contrast: Contrast, asked: Measure, place: HeadAddress | None) -> Map:
    """Subtract what parts of the model do for the second word from what they do for the first.

    Only the first piece that differs is compared: both are predicted by one row.
    """
    if not asked.is_of_word:
        raise InputError(
            f"{asked.name} is of the weights, which know of no word. Name another measure."
        )
    pairs = (contrast.why, contrast.other)
    first, second = (measure_parts(pair, asked, place, row=contrast.start) for pair in pairs)
    differences = None
    if first.differences is not None and second.differences is not None:
        differences = (first.differences[0] - second.differences[0],)
    label = " − ".join(pieces[0] for pieces in contrast.pieces)
    return replace(
        first,
        matrix=first.matrix - second.matrix,
        column_tokens=(label,) if first.matrix.shape[1] == 1 else first.column_tokens,
        differences=differences,
        note=label,
    )


def _note(map_: Map, *, is_of_word: bool, is_one: bool) -> str:
    note = map_.note.partition(", completeness")[0]
    said = "difference of the two words"
    if not is_of_word:
        said += ", not of the predicted word" + (": all 0" if is_one else "")
    return f"{note}, {said}" if note else said


def _without_later(map_: Map, start: int, *, has_later: bool) -> tuple[np.ndarray, tuple[str, ...]]:
    """Add up the columns of a continuation's own pieces, which the other does not have."""
    num_source = map_.num_source_columns
    has_own = map_.column_tokens[-1:] == (OWN,)
    end = len(map_.column_tokens) - has_own
    # Columns after the source are the tokens that rows read; row `start` reads the last shared one.
    # Both continuations read these, so their columns can be subtracted.
    shared = min(num_source + start + 1, end)
    parts = [map_.matrix[:, :shared]]
    labels = list(map_.column_tokens[:shared])
    if has_later and end > num_source:
        parts.append(map_.matrix[:, shared:end].sum(axis=1, keepdims=True))
        labels.append(_LATER)
    if has_own:
        parts.append(map_.matrix[:, end:])
        labels.append(OWN)
    return np.concatenate(parts, axis=1), tuple(labels)


def _replaced(text: str, words: Sequence[str], number: int, word: str) -> str:
    place = 0
    for index in range(number + 1):
        place = text.index(words[index], place)
        if index < number:
            place += len(words[index])
    return text[:place] + word + text[place + len(words[number]) :]


def _tokens(
    pair: PairData, text: str, ids: Sequence[int], words: Sequence[str], wanted: range
) -> range:
    """Find the tokens of some words, without the punctuation marks after them."""
    owners = words_of_tokens(pair.tokenizer, "target", text, ids, words)
    places = [place for place, one in enumerate(owners) if any(number in wanted for number in one)]
    tokens = pair.tokenizer.target_tokens(ids)
    # A mark after the word would be compared with whatever follows the other one.
    while len(places) > 1 and is_punctuation(tokens[places[-1]]):
        places.pop()
    if not places:
        return range(0)
    end = places[-1] + 1
    while _LATER_BYTE.fullmatch(tokens[end]):  # of the last letter; it is not a letter by itself
        end += 1
    return range(places[0], end)


def _make(
    pair: PairData,
    other_ids: Sequence[int],
    first: range,
    second: range,
    words: tuple[str, str],
    choice: WordChoice,
) -> Contrast:
    """Cut both continuations so that they begin where their pieces differ."""
    ids = pair.target_ids
    start = first.start
    why = list(ids[start : first.stop])
    other = list(other_ids[second.start : second.stop])
    rest = list(ids[first.stop :])
    other_rest = list(other_ids[second.stop :])
    while why and other and why[0] == other[0]:
        why.pop(0)
        other.pop(0)
        start += 1
    # One may be the beginning of the other: then what follows it is compared.
    for own, following in ((why, rest), (other, other_rest)):
        if not own and following:
            own.append(following[0])
    # Their difference would be 0 whatever the measure, which says nothing.
    if not why or not other or why[0] == other[0]:
        raise InputError(
            f"The other word must be told apart by the model, but its pieces are the same for "
            f"{words[0]!r} and {words[1]!r}. Name another word."
        )
    if pair.tokenizer.config.unk_id in pair.tokenizer.encode_target(words[1]):
        raise InputError(
            f"The other word must be one that the model can write, but its vocabulary cannot write "
            f"{words[1]!r}. Name another word."
        )
    pairs = [
        replace(pair, target_ids=(*ids[:start], *continuation)) for continuation in (why, other)
    ]
    if problem := problem_of(pair.model, pair.source_ids, pairs[1].target_ids):
        raise InputError(problem)
    return Contrast(pairs[0], pairs[1], start, words, choice)
