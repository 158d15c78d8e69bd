"""Phrases that a translation's text must not hold, however they are cut into tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from pellucid.decode.constraints.automata import NUM_KINDS, SILENT, Automaton, TextAutomata
from pellucid.decode.constraints.token_history import (
    TokenHistory,
    last_tokens,
    lower_values,
    pad_rows,
)
from pellucid.errors import InputError
from pellucid.machine.turns import give_way
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.text.tokenizers.whole_words import JOINER

_BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>")


# Compared by identity: phrases are keys of a dict, and an automaton cannot be hashed.
@dataclass(frozen=True, eq=False)
class ForbiddenText:
    """A phrase that a text must not hold as whole words, made by `Spelling.forbid`.

    Attributes:
        text: the phrase in UTF-8.
        automaton: finds it, however it is cut into tokens.
        kinds: the class of every token that has nothing of the phrase.
        may_grow: True if the text continues after the last token that a search writes.
    """

    text: bytes
    automaton: Automaton
    kinds: tuple[int, ...]
    may_grow: bool = False


@final
class Spelling:
    """The bytes of each token of a target vocabulary, and where words may begin and end.

    Attributes:
        automata: makes the automata of phrases.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Spell out every token; this takes time, so do it once for each tokenizer.

        Args:
            tokenizer: the translation's.
        """
        self._tokenizer = tokenizer
        self.automata = TextAutomata(list(_spell_tokens(tokenizer)))
        self._forbidden: dict[str, ForbiddenText] = {}

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
        # Kept, because the lines of a text mostly forbid the same phrases.
        if phrase not in self._forbidden:
            text = self._tokenizer.normalized(phrase).strip()
            if not text:
                raise InputError(
                    f"A forbidden phrase must hold text, but is {phrase!r}. Leave it out."
                )
            automaton = self.automata.find(text.encode())
            kinds = self.automata.kinds
            self._forbidden[phrase] = ForbiddenText(text.encode(), automaton, kinds)
        return self._forbidden[phrase]


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
            # SentencePiece writes a space as U+2581.
            yield name.replace("\u2581", " ").encode()


@final
class TextRule:
    """Keeps phrases out of the text.

    The last tokens of a row bring the automaton of each phrase to a state. Tokens by which it
    would count the phrase are forbidden. So are those that bring it to the whole phrase, unless
    its last word may still grow.
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
        phrases = list(dict.fromkeys(phrase for group in sets for phrase in group))
        # A token has a byte or more; one more token says whether the phrase is inside a word.
        self._num_tokens = 1 + max(len(phrase.text) for phrase in phrases)
        self._max_length_R = torch.tensor(max_lengths, device=device)
        # The last entry is for -1, which `last_tokens` gives before the beginning: silent.
        self._kind_U = torch.tensor([*phrases[0].kinds, NUM_KINDS - 1], device=device)
        self._class_PU = self._kind_U.repeat(len(phrases), 1)
        size = max(len(one.automaton.next) for one in phrases)
        width = NUM_KINDS + max(len(one.automaton.classes) for one in phrases)
        self._next_PSC = torch.zeros(len(phrases), size, width, dtype=torch.long, device=device)
        shape = (2, len(phrases) + 1, size)
        self._is_kind_banned_2PSC = torch.zeros(*shape, NUM_KINDS, dtype=torch.bool, device=device)
        # Most tokens that have something of a phrase never complete it. Only the others are looked
        # at in each step: with 100 phrases and 60,000 tokens that is a tenth of the time.
        tokens = list[list[int]]()
        tables = list[Tensor]()
        for place, one in enumerate(phrases):
            give_way()
            automaton = one.automaton
            classes = automaton.classes
            token_Y = torch.tensor(list(classes), dtype=torch.long)
            class_Y = torch.tensor(list(classes.values()), dtype=torch.long, device=device)
            self._class_PU[place, token_Y.to(device)] = class_Y
            next_SC = torch.tensor(automaton.next)
            self._next_PSC[place, : len(next_SC), : next_SC.shape[1]] = next_SC
            gain_SC = torch.tensor(automaton.gain)
            is_banned_2SC = torch.stack(
                [_ban(one, next_SC, gain_SC, is_last=last) for last in (False, True)]
            )
            self._is_kind_banned_2PSC[:, place, : len(next_SC)] = is_banned_2SC[..., :NUM_KINDS]
            is_banned_2SY = is_banned_2SC[..., NUM_KINDS:]
            is_ever_Y = is_banned_2SY.any(0).any(0)
            tokens.append(token_Y[is_ever_Y].tolist())
            tables.append(is_banned_2SY[..., is_ever_Y])
        self._token_PY = pad_rows(tokens, 0, device)
        # The last row stands for no phrase.
        most = self._token_PY.shape[1]
        self._is_banned_2PSY = torch.zeros(*shape, most, dtype=torch.bool, device=device)
        for place, table in enumerate(tables):
            self._is_banned_2PSY[:, place, : table.shape[1], : table.shape[2]] = table
        places = [[phrases.index(one) for one in sets[number]] for number in set_of_request]
        self._phrase_RP = pad_rows(places, -1, device)

    def __call__(self, values_AV: Tensor, history: TokenHistory) -> None:
        """Forbid tokens that would complete a phrase."""
        phrase_AP = self._phrase_RP[history.request_A]
        state_AP = torch.zeros_like(phrase_AP)
        for token_A in last_tokens(history, self._num_tokens).unbind(1):
            give_way()  # There may be as many tokens as the longest phrase has bytes.
            class_AP = self._class_PU[phrase_AP, token_A[:, None]]
            state_AP = self._next_PSC[phrase_AP, state_AP, class_AP]
        is_last_A = history.length_A + 1 >= self._max_length_R[history.request_A]
        is_last_A1 = is_last_A.long()[:, None]
        token_AK = self._token_PY[phrase_AP].flatten(1)
        is_banned_AK = self._is_banned_2PSY[is_last_A1, phrase_AP, state_AP].flatten(1)
        lower_values(values_AV, token_AK, is_banned_AK, -torch.inf)
        # After a whole phrase its word must grow, so every other kind of token is forbidden.
        is_banned_AC = self._is_kind_banned_2PSC[is_last_A1, phrase_AP, state_AP].any(1)
        if is_banned_AC.any():
            values_AV.masked_fill_(is_banned_AC[:, self._kind_U[:-1]], -torch.inf)


def _ban(phrase: ForbiddenText, next_SC: Tensor, gain_SC: Tensor, *, is_last: bool) -> Tensor:
    """List the classes that are forbidden in each state: ``is_banned_SC``.

    Args:
        phrase: what the text must not hold.
        next_SC: the state after each class, from each state.
        gain_SC: how many occurrences each class adds.
        is_last: whether the token is the last that a search writes.
    """
    whole = len(next_SC) - 1
    # The word of a whole phrase may still grow into another word, unless nothing can follow.
    may_complete = phrase.automaton.ends_word and (phrase.may_grow or not is_last)
    is_banned_SC = gain_SC > 0
    if not may_complete:
        is_banned_SC |= next_SC == whole
    # `</s>` is silent, and would end the text with the phrase.
    is_banned_SC[whole, SILENT] = True
    return is_banned_SC
