"""Import of a folder of Marian: its own, as in the zip files of OPUS-MT, or Hugging Face's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from pellucid.bundle import read_json_object
from pellucid.config import DecodingConfig, LanguagesConfig, ModelConfig, validate
from pellucid.errors import BundleError, InputFileNotFoundError
from pellucid.foreign import identify_foreign
from pellucid.formats.from_hugging_face import import_hugging_face
from pellucid.formats.imported import (
    ImportedModel,
    ImportedVocabulary,
    check_sizes,
    collect_weights,
    find_tying,
    make_tokenizer,
)
from pellucid.formats.marian_folder import find_marian_files, is_marian_folder
from pellucid.formats.safe_reading import read_yaml_mapping, same_for_both
from pellucid.formats.tensor_names import marian_name
from pellucid.model.unowned import NEVER
from pellucid.text.tokenizers.marian import unused_name


def import_marian(folder: Path) -> ImportedModel:
    """Read a model of Marian, in Hugging Face's form or in Marian's own.

    Args:
        folder: a folder of MarianMT (``config.json``, ``model.safetensors``), or of Marian
            (``decoder.yml``, an ``.npz``).

    Raises:
        InputFileNotFoundError: the folder does not exist.
        BundleError: it is a file, damaged, incomplete, or holds another format.
    """
    if not folder.exists():
        raise InputFileNotFoundError(f"The folder {folder} does not exist. Check the name.")
    config = folder / "config.json"
    if config.is_file() and read_json_object(config).get("model_type") == "marian":
        return import_hugging_face(folder)
    if is_marian_folder(folder):
        return import_marian_archive(folder)
    what, advice = identify_foreign(folder)
    raise BundleError(
        "FOLDER must hold config.json (a model of Hugging Face's MarianMT, M2M100, NLLB, mBART-50 "
        "or BART), or decoder.yml or a .bin file (one of Marian itself), but "
        f"{folder} is {what}. {advice}"
    )


OPTIONS = "special:model.yml"
BIAS = "decoder_ff_logit_out_b"
SIZES = {
    "d_model": "dim-emb",
    "d_ff": "transformer-dim-ffn",
    "num_heads": "transformer-heads",
    "num_encoder_layers": "enc-depth",
    "num_decoder_layers": "dec-depth",
}
MATRICES = ("decoder_ff_logit_out_Wt", "decoder_ff_logit_out_W")
REQUIRED: dict[str, tuple[Any, ...]] = {
    "type": ("transformer",),
    "transformer-decoder-autoreg": ("self-attention", "rnn"),
    "transformer-ffn-activation": ("relu", "swish"),  # its gelu is another approximation
    "transformer-ffn-depth": ("2",),
    "transformer-decoder-ffn-depth": ("0", "2"),
    "transformer-decoder-dim-ffn": ("0",),
    "transformer-preprocess": ("", "d"),  # its pre-norm differs in training and decoding
    "transformer-postprocess": ("dan", "an"),
    "transformer-postprocess-top": ("", "d"),
    "transformer-postprocess-emb": ("", "d"),
    "transformer-train-position-embeddings": ("false",),
    "transformer-disable-position-embeddings": ("false",),
    "transformer-attention-mask": ("default",),
    "transformer-no-projection": ("false",),
    "transformer-no-bias": ("false",),
    "transformer-no-affine": ("false",),
    "transformer-tied-layers": ([],),
    "right-left": ("false",),
    "input-types": ([],),
    "lemma-dim-emb": ("0",),
    "ulr": ("false",),
    "transformer-rnn-projection": ("false",),
    "layer-normalization": ("false",),
}
"""Values that options may have; an option that an older Marian lacks has its usual value."""

# A constant in Marian's code (transformer.h), so no option of a model states it.
MARIAN_EPSILON = 1e-6
# Marian computes positions as it needs them. A table must end somewhere.
LONGEST = 1024


def import_marian_archive(folder: Path) -> ImportedModel:
    """Read a Transformer that Marian trained, with exactly its probabilities.

    Marian starts its decoder from a vector of zeros. Here that is the embedding of a last token
    ``<pad>``, to which the softmax gives no probability. Marian's sines and cosines are spaced a
    little differently from the paper's, so its table of positions is kept.

    Differs:
        Hugging Face's and CTranslate2's conversions use the paper's positions, which changes
        every probability a little.

    Args:
        folder: contains ``decoder.yml``, the ``.npz`` and the vocabulary that it names, and
            ``source.spm`` and ``target.spm``. Or, as models of Firefox Translations, a ``.bin`` and
            a SentencePiece model as vocabulary, or one for each side.

    Raises:
        BundleError: the folder is damaged, incomplete, or of another architecture.
    """
    found = find_marian_files(folder)
    archive = found.weights
    lists = found.vocabularies
    arrays = found.read_weights()
    # What is read is taken out, so that what remains must be tensors of known layers.
    options = _read_options(arrays.pop(OPTIONS, None), archive)
    where = f"{archive}, {OPTIONS}"
    tables = _read_tables(arrays, str(archive))
    size = max(len(tables["source"]), len(tables["target"]))
    config = _read_model(options, tables, size, arrays, where)
    sides = tuple(
        [
            *found.read_ids(path, len(tables[side])),
            # Filled up to the longer side, so that `<pad>` has one id on both.
            *map(unused_name, range(len(tables[side]), size)),
        ]
        # Both names may be those of one file: the vocabulary is then joint.
        for side, path in zip(("source", "target"), dict.fromkeys(lists), strict=False)
    )
    vocabulary = ImportedVocabulary(
        models=found.read_models(),
        sides=tuple([*tokens, _free_name("<pad>", sides)] for tokens in sides),
        pad_id=size,
        unk_id=same_for_both(sides, "<unk>", str(lists[0])),
        eos_id=same_for_both(sides, "</s>", str(lists[0])),
        start_id=size,
    )
    weights = _read_weights(config, tables, size, arrays, str(archive))
    return ImportedModel(
        config,
        weights,
        make_tokenizer(vocabulary, str(folder)),
        _read_decoding(found.settings, str(found.settings_path)),
        LanguagesConfig(),
        found.files,
        dropped=found.dropped,
        guided_head=_find_guided_head(options, config.num_decoder_layers),
    )


def _find_guided_head(options: Mapping[str, Any], num_layers: int) -> tuple[int, int] | None:
    """Find the head that Marian taught word links: always the first of a layer."""
    if options.get("guided-alignment", "none") == "none":
        return None
    layer = options.get("transformer-guided-alignment-layer", "last")
    number = int(layer) if isinstance(layer, str) and layer.isdecimal() else num_layers
    # Marian counts its layers from 1.
    return min(max(number, 1), num_layers) - 1, 0


def _read_options(data: NDArray[Any] | None, archive: Path) -> dict[str, Any]:
    """Read the options of training, which describe the architecture."""
    if data is None:
        raise BundleError(
            f"The archive must contain {OPTIONS}, which describes the architecture, but does not "
            f"({archive}). It is not a model of Marian."
        )
    # Marian stores the text as C does, with a zero byte at its end.
    options = read_yaml_mapping(data.tobytes().rstrip(b"\0"), f"{archive}, {OPTIONS}")
    for name, allowed in REQUIRED.items():
        if name in options and options[name] not in allowed:
            raise BundleError(
                f"{name} must be {' or '.join(repr(value) for value in allowed)}, but is "
                f"{options[name]!r} ({archive}, {OPTIONS}). Models of this kind cannot be "
                "converted."
            )
    cell = options.get("dec-cell")
    if options.get("transformer-decoder-autoreg") == "rnn" and cell != "ssru":
        raise BundleError(
            f"dec-cell must be 'ssru' with transformer-decoder-autoreg 'rnn', but is {cell!r} "
            f"({archive}, {OPTIONS}). Models of this kind cannot be converted."
        )
    return options


def _read_tables(arrays: dict[str, NDArray[Any]], where: str) -> dict[str, Tensor]:
    """Take the embeddings of both sides and the output matrix out of the archive."""
    shared = arrays.pop("Wemb", None)
    source = arrays.pop("encoder_Wemb", shared)
    target = arrays.pop("decoder_Wemb", shared)
    if source is None or target is None:
        raise BundleError(
            f"The archive must contain Wemb, or encoder_Wemb and decoder_Wemb, but does not "
            f"({where}). It is damaged, or of another architecture."
        )
    # The output matrix has a row or a column per token; without one it is the target's table.
    rows, columns = (arrays.pop(name, None) for name in MATRICES)
    output = rows if rows is not None else target if columns is None else columns.T
    tables = {"source": source, "target": target, "output": output}
    for side, table in tables.items():
        if table.ndim != 2 or table.shape[1] != source.shape[-1] or table.dtype.kind != "f":
            raise BundleError(
                f"The {side} table must be a matrix of floating-point numbers as wide as the "
                f"model, but is {table.dtype} {table.shape} ({where}). Take the model before it "
                "was quantized."
            )
    return {side: _to_tensor(table) for side, table in tables.items()}


def _to_tensor(array: NDArray[Any]) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array))


def _read_model(
    options: Mapping[str, Any],
    tables: Mapping[str, Tensor],
    size: int,
    arrays: Mapping[str, NDArray[Any]],
    where: str,
) -> ModelConfig:
    sizes = {name: _number(options, name, where) for name in SIZES.values()}
    check_sizes(sizes, [array.shape for array in arrays.values()], where)
    model = {
        **{ours: sizes[theirs] for ours, theirs in SIZES.items()},
        "layer_norm_epsilon": MARIAN_EPSILON,
        "activation": options.get("transformer-ffn-activation"),
        "positions": "learned",
        "projection_bias": True,
        "decoder": "ssru" if options.get("transformer-decoder-autoreg") == "rnn" else "attention",
        "tied_embeddings": find_tying(tables),
        "source_vocabulary_size": size + 1,
        "target_vocabulary_size": size + 1,
        "max_source_length": LONGEST,
        "max_target_length": LONGEST,
    }
    return validate(ModelConfig, model, where)


def _position_table(length: int, d_model: int) -> Tensor:
    r"""Compute Marian's positions: all sines, then all cosines of $i\, 10000^{-2j/(d-2)}$.

    Source:
        Marian's ``sinusoidalPositionEmbeddings``, after Tensor2Tensor.
    """
    # In float32, an angle near 1,000 would be off by up to 0.00003.
    j = torch.arange(d_model // 2, dtype=torch.float64)
    # A width of 2 has a single frequency, and would divide by 0.
    turns = 10000 ** (-2 * j / max(d_model - 2, 1))
    angles = torch.arange(length, dtype=torch.float64)[:, None] * turns
    return torch.cat([angles.sin(), angles.cos()], dim=1).float()


def _number(options: Mapping[str, Any], name: str, where: str) -> int:
    text = options.get(name)
    if not isinstance(text, str) or not text.isdecimal():
        raise BundleError(
            f"{name} must be a whole number, but is {text!r} ({where}). The archive is damaged."
        )
    return int(text)


def _free_name(name: str, sides: Sequence[Sequence[str]]) -> str:
    while any(name in tokens for tokens in sides):
        name = f"<{name}>"
    return name


def _read_weights(
    config: ModelConfig,
    tables: Mapping[str, Tensor],
    size: int,
    arrays: dict[str, NDArray[Any]],
    where: str,
) -> dict[str, Tensor]:
    # The last row, all zeros, is the token that Marian's decoder starts from.
    extended = {
        side: F.pad(table, (0, 0, 0, size + 1 - len(table))) for side, table in tables.items()
    }
    rows = len(tables["target"])
    bias = arrays.pop(BIAS, np.zeros(rows, np.float32)).flatten()
    if len(bias) != rows:
        raise BundleError(
            f"{BIAS} must have {rows} numbers, one a token, but has {len(bias)} ({where}). The "
            "archive is damaged."
        )
    positions = ("the positions", _position_table(LONGEST, config.d_model))
    ours = {
        "encoder.positions.weight": positions,
        "decoder.positions.weight": positions,
        "embedding.weight": ("Wemb", extended["source"]),
        "source_embedding.weight": ("encoder_Wemb", extended["source"]),
        "target_embedding.weight": ("decoder_Wemb", extended["target"]),
        "output.weight": (MATRICES[0], extended["output"]),
        "output.bias": (BIAS, F.pad(_to_tensor(bias), (0, size + 1 - len(bias)), value=NEVER)),
    }

    def take(name: str) -> tuple[str, Tensor | None]:
        if name in ours:
            return ours[name]
        their_name = marian_name(name)
        array = arrays.get(their_name)
        if array is None:
            return their_name, None
        # Marian stores vectors as one row, and matrices with a row for each input.
        is_vector = name.endswith("bias") or "norm." in name
        return their_name, _to_tensor(array.flatten() if is_vector else array.T)

    names = arrays.keys()
    return collect_weights(config, take, names=names, has_output_bias=True, where=where)


def _read_decoding(settings: Mapping[str, Any], where: str) -> DecodingConfig:
    """Read the defaults of a translation: width of the beam and length penalty."""
    decoding: dict[str, Any] = {}
    try:
        if "beam-size" in settings:
            decoding["beam"] = int(settings["beam-size"])
        if "normalize" in settings:
            # Marian divides the score by the length to this power, as `average` does.
            decoding["length_penalty"] = "average"
            decoding["alpha"] = float(settings["normalize"])
    except (TypeError, ValueError):
        raise BundleError(
            f"beam-size and normalize must be numbers, but are {settings.get('beam-size')!r} and "
            f"{settings.get('normalize')!r} ({where}). The file is damaged: copy it again."
        ) from None
    return validate(DecodingConfig, decoding, where)
