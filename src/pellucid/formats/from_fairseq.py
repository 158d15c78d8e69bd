"""Import of models that fairseq trained, in Hugging Face's form: M2M100, NLLB, mBART-50, BART."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pellucid.bundle import read_json_object
from pellucid.config import LanguagesConfig, ModelConfig, TokenizerConfig, validate
from pellucid.errors import BundleError
from pellucid.formats.fairseq_tokens import (
    OF_FAIRSEQ,
    SETTINGS,
    WHOLE,
    FairseqVocabulary,
    read_vocabulary,
)
from pellucid.formats.from_hugging_face import (
    BIAS,
    OUTPUT,
    POSITIONS,
    SHARED,
    SIDES,
    SOURCE,
    TARGET,
    find_tables,
    read_checkpoint,
    read_model,
    read_number,
)
from pellucid.formats.generation import read_generation
from pellucid.formats.imported import ImportedModel, collect_weights
from pellucid.formats.safe_reading import list_tokens
from pellucid.formats.tensor_names import hugging_face_name
from pellucid.text.tokenizers.byte_pairs import is_raw, raw_bytes, spell_bytes
from pellucid.text.tokenizers.headed import MERGES, VOCABULARY, HeadedTokenizer
from pellucid.text.tokenizers.tokenizer import write_vocabulary

LONGEST = 65_536
"""The most positions of a table that is made; a stranger's config.json may name any number."""


@dataclass(frozen=True)
class Family:
    """The values that all models of a ``model_type`` have, and their config.json leaves out.

    Attributes:
        name: for the manifest.
        defaults: the values that a config.json may leave out (those of Transformers).
        model: fields of our configuration.
        has_table: True if the checkpoint holds the positions, which were learned; else they are
            sines and cosines.
    """

    name: str
    defaults: Mapping[str, Any]
    model: Mapping[str, Any]
    has_table: bool = False


