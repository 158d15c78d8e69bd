"""Models and traces in the form that the page reads."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from pellucid.bundle import Bundle
from pellucid.errors import InputError
from pellucid.inside.record.data import TraceData
from pellucid.inside.show.view import describe_model_of
from pellucid.page import MODEL_LIMIT

MOST_BYTES = 64 * 2**20
"""The most bytes of numbers in a page that browsers open well."""


def cannot_carry(bundle: Bundle) -> str:
    """Explain in one sentence why a page cannot run a model; return ``""`` if it can."""
    config = bundle.config
    if config.model.is_recurrent:
        return (
            "The page shows a recorded sentence: it runs Transformers itself, and this model is "
            "recurrent."
        )
    if config.tokenizer.kind != "words":
        return (
            "The page shows a recorded sentence: it runs models of whole words itself, and this "
            "model cuts words into pieces."
        )
    size = sum(4 * weight.numel() for weight in bundle.exact_model.state_dict().values())
    if size > MODEL_LIMIT:
        return (
            f"The page shows a recorded sentence: it runs models of at most "
            f"{MODEL_LIMIT // 2**20} MiB itself, and this one has {size / 2**20:.0f} MiB."
        )
    return ""


def carry_model(
    bundle: Bundle, name: str = "", *, taught: tuple[int, int] | None = None
) -> dict[str, Any]:
    """Pack a model as the page runs it: configuration, vocabularies, and float32 weights.

    Args:
        bundle: the model.
        name: its name as the command line takes it; that of its folder unless given.
        taught: layer and head of cross-attention that learned word links from given ones, if any.
    """
    config = bundle.config.model_dump(mode="json")
    tensors, parts, start = {}, [], 0
    for tensor_name, tensor in sorted(bundle.exact_model.state_dict().items()):
        array = np.ascontiguousarray(tensor.detach().float().cpu().numpy(), dtype="<f4")
        tensors[tensor_name] = {"shape": list(array.shape), "start": start}
        parts.append(array.tobytes())
        start += array.size
    return {
        "name": name or bundle.folder.name,
        "model_hash": bundle.model_hash,
        "taught_head": f"decoder.{taught[0]}.cross.{taught[1]}" if taught else "",
        "languages": config["languages"],
        "model": config["model"],
        "tokenizer": config["tokenizer"],
        "decoding": config["decoding"],
        "source_vocabulary": bundle.tokenizer.vocabulary("source"),
        "target_vocabulary": bundle.tokenizer.vocabulary("target"),
        "tensors": tensors,
        "weights": base64.b64encode(b"".join(parts)).decode(),
    }


def carry_trace(trace: TraceData) -> dict[str, Any]:
    """Pack a trace as the page shows it.

    Raises:
        InputError: it holds more than a page may hold.
    """
    size = sum(array.nbytes for array in trace.arrays.values())
    if size > MOST_BYTES:
        raise InputError(
            f"A page must hold at most {MOST_BYTES / 2**20:.0f} MiB of numbers for a browser to "
            f"open it, but this trace has {size / 2**20:.0f}. Ask for fewer layers, heads or "
            "stages, or save it as .npz."
        )
    return {
        "format": 1,
        "source_tokens": list(trace.source_tokens),
        "target_tokens": list(trace.target_tokens),
        "predicted_tokens": list(trace.predicted_tokens),
        "predicted_ids": list(trace.predicted_ids),
        "log_probabilities": list(trace.log_probabilities),
        "heads": list(trace.heads),
        "text": str(trace.decoding.get("text") or " ".join(trace.predicted_tokens)),
        "model": dict(trace.model),
        "about": describe_model_of(trace),
        "arrays": {name: _pack(array) for name, array in trace.arrays.items()},
    }


def _pack(array: np.ndarray) -> dict[str, Any]:
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return {
        "shape": list(array.shape),
        "bytes": array.dtype.itemsize,
        "data": base64.b64encode(little.tobytes()).decode(),
    }
