"""A bundle's tensors: reading them into a model, and checking that they are the model's."""

from __future__ import annotations

from collections.abc import Mapping, Set
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from pellucid.config import BundleConfig
from pellucid.errors import BundleError
from pellucid.model.encoder_decoder import EncoderDecoder
from pellucid.model.make import make_model
from pellucid.model.stored_precision import is_quantized_tensor, packed_types, unpack_weights
from pellucid.model.unowned import rows_of_zeros, silence_logits
from pellucid.native.quantization import SCALE
from pellucid.text.tokenizers.marian import MarianTokenizer
from pellucid.text.tokenizers.tokenizer import Tokenizer


def serialize_tensors(tensors: Mapping[str, Tensor]) -> bytes:
    """Write tensors as safetensors without metadata, so that equal tensors are equal bytes."""
    return safetensors.torch.save(
        {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    )


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file.

    Raises:
        BundleError: it is damaged.
    """
    try:
        return safetensors.torch.load_file(path)
    except (SafetensorError, OSError) as error:
        raise BundleError(
            f"{path.name} must be a safetensors file, but cannot be read: {error} ({path}). Copy "
            "it again."
        ) from None


def load_model(path: Path, config: BundleConfig, tokenizer: Tokenizer) -> EncoderDecoder:
    """Make the model of a bundle, in float32.

    Args:
        path: the file of the tensors.
        config: the bundle's configuration.
        tokenizer: the bundle's tokenizer.

    Raises:
        BundleError: the tensors are damaged, or are not those of the configuration.
    """
    tensors = read_tensors(path)
    _verify_sizes(config, tensors, path)
    model = _empty_model(config, tensors)
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    _verify_tensors(packed_types(shapes, config.precision), tensors, path)
    weights = unpack_weights(tensors)
    # Padding that a converter appended must have no share of a softmax: unowned.py.
    if isinstance(tokenizer, MarianTokenizer):
        unowned = rows_of_zeros(weights, tokenizer.unwritten_ids())
        weights = silence_logits(weights, unowned)
        # Silencing has added a bias, for which the first model has no place.
        if "output.bias" not in tensors and unowned:
            model = _empty_model(config, weights)
    # Assigned, because a model on the meta device has no memory to copy into.
    model.load_state_dict(weights, assign=True)
    return model.eval().requires_grad_(False)


def _empty_model(config: BundleConfig, weights: Mapping[str, Tensor]) -> EncoderDecoder:
    """Make the model of some weights, without memory for its own, which they replace."""
    with torch.device("meta"):
        return make_model(config.model, has_output_bias="output.bias" in weights)


def _verify_tensors(
    expected: Mapping[str, tuple[tuple[int, ...], torch.dtype]],
    tensors: Mapping[str, Tensor],
    path: Path,
) -> None:
    """Check names, shapes, types and numbers."""
    _verify_names(expected.keys(), tensors.keys(), path)
    for name, (shape, dtype) in expected.items():
        tensor = tensors[name]
        if tuple(tensor.shape) != shape or tensor.dtype != dtype:
            raise BundleError(
                f"The tensor {name} must be {_name_type(dtype)} {shape}, but is "
                f"{_name_type(tensor.dtype)} {tuple(tensor.shape)} ({path})."
            )
    for name, tensor in tensors.items():
        if tensor.dtype == torch.int8:
            if not is_quantized_tensor(tensor, tensors[name + SCALE]):
                raise BundleError(
                    f"Every row of {name} and its scale must be as pellucid quantizes them, but "
                    f"some are not ({path}). Export the float32 model again."
                )
        # Integers are finite; their scales come as separate tensors.
        elif not bool(torch.isfinite(tensor).all()):
            raise BundleError(
                f"Every weight must be a finite number, but {name} holds others ({path}). "
                "The training that made it failed."
            )


def _name_type(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _verify_sizes(config: BundleConfig, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Refuse a configuration with more layers than the file, before anything is allocated."""
    layers = config.model.num_encoder_layers + config.model.num_decoder_layers
    if layers > len(tensors):
        raise BundleError(
            f"The {layers} layers of config.json must be in {path.name}, but it has only "
            f"{len(tensors)} tensors ({path})."
        )


def _verify_names(expected: Set[str], actual: Set[str], path: Path) -> None:
    for word, names in (
        ("lacks", sorted(expected - actual)),
        ("also has", sorted(actual - expected)),
    ):
        if names:
            shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if names[3:] else "")
            raise BundleError(
                f"The tensors must be those that config.json describes, but {path.name} {word} "
                f"{shown} ({path}). The file belongs to another model."
            )