_COMMON = {
    "max_position_embeddings": 1024,
    "share_encoder_decoder_embeddings": True,
    "tie_word_embeddings": True,
    "pad_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}
FAMILIES = {
    "m2m_100": Family(
        "m2m_100",
        {**_COMMON, "activation_function": "relu", "scale_embedding": True},
        {"norm": "pre", "positions": "learned"},
    ),
    "mbart": Family(
        "mbart",
        {**_COMMON, "activation_function": "gelu", "scale_embedding": False},
        {"norm": "pre", "positions": "learned", "input_norm": True},
        has_table=True,
    ),
    "bart": Family(
        "bart",
        {**_COMMON, "activation_function": "gelu", "scale_embedding": False},
        {"norm": "post", "positions": "learned", "input_norm": True},
        has_table=True,
    ),
}
_POSITIONS = (*POSITIONS, *(f"{name}s" for name in POSITIONS))
"""Tables of sines and cosines, as older files have them."""


def is_of_fairseq(folder: Path) -> bool:
    """Tell whether a folder holds a model that `import_fairseq` reads.

    Raises:
        BundleError: its config.json is damaged.
    """
    config = folder / "config.json"
    return config.is_file() and read_json_object(config).get("model_type") in FAMILIES


def import_fairseq(folder: Path) -> ImportedModel:
    """Read a model with its tokenizer.

    Positions are fairseq's: the first one has the number after that of the padding. They were
    learned, or are sines and cosines spaced as in Tensor2Tensor, whose table is kept in the place
    of learned positions.

    Args:
        folder: contains ``config.json``, ``model.safetensors`` or its parts and their index, and
            the tokenizer: ``sentencepiece.bpe.model``, ``vocab.json`` or ``tokenizer.json``, with
            ``tokenizer_config.json``; BART's has ``merges.txt``.

    Raises:
        BundleError: the folder is damaged, incomplete, or of another architecture.
        ConfigurationError: its configuration contradicts itself.
    """
    path = folder / "config.json"
    given = read_json_object(path)
    family = FAMILIES[given["model_type"]]
    values = {**family.defaults, **given}
    size = read_number(values, "max_position_embeddings", str(path))
    if not family.has_table:
        values["max_position_embeddings"] = min(size, LONGEST)
    tensors, stored = read_checkpoint(folder)
    weights_path = str(folder / stored[0])
    tables = find_tables(values, tensors, weights_path)
    config = read_model(values, tables, tensors, str(path), **family.model)
    size = config.source_vocabulary_size
    if family.name == "bart":
        vocabulary = read_byte_pairs(folder, size)
    else:
        vocabulary = read_vocabulary(folder, given, size)
    tokenizer = _make_tokenizer(vocabulary, values, str(path))
    generation = read_generation(folder, values, config, [])
    names = ("config.json", *stored, "generation_config.json")
    return ImportedModel(
        config,
        _read_weights(config, tables, tensors, values, weights_path, family),
        tokenizer,
        generation.decoding,
        LanguagesConfig(),
        (*(folder / name for name in names if (folder / name).is_file()), *vocabulary.files),
        (*_list_dropped(generation.dropped, vocabulary), *vocabulary.dropped),
        format=family.name,
    )


def _list_dropped(dropped: Sequence[str], vocabulary: FairseqVocabulary) -> Iterator[str]:
    first = "forced_bos_token_id"
    starts = [one for one in dropped if one.startswith(f"{first} ")]
    yield from (one for one in dropped if one not in starts)
    if vocabulary.languages:
        yield from (f"{one} (give --to, the language to write)" for one in starts)
        return
    # Every translation begins with <s> here.
    expected = f"{first} {vocabulary.tokens.index('<s>')}"
    if starts != [expected]:
        yield f"{starts[0] if starts else f'{first} null'} ({expected} holds here)"


def _make_tokenizer(
    vocabulary: FairseqVocabulary, values: Mapping[str, Any], where: str
) -> HeadedTokenizer:
    tokens = vocabulary.tokens
    ids = {}
    for name, token in (("pad", "<pad>"), ("eos", "</s>")):
        ids[name] = read_number(values, f"{name}_token_id", where)
        if ids[name] >= len(tokens) or tokens[ids[name]] != token:
            found = tokens[ids[name]] if ids[name] < len(tokens) else "beyond the vocabulary"
            raise BundleError(
                f"{name}_token_id must be that of {token}, but {ids[name]} is {found} ({where}). "
                "The files belong to different models."
            )
    start = read_number(values, "decoder_start_token_id", where)
    if start != ids["eos"]:
        raise BundleError(
            f"decoder_start_token_id must be eos_token_id ({ids['eos']}), but is {start} "
            f"({where}). Models of this kind cannot be converted."
        )
    settings: dict[str, Any] = {
        "normalization": "none",  # a SentencePiece model brings its own
        "pad_id": ids["pad"],
        "unk_id": tokens.index("<unk>"),
        "bos_id": tokens.index("<s>"),
        "eos_id": ids["eos"],
        "target_start_id": start,
        "first_token": vocabulary.first_token,
        "languages": tuple(vocabulary.languages),
    }
    files = {vocabulary.name: vocabulary.model, VOCABULARY: write_vocabulary(tokens)}
    return HeadedTokenizer.load(validate(TokenizerConfig, settings, where), files, where)


def _read_weights(
    config: ModelConfig,
    tables: Mapping[str, Tensor],
    tensors: Mapping[str, Tensor],
    values: Mapping[str, Any],
    where: str,
    family: Family,
) -> dict[str, Tensor]:
    if family.has_table:

        def learned(name: str) -> Tensor | None:
            # Theirs skips two rows, whatever the id of the padding is.
            return tensors[name][2:] if name in tensors else None

        return _collect(config, tables, tensors, learned, where)
    offset = read_number(values, "pad_token_id", where) + 1
    # Padding never takes up a position.
    table = sinusoids(offset + config.max_source_length, config.d_model)[offset:]
    for name in _POSITIONS:
        stored = tensors.get(name)
        if stored is not None and not _fits(stored, table, offset):
            raise BundleError(
                f"{name} must be sines and cosines, as in every model of this kind, but holds "
                f"other numbers ({where}). It cannot be converted."
            )
    return _collect(config, tables, tensors, lambda _: table, where)


def _collect(
    config: ModelConfig,
    tables: Mapping[str, Tensor],
    tensors: Mapping[str, Tensor],
    positions: Callable[[str], Tensor | None],
    where: str,
) -> dict[str, Tensor]:
    """Collect all weights; ``positions`` finds a table of positions by its name there."""

    def take(name: str) -> tuple[str, Tensor | None]:
        their_name = hugging_face_name(name)
        if name.endswith("positions.weight"):
            return their_name, positions(their_name)
        if name in SIDES:
            return their_name, tables[SIDES[name]]
        if name == "output.bias":
            return their_name, tensors[BIAS].flatten()
        return their_name, tensors.get(their_name)

    names = tensors.keys() - {SHARED, SOURCE, TARGET, OUTPUT, *_POSITIONS}
    return collect_weights(config, take, names=names, has_output_bias=BIAS in tensors, where=where)


def _fits(stored: Tensor, table_LD: Tensor, offset: int) -> bool:
    if stored.dim() != 2 or stored.shape[1] != table_LD.shape[1]:
        return False
    rows = stored[offset : offset + len(table_LD)].float()
    # Not exact: float16 rounds a sine by up to 0.00025.
    return bool((rows - table_LD[: len(rows)]).abs().max() <= 1e-3) if len(rows) else True


def sinusoids(length: int, d_model: int) -> Tensor:
    r"""Compute fairseq's positions: all sines, then all cosines of $i\, 10000^{-j/(d/2-1)}$.

    In float32 and in their order of operations, so that every bit is theirs.

    Source:
        fairseq's ``SinusoidalPositionalEmbedding``, after Tensor2Tensor.
    """
    half = d_model // 2
    turns = torch.exp(torch.arange(half).float() * -(math.log(10000) / max(half - 1, 1)))
    angles = torch.arange(length).float()[:, None] * turns
    return torch.cat([angles.sin(), angles.cos()], dim=1)


_SPECIAL = (*OF_FAIRSEQ, "<mask>")


def read_byte_pairs(folder: Path, size: int) -> FairseqVocabulary:
    """Read the vocabulary of a folder of Hugging Face's.

    Args:
        folder: with ``vocab.json`` and ``merges.txt``, or ``tokenizer.json``.
        size: number of ids that the model has.

    Raises:
        BundleError: a file is missing or damaged, or the vocabulary is of another kind.
    """
    settings_path = folder / SETTINGS
    settings = read_json_object(settings_path) if settings_path.is_file() else {}
    if settings.get("add_prefix_space") is True:
        raise BundleError(
            f"add_prefix_space must be false, so that a text begins as it is written, but is true "
            f"({settings_path}). Models that were trained the other way cannot be converted."
        )
    added: list[str] = []
    if (folder / "vocab.json").is_file() and (folder / MERGES).is_file():
        used = [folder / "vocab.json", folder / MERGES]
        ids = read_json_object(used[0])
        merges = used[1].read_bytes()
    elif (folder / WHOLE).is_file():
        used = [folder / WHOLE]
        whole = read_json_object(used[0])
        ids, merges = _read_whole(whole, str(used[0]))
        for one in whole.get("added_tokens") or ():
            if isinstance(one, dict) and isinstance(one.get("content"), str):
                ids.setdefault(one["content"], one.get("id"))
                added.append(one["content"])
    else:
        raise BundleError(
            f"The folder must contain vocab.json and {MERGES}, or {WHOLE}, but does not "
            f"({folder}). Copy the whole folder."
        )
    where = str(used[0])
    more = [token for token in added if token not in _SPECIAL]
    tokens = list_tokens(ids, size, where)
    if missing := [token for token in OF_FAIRSEQ if token not in ids]:
        raise BundleError(
            f"The vocabulary must have {missing[0]}, but does not ({where}). Take the files from "
            "where the model comes from."
        )
    kept = {*_SPECIAL, *more, *(token for token in tokens if token not in ids)}
    if others := [token for token in tokens if token not in kept and not is_raw(token)]:
        raise _other_kind(where, f"has {others[0]!r}")
    spelled = [one if one in kept else spell_bytes(raw_bytes(one)) for one in tokens]
    dropped = (f"added_tokens {' '.join(more)} (cut like any text)",) if more else ()
    used += [settings_path] if settings_path.is_file() else []
    return FairseqVocabulary(spelled, merges, [], "bos", tuple(used), MERGES, dropped)


def _read_whole(values: Mapping[str, Any], where: str) -> tuple[dict[str, Any], bytes]:
    """Read the ids and the pairs of a tokenizer.json."""
    model = values.get("model")
    cutter = values.get("pre_tokenizer")
    vocab = model.get("vocab") if isinstance(model, dict) else None
    pairs = model.get("merges") if isinstance(model, dict) else None
    is_plain = (
        isinstance(cutter, dict)
        and cutter.get("type") == "ByteLevel"
        and cutter.get("use_regex") is not False
        and not cutter.get("add_prefix_space")
        and values.get("normalizer") is None
    )
    if not is_plain or not isinstance(vocab, dict) or not isinstance(pairs, list):
        raise _other_kind(where, "is of another kind")
    lines = [one if isinstance(one, str) else " ".join(map(str, one)) for one in pairs]
    return dict(vocab), "".join(f"{line}\n" for line in lines).encode()


def _other_kind(where: str, found: str) -> BundleError:
    return BundleError(
        f"The tokenizer of a BART must cut bytes as GPT-2's does, but {found} ({where}). Such a "
        "model cannot be converted."
    )
