"""What a search is asked for: one sentence, and what its translation may and must hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pellucid.errors import InputError

if TYPE_CHECKING:
    from pellucid.decode.constraints.forbidden import ForbiddenText, Spelling

__all__ = ["Constraints", "Request"]


@dataclass(frozen=True)
class Request:
    """One sentence to translate, in ids.

    Attributes:
        source_ids: the source, ``</s>`` included.
        max_length: the most tokens of a translation, ``</s>`` included.
        min_length: the fewest, ``</s>`` included.
        prefix_ids: what the translation begins with.
        forbidden: token sequences that it must not hold.
        required: token sequences that it must hold.
        key: what its random numbers are derived from.
        forbidden_texts: phrases that its text must not hold, however they are cut into tokens.
        whole: those token sequences after which a word must end.
        spelling: the vocabulary's, where there are any of those.
    """

    source_ids: tuple[int, ...]
    max_length: int
    min_length: int = 0
    prefix_ids: tuple[int, ...] = ()
    forbidden: tuple[tuple[int, ...], ...] = ()
    required: tuple[tuple[int, ...], ...] = ()
    key: str = ""
    forbidden_texts: tuple[ForbiddenText, ...] = ()
    whole: tuple[tuple[int, ...], ...] = ()
    spelling: Spelling | None = None


@dataclass(frozen=True)
class Constraints:
    """What the translation of one line may and must hold, as a user says it.

    Attributes:
        prefix: what the translation begins with.
        forbidden: phrases that must not stand in it as whole words.
        required: phrases that must stand in it as whole words; one that is given twice must
            stand there twice. What ends such a phrase ends its word wherever it is written.

    Raises:
        InputError: a phrase is given where there must be a tuple of them.
    """

    prefix: str = ""
    forbidden: tuple[str, ...] = ()
    required: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("forbidden", "required"):
            phrases = getattr(self, name)
            if isinstance(phrases, str):
                raise InputError(
                    f"Constraints.{name} must be a tuple of phrases, but is the text {phrases!r}, "
                    f"whose letters would be taken for them. Write ({phrases!r},)."
                )
