"""Phrases that a translation's text must not hold, however they are cut into tokens."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from pellucid.decode.constraints.history import History, last_tokens, lower_values, pad_rows
from pellucid.errors import InputError
from pellucid.text import Tokenizer
from pellucid.text.letters import is_word_letter
from pellucid.text.words import JOINER

__all__ = ["ForbiddenText", "Spelling", "TextRule"]

_BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>")

# What stands beside a byte of the text: where a word may begin, and a token's first byte.
_OPEN, _FIRST = 256, 512
# Before the beginning; no UTF-8 text holds this byte.
_NOTHING = 255
_ANYWHERE = -1


@dataclass(frozen=True)
class _Ban:
    """A token that would complete a phrase.

    Attributes:
        num_bytes: after how many bytes of the phrase; -1 stands for anywhere.
        token: which token.
        is_exact: the phrase would end with the token, so that whether it ends with a word is
            decided by the token after it, or by the end.
    """

    num_bytes: int
    token: int
    is_exact: bool


@dataclass(frozen=True, eq=False)
class ForbiddenText:
    """A phrase that must not stand in a text as whole words, made by `Spelling.forbid`.

    Attributes:
        spelling: the vocabulary's.
        text: the phrase in UTF-8.
        begins_word: a word must begin with it: its first character is a word's.
        ends_word: a word must end with it: its last character is a word's.
        bans: which tokens would complete it.
    """

    spelling: Spelling
    text: bytes
    begins_word: bool
    ends_word: bool
    bans: tuple[_Ban, ...]


@final
class Spelling:
    """How the tokens of a target vocabulary are written, byte by byte.

    Attributes:
        codes_UX: the bytes of each token with what stands beside them, aligned right, -1 in front.
        num_bytes_U: how many bytes each token has.
        opens_U: whether a word may begin after each token.
        leaves_V: whether a word ends before each token.

    Tables of U have one row more than there are tokens: what stands before the beginning.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Spell every token out; make it once for a tokenizer.

        Args:
            tokenizer: the translation's.
        """
        self._tokenizer = tokenizer
        self._tokens = list(_spell_tokens(tokenizer))
        self._sorted = sorted((text, token) for token, text in enumerate(self._tokens) if text)
        self._forbidden: dict[str, ForbiddenText] = {}
        width = max(map(len, self._tokens))
        codes = [[-1] * (width - len(text)) + _codes_of(text) for text in self._tokens]
        opens = [not _ends_in_word(text) for text in self._tokens]
        self.codes_UX = torch.tensor([*codes, [-1] * width], dtype=torch.int16)
        self.num_bytes_U = torch.tensor([*map(len, self._tokens), 0])
        self.opens_U = torch.tensor([*opens, True])
        self.leaves_V = torch.tensor([not _begins_in_word(text) for text in self._tokens])

    def forbid(self, phrase: str) -> ForbiddenText:
        """Forbid a phrase in every way to write it.

        The phrase never stands in the text as whole words: where it begins (or ends) with a
        letter, digit or mark, an occurrence counts only if no such character stands before
        (after) it, so that ``chat`` forbids neither ``château`` nor ``achat``. Scripts without
        spaces have such an edge everywhere. Case counts. Nothing else is forbidden, but for one
        thing: bytes above 127 that are tokens of their own count as no letters, so a word that
        begins or ends like the phrase cannot go on in letters that the vocabulary lacks.

        Args:
            phrase: the phrase; spaces around it say nothing.

        Returns:
            What a request's ``forbidden_texts`` holds.

        Raises:
            InputError: there is nothing to forbid.
        """
        if phrase not in self._forbidden:
            text = self._tokenizer.normalized(phrase).strip()
            if not text:
                raise InputError(
                    f"A forbidden phrase must hold text, but is {phrase!r}. Leave it out."
                )
            begins, ends = is_word_letter(text[0]), is_word_letter(text[-1])
            bans = tuple(self._find_bans(text.encode(), begins, ends))
            self._forbidden[phrase] = ForbiddenText(self, text.encode(), begins, ends, bans)
        return self._forbidden[phrase]

    def _find_bans(self, phrase: bytes, begins: bool, ends: bool) -> Iterator[_Ban]:
        """The tokens that complete a phrase, for everything that may stand before them."""
        for num_bytes in range(1, len(phrase)):
            rest = phrase[num_bytes:]
            for text, token in self._tokens_from(rest):
                if len(text) == len(rest) or not (ends and _begins_in_word(text[len(rest) :])):
                    yield _Ban(num_bytes, token, ends and len(text) == len(rest))
        for text, token in self._sorted:
            place = text.find(phrase)
            while place >= 0:
                after = text[place + len(phrase) :]
                is_begun = place == 0 or not (begins and _ends_in_word(text[:place]))
                if is_begun and not (ends and _begins_in_word(after)):
                    yield _Ban(_ANYWHERE if place else 0, token, ends and not after)
                place = text.find(phrase, place + 1)

    def _tokens_from(self, start: bytes) -> Iterator[tuple[bytes, int]]:
        """The tokens that begin with some bytes."""
        for place in range(bisect_left(self._sorted, (start, -1)), len(self._sorted)):
            text, token = self._sorted[place]
            if not text.startswith(start):
                return
            yield text, token


def _spell_tokens(tokenizer: Tokenizer) -> Iterator[bytes]:
    """What each token adds to a text; the space in front of a text counts."""
    config = tokenizer.config
    silent = {config.pad_id, config.bos_id, config.eos_id}
    for token, name in enumerate(tokenizer.vocabulary("target")):
        if token in silent:
            yield b""
        elif config.kind == "words":
            is_joined = len(name) > 1 and name.startswith(JOINER)
            yield (name[1:] if is_joined else f" {name}").encode()
        elif byte := _BYTE_PIECE.fullmatch(name):
            yield bytes.fromhex(byte[1])
        else:
            yield name.replace("\u2581", " ").encode()


def _codes_of(token: bytes) -> list[int]:
    """The bytes of a token with what stands beside them."""
    codes = list(token)
    if codes:
        codes[0] |= _FIRST
    text = token.decode(errors="ignore")
    place = 0
    for before in text[:-1]:
        place += len(before.encode())
        if not is_word_letter(before):
            codes[place] |= _OPEN
    return codes


def _begins_in_word(token: bytes) -> bool:
    """Whether the first character belongs to a word; half of a character is taken not to."""
    return is_word_letter(token.decode(errors="replace")[:1])


def _ends_in_word(token: bytes) -> bool:
    return is_word_letter(token.decode(errors="replace")[-1:])


@final
class TextRule:
    """Keep phrases out of the text.

    The last bytes of each row's text are compared with the beginnings of its phrases. Where one
    fits, the tokens that would complete the phrase are forbidden. Where a whole phrase stands
    and its last word could go on, all tokens are that would end the word, ``</s>`` among them.
    """

    def __init__(
        self,
        sets: Sequence[tuple[ForbiddenText, ...]],
        set_of_request: Sequence[int],
        max_lengths: Sequence[int],
        device: torch.device | str,
    ) -> None:
        """Make the tables.

        Args:
            sets: different sets of phrases, of one vocabulary; some may be empty.
            set_of_request: which set each request has.
            max_lengths: the most tokens of each request's translation.
            device: where the values are.
        """
        phrases = [phrase for group in sets for phrase in group]
        spelling = phrases[0].spelling
        self._num_bytes = max(len(phrase.text) for phrase in phrases)
        codes_UX = spelling.codes_UX
        self._codes_UX = codes_UX[:, -min(self._num_bytes, codes_UX.shape[1]) :].to(device)
        self._num_bytes_U = spelling.num_bytes_U.to(device)
        self._opens_U = spelling.opens_U.to(device)
        self._leaves_V = spelling.leaves_V.to(device)
        self._group_R = torch.tensor(set_of_request, device=device)
        self._max_length_R = torch.tensor(max_lengths, device=device)
        contexts, bans = zip(*map(_collect, sets), strict=True)
        fits = [[self._pattern(*context) for context in group] for group in contexts]
        num_contexts = max(1, *map(len, fits))
        empty = ([0] * (self._num_bytes + 1), [0] * (self._num_bytes + 1))
        both = torch.tensor(
            [[*group, *[empty] * (num_contexts - len(group))] for group in fits],
            dtype=torch.int16,
            device=device,
        )
        self._pattern_GQX, self._mask_GQX = both.unbind(2)
        whole = [[int(count == len(phrase.text)) for phrase, count in group] for group in contexts]
        self._is_whole_GQ = pad_rows(whole, 0, device) == 1
        self._context_GY, self._token_GY, self._kind_GY = (
            pad_rows([[ban[part] for ban in group] for group in bans], fill, device)
            for part, fill in enumerate((0, 0, -1))
        )

    def __call__(self, values_AV: Tensor, history: History) -> None:
        """Forbid what would complete a phrase."""
        group_A = self._group_R[history.request_A]
        tail_A1X = self._read_tails(history)[:, None]
        fits_AQ = ((tail_A1X & self._mask_GQX[group_A]) == self._pattern_GQX[group_A]).all(-1)
        is_last_A = history.length_A + 1 >= self._max_length_R[history.request_A]
        kind_AY = self._kind_GY[group_A]
        is_banned_AY = (kind_AY == 0) | ((kind_AY == 1) & is_last_A[:, None])
        is_banned_AY &= fits_AQ.gather(1, self._context_GY[group_A])
        lower_values(values_AV, self._token_GY[group_A], is_banned_AY, -torch.inf)
        must_go_on_A = (fits_AQ & self._is_whole_GQ[group_A]).any(1)
        if must_go_on_A.any():
            values_AV.masked_fill_(must_go_on_A[:, None] & self._leaves_V, -torch.inf)

    def _pattern(self, phrase: ForbiddenText, num_bytes: int) -> tuple[list[int], list[int]]:
        """What the last bytes must be, and which of their bits count."""
        pattern, mask = [0] * (self._num_bytes + 1), [0] * (self._num_bytes + 1)
        if num_bytes == _ANYWHERE:
            return pattern, mask
        first = self._num_bytes - num_bytes
        pattern[first : self._num_bytes] = phrase.text[:num_bytes]
        mask[first : self._num_bytes] = [255] * num_bytes
        if phrase.begins_word:
            pattern[first] |= _OPEN
            mask[first] |= _OPEN
        return pattern, mask

    def _read_tails(self, history: History) -> Tensor:
        """The last bytes of each row's text with what stands beside them; then the next byte's."""
        count, width = self._num_bytes, self._codes_UX.shape[1]
        recent_AI = last_tokens(history, count + 1)
        opens_AI = self._opens_U[recent_AI]
        codes_AJX = self._codes_UX[recent_AI[:, 1:]]
        begins_AJX = ((codes_AJX & _FIRST) > 0) & opens_AI[:, :-1, None]
        num_bytes_AJ = self._num_bytes_U[recent_AI[:, 1:]]
        until_AJ = count - num_bytes_AJ.sum(1, keepdim=True) + num_bytes_AJ.cumsum(1)
        place_AJX = until_AJ[:, :, None] + torch.arange(-width, 0, device=recent_AI.device)
        place_AJX = place_AJX.where((codes_AJX >= 0) & (place_AJX >= 0), count + 1)
        codes_AJX = codes_AJX.where(~begins_AJX, codes_AJX | _OPEN)
        tail_AY = codes_AJX.new_full((len(recent_AI), count + 2), _NOTHING)
        tail_AY.scatter_(1, place_AJX.flatten(1), codes_AJX.flatten(1))
        tail_AY[:, count] = opens_AI[:, -1] * _OPEN
        return tail_AY[:, : count + 1]


def _collect(
    phrases: tuple[ForbiddenText, ...],
) -> tuple[list[tuple[ForbiddenText, int]], list[tuple[int, int, int]]]:
    """All contexts of a set of phrases that forbid something, and what they forbid."""
    places: dict[tuple[ForbiddenText, int], int] = {}
    bans = []
    for phrase in phrases:
        for ban in phrase.bans:
            place = places.setdefault((phrase, ban.num_bytes), len(places))
            bans.append((place, ban.token, int(ban.is_exact)))
        if phrase.ends_word:
            places.setdefault((phrase, len(phrase.text)), len(places))
    return list(places), bans
