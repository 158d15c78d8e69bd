"""A model under a probe, for every search: where the probe acts, and whether it ever did.

Changes of the encoder are made once for a source: its vectors go to any search, that in C included.
Changes of the decoder are made row by row, by `pellucid.decode.probing.probed_steps`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pellucid.arguments import warn_caller
from pellucid.attention.checks import fitted
from pellucid.attention.probe import Probe, only_observes, parts_of, tell_probe, wants
from pellucid.errors import InputError
from pellucid.model import EncoderDecoder
from pellucid.text.tokenizers.tokenizer import Tokenizer

REPLACED_NOTHING = (
    "The probe replaced nothing: the model is unchanged. Compare its sites and stages with the "
    "names of a trace's arrays, and return the changed tensor."
)

TOKENS_AT_ONCE = 4096
"""Tokens of the sources that the encoder reads together."""

MOST_TEXTS = 10_000
"""Sources whose texts are remembered; a window of lines has a tenth as many."""

Ids = Sequence[Sequence[int]]


class HasPieces:
    """The pieces of all that a model reads, for a class with the ids."""

    tokenizer: Tokenizer
    source_ids: tuple[int, ...]
    source_text: str
    read_ids: tuple[int, ...]

    @property
    def source_tokens(self) -> tuple[str, ...]:
        """The source's pieces."""
        return tuple(self.tokenizer.source_tokens(self.source_ids))

    @property
    def read_tokens(self) -> tuple[str, ...]:
        """The pieces that the decoder's rows read."""
        return tuple(self.tokenizer.target_tokens(self.read_ids))


@dataclass(frozen=True)
class Reading(HasPieces):
    """The sentence and the rows that a probe sees next, as its `begin` gets them.

    Attributes:
        tokenizer: the model's.
        source_ids: the source, with ``</s>`` at the end.
        source_text: the source; as the model reads it if only its tokens are known.
        read_ids: what the decoder's rows so far have read, the start token first; empty while the
            encoder runs.
    """

    tokenizer: Tokenizer
    source_ids: tuple[int, ...]
    source_text: str
    read_ids: tuple[int, ...] = ()


class Noting:
    """A probe that remembers whether the user's replaced anything, and what it was told.

    Args:
        probe: the user's.
    """

    def __init__(self, probe: Probe) -> None:
        self.probe = probe
        self.has_replaced = False
        self._told: Any = None

    def begin(self, pair: Any) -> None:
        """Pass on which sentence comes next."""
        self._told = pair
        tell_probe(self.probe, pair)

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        """Let the probe see a result.

        Raises:
            InputError: it asked for a position that the sentence does not have, or the like.
        """
        return self._ask(self.probe.see, site, stage, tensor)

    def _ask(
        self, see: Callable[..., Tensor | None], site: str, stage: str, tensor: Tensor
    ) -> Tensor | None:
        try:
            found = see(site, stage, tensor)
        except torch.cuda.OutOfMemoryError:
            raise
        except (IndexError, RuntimeError) as error:
            tokens = getattr(self._told, "source_tokens", ())
            where = f" in the sentence of {len(tokens)} tokens {' '.join(tokens)!r}" * bool(tokens)
            raise InputError(
                f"A probe failed at {site}.{stage}{where}, where the result has the shape "
                f"{tuple(tensor.shape)}: {str(error).rstrip('.')}. Give it a method begin(pair), "
                "which is told the sentence and the rows so far."
            ) from error
        self.has_replaced |= found is not None
        return found

    def __getattr__(self, name: str) -> Any:
        # A probe may say which sites it wants, and take rows of a recurrent decoder.
        found = getattr(self.probe, name)
        if name != "see_rows" or found is None:
            return found
        return lambda site, stage, rows: self._ask(found, site, stage, rows)

    def warn(self) -> None:
        """Warn of a probe that may have misspelled a stage, or of each one of several."""
        several = getattr(self.probe, "warn", None)
        if several is not None:
            several()
            return
        # Changes from text were checked before.
        is_checked = getattr(self.probe, "is_checked", False)
        if not (self.has_replaced or is_checked or only_observes(self.probe)):
            warn_caller(REPLACED_NOTHING)


class OneByOne:
    """A probe of a batch that hands another one its sentences, or hypotheses, one by one.

    Args:
        probe: the other.
        readings: those that the other one gets, one for each row.
        rows: those of the batch that it sees; all unless given.
    """

    def __init__(
        self, probe: Probe, readings: Sequence[Reading], rows: Sequence[int] | None = None
    ) -> None:
        self._probe = probe
        self._readings = readings
        self._rows = range(len(readings)) if rows is None else rows
        self.sites = getattr(probe, "sites", None)

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        """Hand on a result, and join what comes back."""
        if not wants(self._probe, site, stage):
            return None
        joined = tensor.clone()
        for row in self._rows:
            rows_1 = tensor[row : row + 1]
            tell_probe(self._probe, self._readings[row])
            found = self._probe.see(site, stage, rows_1.clone())
            if found is not None:
                joined[row] = fitted(found, rows_1, site, stage)[0]
        return joined


