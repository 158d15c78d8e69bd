"""Phrases that a translation's text must not hold, however they are cut into tokens."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from pellucid.decode.constraints.automata import TextAutomata
from pellucid.decode.constraints.token_history import (
    TokenHistory,
    last_tokens,
    lower_values,
    pad_rows,
)
from pellucid.errors import InputError
from pellucid.languages.letters import is_word_letter
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.text.tokenizers.whole_words import JOINER

_BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>")

# Flags in addition to a byte's value: a word may begin here; this is a token's first byte.
_OPEN, _FIRST = 256, 512
# Stands for what precedes the text; no UTF-8 text holds this byte.
_NOTHING = 255
# In place of a number of bytes: the token holds the whole phrase.
_ANYWHERE = -1


@dataclass(frozen=True)
class _Ban:
    """A token that would complete a phrase.

    Attributes:
        num_bytes: how many bytes of the phrase precede it; -1 bans it anywhere.
        token: its id.
        is_exact: True if the phrase would end exactly with the token. Then the next token, or the
            end of the text, decides whether the phrase ends with a word.
    """

    num_bytes: int
    token: int
    is_exact: bool


@dataclass(frozen=True, eq=False)
class ForbiddenText:
    """A phrase that a text must not hold as whole words, made by `Spelling.forbid`.

    Attributes:
        spelling: the vocabulary's.
        text: the phrase in UTF-8.
        begins_word: True if it starts with a word character, so that only an occurrence at the
            beginning of a word counts.
        ends_word: the same for its last character and the end of a word.
        bans: the tokens that would complete it.
    """

    spelling: Spelling
    text: bytes
    begins_word: bool
    ends_word: bool
    bans: tuple[_Ban, ...]


@final
class Spelling:
    """The bytes of each token of a target vocabulary, and where words may begin and end.

    Attributes:
        codes_UX: the bytes of each token with their flags, aligned right, -1 in front.
        num_bytes_U: the number of bytes of each token.
        opens_U: True if a word may begin after the token.
        ends_word_V: True if the token does not continue a word.
        automata: makes the automata of phrases that must appear.

    Tables of U have one more row than there are tokens, for the beginning of the text.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Spell out every token; this takes time, so do it once for each tokenizer.

        Args:
            tokenizer: the translation's.
        """
        self._tokenizer = tokenizer
        self._tokens = list(_spell_tokens(tokenizer))
        self.automata = TextAutomata(self._tokens)
        self._sorted = sorted((text, token) for token, text in enumerate(self._tokens) if text)
        self._forbidden: dict[str, ForbiddenText] = {}
        width = max(map(len, self._tokens))
        codes = [[-1] * (width - len(text)) + _codes_of(text) for text in self._tokens]
        opens = [not _ends_in_word(text) for text in self._tokens]
        self.codes_UX = torch.tensor([*codes, [-1] * width], dtype=torch.int16)
        self.num_bytes_U = torch.tensor([*map(len, self._tokens), 0])
        self.opens_U = torch.tensor([*opens, True])
        self.ends_word_V = torch.tensor([not _begins_in_word(text) for text in self._tokens])

    def forbid(self, phrase: str) -> ForbiddenText:
        """Forbid a phrase, however it is cut into tokens.

        The phrase never appears in the text as whole words. If it begins (or ends) with a letter,
        digit or mark, an occurrence counts only if no such character precedes (follows) it, so
        ``chat`` forbids neither ``château`` nor ``achat``. In scripts without spaces every
        occurrence counts. Case matters. Nothing else is forbidden, with one exception: tokens
        that are single bytes above 127 do not count as letters. So a word that begins or ends
        like the phrase cannot continue in letters that the vocabulary lacks.

        Args:
            phrase: the phrase; spaces around it are ignored.

        Returns:
            An entry for a request's ``forbidden_texts``.

        Raises:
            InputError: the phrase is empty.
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
        """Find the tokens that complete a phrase, for every part of it that may precede them."""
        for num_bytes in range(1, len(phrase)):
            rest = phrase[num_bytes:]
            for text, token in self._tokens_from(rest):
                if len(text) == len(rest) or not (ends and _begins_in_word(text[len(rest) :])):
                    yield _Ban(num_bytes, token, ends and len(text) == len(rest))
        # Tokens that hold the whole phrase.
        for text, token in self._sorted:
            place = text.find(phrase)
            while place >= 0:
                after = text[place + len(phrase) :]
                is_begun = place == 0 or not (begins and _ends_in_word(text[:place]))
                if is_begun and not (ends and _begins_in_word(after)):
                    yield _Ban(_ANYWHERE if place else 0, token, ends and not after)
                place = text.find(phrase, place + 1)

    def _tokens_from(self, start: bytes) -> Iterator[tuple[bytes, int]]:
        """Find the tokens that begin with some bytes."""
        for place in range(bisect_left(self._sorted, (start, -1)), len(self._sorted)):
            text, token = self._sorted[place]
            if not text.startswith(start):
                return
            yield text, token


def _spell_tokens(tokenizer: Tokenizer) -> Iterator[bytes]:
    """Yield the bytes that each token adds to a text; the space in front of a text counts."""
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
    """The bytes of a token with their flags."""
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
    """Tell whether the first character belongs to a word; half a character does not."""
    return is_word_letter(token.decode(errors="replace")[:1])


def _ends_in_word(token: bytes) -> bool:
    return is_word_letter(token.decode(errors="replace")[-1:])


