"""Export to a folder that Hugging Face's MarianMT loads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from pellucid.bundle import Bundle, bundle_json
from pellucid.config import Precision
from pellucid.errors import InputError
from pellucid.files import new_folder, write_bytes, write_text
from pellucid.formats.exporting import check_model, never_written, sentencepiece_models
from pellucid.formats.safe_reading import check_place
from pellucid.formats.tensor_names import (
    halves_order,
    hugging_face_name,
    reorder_width,
    weight_shapes,
)

ALLOWED: dict[str, tuple[Any, ...]] = {
    "norm": ("post",),
    "layer_norm_epsilon": (1e-5,),
    "positions": ("sinusoidal", "sinusoidal_halves"),
}
TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def export_marian(bundle: Bundle, out: Path, precision: Precision) -> None:
    """Write a model for ``MarianMTModel.from_pretrained`` and ``MarianTokenizer``.

    MarianMT adds positions with all sines before all cosines. The width of a model with
    interleaved positions is reordered, so that it computes the same. Missing biases become zeros.

    Args:
        bundle: the model.
        out: the new folder.
        precision: precision of the stored weights; MarianMT does not know int8.

    Raises:
        InputError: MarianMT cannot represent the model, or the folder has content.
        OutputError: the disk cannot take it.
    """
    check_place(out)
    check_model(bundle, "Marian", ALLOWED)
    if precision not in TYPES:
        raise InputError(
            f"--precision must be float32 or bfloat16 for Marian, but is {precision}. Use --format "
            "ctranslate2 or --format pellucid for int8."
        )
    models = sentencepiece_models(bundle)
    weights = {
        # safetensors refuses views such as reordered columns.
        name: weight.to(TYPES[precision]).contiguous()
        for name, weight in _their_weights(bundle).items()
    }
    with new_folder(out) as part:
        # Some versions of Transformers refuse a file that does not say its format.
        write_bytes(
            part / "model.safetensors", safetensors.torch.save(weights, metadata={"format": "pt"})
        )
        write_text(part / "config.json", bundle_json(_config(bundle, precision)))
        write_text(part / "generation_config.json", bundle_json(_generation(bundle)))
        for side, model in zip(("source", "target"), models, strict=True):
            write_bytes(part / f"{side}.spm", model)
        for name, values in _vocabulary(bundle).items():
            write_text(part / name, bundle_json(values))


def _their_weights(bundle: Bundle) -> dict[str, Tensor]:
    config = bundle.config.model
    ours = dict(bundle.model.state_dict())
    if config.positions == "sinusoidal":
        ours = reorder_width(ours, halves_order(config.d_model))
    with_biases = config.model_copy(update={"projection_bias": True})
    theirs = {
        hugging_face_name(name): ours[name] if name in ours else torch.zeros(shape)
        for name, shape in weight_shapes(with_biases, has_output_bias=True).items()
    }
    bias = hugging_face_name("output.bias")
    return {**theirs, bias: theirs[bias][None]}  # MarianMT stores it as a matrix of one row


def _config(bundle: Bundle, precision: Precision) -> dict[str, Any]:
    model = bundle.config.model
    tokenizer = bundle.config.tokenizer
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "is_encoder_decoder": True,
        "vocab_size": model.source_vocabulary_size,
        "decoder_vocab_size": model.target_vocabulary_size,
        "d_model": model.d_model,
        **{
            f"{part}_{name}": value
            for part in ("encoder", "decoder")
            for name, value in (
                ("layers", getattr(model, f"num_{part}_layers")),
                ("attention_heads", model.num_heads),
                ("ffn_dim", model.d_ff),
            )
        },
        "activation_function": model.activation,
        "static_position_embeddings": True,
        "max_position_embeddings": max(model.max_source_length, model.max_target_length),
        "scale_embedding": model.embedding_scale == "sqrt",
        "share_encoder_decoder_embeddings": model.tied_embeddings == "all",
        "tie_word_embeddings": model.tied_embeddings != "none",
        "pad_token_id": tokenizer.pad_id,
        "eos_token_id": tokenizer.eos_id,
        "decoder_start_token_id": tokenizer.target_start_id,
        "bos_token_id": tokenizer.bos_id,
        # Their default forces the token 0 at the maximum length.
        "forced_eos_token_id": None,
        "dtype": precision,
    }


def _generation(bundle: Bundle) -> dict[str, Any]:
    """Settings of a translation: tokens that are never written, and the search."""
    decoding = bundle.config.decoding
    tokenizer = bundle.config.tokenizer
    generation: dict[str, Any] = {
        "bad_words_ids": [[id_] for id_ in never_written(bundle)],
        "pad_token_id": tokenizer.pad_id,
        "eos_token_id": tokenizer.eos_id,
        "decoder_start_token_id": tokenizer.target_start_id,
        # Hugging Face counts the start token too.
        "max_length": decoding.max_length + 1
        if decoding.max_length
        else bundle.config.model.max_target_length,
        "num_beams": decoding.beam,
    }
    # MarianMT has no form for the penalty of GNMT.
    if decoding.beam > 1 and decoding.length_penalty != "gnmt":
        # Theirs divides by the length to this power, so 0 means no penalty.
        is_average = decoding.length_penalty == "average"
        generation["length_penalty"] = decoding.alpha if is_average else 0.0
    return generation


def _vocabulary(bundle: Bundle) -> dict[str, Any]:
    """Return the vocabulary files and the settings of the tokenizer, by name."""
    config = bundle.config.tokenizer
    tokenizer = bundle.tokenizer
    is_separate = config.sharing == "separate"
    sides = {"vocab.json": tokenizer.vocabulary("source")}
    if is_separate:
        sides["target_vocab.json"] = tokenizer.vocabulary("target")
    special = tokenizer.target_tokens([config.unk_id, config.eos_id, config.pad_id])
    settings = {
        "tokenizer_class": "MarianTokenizer",
        "separate_vocabs": is_separate,
        "source_lang": bundle.config.languages.source,
        "target_lang": bundle.config.languages.target,
        "model_max_length": bundle.config.model.max_source_length,
        **dict(zip(("unk_token", "eos_token", "pad_token"), special, strict=True)),
    }
    lists = {
        name: {token: id_ for id_, token in enumerate(tokens)} for name, tokens in sides.items()
    }
    return {**lists, "tokenizer_config.json": settings}
