"""A model read from another format, on its way into a bundle."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import pellucid
from pellucid.bundle import save_bundle
from pellucid.config import (
    BundleConfig,
    DecodingConfig,
    LanguagesConfig,
    ModelConfig,
    TokenizerConfig,
    validate,
)
from pellucid.config.config_json import MASKS, RESERVED
from pellucid.documents.placeholder_masks import mask
from pellucid.errors import BundleError
from pellucid.files import hash_file
from pellucid.formats.tensor_names import weight_shapes
from pellucid.text.tokenizers.marian import MarianTokenizer, unused_name
from pellucid.text.tokenizers.tokenizer import Tokenizer, write_vocabulary

Take = Callable[[str], tuple[str, Tensor | None]]
"""Finds a tensor by our name: returns its name in the file, and the tensor in our shape."""


@dataclass(frozen=True)
class ImportedVocabulary:
    """The vocabulary of a model of Marian.

    Attributes:
        models: the SentencePiece models of the source and the target side.
        sides: the tokens of the source and the target side; one list if they are the same.
        pad_id: id of the padding.
        unk_id: id of a token that is not in the list.
        eos_id: id of the end of a sentence.
        start_id: id that the decoder starts from.
        has_source_start: True if sources start with it, too.
    """

    models: tuple[bytes, bytes]
    sides: tuple[list[str], ...]
    pad_id: int
    unk_id: int
    eos_id: int
    start_id: int
    has_source_start: bool = False


@dataclass(frozen=True)
class ImportedModel:
    """Everything that a bundle needs.

    Attributes:
        model: sizes and switches.
        weights: float32 tensors, by the names of the bundle.
        tokenizer: text to ids and back.
        decoding: defaults of a translation.
        languages: source and target.
        files: the files that were read, for the manifest.
        dropped: the settings of a translation that a bundle has no form for, each with its value.
        guided_head: layer and head that were taught word links, if any.
        format: what it was read from, for the manifest.
    """

    model: ModelConfig
    weights: Mapping[str, Tensor]
    tokenizer: Tokenizer
    decoding: DecodingConfig
    languages: LanguagesConfig
    files: tuple[Path, ...]
    dropped: tuple[str, ...] = ()
    guided_head: tuple[int, int] | None = None
    format: str = "marian"

    def save(self, out: Path) -> None:
        """Write the bundle.

        Raises:
            OutputError: the disk cannot take it.
        """
        save_bundle(
            out,
            config=BundleConfig(
                languages=self.languages,
                decoding=self.decoding,
                model=self.model,
                tokenizer=self.tokenizer.config,
            ),
            weights=self.weights,
            tokenizer=self.tokenizer,
            recipe_toml="",
            provenance={
                "library": {"pellucid": pellucid.__version__, "torch": torch.__version__},
                "imported": {
                    "format": self.format,
                    "files": {path.name: hash_file(path) for path in sorted(self.files)},
                    **({"dropped": list(self.dropped)} if self.dropped else {}),
                    **({"guided_head": list(self.guided_head)} if self.guided_head else {}),
                },
            },
        )


def make_tokenizer(vocabulary: ImportedVocabulary, where: str) -> MarianTokenizer:
    """Make the tokenizer of an imported model.

    Raises:
        BundleError: its parts contradict each other.
        ConfigurationError: two special tokens have one id.
    """
    sides = vocabulary.sides
    is_joint = len(sides) == 1
    taken = (vocabulary.pad_id, vocabulary.unk_id, vocabulary.eos_id)
    # Marian's models need no `<s>`. One that both sides have counts if nothing else uses its id.
    starts = {tokens.index("<s>") if "<s>" in tokens else None for tokens in sides}
    bos_id = starts.pop() if len(starts) == 1 else None
    values: dict[str, Any] = {
        "sharing": "joint" if is_joint else "separate",
        "normalization": "none",  # the SentencePiece models bring their own
        "pad_id": vocabulary.pad_id,
        "unk_id": vocabulary.unk_id,
        "bos_id": None if bos_id in taken else bos_id,
        "eos_id": vocabulary.eos_id,
        "target_start_id": vocabulary.start_id,
        "symbols": _find_symbols(sides),
        "first_token": "source-start" if vocabulary.has_source_start else "none",
    }
    names = ("vocabulary.txt",) if is_joint else ("source.txt", "target.txt")
    files = {
        "source.model": vocabulary.models[0],
        "target.model": vocabulary.models[1],
        **{name: write_vocabulary(tokens) for name, tokens in zip(names, sides, strict=True)},
    }
    return MarianTokenizer.load(validate(TokenizerConfig, values, where), files, where)


def _find_symbols(sides: Sequence[Sequence[str]]) -> list[str]:
    """Find the symbols of a model that has masks, and so was made by pellucid.

    What its tokenizer has as one token in brackets, and would be taken for a placeholder, is a tag.
    """
    if not all({*MASKS} <= {*tokens} for tokens in sides):
        return []
    names = [one for one in sides[0] if one.startswith("<") and not RESERVED.search(one)]
    unused = {unused_name(id_) for id_ in range(len(sides[0]))}
    return [*(one for one in names if mask(one)[0] in MASKS and one not in unused), *MASKS]


def collect_weights(
    config: ModelConfig, take: Take, *, names: Set[str], has_output_bias: bool, where: str
) -> dict[str, Tensor]:
    """Collect every weight that a model needs, and check its shape.

    Args:
        config: the model's configuration.
        take: finds a tensor.
        names: the file's names for the tensors of layers, all of which must be needed.
        has_output_bias: the logits have a bias.
        where: the file, for messages.

    Raises:
        BundleError: a tensor is missing, unknown, has another shape, or has a weight that is not
            finite.
    """
    weights: dict[str, Tensor] = {}
    used = set()
    for name, shape in weight_shapes(config, has_output_bias=has_output_bias).items():
        their_name, tensor = take(name)
        used.add(their_name)
        if tensor is None:
            raise BundleError(
                f"The weights must contain {their_name}, but do not ({where}). The file is "
                "damaged, or of another architecture."
            )
        if tuple(tensor.shape) != shape:
            raise BundleError(
                f"{their_name} must be {shape} for the sizes that the folder states (rows are "
                f"outputs), but is {tuple(tensor.shape)} ({where}). The files belong to "
                "different models."
            )
        if not tensor.is_floating_point():
            raise BundleError(
                f"{their_name} must be of floating-point numbers, but is "
                f"{str(tensor.dtype).removeprefix('torch.')} ({where}). Take the model before "
                "it was quantized."
            )
        # A copy, because one table of the file may become several separate ones here.
        weights[name] = tensor.to(torch.float32, copy=True).contiguous()
        if not bool(torch.isfinite(weights[name]).all()):
            raise BundleError(
                f"Every weight must be a finite number, but {their_name} holds others ({where})."
            )
    # A tensor that is left over belongs to a part that we would not compute.
    if unknown := sorted(names - used):
        raise BundleError(
            f"Every tensor must belong to the Transformer, but {unknown[0]} does not ({where}). "
            "The model is of another architecture."
        )
    return weights


def find_tying(tables: Mapping[str, Tensor]) -> str:
    """Return the ``tied_embeddings`` of the tables ``source``, ``target`` and ``output``."""

    def is_same(one: Tensor, other: Tensor) -> bool:
        # Tied tables may be stored twice: equal numbers are taken as tied.
        return one is other or (one.shape == other.shape and torch.equal(one, other))

    if not is_same(tables["target"], tables["output"]):
        return "none"
    return "all" if is_same(tables["source"], tables["target"]) else "decoder"


def check_sizes(sizes: Mapping[str, int], shapes: list[tuple[int, ...]], where: str) -> None:
    """Refuse sizes that no tensor has, before anything of that size is allocated.

    Raises:
        BundleError: a size is larger than every axis of every tensor.
    """
    largest = max((size for shape in shapes for size in shape), default=0)
    for name, size in sizes.items():
        # A number of layers is not an axis, but each layer has at least one tensor.
        if size > max(largest, len(shapes)):
            raise BundleError(
                f"{name} must be a size that the weights have, but is {size}, and their longest "
                f"axis is {largest} ({where}). The files belong to different models."
            )
