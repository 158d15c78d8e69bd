"""Import of a folder of Hugging Face's MarianMT, the form in which OPUS-MT is distributed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from pellucid.attention import sinusoidal_positions
from pellucid.bundle import read_json_object
from pellucid.config import LanguagesConfig, ModelConfig, validate
from pellucid.errors import BundleError, suggestion
from pellucid.formats.generation import read_generation
from pellucid.formats.imported import (
    ImportedModel,
    ImportedVocabulary,
    check_sizes,
    collect_weights,
    find_tying,
    make_tokenizer,
)
from pellucid.formats.safe_reading import list_tokens, read_sentencepieces, same_for_both
from pellucid.formats.tensor_names import hugging_face_name
from pellucid.model.stored_tensors import read_tensors
from pellucid.model.unowned import rows_of_zeros, silence_logits

WEIGHTS = "model.safetensors"
INDEX = f"{WEIGHTS}.index.json"
SUFFIX = ".safetensors"
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}
SIDES = {
    "embedding.weight": "source",
    "source_embedding.weight": "source",
    "target_embedding.weight": "target",
    "output.weight": "output",
}
SHARED, SOURCE, TARGET, OUTPUT = map(hugging_face_name, SIDES)
BIAS = hugging_face_name("output.bias")
POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")


def import_hugging_face(folder: Path) -> ImportedModel:
    """Read a MarianMT model with its tokenizer.

    Args:
        folder: contains ``config.json``, ``model.safetensors`` or its parts and their index,
            ``source.spm``, ``target.spm``, ``vocab.json``, and perhaps ``target_vocab.json``,
            ``tokenizer_config.json`` and ``generation_config.json``.

    Raises:
        BundleError: the folder is damaged, incomplete, or of another architecture.
        ConfigurationError: its configuration contradicts itself.
    """
    where = str(folder / "config.json")
    values = {**_DEFAULTS, **read_json_object(folder / "config.json")}
    tensors, stored = read_checkpoint(folder)
    tables = find_tables(values, tensors, str(folder / stored[0]))
    config = read_model(values, tables, tensors, where, positions="sinusoidal_halves")
    vocabulary, languages = _read_vocabulary(folder, values, config)
    tokenizer = make_tokenizer(vocabulary, where)
    unwritten = tokenizer.unwritten_ids()
    generation = read_generation(folder, values, config, unwritten)
    weights = _read_weights(config, tables, tensors, str(folder / stored[0]))
    # Their converter appended `<pad>` with a row of zeros, which no softmax of the training saw.
    silenced = {*rows_of_zeros(weights, unwritten), *generation.silenced}
    names = ("config.json", *stored, "source.spm", "target.spm", "vocab.json", *_OPTIONAL)
    return ImportedModel(
        config,
        silence_logits(weights, silenced),
        tokenizer,
        generation.decoding,
        languages,
        tuple(folder / name for name in names if (folder / name).is_file()),
        generation.dropped,
    )


_OPTIONAL = ("target_vocab.json", "tokenizer_config.json", "generation_config.json")
# A config.json may leave out what has its default in Transformers (MarianConfig).
_DEFAULTS = {
    "share_encoder_decoder_embeddings": True,
    "tie_word_embeddings": True,
    "scale_embedding": False,
    "activation_function": "gelu",
    "max_position_embeddings": 1024,
}


# Other names that a table may have, by (encoder and decoder share embeddings, output is tied).
_OTHER_NAMES: dict[tuple[bool, bool], dict[str, tuple[str, ...]]] = {
    (True, True): dict.fromkeys(("source", "target", "output"), (SHARED, SOURCE, TARGET, OUTPUT)),
    (True, False): {"source": (SHARED,), "target": (SHARED,), "output": ()},
    (False, True): {"source": (), "target": (OUTPUT,), "output": (TARGET,)},
    (False, False): {"source": (), "target": (), "output": ()},
}


def read_checkpoint(folder: Path) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """Read the weights, which may be in several files; return them with the files' names."""
    if (folder / WEIGHTS).is_file():
        return read_tensors(folder / WEIGHTS), (WEIGHTS,)
    if (folder / INDEX).is_file():
        return _read_shards(folder)
    if pickles := sorted(folder.glob("pytorch_model*.bin*")):
        raise BundleError(
            f"The weights must be in {WEIGHTS}, but {folder} has only {pickles[0].name}, a "
            "pickle, which can run hidden code when it is read. If you trust it, these two lines "
            f"of Python write {WEIGHTS} next to it: from transformers import AutoModelForSeq2SeqLM;"
            f" AutoModelForSeq2SeqLM.from_pretrained({str(folder)!r})"
            f".save_pretrained({str(folder)!r})"
        )
    raise BundleError(
        f"The folder must contain {WEIGHTS}, but does not ({folder}). Copy the whole folder."
    )


