"""A bundle's tensors: stored at each precision, read into a model, and checked."""

from __future__ import annotations

from collections.abc import Mapping, Set
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from pellucid.config import BundleConfig, Precision
from pellucid.errors import BundleError
from pellucid.model.encoder_decoder import EncoderDecoder
from pellucid.model.make import make_model
from pellucid.model.unowned import rows_of_zeros, silence_logits
from pellucid.native import quantization
from pellucid.native.quantization import SCALE, is_quantizable
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
    layers = config.model.num_encoder_layers + config.model.num_decoder_layers
    if layers > len(tensors):
        raise BundleError(
            f"The {layers} layers of config.json must be in {path.name}, but it has only "
            f"{len(tensors)} tensors ({path})."
        )
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


_TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def quantize_tensor_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Turn a float32 matrix into 8-bit integers with one scale a row, exactly as the engine does.

    Returns:
        The int8 matrix, and the float32 scales, one a row.
    """
    # One quantizer for both, so that stored integers are those that the engine would make.
    values, scale = quantization.quantize_rows(weight.detach().numpy(force=True))
    return torch.from_numpy(values), torch.from_numpy(scale)


def dequantize_rows(values: Tensor, scale: Tensor) -> Tensor:
    """Turn 8-bit integers with one scale a row back into a float32 matrix, exactly."""
    return values.float() * scale[:, None]


def is_quantized_tensor(values: Tensor, scale: Tensor) -> bool:
    """True if integers and scales can be a result of `quantize_tensor_rows`."""
    return quantization.is_quantized(values.numpy(), scale.numpy())


def pack_weights(weights: Mapping[str, Tensor], precision: Precision) -> dict[str, Tensor]:
    """Convert float32 weights into the tensors that a bundle stores at a precision.

    ``float32`` and ``bfloat16`` apply to all tensors. ``int8`` turns every matrix ``NAME`` into
    integers ``NAME`` and scales ``NAME_scale``; vectors stay float32, and so do learned positions,
    which are added and never multiplied.
    """
    if precision != "int8":
        return {name: weight.to(_TYPES[precision]) for name, weight in weights.items()}
    packed: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if is_quantizable(name, weight.dim()):
            packed[name], packed[name + SCALE] = quantize_tensor_rows(weight.float())
        else:
            packed[name] = weight.float()
    return packed


def packed_types(
    shapes: Mapping[str, tuple[int, ...]], precision: Precision
) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
    """Compute the shapes and types of the stored tensors from the shapes of the weights."""
    if precision != "int8":
        return {name: (shape, _TYPES[precision]) for name, shape in shapes.items()}
    types: dict[str, tuple[tuple[int, ...], torch.dtype]] = {}
    for name, shape in shapes.items():
        types[name] = (shape, torch.float32)
        if is_quantizable(name, len(shape)):
            types[name] = (shape, torch.int8)
            types[name + SCALE] = (shape[:1], torch.float32)
    return types


def unpack_weights(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert stored tensors back into float32 weights, by name."""
    return {
        name: dequantize_rows(tensor, tensors[name + SCALE])
        if tensor.dtype == torch.int8
        else tensor.float()
        for name, tensor in tensors.items()
        # Only next to its matrix is a tensor of such a name a scale.
        if not (name.endswith(SCALE) and name.removesuffix(SCALE) in tensors)
    }
