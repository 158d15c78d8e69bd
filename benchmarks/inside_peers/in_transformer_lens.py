"""Every task in TransformerLens, with its hooks; what its functions refuse is done by hand.

A grid is patched in batches: line i of a batch has the vector of position i.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from inside_peers.question import Question
from torch import Tensor
from transformer_lens import patching
from transformer_lens.model_bridge import TransformerBridge
from transformer_lens.tools.analysis.attribution_patching import attribution_patch
from transformer_lens.tools.analysis.direct_logit_attribution import direct_logit_attribution
from transformer_lens.tools.analysis.logit_lens import logit_lens


def open_model(folder: Path) -> TransformerBridge:
    """Open an export to MarianMT in double precision."""
    return TransformerBridge.boot_transformers(str(folder), dtype=torch.float64)


def cache(model: TransformerBridge, question: Question) -> Any:
    _, found = model.run_with_cache(question.clean_1S, decoder_input=question.read_1T)
    return found


def cut_head(model: TransformerBridge, question: Question) -> Tensor:
    def cut(context_BLHE: Tensor, hook: Any) -> Tensor:
        context_BLHE[:, :, 1] = 0
        return context_BLHE

    hooks = [("encoder_blocks.1.attn.hook_z", cut)]
    return model.run_with_hooks(question.clean_1S, decoder_input=question.read_1T, fwd_hooks=hooks)


def patch(model: TransformerBridge, question: Question) -> Tensor:
    logits, clean = model.run_with_cache(question.clean_1S, decoder_input=question.read_1T)
    first = question.prefers(logits)
    second = question.prefers(model(question.changed_1S, decoder_input=question.read_1T))
    each = torch.arange(question.changed_1S.shape[1])
    sources = question.changed_1S.repeat(len(each), 1)
    read = question.read_1T.repeat(len(each), 1)
    places = [
        ("encoder_blocks.0.hook_in", slice(None)),
        *((f"encoder_blocks.{layer}.hook_out", slice(None)) for layer in range(2)),
        *((f"encoder_blocks.{layer}.attn.hook_z", head) for layer in range(2) for head in range(4)),
    ]
    rows = []
    for name, head in places:

        def put(vectors: Tensor, hook: Any, head: Any = head) -> Tensor:
            vectors[each, each, head] = clean[hook.name][0, :, head]
            return vectors

        patched = model.run_with_hooks(sources, decoder_input=read, fwd_hooks=[(name, put)])
        rows.append((question.prefers(patched) - second) / (first - second))
    return torch.stack(rows)


def patch_by_gradient(model: TransformerBridge, question: Question) -> Tensor:
    logits, clean = model.run_with_cache(question.clean_1S, decoder_input=question.read_1T)
    names = ("encoder_blocks.0.hook_in", "encoder_blocks.0.hook_out", "encoder_blocks.1.hook_out")
    kept = {}

    def keep(vectors: Tensor, hook: Any) -> None:
        vectors.retain_grad()
        kept[hook.name] = vectors

    hooks = [(name, keep) for name in names]
    changed = model.run_with_hooks(
        question.changed_1S, decoder_input=question.read_1T, fwd_hooks=hooks
    )
    second = question.prefers(changed)
    second.backward()
    rows = [((clean[name] - kept[name]) * kept[name].grad)[0].sum(dim=-1) for name in names]
    return torch.stack(rows) / (question.prefers(logits) - second)


def logit_attribution(model: TransformerBridge, question: Question) -> Tensor:
    _, found = model.run_with_cache(question.clean_1S, decoder_input=question.read_1T)
    rows_VD = model.unembed.original_component.weight
    along = rows_VD[question.ids[0]] - rows_VD[question.ids[1]]
    bias_V = model.original_model.final_logits_bias[0]
    biases = bias_V[question.ids[0]] - bias_V[question.ids[1]]
    parts = []
    for layer in reversed(range(2)):
        name = f"decoder_blocks.{layer}"
        block = model.decoder_blocks[layer]
        for norm, part in (("ln3", "mlp"), ("ln2", "cross_attn"), ("ln1", "self_attn")):
            biases = biases + along @ getattr(block, norm).bias
            along = along * getattr(block, norm).weight
            along = (along - along.mean()) / found[f"{name}.{norm}.hook_scale"][0, -1]
            if part == "mlp":
                parts.append(found[f"{name}.mlp.hook_out"][0, -1] @ along)
                continue
            attention = getattr(block, part)
            biases = biases + along @ attention.b_O
            by_head = torch.einsum(
                "he,hed,d->h", found[f"{name}.{part}.hook_z"][0, -1], attention.W_O, along
            )
            parts += by_head.flip(0)
    parts.append(found["decoder_pos_embed.hook_out"][-1] @ along)
    parts.append(found["decoder_blocks.0.hook_in"][0, -1] @ along - parts[-1])
    return torch.stack([*reversed(parts), biases])


def head_gradients(model: TransformerBridge, question: Question) -> Tensor:
    contexts = []

    def keep(context_BLHE: Tensor, hook: Any) -> Tensor:
        context_BLHE.retain_grad()
        contexts.append(context_BLHE)
        # A hook sees a copy, which counts only if it is returned.
        return context_BLHE

    hooks = [(lambda name: name.endswith("attn.hook_z"), keep)]
    logits = model.run_with_hooks(
        question.clean_1S, decoder_input=question.read_1T, fwd_hooks=hooks
    )
    question.prefers(logits).backward()
    return torch.cat([(one * one.grad).sum(dim=(0, 1, 3)) for one in contexts])


def beam_weights(model: TransformerBridge, question: Question) -> Tensor:
    search: dict[str, Any] = {"num_beams": 5, "do_sample": False, "length_penalty": 0.0}
    ids = model.hf_generate(question.clean_1S, return_type="tokens", max_new_tokens=60, **search)
    _, found = model.run_with_cache(question.clean_1S, decoder_input=ids[:, :-1])
    return found["decoder_blocks.1.cross_attn.hook_pattern"][0]


def beam_cut(model: TransformerBridge, question: Question) -> list[int]:
    def cut(context_BLHE: Tensor, hook: Any) -> Tensor:
        context_BLHE[:, :, 1] = 0
        return context_BLHE

    search: dict[str, Any] = {"num_beams": 5, "do_sample": False, "length_penalty": 0.0}
    with model.hooks(fwd_hooks=[("encoder_blocks.1.attn.hook_z", cut)]):
        ids = model.hf_generate(
            question.clean_1S, return_type="tokens", max_new_tokens=60, **search
        )
    return ids[0, 1:].tolist()


def refusals(model: TransformerBridge, question: Question) -> dict[str, str]:
    """Call the functions that TransformerLens has for these tasks, and keep what they answer."""
    _, found = model.run_with_cache(question.clean_1S, decoder_input=question.read_1T)
    _, changed = model.run_with_cache(question.changed_1S, decoder_input=question.read_1T)
    # `direct_logit_attribution` asks for it; folding norms away would change a post-norm model.
    model.enable_compatibility_mode(no_processing=True)

    def metric(logits_BTV: Tensor) -> Tensor:
        return question.prefers(logits_BTV)[0]

    tried = {
        "get_act_patch_resid_pre": lambda: patching.get_act_patch_resid_pre(
            model, question.changed_1S, found, metric
        ),
        "get_act_patch_direct_path": lambda: patching.get_act_patch_direct_path(
            model, question.changed_1S, found, changed, metric, src_layer=0, src_head=1
        ),
        "attribution_patch": lambda: attribution_patch(
            model, question.clean_1S, question.changed_1S, metric
        ),
        "direct_logit_attribution": lambda: direct_logit_attribution(
            model, question.clean_1S, question.ids[0]
        ),
        "cache.stack_head_results": found.stack_head_results,
        "logit_lens": lambda: logit_lens(model, question.clean_1S),
        "all_composition_scores": lambda: model.all_composition_scores("Q"),
        "generate, return_cache": lambda: model.generate(question.clean_1S, return_cache=True),
    }
    return {name: _answer(call) for name, call in tried.items()}


def _answer(call: Any) -> str:
    """Return the message with which a call ends, empty if it works."""
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return ""
