"""Cutting heads of the packaged model one after another, the least needed first."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import torch
from torch import Tensor

from pellucid.bundle import Bundle
from pellucid.data import make_source_batch
from pellucid.lessons.why.packaged import load_packaged, pairs_of, write_examples_of
from pellucid.machine.randomness import generator

FREE = 0.01
"""A rise of the loss up to this, in nats per token, counts as none."""


@dataclass(frozen=True)
class CutHeads:
    """The course of cutting one head after another.

    Attributes:
        order: the heads in the order in which they were cut.
        losses: on other sentences with 0, 1, 2, … heads cut, in nats per token.
        right: the share of tokens of those sentences that are the likeliest.
        random: the losses if the order is drawn.
    """

    order: tuple[str, ...]
    losses: tuple[float, ...]
    right: tuple[float, ...]
    random: tuple[float, ...]

    @property
    def num_free(self) -> int:
        """The most heads that are cut while the loss stays within `FREE` of the whole model's."""
        return max(n for n, loss in enumerate(self.losses) if loss <= self.losses[0] + FREE)


class _Silence:
    """A probe that sets the contexts of some heads to 0."""

    def __init__(self, heads: Collection[tuple[str, int]]) -> None:
        self._heads: dict[str, list[int]] = {}
        for site, head in heads:
            self._heads.setdefault(site, []).append(head)
        self.sites = tuple(self._heads)

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        """Silence the heads of a site."""
        if stage != "context" or site not in self._heads:
            return None
        changed = tensor.clone()
        changed[:, self._heads[site]] = 0.0
        return changed


class _Sentences:
    """Sentences with their true translations, as one batch."""

    def __init__(self, bundle: Bundle, seed: int, part: int, count: int) -> None:
        examples = write_examples_of(2 * count, seed=seed)[part * count : (part + 1) * count]
        pairs = pairs_of(bundle, examples)
        pad = bundle.tokenizer.config.pad_id
        self._model = bundle.model
        self._source, self._mask = make_source_batch([p.source_ids for p in pairs], pad_id=pad)
        self._read, self._is_real = make_source_batch([p.read_ids for p in pairs], pad_id=pad)
        self._target, _ = make_source_batch([p.target_ids for p in pairs], pad_id=pad)

    @torch.inference_mode()
    def score(self, cut: Collection[tuple[str, int]]) -> tuple[float, float]:
        """Compute the loss per token and the share of tokens that are the likeliest."""
        probe = _Silence(cut)
        memory = self._model.encode(self._source, self._mask, probe=probe)
        states = self._model.decode(self._read, memory, self._mask, probe=probe)
        logs_PV = self._model.logits(states)[self._is_real].log_softmax(dim=-1)
        target_P = self._target[self._is_real]
        loss = -logs_PV.gather(1, target_P[:, None]).mean()
        return float(loss), float((logs_PV.argmax(dim=-1) == target_P).float().mean())


def cut_heads(seed: int, count: int) -> CutHeads:
    """Cut the head that costs least, again and again; judge the order on other sentences.

    Args:
        seed: of the sentences and of the drawn order.
        count: the number of sentences that decide, and of those that judge.
    """
    bundle = load_packaged()
    config = bundle.model.config
    sites = [f"encoder.{layer}.self" for layer in range(config.num_encoder_layers)]
    for layer in range(config.num_decoder_layers):
        sites += [f"decoder.{layer}.self", f"decoder.{layer}.cross"]
    left = [(site, head) for site in sites for head in range(config.num_heads)]
    shuffled = [left[i] for i in generator(seed, "why cut").permutation(len(left))]
    chosen, others = (_Sentences(bundle, seed, part, count) for part in (0, 1))
    cut: list[tuple[str, int]] = []
    scores = [others.score([])]
    drawn = [scores[0][0]]
    while left:
        cut.append(min(left, key=lambda head: chosen.score([*cut, head])[0]))
        left.remove(cut[-1])
        scores.append(others.score(cut))
        drawn.append(others.score(shuffled[: len(cut)])[0])
    losses, right = zip(*scores, strict=True)
    return CutHeads(tuple(f"{site}.{head}" for site, head in cut), losses, right, tuple(drawn))