def _read_shards(folder: Path) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """Read weights that an index spreads over files of the same folder, each tensor once."""
    index = folder / INDEX
    found = read_json_object(index).get("weight_map")
    places = found if isinstance(found, dict) else {}
    names = sorted(set(map(str, places.values())))
    # A name with a folder in it could lead out of the model's folder.
    if not names or any(Path(one).name != one or not one.endswith(SUFFIX) for one in names):
        raise BundleError(
            f"weight_map must name a {SUFFIX} file of the folder for each tensor, but does not "
            f"({index}). Take the file from where the model comes from."
        )
    tensors: dict[str, Tensor] = {}
    for name in names:
        shard = read_tensors(folder / name)
        # Both ways: a tensor that the index lacks may come from another model.
        if wrong := sorted({one for one, place in places.items() if place == name} ^ shard.keys()):
            raise BundleError(
                f"{name} must hold the tensors that {INDEX} places in it, but {wrong[0]} is only "
                f"in one of the two ({folder}). The files belong to different models."
            )
        tensors |= shard
    return tensors, (INDEX, *names)


def find_tables(
    values: Mapping[str, Any], tensors: Mapping[str, Tensor], where: str
) -> dict[str, Tensor]:
    """Find the embeddings of both sides and the output matrix.

    Tied tables are stored once, under any of their names.
    """
    own = {"source": SOURCE, "target": TARGET, "output": OUTPUT}
    others = _OTHER_NAMES[
        bool(values["share_encoder_decoder_embeddings"]), bool(values["tie_word_embeddings"])
    ]
    tables = {}
    for side, name in own.items():
        known = dict.fromkeys((name, *others[side]))
        found = next((tensors[name] for name in known if name in tensors), None)
        if found is None:
            raise BundleError(
                f"The weights must contain {' or '.join(known)}, but do not ({where}). The file is "
                "damaged, or of another architecture."
            )
        tables[side] = found
    return tables


def read_model(
    values: Mapping[str, Any],
    tables: Mapping[str, Tensor],
    tensors: Mapping[str, Tensor],
    where: str,
    **family: Any,
) -> ModelConfig:
    """Read sizes and switches from the values of config.json; ``family`` has those it leaves out.

    Raises:
        BundleError: they are impossible, or not those of the weights.
    """
    sizes = {
        name: read_number(values, name, where)
        for name in (
            *("d_model", "encoder_layers", "decoder_layers", "vocab_size"),
            *("encoder_attention_heads", "decoder_attention_heads"),
            *("encoder_ffn_dim", "decoder_ffn_dim", "max_position_embeddings"),
        )
    }
    for name in ("attention_heads", "ffn_dim"):
        if sizes[f"encoder_{name}"] != sizes[f"decoder_{name}"]:
            raise BundleError(
                f"encoder_{name} and decoder_{name} must be equal, but are "
                f"{sizes[f'encoder_{name}']} and {sizes[f'decoder_{name}']} ({where}). Models "
                "of two sizes in one cannot be converted."
            )
    activation = values["activation_function"]
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise BundleError(
            f"activation_function must be a known one, but is {activation!r} ({where}). "
            + suggestion(str(activation), ACTIVATIONS)
        )
    check_sizes(
        # Positions are computed, so no tensor is as long as their table.
        {name: size for name, size in sizes.items() if name != "max_position_embeddings"},
        [tuple(tensor.shape) for tensor in tensors.values()],
        where,
    )
    is_shared = values["share_encoder_decoder_embeddings"]
    # With shared embeddings MarianMT ignores decoder_vocab_size.
    target_size = None if is_shared else values.get("decoder_vocab_size")
    if target_size is not None:
        target_size = read_number(values, "decoder_vocab_size", where)
    model = {
        "d_model": sizes["d_model"],
        "d_ff": sizes["encoder_ffn_dim"],
        "num_heads": sizes["encoder_attention_heads"],
        "num_encoder_layers": sizes["encoder_layers"],
        "num_decoder_layers": sizes["decoder_layers"],
        "activation": ACTIVATIONS[activation],
        "embedding_scale": "sqrt" if values["scale_embedding"] else "none",
        "projection_bias": True,
        "tied_embeddings": find_tying(tables),
        "source_vocabulary_size": sizes["vocab_size"],
        "target_vocabulary_size": target_size or sizes["vocab_size"],
        "max_source_length": sizes["max_position_embeddings"],
        "max_target_length": sizes["max_position_embeddings"],
        **family,
    }
    return validate(ModelConfig, model, where)