@final
class TextRule:
    """Keeps phrases out of the text.

    A context is a beginning of a phrase. If the last bytes of a row's text match a context, the
    tokens that would complete the phrase are forbidden. If they match a whole phrase whose last
    word could still grow, all tokens that would end the word are forbidden, ``</s>`` included.
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
            set_of_request: the place in ``sets`` of each request's phrases.
            max_lengths: the maximum length of each request's translation.
            device: the device of the values.
        """
        phrases = [phrase for group in sets for phrase in group]
        spelling = phrases[0].spelling
        self._num_bytes = max(len(phrase.text) for phrase in phrases)
        codes_UX = spelling.codes_UX
        self._codes_UX = codes_UX[:, -min(self._num_bytes, codes_UX.shape[1]) :].to(device)
        self._num_bytes_U = spelling.num_bytes_U.to(device)
        self._opens_U = spelling.opens_U.to(device)
        self._ends_word_V = spelling.ends_word_V.to(device)
        self._group_R = torch.tensor(set_of_request, device=device)
        self._max_length_R = torch.tensor(max_lengths, device=device)
        contexts, bans = zip(*map(_collect, sets), strict=True)
        patterns = [[self._pattern(*context) for context in group] for group in contexts]
        num_contexts = max(1, *map(len, patterns))
        # Filler matches any text, but no ban refers to it.
        filler = ([0] * (self._num_bytes + 1), [0] * (self._num_bytes + 1))
        both = torch.tensor(
            [[*group, *[filler] * (num_contexts - len(group))] for group in patterns],
            dtype=torch.int16,
            device=device,
        )
        self._pattern_GQX, self._mask_GQX = both.unbind(2)
        whole = [[int(count == len(phrase.text)) for phrase, count in group] for group in contexts]
        self._is_whole_GQ = pad_rows(whole, 0, device) == 1
        # Kinds: 0 is always forbidden, 1 only as the last token, and -1 is filler.
        self._context_GY, self._token_GY, self._kind_GY = (
            pad_rows([[ban[part] for ban in group] for group in bans], fill, device)
            for part, fill in enumerate((0, 0, -1))
        )

    def __call__(self, values_AV: Tensor, history: TokenHistory) -> None:
        """Forbid tokens that would complete a phrase."""
        group_A = self._group_R[history.request_A]
        tail_A1X = self._read_tails(history)[:, None]
        fits_AQ = ((tail_A1X & self._mask_GQX[group_A]) == self._pattern_GQX[group_A]).all(-1)
        # An exact ban counts only for the last token: until then the phrase's word may grow.
        is_last_A = history.length_A + 1 >= self._max_length_R[history.request_A]
        kind_AY = self._kind_GY[group_A]
        is_banned_AY = (kind_AY == 0) | ((kind_AY == 1) & is_last_A[:, None])
        is_banned_AY &= fits_AQ.gather(1, self._context_GY[group_A])
        lower_values(values_AV, self._token_GY[group_A], is_banned_AY, -torch.inf)
        must_grow_A = (fits_AQ & self._is_whole_GQ[group_A]).any(1)
        if must_grow_A.any():
            values_AV.masked_fill_(must_grow_A[:, None] & self._ends_word_V, -torch.inf)

    def _pattern(self, phrase: ForbiddenText, num_bytes: int) -> tuple[list[int], list[int]]:
        """The last bytes of a text that matches a context, and a mask of the bits that count."""
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

    def _read_tails(self, history: TokenHistory) -> Tensor:
        """Read the last bytes of each row's text with their flags, and the flags of the next byte.

        Returns:
            ``tail_AX``, one column more than the longest phrase has bytes.
        """
        count, width = self._num_bytes, self._codes_UX.shape[1]
        recent_AI = last_tokens(history, count + 1)
        opens_AI = self._opens_U[recent_AI]
        codes_AJX = self._codes_UX[recent_AI[:, 1:]]
        # A token's first byte may begin a word if the token before it does not end in one.
        begins_AJX = ((codes_AJX & _FIRST) > 0) & opens_AI[:, :-1, None]
        num_bytes_AJ = self._num_bytes_U[recent_AI[:, 1:]]
        until_AJ = count - num_bytes_AJ.sum(1, keepdim=True) + num_bytes_AJ.cumsum(1)
        place_AJX = until_AJ[:, :, None] + torch.arange(-width, 0, device=recent_AI.device)
        # Padding, and bytes that are too far back, go to a column that is dropped.
        place_AJX = place_AJX.where((codes_AJX >= 0) & (place_AJX >= 0), count + 1)
        codes_AJX = codes_AJX.where(~begins_AJX, codes_AJX | _OPEN)
        tail_AY = codes_AJX.new_full((len(recent_AI), count + 2), _NOTHING)
        tail_AY.scatter_(1, place_AJX.flatten(1), codes_AJX.flatten(1))
        tail_AY[:, count] = opens_AI[:, -1] * _OPEN
        return tail_AY[:, : count + 1]


def _collect(
    phrases: tuple[ForbiddenText, ...],
) -> tuple[list[tuple[ForbiddenText, int]], list[tuple[int, int, int]]]:
    """Collect the contexts of a set of phrases, and the bans that each gives rise to."""
    places: dict[tuple[ForbiddenText, int], int] = {}
    bans = []
    for phrase in phrases:
        for ban in phrase.bans:
            place = places.setdefault((phrase, ban.num_bytes), len(places))
            bans.append((place, ban.token, int(ban.is_exact)))
        if phrase.ends_word:
            places.setdefault((phrase, len(phrase.text)), len(places))
    return list(places), bans
