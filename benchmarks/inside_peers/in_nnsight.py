"""Every task in nnsight: the modules of `transformers`, read and changed while they run.

A grid is patched in batches: line i of a batch has the vector of position i.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from inside_peers.question import Question
from nnsight import NNsight
from torch import Tensor
from transformers import MarianMTModel


def open_model(folder: Path) -> NNsight:
    """Open an export to MarianMT in double precision, with attention that can be read."""
    model = MarianMTModel.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager")
    return NNsight(model.eval())


def cache(model: NNsight, question: Question) -> Any:
    with model.trace(input_ids=question.clean_1S, decoder_input_ids=question.read_1T) as tracer:
        found = tracer.cache()
    return found


def cut_head(model: NNsight, question: Question) -> Tensor:
    with model.trace(input_ids=question.clean_1S, decoder_input_ids=question.read_1T):
        model.model.encoder.layers[1].self_attn.out_proj.input[:, :, 24:48] = 0
        logits = model.output.logits.save()
    return logits


def patch(model: NNsight, question: Question) -> Tensor:
    with model.trace(input_ids=question.clean_1S, decoder_input_ids=question.read_1T) as tracer:
        clean = tracer.cache(include_inputs=True)
        first = question.prefers(model.output.logits).save()
    with model.trace(input_ids=question.changed_1S, decoder_input_ids=question.read_1T):
        second = question.prefers(model.output.logits).save()
    each = torch.arange(question.changed_1S.shape[1])
    batch = {
        "input_ids": question.changed_1S.repeat(len(each), 1),
        "decoder_input_ids": question.read_1T.repeat(len(each), 1),
    }
    layers = model.model.encoder.layers
    places = [(layer, slice(None)) for layer in layers]
    for layer in layers:
        heads = [slice(24 * head, 24 * head + 24) for head in range(4)]
        places += [(layer.self_attn.out_proj, head) for head in heads]
    rows = []
    for module, part in places:
        with model.trace(**batch):
            module.input[each, each, part] = clean[module.path].input[0, :, part]
            patched = question.prefers(model.output.logits).save()
        rows.append(patched)
    # No module has what leaves the last layer as its only input.
    with model.trace(**batch):
        layers[1].output[each, each] = clean[layers[1].path].output[0]
        patched = question.prefers(model.output.logits).save()
    rows.insert(2, patched)
    return (torch.stack(rows) - second) / (first - second)


def patch_by_gradient(model: NNsight, question: Question) -> Tensor:
    layers = model.model.encoder.layers
    with model.trace(input_ids=question.clean_1S, decoder_input_ids=question.read_1T) as tracer:
        clean = tracer.cache(include_inputs=True)
        first = question.prefers(model.output.logits).save()
    known = clean.model.model.encoder.layers
    with model.trace(input_ids=question.changed_1S, decoder_input_ids=question.read_1T):
        vectors = [layers[0].input, layers[0].output, layers[1].output]
        second = question.prefers(model.output.logits).save()
        with second.backward():
            # Gradients come in the order of the way back.
            slopes = [one.grad for one in reversed(vectors)].save()
        vectors.save()
    steps = [known[0].input, known[0].output, known[1].output]
    rows = [
        ((step - vector) * slope)[0].sum(dim=-1)
        for step, vector, slope in zip(steps, vectors, reversed(slopes), strict=True)
    ]
    return torch.stack(rows) / (first - second)


def logit_attribution(model: NNsight, question: Question) -> Tensor:
    with model.trace(input_ids=question.clean_1S, decoder_input_ids=question.read_1T) as tracer:
        cached = tracer.cache(include_inputs=True)
    found = cached.model.model.decoder
    decoder = model.model.decoder
    rows_VD = model.lm_head.weight
    along = rows_VD[question.ids[0]] - rows_VD[question.ids[1]]
    bias_V = model.final_logits_bias[0]
    biases = bias_V[question.ids[0]] - bias_V[question.ids[1]]
    parts = []
    for layer in reversed(range(2)):
        for norm_name, part in (
            ("final_layer_norm", "fc2"),
            ("encoder_attn_layer_norm", "encoder_attn"),
            ("self_attn_layer_norm", "self_attn"),
        ):
            norm = getattr(decoder.layers[layer], norm_name)
            before = getattr(found.layers[layer], norm_name).input[0, -1]
            biases = biases + along @ norm.bias
            along = along * norm.weight
            deviation = (before.var(correction=0) + norm.eps).sqrt()
            along = (along - along.mean()) / deviation
            if part == "fc2":
                parts.append(found.layers[layer].fc2.output[0, -1] @ along)
                continue
            output = getattr(decoder.layers[layer], part).out_proj
            context = getattr(found.layers[layer], part).out_proj.input[0, -1]
            biases = biases + along @ output.bias
            by_head = (context * (along @ output.weight)).reshape(4, 24).sum(dim=1)
            parts += by_head.flip(0)
    parts.append(found.embed_positions.output[-1] @ along)
    parts.append(found.layers[0].input[0, -1] @ along - parts[-1])
    return torch.stack([*reversed(parts), biases])


def head_gradients(model: NNsight, question: Question) -> Tensor:
    encoder = [layer.self_attn for layer in model.model.encoder.layers]
    decoder = [
        attention
        for layer in model.model.decoder.layers
        for attention in (layer.self_attn, layer.encoder_attn)
    ]
    with model.trace(input_ids=question.clean_1S, decoder_input_ids=question.read_1T):
        contexts = [one.out_proj.input for one in (*encoder, *decoder)]
        with question.prefers(model.output.logits).backward():
            # Gradients come in the order of the way back.
            parts = [(one * one.grad)[0].sum(dim=0) for one in reversed(contexts)].save()
    return torch.cat([one.reshape(4, 24).sum(dim=1) for one in reversed(parts)])


def beam_weights(model: NNsight, question: Question) -> Tensor:
    search: dict[str, Any] = {"num_beams": 5, "length_penalty": 0.0}
    ids = model.generate(question.clean_1S, **search)
    with model.trace(input_ids=question.clean_1S, decoder_input_ids=ids[:, :-1]):
        weights = model.model.decoder.layers[1].encoder_attn.output[1].save()
    return weights[0]


def beam_cut(model: NNsight, question: Question) -> list[int]:
    search: dict[str, Any] = {"num_beams": 5, "length_penalty": 0.0}
    with model.trace(question.clean_1S, fn=model.generate, **search) as tracer:
        model.model.encoder.layers[1].self_attn.out_proj.input[:, :, 24:48] = 0
        ids = tracer.result.save()
    return ids[0, 1:].tolist()
