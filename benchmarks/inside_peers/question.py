"""The question that every tool answers: two sentences, and the word that differs after them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pellucid.translate.translator import Translator


@dataclass(frozen=True)
class Question:
    """Two sentences, the beginning of a translation, and the words that continue it.

    Attributes:
        clean: the sentence after which the first word is written.
        changed: the same sentence with another noun, after which the second word is written.
        words: both words.
        clean_1S: token ids of the first sentence.
        changed_1S: token ids of the second one, which has the same length.
        read_1T: what the decoder reads before the word.
        ids: token ids of both words.
    """

    clean: str
    changed: str
    words: tuple[str, str]
    clean_1S: Tensor
    changed_1S: Tensor
    read_1T: Tensor
    ids: tuple[int, int]

    def prefers(self, logits_BTV: Tensor) -> Tensor:
        """Return how much each line of a batch prefers the first word to the second."""
        return logits_BTV[:, -1, self.ids[0]] - logits_BTV[:, -1, self.ids[1]]


def ask(translator: Translator, clean: str, changed: str, words: tuple[str, str]) -> Question:
    """Prepare a question, in the ids of the packaged model."""
    pair = translator.pair(clean)
    contrast = pair.why(*words)
    row = contrast.start
    return Question(
        clean,
        changed,
        words,
        torch.tensor([pair.source_ids]),
        torch.tensor([translator.tokenizer.encode_source(changed)]),
        torch.tensor([pair.read_ids[: row + 1]]),
        (pair.target_ids[row], contrast.other.target_ids[row]),
    )
