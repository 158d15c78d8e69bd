"""Cutting heads by their weights: a model that never heard of changes, and is as fast as before."""

from __future__ import annotations

import copy
from collections.abc import Iterable

from torch import nn

from pellucid.attention.probe import Probe
from pellucid.decode.probing.under_probe import UnderProbe
from pellucid.inside.changes.change import Changes, CutHead
from pellucid.inside.changes.given_changes import GivenChanges, read_changes
from pellucid.inside.changes.place import Place, all_heads
from pellucid.inside.pair import attention_at
from pellucid.model import EncoderDecoder
from pellucid.text.tokenizers.tokenizer import Tokenizer


def cut_model(model: EncoderDecoder, heads: Iterable[Place]) -> EncoderDecoder:
    """Copy a Transformer without the effect of some heads.

    The columns of $W^O$ that read a head's context are 0, so whatever the head computes, it adds
    nothing: the same as `CutHead`, for the engine in C and for every search. All other weights are
    shared with the model.

    Args:
        model: a Transformer; it stays as it is.
        heads: whole heads; a layer or head that is None means all.
    """
    # Tensors that the memo names are shared instead of copied.
    found = copy.deepcopy(model, {id(one): one for one in (*model.parameters(), *model.buffers())})
    sites = {f"{one.part}.{one.layer}.{one.kind}" for one in all_heads(model.config)}
    for head in heads:
        for site in filter(head.is_at, sites):
            attention = attention_at(found, site)
            weight_DX = attention.output.weight.detach().clone()
            blocks_DHE = weight_DX.view(len(weight_DX), attention.num_heads, -1)
            # A view, so that writing to it changes the matrix.
            blocks_DHE[:, slice(None) if head.head is None else head.head] = 0
            attention.output.weight = nn.Parameter(weight_DX, requires_grad=False)
    return found


def heads_to_cut(probe: Probe, model: EncoderDecoder) -> list[Place] | None:
    """List the heads that a probe cuts; None if it does more, or the model is recurrent."""
    if model.config.is_recurrent or not isinstance(probe, Changes):
        return None
    if not all(isinstance(change, CutHead) for change in probe.changes):
        return None
    return [change.place for change in probe.changes]


def change_model(
    model: EncoderDecoder, tokenizer: Tokenizer, changes: GivenChanges | None
) -> tuple[EncoderDecoder, UnderProbe | None]:
    """Change a model for many lines: by its weights if that is all, otherwise under a probe.

    Args:
        model: stays as it is.
        tokenizer: the model's.
        changes: of the model; None for none.

    Returns:
        The model to run, and what changes it on the way; None if its weights say all.

    Raises:
        InputError: a change cannot be read, or names what the model does not have.
    """
    if changes is None:
        return model, None
    probe = read_changes(changes, model.config)
    heads = heads_to_cut(probe, model)
    if heads is None:
        return model, UnderProbe(model, tokenizer, probe)
    return cut_model(model, heads), None
