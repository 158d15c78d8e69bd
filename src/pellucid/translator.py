"""A loaded model that takes text and gives text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pellucid.bundle import Bundle, load_bundle, resolve_model
from pellucid.config import DecodingConfig
from pellucid.data import make_source_batch
from pellucid.decode import Hypothesis, decode_greedily, score_tokens
from pellucid.errors import DataError
from pellucid.hardware import set_threads
from pellucid.model import Transformer
from pellucid.text import Tokenizer

__all__ = ["Scored", "Translation", "Translator", "load"]

BATCH_TOKENS = 4096


@dataclass(frozen=True)
class Translation:
    """One line translated.

    Attributes:
        source: the line as given.
        text: its translation, one line; empty where there is an error.
        tokens: the target's pieces, ``</s>`` included.
        ids: their indices.
        token_log_probabilities: natural logs of the model's softmax, one a token.
        log_probability: their sum.
        score: the value hypotheses are ranked by; greedy search ranks by log-probability.
        error: one sentence where the line could not be translated, otherwise None.
    """

    source: str
    text: str
    tokens: tuple[str, ...] = ()
    ids: tuple[int, ...] = ()
    token_log_probabilities: tuple[float, ...] = ()
    log_probability: float = 0.0
    score: float = 0.0
    error: str | None = None


@dataclass(frozen=True)
class Scored:
    """One given pair, and how likely the model finds its target.

    Attributes as in `Translation`; ``target`` is the line as given.
    """

    source: str
    target: str
    tokens: tuple[str, ...] = ()
    ids: tuple[int, ...] = ()
    token_log_probabilities: tuple[float, ...] = ()
    log_probability: float = 0.0
    error: str | None = None


class Translator:
    """Translates and scores with one model and its tokenizer.

    Args:
        model: the weights.
        tokenizer: text to ids and back.
        decoding: limits of a translation's length.
        bundle: where the model came from, if from disk.
    """

    def __init__(
        self,
        model: Transformer,
        tokenizer: Tokenizer,
        *,
        decoding: DecodingConfig | None = None,
        bundle: Bundle | None = None,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.decoding = decoding or DecodingConfig()
        self.bundle = bundle

    def translate(
        self, texts: Sequence[str], *, batch_tokens: int = BATCH_TOKENS
    ) -> list[Translation]:
        """Translate lines greedily, in float32.

        Lines are grouped by length so that little is padding, and come back in their order. An
        empty or blank line gives an empty translation. A line that cannot be translated gives
        an empty text and an ``error``; the others are translated.

        Args:
            texts: one sentence or paragraph a line.
            batch_tokens: the most source positions computed at once, padding included.

        Returns:
            One translation for each line.
        """
        translations: list[Translation] = [Translation(text, "") for text in texts]
        sources: dict[int, list[int]] = {}
        filled = [index for index, text in enumerate(texts) if text.strip()]
        encoded = self.tokenizer.encode_sources([texts[index] for index in filled])
        for index, ids in zip(filled, encoded, strict=True):
            problem = self._too_long(ids, "source")
            if problem:
                translations[index] = Translation(texts[index], "", error=problem)
            else:
                sources[index] = ids
        for batch in _group(sources, batch_tokens):
            found = self._decode([sources[index] for index in batch])
            for index, hypothesis in zip(batch, found, strict=True):
                translations[index] = self._to_translation(texts[index], hypothesis)
        return translations

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        *,
        batch_tokens: int = BATCH_TOKENS,
    ) -> list[Scored]:
        """Say how likely the model finds given translations, in float32.

        Args:
            sources: one line each.
            targets: the translation of each; an empty one is ``</s>`` alone.
            batch_tokens: the most source positions computed at once.

        Returns:
            One result for each pair, in order.

        Raises:
            DataError: there are not as many targets as sources.
        """
        if len(sources) != len(targets):
            raise DataError(
                f"There must be one target for each source, but there are {len(sources)} sources "
                f"and {len(targets)} targets."
            )
        scored: list[Scored] = []
        pairs: dict[int, tuple[list[int], list[int]]] = {}
        for index, (source, target) in enumerate(zip(sources, targets, strict=True)):
            source_ids = self.tokenizer.encode_source(source)
            target_ids = self.tokenizer.encode_target(target)
            problem = self._too_long(source_ids, "source") or self._too_long(target_ids, "target")
            scored.append(Scored(source, target, error=problem))
            if problem is None:
                pairs[index] = (source_ids, target_ids)
        lengths = {index: [0] * max(len(s), len(t)) for index, (s, t) in pairs.items()}
        for group in _group(lengths, batch_tokens):
            self._score_group(group, pairs, scored)
        return scored

    def _score_group(
        self,
        group: list[int],
        pairs: dict[int, tuple[list[int], list[int]]],
        scored: list[Scored],
    ) -> None:
        config = self.tokenizer.config
        sources, targets = zip(*(pairs[index] for index in group), strict=True)
        source_BS, source_mask_BS = make_source_batch(sources, pad_id=config.pad_id)
        target_out_BT, _ = make_source_batch(targets, pad_id=config.pad_id)
        target_in_BT = target_out_BT.roll(1, dims=1)
        target_in_BT[:, 0] = config.target_start_id
        logs_BT = score_tokens(self.model, source_BS, source_mask_BS, target_in_BT, target_out_BT)
        for row, index in enumerate(group):
            ids = pairs[index][1]
            logs = tuple(logs_BT[row, : len(ids)].tolist())
            scored[index] = Scored(
                scored[index].source,
                scored[index].target,
                tokens=tuple(self.tokenizer.target_tokens(ids)),
                ids=tuple(ids),
                token_log_probabilities=logs,
                log_probability=sum(logs),
            )

    def _decode(self, sources: list[list[int]]) -> list[Hypothesis]:
        config = self.tokenizer.config
        source_BS, source_mask_BS = make_source_batch(sources, pad_id=config.pad_id)
        return decode_greedily(
            self.model,
            source_BS,
            source_mask_BS,
            start_id=config.target_start_id,
            eos_id=config.eos_id,
            max_lengths=[self._max_target_length(len(ids)) for ids in sources],
        )

    def _max_target_length(self, source_length: int) -> int:
        limit = int(source_length * self.decoding.max_length_ratio)
        return min(limit + self.decoding.max_length_offset, self.model.config.max_target_length)

    def _too_long(self, ids: Sequence[int], side: str) -> str | None:
        limit: int = getattr(self.model.config, f"max_{side}_length")
        if len(ids) <= limit:
            return None
        return (
            f"A {side} line must have at most {limit} tokens for this model, but has {len(ids)}. "
            "Split it into sentences."
        )

    def _to_translation(self, source: str, hypothesis: Hypothesis) -> Translation:
        text = self.tokenizer.decode_target(list(hypothesis.ids))
        # Bytes may spell a line break, which would put the lines out of step.
        return Translation(
            source,
            text.replace("\r", " ").replace("\n", " "),
            tokens=tuple(self.tokenizer.target_tokens(list(hypothesis.ids))),
            ids=hypothesis.ids,
            token_log_probabilities=hypothesis.token_log_probabilities,
            log_probability=hypothesis.log_probability,
            score=hypothesis.log_probability,
        )


def load(model: str | Path, *, threads: int | None = None) -> Translator:
    """Load a model to translate with.

    Args:
        model: a bundle folder or a run folder.
        threads: processor threads to use; PyTorch's own choice unless given.

    Raises:
        InputFileNotFoundError: there is no such folder.
        BundleError: the folder is damaged, incomplete, or not a bundle.
    """
    set_threads(threads)
    bundle = load_bundle(resolve_model(model))
    return Translator(
        bundle.model, bundle.tokenizer, decoding=bundle.config.decoding, bundle=bundle
    )


def _group(sequences: dict[int, list[int]], batch_tokens: int) -> list[list[int]]:
    """Group by length, longest first, so that rows times the longest stays in the budget."""
    groups: list[list[int]] = []
    longest = 0
    for index in sorted(sequences, key=lambda index: (-len(sequences[index]), index)):
        if not groups or (len(groups[-1]) + 1) * longest > batch_tokens:
            groups.append([])
            longest = len(sequences[index])
        groups[-1].append(index)
    return groups
