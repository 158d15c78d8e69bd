"""Replay: run the tokens that a decode chose through the model again, with explicit stages.

Decoding takes the fastest path and keeps nothing. To look inside one translation, its tokens run
through the model with teacher forcing and a probe that keeps the arrays asked for. The tokens are
always the decode's. A trace also holds its checks: how far the replay is from the decode, and how
far the arrays are from what they must add up to.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pellucid.arguments import checked, warn_caller
from pellucid.attention import stages
from pellucid.attention.checks import fitted
from pellucid.attention.probe import Probe, only_observes, tell_probe
from pellucid.decode.probing.under_probe import REPLACED_NOTHING
from pellucid.inside.ask import ATTENTION_STAGES, HEAD_STAGES, Ask
from pellucid.inside.changes.change import Changes
from pellucid.inside.changes.given_changes import GivenChanges, join_probes
from pellucid.inside.pair import (
    PairData,
    attention_at,
    check_memory,
    output_by_head,
    recurrent_attention_at,
)
from pellucid.inside.traces import Trace
from pellucid.machine.devices import CPU
from pellucid.model import EncoderDecoder

Keep = Callable[[str, np.ndarray], None]


@checked
@torch.inference_mode()
def replay(
    pair: PairData,
    ask: Ask | None = None,
    *,
    decode_log_probabilities: Sequence[float] | None = None,
    model: Mapping[str, Any] | None = None,
    decoding: Mapping[str, Any] | None = None,
    changes: GivenChanges | None = None,
    decoded_under_changes: bool = False,
    float64: bool = False,
    keep: Keep | None = None,
) -> Trace:
    """Run a pair through the explicit stages, and keep the arrays asked for.

    Args:
        pair: the sentence; in double precision, so that arrays are exact to their last digit even
            if scores are large.
        ask: the arrays to keep; by default all weights.
        decode_log_probabilities: of each target token as the decode computed it, to compare with.
        model: facts about the model, for the trace.
        decoding: facts about the decode that found the target, for the trace.
        changes: what changes on the way: a text such as ``cut decoder.1.cross.0``, a `Change`, a
            probe, or several; the arrays follow from it. A warning says if a probe replaces
            nothing.
        decoded_under_changes: True if the decode made the same changes, so that its
            log-probabilities must be those of the replay.
        float64: keep arrays in double precision instead of rounding them to float32.
        keep: takes each array as soon as it is computed, instead of the trace, so that memory
            holds one layer at a time.

    Raises:
        InputError: something asked for or to be changed does not exist, or the arrays do not fit
            into memory.
    """
    ask = ask or Ask()
    config = pair.model.config
    if isinstance(changes, Changes) and (decoded_under_changes or not changes.changes):
        # What a decode made was checked against the longest sentence.
        probe = join_probes(pair.changes, changes)
    else:
        probe = pair.read(changes)
    pair = dataclasses.replace(pair, changes=None)
    if ask == Ask() and not config.has_attention:
        ask = Ask(stages=("vector",))  # Without weights the one vector is what there is to see.
    ask.check(config)
    if keep is None:
        lengths = len(pair.source_ids), len(pair.target_ids)
        check_memory(
            "A trace",
            ask.num_bytes(config, *lengths, item_bytes=8 if float64 else 4),
            "Ask for less with layer, kind, head or stage, or write it to a .npz file, which holds "
            "one layer at a time.",
        )
    arrays: dict[str, np.ndarray] = {}
    # The pair decides the precision of the run, this only that of what is kept.
    dtype = np.dtype(np.float64 if float64 else np.float32)
    recorder = _Recorder(pair.model, ask, keep or arrays.__setitem__, probe, dtype)
    logs_TV = pair.logits(probe=recorder).log_softmax(dim=-1)
    targets_T1 = pair.to_tensor(pair.target_ids)[:, None]
    logs = tuple(logs_TV.gather(1, targets_T1)[:, 0].tolist())
    checks = dict(recorder.checks)
    decoding = {**(decoding or {}), **_place_of(logs_TV)}
    is_checked = getattr(probe, "is_checked", False)
    if probe is not None and not recorder.replaced and not is_checked:
        if only_observes(probe) and not recorder.is_written_to:
            decoding.pop("changes", None)
        else:
            # Changes from text are checked before; this one may have misspelled a stage.
            decoding["changes"] = "by a probe, which replaced nothing"
            warn_caller(REPLACED_NOTHING)
    elif probe is not None and hasattr(probe, "warn"):
        probe.warn()
    # A changed replay need not find what the unchanged decode found.
    if decode_log_probabilities is not None and (decoded_under_changes or not recorder.replaced):
        # A search counts what it is given as certain, whatever the model thinks of it.
        given = len(pair.tokenizer.leading_ids(pair.target_ids))
        both = zip(logs[given:], decode_log_probabilities[given:], strict=True)
        checks["decode"] = max((abs(one - other) for one, other in both), default=0.0)
    decoded = None if decode_log_probabilities is None else tuple(decode_log_probabilities)
    return Trace(
        arrays=arrays,
        source_tokens=pair.source_tokens,
        source_ids=pair.source_ids,
        target_tokens=pair.read_tokens,
        target_ids=pair.read_ids,
        predicted_tokens=pair.predicted_tokens,
        predicted_ids=pair.target_ids,
        log_probabilities=logs,
        argmax_tokens=tuple(pair.tokenizer.target_tokens(logs_TV.argmax(dim=-1).tolist())),
        decode_log_probabilities=decoded,
        heads=ask.chosen_heads(config),
        checks=checks,
        model=dict(model or {}),
        decoding=decoding,
    )


def _place_of(logs_TV: Tensor) -> dict[str, str]:
    """Say in what precision and where the arrays are computed."""
    found = {"replay_precision": str(logs_TV.dtype)[6:]}
    device = logs_TV.device
    return found if device.type == CPU else {**found, "replay_device": str(device)}


class _Recorder:
    """The probe that keeps arrays, and checks each attention once it has seen its output.

    An attention whose results were replaced is not checked: they no longer follow from one another.

    Attributes:
        checks: the largest differences found.
        replaced: the sites and stages of all results that were replaced.
        is_written_to: True if the probe changed a copy in place, which has no effect.
    """

    is_checked = True

    def __init__(
        self,
        model: EncoderDecoder,
        ask: Ask,
        keep: Keep,
        changes: Probe | None,
        dtype: np.dtype[Any],
    ) -> None:
        self._model = model
        self._wanted = {wanted.name for wanted in ask.arrays(model.config)}
        self._sites = {name.rpartition(".")[0] for name in self._wanted}
        heads = ask.chosen_heads(model.config)
        # All of them need no copy.
        self._heads = list(heads) if len(heads) < model.config.num_heads else None
        self._keep = keep
        self._changes = changes
        self._dtype = dtype
        # Only a probe that changes rows one by one gets the method that asks for it.
        self._change_rows = getattr(changes, "see_rows", None)
        # A recurrent decoder asks for it, and takes the fast path without it.
        self.see_rows = None if self._change_rows is None else self._see_rows
        self._seen: dict[str, Tensor] = {}
        self.checks: dict[str, float] = {}
        self.replaced: set[tuple[str, str]] = set()
        self.is_written_to = False

    def begin(self, pair: PairData) -> None:
        """Tell the user's probe which sentence comes."""
        tell_probe(self._changes, pair)

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        """Keep one result if it was asked for."""
        changed = None
        if self._changes is not None:
            # A copy, so that a change in place counts only if it is returned.
            copy = tensor.clone()
            replacement = self._changes.see(site, stage, copy)
            self.is_written_to |= replacement is None and not torch.equal(copy, tensor)
            # A recurrent decoder's attention was changed row by row, before it is seen as a whole.
            is_late = self._model.config.is_recurrent and site.endswith(".cross")
            if not (is_late and stage not in ("key", "value") and self._change_rows):
                changed = self._note_change(replacement, tensor, site, stage)
        if changed is not None:
            tensor = changed
        name = f"{site}.{stage}"
        if name in self._wanted:
            first = tensor[0]
            if stage in HEAD_STAGES and self._heads is not None:
                first = first[self._heads]
            self._keep(name, first.numpy(force=True).astype(self._dtype))
        if site in self._sites and site.endswith((".self", ".cross")):
            self._seen[stage] = tensor[0]
            if stage == ("context" if self._model.config.is_recurrent else "output"):
                self._check(site)
        return changed

    def _see_rows(self, site: str, stage: str, rows: Tensor) -> Tensor | None:
        """Change the newest row of a recurrent decoder's attention; `see` keeps the whole."""
        assert self._change_rows is not None
        return self._note_change(self._change_rows(site, stage, rows.clone()), rows, site, stage)

    def _note_change(
        self, replacement: Any, result: Tensor, site: str, stage: str
    ) -> Tensor | None:
        """Return a replacement that differs from the result, and note its place."""
        if replacement is None:
            return None
        changed = fitted(replacement, result, site, stage)
        # Replaced by itself: the checks still hold, so nothing is noted.
        if torch.equal(changed, result):
            return None
        self.replaced.add((site, stage))
        return changed

    def _check(self, site: str) -> None:
        """Compare weights with a softmax computed again, and what they bring with the result."""
        # In double precision, so that a difference is the model's and not that of the check.
        seen = {stage: tensor.double() for stage, tensor in self._seen.items()}
        self._seen = {}
        if any((site, stage) in self.replaced for stage in ATTENTION_STAGES):
            return
        # The mask is taken from the trace, since the check is of the softmax.
        is_masked_HLM = seen["masked"].isneginf()
        if self._model.config.is_recurrent:
            stage = "context"
            scores_HLM = recurrent_attention_at(self._model, site).score(seen["query"], seen["key"])
            result = seen["weights"] @ seen["value"]
        else:
            stage = "output"
            attention = attention_at(self._model, site)
            scores_HLM = attention.positions.score(seen["query"], seen["key"])
            if attention.use_scale:
                scores_HLM = stages.scale(scores_HLM, seen["query"].shape[-1])
            scores_HLM = attention.positions.lower(scores_HLM)
            transformed_HMD = seen["value"] @ output_by_head(attention).double().contiguous()
            result = (seen["weights"] @ transformed_HMD).sum(dim=0)
            if attention.output.bias is not None:
                result = result + attention.output.bias.double()
        weights_HLM = stages.weigh(scores_HLM.masked_fill(is_masked_HLM, -torch.inf))
        self._note("weights", weights_HLM - seen["weights"])
        self._note("rows", _row_errors(seen["weights"], is_masked_HLM))
        # Relative to large outputs, absolute for small ones, which are near 0 by rounding alone.
        size = seen[stage].abs().max().clamp(min=1.0)
        self._note("contributions", (result - seen[stage]) / size)

    def _note(self, check: str, difference: Tensor) -> None:
        largest = float(difference.abs().max())
        self.checks[check] = max(largest, self.checks.get(check, 0.0))


def _row_errors(weights_HLM: Tensor, is_masked_HLM: Tensor) -> Tensor:
    """Return how far each row's sum is from 1, or from 0 if it may attend nowhere."""
    return weights_HLM.sum(dim=-1) - (~is_masked_HLM.all(dim=-1)).double()
