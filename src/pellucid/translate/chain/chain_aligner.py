"""Links of words through the middle texts of a chain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pellucid.translate.links.aligning import Aligner


class ChainAligner(Aligner):
    """Links words through the middle texts of a chain.

    Args:
        names: of the models.
        each: what links the words of each model's translations.
    """

    def __init__(self, names: Sequence[str], each: Sequence[Aligner]) -> None:
        self.names = names
        self.each = tuple(each)

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that links depend on, besides the models and the lines."""
        return self.each[0].settings

    def take_sentence(self) -> str:
        """Say which views were chosen and why, after the first call; ``""`` later."""
        said = zip(self.names, [one.take_sentence() for one in self.each], strict=True)
        return " ".join(f"{name}: {sentence}" for name, sentence in said if sentence)

    def closing_sentence(self) -> str:
        """Say how many lines were cut by script; ``""`` if none was."""
        return next(filter(None, [one.closing_sentence() for one in self.each]), "")
