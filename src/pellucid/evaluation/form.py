"""The form in which hypotheses and references are compared: one normalization for both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from pellucid.config import TokenizerConfig
from pellucid.text.normalization import Normalization, normalize
from pellucid.text.tokenizers.whole_words import bare_words


@dataclass(frozen=True)
class Form:
    """A form of text, into which every side is brought before it is compared.

    A reference that writes é as e and an accent looks like the translation that writes é, but
    shares no word with it.

    Attributes:
        normalization: the Unicode form.
        lowercase: lower-case the text first.
        drop_punctuation: leave out punctuation, and have one space between words.
    """

    normalization: Normalization = "nfc"
    lowercase: bool = False
    drop_punctuation: bool = False

    @classmethod
    def of_model(cls, tokenizer: TokenizerConfig) -> Self:
        """Take the form that a model writes.

        It is at least NFC: other composed forms of a letter look the same to a reader.
        """
        return cls(
            "nfkc" if tokenizer.normalization == "nfkc" else "nfc",
            lowercase=tokenizer.lowercase,
            drop_punctuation=tokenizer.drop_punctuation,
        )

    def apply(self, lines: Sequence[str]) -> list[str]:
        """Bring lines into this form."""
        return [self._apply(line) for line in lines]

    def _apply(self, line: str) -> str:
        # In the order of the tokenizer, so that references end in the form of what it writes.
        text = normalize(line.lower() if self.lowercase else line, self.normalization)
        return " ".join(bare_words(text)) if self.drop_punctuation else text

    def __str__(self) -> str:
        """Name the form, as signatures do: ``nfc``, ``nfkc+lc``, ``nfc+lc+nopunct``."""
        parts: list[str] = [self.normalization]
        parts += ["lc"] if self.lowercase else []
        parts += ["nopunct"] if self.drop_punctuation else []
        return "+".join(parts)


NFC = Form()
AS_IT_IS = Form("none")
