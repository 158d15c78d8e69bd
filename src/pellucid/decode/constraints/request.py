"""The input of a search: one sentence, and what its translation may and must hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pellucid.errors import InputError

if TYPE_CHECKING:
    from pellucid.decode.constraints.forbidden import ForbiddenText, Spelling
    from pellucid.decode.constraints.glossary import Glossary


@dataclass(frozen=True)
class Request:
    """One sentence to translate, in ids.

    Attributes:
        source_ids: the source, ``</s>`` included.
        max_length: the maximum number of tokens of a translation, ``</s>`` included.
        min_length: the minimum, ``</s>`` included.
        prefix_ids: the beginning of the translation.
        num_given: how many of its first tokens belong to the question, such as the language that is
            translated into: their log-probability is 0, and no score counts it.
        forbidden: token sequences that it must not hold.
        required: token sequences that it must hold.
        key: the text from which its random numbers are derived.
        forbidden_texts: phrases that its text must not hold, however they are cut into tokens.
        spelling: the vocabulary's spelling, with which the required sequences count by their text,
            as whole words, instead of by their tokens.
    """

    source_ids: tuple[int, ...]
    max_length: int
    min_length: int = 0
    prefix_ids: tuple[int, ...] = ()
    num_given: int = 0
    forbidden: tuple[tuple[int, ...], ...] = ()
    required: tuple[tuple[int, ...], ...] = ()
    key: str = ""
    forbidden_texts: tuple[ForbiddenText, ...] = ()
    spelling: Spelling | None = None


@dataclass(frozen=True)
class SpecialIds:
    """The start token, the end token, and the tokens that a target never holds."""

    start: int
    eos: int
    never: tuple[int, ...] = ()


@dataclass(frozen=True)
class Constraints:
    """Text that the translation of one line may and must hold.

    Attributes:
        prefix: the beginning of the translation.
        prefix_ids: the beginning as tokens of the target, which take the place of that text.
        forbidden: phrases that it must not hold as whole words.
        required: phrases that it must hold as whole words, however they are cut into tokens and
            whatever other signs they touch; one that is given twice must appear twice.
        glossary: terms of the line, of which the translation should hold the translations.

    Raises:
        InputError: phrases are given as one text instead of a tuple.
    """

    prefix: str = ""
    forbidden: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    glossary: Glossary | None = None
    prefix_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("forbidden", "required"):
            phrases = getattr(self, name)
            # A text is a sequence of texts as well, so nothing later would notice.
            if isinstance(phrases, str):
                raise InputError(
                    f"Constraints.{name} must be a tuple of phrases, but is the text {phrases!r}, "
                    f"whose letters would be taken for phrases. Write ({phrases!r},)."
                )


LineConstraints = Constraints | Sequence[Constraints]
"""The constraints of a text, or of each of its lines."""


def glossary_in(constraints: LineConstraints) -> Glossary | None:
    """Return the glossary of a text, which is that of each of its lines."""
    one = constraints if isinstance(constraints, Constraints) else constraints[0]
    return one.glossary


def check_ids(what: str, ids: tuple[int, ...], vocabulary_size: int) -> None:
    """Check a sequence of target tokens.

    Args:
        what: its name in messages.
        ids: the sequence.
        vocabulary_size: the number of tokens in the vocabulary.

    Raises:
        InputError: the sequence is empty, or holds an id that is not in the vocabulary.
    """
    if not ids:
        raise InputError(f"A {what} must hold a token, but one is empty. Leave it out.")
    if wrong := [id_ for id_ in ids if not 0 <= id_ < vocabulary_size]:
        raise InputError(
            f"The tokens of a {what} must be from 0 to {vocabulary_size - 1}, but one is "
            f"{wrong[0]}. Take the ids from this model's target vocabulary."
        )


def check_requests(requests: Sequence[Request], eos_id: int, vocabulary_size: int) -> None:
    """Check the tokens of prefixes and forbidden sequences.

    Raises:
        InputError: a prefix holds ``</s>``, a forbidden sequence is empty, or an id is not in the
            vocabulary.
    """
    for request in requests:
        if eos_id in request.prefix_ids:
            raise InputError(
                f"A prefix must leave the end open, but holds the token </s> ({eos_id}). Take it "
                "out of the prefix."
            )
        if request.prefix_ids:
            check_ids("prefix", request.prefix_ids, vocabulary_size)
        for sequence in request.forbidden:
            check_ids("forbidden sequence", sequence, vocabulary_size)