class UnderProbe:
    """A probe that changes what a model computes, as all its searches know it.

    Args:
        model: the model, for PyTorch.
        tokenizer: the model's.
        probe: changes results on the way.

    Attributes:
        probe: the same, noted.
        tokenizer: as given.
        reaches_decoder: True if a change may be of the decoder, which only PyTorch can make.
        takes_batches: True if the probe takes several sentences of one length at once.
        reads_together: True if the encoder may read such sentences together: then, or if the probe
            changes one result only, so that it carries nothing from one result to the next.
    """

    def __init__(self, model: EncoderDecoder, tokenizer: Tokenizer, probe: Probe) -> None:
        self._model = model
        self.probe = Noting(probe)
        self.tokenizer = tokenizer
        # The state that a recurrent decoder begins with belongs to the encoder and is made later.
        self.reaches_decoder = model.config.is_recurrent or "decoder" in parts_of(probe)
        self.reaches_encoder = "encoder" in parts_of(probe)
        self.takes_batches = bool(getattr(probe, "takes_batches", False))
        self.reads_together = self.takes_batches or len(getattr(probe, "names", ())) == 1
        self._recent: dict[tuple[int, ...], Tensor] = {}
        self._texts: dict[tuple[int, ...], str] = {}

    def know(self, texts: Iterable[tuple[Sequence[int], str]]) -> None:
        """Note the texts of sources for the probe."""
        if len(self._texts) > MOST_TEXTS:
            self._texts = {}
        self._texts.update((tuple(ids), text) for ids, text in texts)

    def reading(self, source_ids: Sequence[int], read_ids: Sequence[int] = ()) -> Reading:
        """Describe a sentence, and the rows that the decoder reads, for a probe."""
        ids = tuple(source_ids)
        text = self._texts.get(ids) or self.tokenizer.decode_source(ids)
        return Reading(self.tokenizer, ids, text, tuple(read_ids))

    def begin(self, source_ids: Sequence[int], read_ids: Sequence[int] = ()) -> None:
        """Tell the probe which sentence comes next, and what the decoder reads of it."""
        self.probe.begin(self.reading(source_ids, read_ids))

    def missed_in_all(self, sources: Ids) -> tuple[str, ...]:
        """Return the changes, as text, that none of some sentences has anything for."""
        missed = getattr(self.probe, "missed", None)
        if missed is None or not sources:
            return ()
        each = [missed(self.reading(ids)) for ids in sources]
        return tuple(text for text in each[0] if all(text in other for other in each))

    @torch.inference_mode()
    def encode(self, sources: Ids, model: EncoderDecoder | None = None) -> list[Tensor]:
        """Run the encoder under the probe: ``vectors_SD`` of each source.

        Args:
            sources: token ids, ``</s>`` included.
            model: a copy of the model in another precision.
        """
        model = model or self._model
        device = model.output_weight.device
        found: dict[int, Tensor] = {}
        for group in self._of_one_length(sources):
            probe: Probe | None = self.probe if self.reaches_encoder else None
            if not self.reads_together:
                self.begin(sources[group[0]])
            elif probe is not None and not self.takes_batches:
                probe = OneByOne(probe, [self.reading(sources[index]) for index in group])
            source_BS = torch.tensor([list(sources[index]) for index in group], device=device)
            memory_BSD = model.encode(source_BS, probe=probe)
            found.update(zip(group, memory_BSD, strict=True))
        return [found[index] for index in range(len(sources))]

    def vectors(self, sources: Ids, *, again: bool = False) -> np.ndarray:
        """Do the same for the engine in C: the vectors of all tokens, one after another.

        Args:
            sources: token ids, ``</s>`` included.
            again: take those of the last search, if it was of these sources.
        """
        wanted = [tuple(source) for source in sources]
        recent = self._recent
        if not (again and all(source in recent for source in wanted)):
            different = list(dict.fromkeys(wanted))
            recent = dict(zip(different, self.encode(different), strict=True))
            self._recent = recent
        return torch.cat([recent[source] for source in wanted]).float().numpy(force=True)

    @torch.inference_mode()
    def score(self, sources: Ids, targets: Ids, start_id: int) -> list[tuple[float, ...]]:
        """Compute the log-probability of each target token, with teacher forcing.

        Args:
            sources: token ids, ``</s>`` included.
            targets: one for each source, ``</s>`` included.
            start_id: the token that the decoder reads first.

        Returns:
            Natural logs; not numbers if logits were not finite.
        """
        model = self._model
        device = model.output_weight.device
        found = []
        for source, target in zip(sources, targets, strict=True):
            read_ids = (start_id, *target[:-1])
            self.begin(source, read_ids)
            source_1S, read_1T = (
                torch.tensor([list(ids)], device=device) for ids in (source, read_ids)
            )
            logs_TV = model(source_1S, read_1T, probe=self.probe)[0].log_softmax(dim=-1)
            logs_T = logs_TV.gather(1, torch.tensor(list(target), device=device)[:, None])[:, 0]
            is_finite = math.isfinite(logs_TV.exp().sum())
            found.append(tuple(logs_T.tolist()) if is_finite else (math.nan,) * len(target))
        return found

    def _of_one_length(self, sources: Ids) -> Iterator[list[int]]:
        """Group sources that the encoder reads together, without padding that a probe could see."""
        if not self.reads_together:
            yield from ([index] for index in range(len(sources)))
            return
        by_length: dict[int, list[int]] = {}
        for index, source in enumerate(sources):
            by_length.setdefault(len(source), []).append(index)
        for length, group in by_length.items():
            at_once = max(1, TOKENS_AT_ONCE // length)
            for first in range(0, len(group), at_once):
                yield group[first : first + at_once]
