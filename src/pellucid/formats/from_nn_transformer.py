"""Import of a plain ``nn.Transformer`` of PyTorch: a checkpoint, and a description in TOML."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path

import sentencepiece
import torch
from torch import Tensor

from pellucid.bundle import read_json_object
from pellucid.config import DecodingConfig, ModelConfig, validate
from pellucid.errors import BundleError, ConfigurationError, InputFileNotFoundError
from pellucid.files import read_bytes
from pellucid.formats.imported import (
    ImportedModel,
    ImportedVocabulary,
    collect_weights,
    find_tying,
    make_tokenizer,
)
from pellucid.formats.nn_description import (
    ROLES,
    SIDES,
    NnDescription,
    NnVocabulary,
    read_description,
    write_draft,
)
from pellucid.formats.nn_tensors import NnTensorsFound, read_checkpoint
from pellucid.formats.safe_reading import list_tokens, read_sentencepiece, same_for_both
from pellucid.model.unowned import NEVER
from pellucid.text.tokenizers.tokenizer import SPACE_SIGN

FORMAT = "nn-transformer"
_ROLE_OF = {
    "embedding.weight": "source_embedding",
    "source_embedding.weight": "source_embedding",
    "target_embedding.weight": "target_embedding",
    "output.weight": "output",
}


def import_nn_transformer(checkpoint: Path, description: Path) -> ImportedModel:
    """Read a checkpoint of a model that is built on ``nn.Transformer``.

    Args:
        checkpoint: what ``torch.save`` wrote of its state, alone or under a name such as
            ``model_state_dict``.
        description: what the weights do not say; a draft is written there if it does not exist.

    Raises:
        InputError: the description does not exist, so that a draft was written.
        InputFileNotFoundError: the checkpoint, or a file of a vocabulary, does not exist.
        BundleError: the checkpoint is damaged, holds more than tensors, or another model.
        ConfigurationError: the description is wrong, or contradicts the weights.
    """
    if not checkpoint.is_file():
        raise InputFileNotFoundError(
            f"The checkpoint must be a file that torch.save wrote, but {checkpoint} is "
            f"{'a folder' if checkpoint.is_dir() else 'none'}. Check the name."
        )
    found = read_checkpoint(checkpoint)
    if not description.exists():
        roles = found.candidates()
        sizes = {
            side: len(found.others[name])
            for side in SIDES
            for name in roles[f"{side}_embedding"]
            if len(roles[f"{side}_embedding"]) == 1
        }
        raise write_draft(description, found.summary, roles, sizes)
    described = read_description(description)
    names = _choose_tensors(found, described, description)
    sides = _read_sides(found, described.vocabulary, names, description)
    config = _read_model(found, described, names, sides, description)
    is_joint = sides["source"] == sides["target"]
    lists = (sides["source"],) if is_joint else (sides["source"], sides["target"])
    vocabulary = _vocabulary(described.vocabulary, lists, description)
    return ImportedModel(
        config,
        _read_weights(found, config, names, vocabulary),
        make_tokenizer(vocabulary, str(description)),
        DecodingConfig(),
        described.languages,
        (checkpoint, description),
        format=FORMAT,
    )


def _choose_tensors(found: NnTensorsFound, described: NnDescription, path: Path) -> dict[str, str]:
    """Choose the tensor of each role: the one that is named, or the only one that it may be.

    Raises:
        ConfigurationError: a named one does not exist, or several may be meant.
    """
    chosen: dict[str, str] = {}
    given = described.tensors
    for role, names in found.candidates().items():
        name = getattr(given, role)
        if name and name not in found.others:
            raise ConfigurationError(
                f"tensors.{role} must be one of {', '.join(found.tables())}, but is {name!r} "
                f"({path})."
            )
        if role.endswith("positions") and described.model.positions != "table":
            # Sines and cosines that are computed need no table, which may be there nevertheless.
            continue
        if not name and len(names) != 1 and not (role == "output" and not names):
            raise ConfigurationError(
                f"tensors.{role} must name a tensor, since {len(names)} of them may be meant: "
                f"{', '.join(names) or 'none has its shape'} ({path}). Add it."
            )
        # Without a matrix of its own the output shares the target's table.
        chosen[role] = name or (names[0] if names else chosen["target_embedding"])
    used = {*chosen.values(), *given.ignored}
    used |= {f"{name.removesuffix('weight')}bias" for name in chosen.values()}
    if described.model.positions != "table":
        candidates = found.candidates()
        used |= {one for role in ROLES[-2:] for one in candidates[role]}
    if unknown := sorted(found.others.keys() - used):
        raise ConfigurationError(
            f"Every tensor must belong to the model, but {unknown[0]} has no place ({path}). If "
            f'translation does not need it, write ignored = ["{unknown[0]}"] under [tensors].'
        )
    return chosen


def _read_sides(
    found: NnTensorsFound, vocabulary: NnVocabulary, names: Mapping[str, str], path: Path
) -> dict[str, list[str]]:
    """Read the tokens of both sides, in the order of their ids.

    Raises:
        ConfigurationError: their number is not that of the weights' rows.
    """
    sides = {}
    for side in SIDES:
        table = names[f"{side}_embedding"]
        size = len(found.others[table])
        tokens = _read_tokens(vocabulary, side, size, path)
        if len(tokens) != size:
            raise ConfigurationError(
                f"vocabulary.{side} must have the {size:,} tokens of {table}, but has "
                f"{len(tokens):,} ({path}). The files belong to different models."
            )
        sides[side] = tokens
    return sides


def _read_tokens(vocabulary: NnVocabulary, side: str, size: int, path: Path) -> list[str]:
    special = {vocabulary.padding, vocabulary.unknown, vocabulary.start, vocabulary.end}
    name = getattr(vocabulary, side)
    if not name and vocabulary.kind == "sentencepiece":
        processor = sentencepiece.SentencePieceProcessor()
        processor.LoadFromSerializedProto(_model_of(vocabulary, side, path))
        return [processor.id_to_piece(id_) for id_ in range(len(processor))]
    file = path.parent / name
    if not name or not file.is_file():
        raise InputFileNotFoundError(
            f"vocabulary.{side} must name a file of tokens, but {file if name else 'it'} does not "
            f"exist ({path}). Name a text file of one token a line, or a JSON object."
        )
    data = read_bytes(file)
    if data.lstrip()[:1] == b"{":
        tokens = list_tokens(read_json_object(file), size, str(file))
    else:
        try:
            text = data.decode("utf-8-sig")
            tokens = json.loads(text) if text.lstrip()[:1] == "[" else text.splitlines()
        except ValueError:
            tokens = []
        if not all(isinstance(one, str) and one for one in tokens) or not tokens:
            raise BundleError(
                f"A vocabulary must have a token on each line, but {file} has a line without one, "
                "or is no text. Take the file from where the model comes from."
            )
        tokens = list_tokens({one: id_ for id_, one in enumerate(tokens)}, len(tokens), str(file))
    if vocabulary.kind == "sentencepiece":
        return tokens
    mark = SPACE_SIGN if vocabulary.kind == "words" else ""
    return [one if one in special else mark + one.replace(" ", SPACE_SIGN) for one in tokens]


def _model_of(vocabulary: NnVocabulary, side: str, path: Path) -> bytes:
    name = getattr(vocabulary, f"{side}_model") or vocabulary.source_model
    if not name:
        raise ConfigurationError(
            f"vocabulary.{side}_model must name a SentencePiece model if vocabulary.kind is "
            f"'sentencepiece', but is missing ({path}). Add it."
        )
    return read_sentencepiece(path.parent / name)


def _vocabulary(
    described: NnVocabulary, lists: tuple[list[str], ...], path: Path
) -> ImportedVocabulary:
    """Gather tokens and ids, and make what cuts the text."""
    ids = {}
    for name in ("padding", "start", "end"):
        ids[name] = same_for_both(lists, getattr(described, name), f"{path}, vocabulary.{name}")
    if described.unknown:
        ids["unknown"] = same_for_both(lists, described.unknown, f"{path}, vocabulary.unknown")
    else:
        # A token that no text had in training: its row is zero, and it is never written.
        longest = max(map(len, lists))
        if any(len(one) < longest for one in lists):
            raise ConfigurationError(
                "vocabulary.unknown must name a token unless both vocabularies have equally many "
                f"({path})."
            )
        ids["unknown"] = longest
        lists = tuple([*one, "<unk>"] for one in lists)
    if described.kind == "sentencepiece":
        models = (_model_of(described, "source", path), _model_of(described, "target", path))
    else:
        own = [_cut_by(described.kind, one) for one in lists]
        models = (own[0], own[-1])
    return ImportedVocabulary(
        models=models,
        sides=lists,
        pad_id=ids["padding"],
        unk_id=ids["unknown"],
        eos_id=ids["end"],
        start_id=ids["start"],
        has_source_start=described.source_start,
    )


def _cut_by(kind: str, tokens: list[str]) -> bytes:
    """Make a SentencePiece model that cuts a text into its words, or into its characters."""
    model = io.BytesIO()
    is_words = kind == "words"
    # It must have seen every token: those that it does not know stay joined.
    texts = [one.removeprefix(SPACE_SIGN) if is_words else one for one in tokens]
    lines = [text.replace(SPACE_SIGN, " ") for text in texts if is_words or len(text) == 1]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        model_type="word" if is_words else "char",
        vocab_size=len(lines) + 4,
        hard_vocab_limit=False,
        character_coverage=1.0,
        normalization_rule_name="identity",
        remove_extra_whitespaces=is_words,
        add_dummy_prefix=is_words,
        minloglevel=2,
    )
    return model.getvalue()


def _read_model(
    found: NnTensorsFound,
    described: NnDescription,
    names: Mapping[str, str],
    sides: Mapping[str, list[str]],
    path: Path,
) -> ModelConfig:
    model = described.model
    if found.width % model.num_heads:
        raise ConfigurationError(
            f"model.num_heads must divide the width of the weights ({found.width}), but is "
            f"{model.num_heads} ({path}). Take nhead of the nn.Transformer."
        )
    if model.norm == "pre" and not found.has_stack_norms:
        raise ConfigurationError(
            "model.norm must be 'post' for weights without a norm after the last layer, but is "
            f"'pre' ({path}). A pre-norm model without one cannot be converted."
        )
    tables = {
        role.partition("_")[0]: found.others[names[role]]
        for role in ("source_embedding", "target_embedding", "output")
    }
    lengths = dict.fromkeys(SIDES, model.max_length)
    if model.positions == "table":
        lengths = {side: _positions(found, names, side).shape[0] for side in SIDES}
    extra = 0 if described.vocabulary.unknown else 1
    values = {
        "d_model": found.width,
        "d_ff": found.inner,
        "num_heads": model.num_heads,
        "num_encoder_layers": found.depths["encoder"],
        "num_decoder_layers": found.depths["decoder"],
        "norm": model.norm,
        "stack_norm": model.norm == "post" and found.has_stack_norms,
        "layer_norm_epsilon": model.layer_norm_epsilon,
        "activation": model.activation,
        "positions": "learned" if model.positions == "table" else model.positions,
        "embedding_scale": model.embedding_scale,
        "projection_bias": found.has_biases,
        "tied_embeddings": find_tying(tables),
        "source_vocabulary_size": len(sides["source"]) + extra,
        "target_vocabulary_size": len(sides["target"]) + extra,
        "max_source_length": lengths["source"],
        "max_target_length": lengths["target"],
    }
    return validate(ModelConfig, values, str(path))


def _positions(found: NnTensorsFound, names: Mapping[str, str], side: str) -> Tensor:
    table = found.others[names[f"{side}_positions"]]
    return table.reshape(-1, found.width)


def _read_weights(
    found: NnTensorsFound,
    config: ModelConfig,
    names: Mapping[str, str],
    vocabulary: ImportedVocabulary,
) -> dict[str, Tensor]:
    extra = config.target_vocabulary_size - len(found.others[names["target_embedding"]])
    bias = found.bias_of(names["output"])
    if bias is None and extra:
        bias = torch.zeros(config.target_vocabulary_size - extra)

    def take(name: str) -> tuple[str, Tensor | None]:
        if name == "output.bias":
            assert bias is not None
            return names["output"], torch.cat([bias, bias.new_full((extra,), NEVER)])
        if name.endswith("positions.weight"):
            side = "source" if name.startswith("encoder") else "target"
            return names[f"{side}_positions"], _positions(found, names, side)
        if name in _ROLE_OF:
            their_name = names[_ROLE_OF[name]]
            table = found.others[their_name]
            return their_name, torch.cat([table, table.new_zeros(extra, found.width)])
        weight = found.layers.get(f"{name.removesuffix('bias')}weight")
        if name.endswith("bias") and name not in found.layers and weight is not None:
            # Of nn.Transformer(bias=False).
            return weight[0], torch.zeros(weight[1].shape[0])
        return found.layers.get(name, (name, None))

    theirs = {name for name, _ in found.layers.values()}
    return collect_weights(
        config, take, names=theirs, has_output_bias=bias is not None, where=str(found.path)
    )
