"""Searches under a change as slow as can be: the whole model again for every hypothesis and step.

Also the changes that such searches are compared under.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pellucid.inside import Replace, ReplaceWeights, parse_change
from pellucid.inside.changes.change import Changes, cut_source_word
from pellucid.inside.pair import PairData
from pellucid.translate.translator import Translator


class FirstRow:
    """Lowers the logit of whatever the first row likes most, by the row that it is told."""

    def begin(self, pair: Any) -> None:
        self.pair = pair

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        if (site, stage) != ("decoder", "logits"):
            return None
        changed = tensor.clone()
        best = int(tensor[0, 0].argmax())
        changed[0, len(self.pair.read_ids) - 1, best] -= 3
        return changed


def changes_to_try(translator: Translator) -> dict[str, Any]:
    """Make changes of each kind, for a model of two layers, four heads and width 128 or so."""
    config = translator.config
    generator = torch.Generator().manual_seed(1)
    vector = torch.randn(config.d_model, generator=generator)
    rows = np.random.default_rng(1).random((config.max_target_length, config.max_source_length))
    other = translator.pair("The cake came out of the oven and it tasted good.")
    given = other.see({"norm"}, sites={"encoder.1.feed_forward"})["encoder.1.feed_forward.norm"]

    def patch(tensor: Tensor) -> Tensor:
        changed = tensor.clone()
        length = min(tensor.shape[1], len(given))
        changed[:, 1:length:3] = given[1:length:3]
        return changed

    def steer_second_row(tensor: Tensor) -> Tensor:
        changed = tensor.clone()
        changed[:, 1:2] += 0.2 * vector
        return changed

    return {
        "cut an edge of the encoder": "cut encoder.*.self.*:3>1",
        "cut a word": cut_source_word([1]),
        "average a head": "average decoder.1.cross.*",
        "mean of a head": "mean decoder.0.self.*",
        "zero an edge of the decoder": "zero decoder.*.cross.*:2>1",
        "force an edge": "force decoder.1.cross.*:1>0=0.9",
        "replace weights": ReplaceWeights("decoder.0.cross.1", rows / rows.sum(1, keepdims=True)),  # type: ignore[arg-type]
        "patch the encoder": Replace({"encoder.1.feed_forward.norm": patch}),
        "steer the encoder": Replace({"encoder.0.self.norm": lambda x: x + 0.2 * vector}),
        "steer one row": Replace({"decoder.0.feed_forward.norm": steer_second_row}),
        "logits by a probe": FirstRow(),
        "several": ["average encoder.1.self.2", FirstRow()],
    }


def slow_logs(pair: PairData, probe: Any) -> Callable[[tuple[int, ...]], Tensor]:
    """Make a function that computes the log-probabilities of the token after some others."""

    def logs_after(ids: tuple[int, ...]) -> Tensor:
        begun = PairData(pair.model, pair.tokenizer, pair.source_ids, (*ids, 0))
        with torch.inference_mode():
            return begun.logits(probe=probe)[-1].log_softmax(dim=-1).double()

    return logs_after


def slow_beam(
    pair: PairData, probe: Any, *, beam: int, most: int, prefix: tuple[int, ...] = ()
) -> list[tuple[tuple[int, ...], tuple[float, ...]]]:
    """Search without length penalty or early stop: hypotheses with their logs, the best first."""
    special = pair.tokenizer.config
    never = {special.pad_id, special.bos_id, special.target_start_id} - {special.eos_id, None}
    logs_after = slow_logs(pair, probe)
    growing: list[tuple[float, tuple[int, ...], tuple[float, ...]]] = [(0.0, (), ())]
    ended: list[tuple[float, tuple[int, ...], tuple[float, ...]]] = []
    while growing and len(growing[0][1]) < most:
        longer = []
        for total, ids, logs in growing:
            logs_V = logs_after(ids)
            allowed_V = logs_V.clone()
            allowed_V[sorted(never)] = -math.inf
            if len(ids) < len(prefix):
                chosen = [prefix[len(ids)]]
            else:
                chosen = allowed_V.topk(beam).indices.tolist()
            longer += [
                (total + float(logs_V[one]), (*ids, one), (*logs, float(logs_V[one])))
                for one in chosen
            ]
        longer.sort(key=lambda one: -one[0])
        kept = longer[: beam - len(ended)]
        ended += [one for one in kept if one[1][-1] == special.eos_id]
        growing = [one for one in kept if one[1][-1] != special.eos_id]
    ended.sort(key=lambda one: -one[0])
    growing.sort(key=lambda one: -one[0])
    return [(ids, logs) for _, ids, logs in [*ended, *growing]]


def read_probe(pair: PairData, change: Any) -> Any:
    """Make the probe of a change, which a slow search gives to every run."""
    if isinstance(change, str):
        return Changes(parse_change(change))
    return pair.read(change)