def read_number(values: Mapping[str, Any], name: str, where: str) -> int:
    """Read a whole number.

    Raises:
        BundleError: it is none.
    """
    value = values.get(name)
    # To Python, True is an int.
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BundleError(
            f"{name} must be a whole number, but is {value!r} ({where}). The file is damaged, or "
            "of another architecture."
        )
    return value


def _read_vocabulary(
    folder: Path, values: Mapping[str, Any], config: ModelConfig
) -> tuple[ImportedVocabulary, LanguagesConfig]:
    where = str(folder / "config.json")
    path = folder / "tokenizer_config.json"
    settings = read_json_object(path) if path.is_file() else {}
    names = ["vocab.json", *(["target_vocab.json"] if settings.get("separate_vocabs") else [])]
    sizes = (config.source_vocabulary_size, config.target_vocabulary_size)
    if len(names) == 1 and sizes[0] != sizes[1]:
        raise BundleError(
            f"vocab_size and decoder_vocab_size must be equal with one vocab.json, but are "
            f"{sizes[0]} and {sizes[1]} ({where}). Copy target_vocab.json and "
            "tokenizer_config.json too."
        )
    models = read_sentencepieces(folder)
    sides = tuple(
        list_tokens(read_json_object(folder / name), size, str(folder / name))
        for name, size in zip(names, sizes, strict=False)
    )
    unknown = settings.get("unk_token")
    unknown = unknown if isinstance(unknown, str) else "<unk>"
    vocabulary = ImportedVocabulary(
        models=models,
        sides=sides,
        pad_id=read_number(values, "pad_token_id", where),
        unk_id=same_for_both(sides, unknown, str(folder / names[0])),
        eos_id=read_number(values, "eos_token_id", where),
        start_id=read_number(values, "decoder_start_token_id", where),
    )
    for name in ("pad_token_id", "eos_token_id", "decoder_start_token_id"):
        # These ids mean the same on both sides, so the smaller vocabulary must have them.
        if values[name] >= min(sizes):
            raise BundleError(
                f"{name} must be one of the {min(sizes)} ids of the vocabulary, but is "
                f"{values[name]} ({where}). The files belong to different models."
            )
    languages = {side: settings.get(f"{side}_lang") or "" for side in ("source", "target")}
    return vocabulary, validate(LanguagesConfig, languages, str(path))


def _read_weights(
    config: ModelConfig,
    tables: Mapping[str, Tensor],
    tensors: Mapping[str, Tensor],
    where: str,
) -> dict[str, Tensor]:
    _check_positions(config, tensors, where)

    def take(name: str) -> tuple[str, Tensor | None]:
        their_name = hugging_face_name(name)
        if name in SIDES:
            return their_name, tables[SIDES[name]]
        if name == "output.bias":
            return their_name, tensors[BIAS].flatten()
        return their_name, tensors.get(their_name)

    # Tied tables may be stored under names that the model does not need.
    names = tensors.keys() - {SHARED, SOURCE, TARGET, OUTPUT, *POSITIONS}
    has_bias = BIAS in tensors
    return collect_weights(config, take, names=names, has_output_bias=has_bias, where=where)


def _check_positions(config: ModelConfig, tensors: Mapping[str, Tensor], where: str) -> None:
    """Check the tables of positions that older files contain: sines and cosines only."""
    for name in POSITIONS:
        if name not in tensors:
            continue
        table = tensors[name].float()
        expected_LD = sinusoidal_positions(
            table.shape[0] if table.dim() == 2 else 0, config.d_model, halves=True
        )
        # Not exact: float16 rounds a sine by up to 0.00025.
        if table.shape != expected_LD.shape or (table - expected_LD).abs().max() > 1e-3:
            raise BundleError(
                f"{name} must be sines and cosines, as in every model of MarianMT, but holds "
                f"other numbers ({where}). Learned positions cannot be converted."
            )
