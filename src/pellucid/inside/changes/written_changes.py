"""Changes written as text, those of whole source words among them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from torch import Tensor

from pellucid.arguments import warn_caller
from pellucid.decode.probing.under_probe import HasPieces
from pellucid.errors import InputError, suggestion
from pellucid.inside.changes.change import Change, Changes, cut_source_word, parse_change
from pellucid.text.token_words import (
    is_punctuation,
    show_unknown,
    source_pieces,
    words_of_tokens,
)
from pellucid.text.tokenizers.tokenizer import Tokenizer

_WORD = re.compile(r"(cut|zero)\s+word(?:\s+(.*))?", re.DOTALL)
MARKS = ".,;:!?\"'()\u00ab\u00bb\u2026\u3002\uff0c\uff01\uff1f"
"""Signs at the edges of a word that its name may leave out."""

_MOST_NAMED = 12
_OF_SOURCE = "A word to cut must be a word of the source"


def is_of_word(text: str) -> bool:
    """Tell whether a change written as text is of a whole source word.

    Raises:
        InputError: it is, but names none or several.
    """
    return _match_word(text) is not None


def _match_word(text: str) -> re.Match[str] | None:
    found = _WORD.fullmatch(text.strip())
    if found is not None and len((found[2] or "").split()) != 1:
        raise InputError(
            f"A change of a word must name one word, as in 'cut word pizza', but is {text!r}. Name "
            "one of the source, or its number from 0."
        )
    return found


def parse_changes(
    texts: Sequence[str], tokenizer: Tokenizer, source: str, source_ids: Sequence[int]
) -> list[Change]:
    """Read changes, those of words among them.

    Args:
        texts: as `parse_change` reads them; or ``cut word pizza`` and ``zero word pizza``, which
            also take the number of a word, from 0. If the word is named by its number, or with
            the punctuation after it, the punctuation is cut too.
        tokenizer: splits the source into tokens.
        source: the line.
        source_ids: its tokens.

    Raises:
        InputError: a change cannot be read, or the source has no such word, or has it twice.
    """
    found: list[Change] = []
    for text in texts:
        match = _match_word(text)
        if match is None:
            found.append(parse_change(text))
            continue
        positions = positions_of_word(
            tokenizer, source, source_ids, match[2], _OF_SOURCE, f" ({text!r})"
        )
        found += cut_source_word(positions, "masked" if match[1] == "cut" else "zeroed").changes
    return found


class CutWord:
    """A probe that cuts a word in each sentence that has it once; a warning counts the others.

    Args:
        text: the change: ``cut word pizza``, ``zero word 3``.
    """

    is_checked = True
    parts = frozenset({"encoder", "decoder"})

    def __init__(self, text: str) -> None:
        self._text = text
        self._changes = Changes()
        # Of the sentences of one call.
        self._found: dict[tuple[int, ...], tuple[str, Changes]] = {}
        # The sentences of all calls before.
        self._counted: set[int] = set()

    def begin(self, pair: HasPieces) -> None:
        """Find the word in the sentence that comes next."""
        if pair.source_ids not in self._found:
            self._found[pair.source_ids] = self._find(pair)
        self._changes = self._found[pair.source_ids][1]

    def missed(self, pair: HasPieces) -> list[str]:
        """Return the change, as text, if a sentence lacks the word or has it more than once."""
        return [] if self._find(pair)[1].changes else [self._text]

    def _find(self, pair: HasPieces) -> tuple[str, Changes]:
        source = pair.source_text or pair.tokenizer.decode_source(pair.source_ids)
        changes: list[Change] = []
        # A sentence without the word stays as it is.
        with suppress(InputError):
            changes = parse_changes([self._text], pair.tokenizer, source, pair.source_ids)
        return source, Changes(*changes)

    def wants(self, site: str, stage: str) -> bool:
        """True for weights and their masks; which ones, each sentence says."""
        return stage in ("masked", "weights")

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        """Cut the edges to the word."""
        return self._changes.see(site, stage, tensor)

    # The same for a recurrent decoder, which hands on all rows so far with each new one.
    see_rows = see

    def warn(self) -> None:
        """Warn of the sentences in which nothing was cut, of each once."""
        # A study reads its sentences several times, and says it once.
        new = {ids: found for ids, found in self._found.items() if hash(ids) not in self._counted}
        without = [source for source, changes in new.values() if not changes.changes]
        count = len(new)
        self._counted.update(map(hash, new))
        self._found = {}
        if without:
            warn_caller(
                f"{self._text!r} changed nothing in {len(without):,} of {count:,} sentences, which "
                f"lack the word or have it more than once: {without[0]!r}, for example."
            )

    def __str__(self) -> str:
        """As it was given."""
        return self._text


def positions_of_word(
    tokenizer: Tokenizer,
    source: str,
    source_ids: Sequence[int],
    name: str,
    what: str,
    where: str = "",
) -> list[int]:
    """Find the tokens of a source word, with its punctuation only if that is named too.

    Args:
        tokenizer: splits the source into tokens.
        source: the line.
        source_ids: its tokens.
        name: the word, or its number.
        what: the beginning of messages.
        where: the place of the fault, for messages.

    Raises:
        InputError: the source has no such word, or has it twice.
    """
    pieces = source_pieces(tokenizer, source)
    word = find_word(name, pieces, what, where)
    owners = words_of_tokens(tokenizer, "source", source, source_ids)
    positions = [token for token, words in enumerate(owners) if word in words]
    # Named without its marks, so they stay.
    if name == pieces[word].strip(MARKS):
        tokens = tokenizer.source_tokens(source_ids)
        positions = [token for token in positions if not is_punctuation(tokens[token])]
    return positions


def find_word(wanted: str, words: Sequence[str], what: str, where: str = "") -> int:
    """Return the number of a word that is given by its letters or by its number.

    Args:
        wanted: the word, with the marks around it or without, or its number.
        words: those to choose from.
        what: the beginning of messages: ``A word to cut must be a word of the source``.
        where: the place of the fault, for messages.

    Raises:
        InputError: the word is missing, or stands there several times.
    """
    words = [show_unknown(word) for word in words]
    bare = [word.strip(MARKS) or word for word in words]
    places = [place for place, word in enumerate(words) if wanted in (word, bare[place])]
    # A word that is a number is found by its letters first. More digits are no position.
    if not places and wanted.isascii() and wanted.isdigit() and len(wanted) < 19:
        places = [int(wanted)] if int(wanted) < len(words) else []
    if len(places) == 1:
        return places[0]
    if places:
        raise InputError(
            f"{what} and occur once, but {wanted!r} occurs {len(places)} times{where}. Give its "
            f"number: {', '.join(map(str, places))}."
        )
    numbered = ", ".join(f"{number} {word}" for number, word in enumerate(bare[:_MOST_NAMED]))
    more = ", …" if len(bare) > _MOST_NAMED else ""
    hint = suggestion(wanted, bare)
    raise InputError(
        f"{what}, or its number from 0 to {len(words) - 1}, but is {wanted!r}{where}. The words "
        # Without a near word the hint would list all of them again.
        f"are {numbered}{more}. {hint if hint.startswith('Did') else 'Name one of them.'}"
    )
