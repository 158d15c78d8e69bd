"""The measured models, in every system's format, and the sentences they translate."""

from __future__ import annotations

import io
import os
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sentencepiece
import torch

from pellucid.bundle import Bundle, load_bundle, resolve_model, save_bundle
from pellucid.config import NAMED_SIZES, BundleConfig, ModelConfig, TokenizerConfig
from pellucid.evaluation.corpus_scores import corpus_bleu_score
from pellucid.formats.to_ctranslate2 import export_ctranslate2
from pellucid.formats.to_marian import export_marian
from pellucid.model import Transformer, initialize
from pellucid.text.reading.lines import read_lines
from pellucid.text.tokenizers.subwords import SentencePieceTokenizer, SubwordVocabulary

SIZES: dict[str, dict[str, Any]] = {
    "demo": {
        **{"d_model": 96, "d_ff": 256, "num_heads": 4},
        **{"num_encoder_layers": 2, "num_decoder_layers": 2},
    },
    **{name: NAMED_SIZES[name] for name in ("tiny", "small", "base")},
    "nllb-600m": {
        **{"d_model": 1024, "d_ff": 4096, "num_heads": 16},
        **{"num_encoder_layers": 12, "num_decoder_layers": 12},
        **{"norm": "pre", "positions": "learned"},
    },
}
"""Sizes of the packaged model, named ones, and that of NLLB-200's smallest."""

VOCABULARIES = {
    **{"demo": 1757, "tiny": 8_000, "small": 8_000, "base": 32_000, "nllb-600m": 256_206},
}
SOURCE_TOKENS = 20
TARGET_TOKENS = 24
MAX_LENGTH = 64
UNREACHABLE = -10_000.0


@dataclass(frozen=True)
class Subject:
    """One model and its work.

    Attributes:
        name: its name in results.
        title: one line about it.
        bundle: the model as pellucid has it.
        folders: the model's folder for each system and precision.
        sentences: ``ids``, ``tokens`` and ``limit`` of each sentence to translate.
        references: the translations to compare with, if any.
    """

    name: str
    title: str
    bundle: Bundle
    folders: dict[tuple[str, str], Path]
    sentences: list[dict[str, Any]]
    references: list[str] | None

    @property
    def is_fixed(self) -> bool:
        """True if every translation has `TARGET_TOKENS` tokens."""
        return self.references is None

    def ids_of(self, outputs: Sequence[Sequence[int | str]]) -> list[list[int]]:
        """Turn what a system wrote, ids or tokens, into ids."""
        place = {token: id_ for id_, token in enumerate(self.bundle.tokenizer.vocabulary("target"))}
        return [[place.get(token, token) for token in tokens] for tokens in outputs]

    def bleu(self, outputs: Sequence[Sequence[int]]) -> float | None:
        """Compute BLEU of the translations of the first sentences."""
        if self.references is None:
            return None
        texts = [self.bundle.tokenizer.decode_target(ids) for ids in outputs]
        return corpus_bleu_score(texts, self.references[: len(texts)])


def make_random(name: str, folder: Path) -> Bundle:
    r"""Make a model of a named size with random weights, and save it as a bundle.

    A bias makes ``</s>``, padding and the start token unreachable, so that every system writes
    as many tokens as it is allowed to on its usual path. Freshly initialized, a model with tied
    embeddings would write one token over and over, whatever it reads. So the queries are eight
    times as long, which makes the attention choose, and the last norm has random signs.
    """
    size = VOCABULARIES[name]
    config = ModelConfig.model_validate(
        {
            **SIZES[name],
            "projection_bias": True,
            "source_vocabulary_size": size,
            "target_vocabulary_size": size,
            "max_source_length": MAX_LENGTH,
            "max_target_length": MAX_LENGTH,
        }
    )
    tokenizer = SentencePieceTokenizer(TokenizerConfig(), *[numbered_words(size)] * 2)
    ids = tokenizer.config
    model = Transformer(config, has_output_bias=True)
    initialize(model, 1)
    signs_D = torch.randint(0, 2, (config.d_model,), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        for weight_name, weight in model.named_parameters():
            if weight_name.endswith("query.weight"):
                weight *= 8
        last_norm = model.decoder.norm or model.decoder.layers[-1].feed_forward_norm
        last_norm.weight *= 2 * signs_D - 1
        model.output_bias[[ids.pad_id, ids.target_start_id, ids.eos_id]] = UNREACHABLE
    save_bundle(
        folder,
        config=BundleConfig(model=config, tokenizer=ids),
        weights=model.state_dict(),
        tokenizer=tokenizer,
        recipe_toml="",
        provenance={},
    )
    return load_bundle(folder)


def random_subject(
    name: str, num_sentences: int, folder: Path, systems: Iterable[tuple[str, str]]
) -> Subject:
    """Make a model with random weights, which writes as much as it may, and random sentences."""
    bundle = make_random(name, folder / f"{name}-bundle")
    dice, ids = random.Random(1), bundle.config.tokenizer
    sources = [
        [*(dice.randrange(4, VOCABULARIES[name]) for _ in range(SOURCE_TOKENS - 1)), ids.eos_id]
        for _ in range(num_sentences)
    ]
    return Subject(
        name,
        f"{_describe(bundle.config.model)}, random weights; {SOURCE_TOKENS} source and exactly "
        f"{TARGET_TOKENS} target tokens a sentence",
        bundle,
        _export(bundle, folder / name, systems),
        _sentences(bundle, sources, [TARGET_TOKENS] * num_sentences),
        None,
    )


def trained_subject(
    run: str,
    files: tuple[Path | None, Path | None],
    num_sentences: int,
    folder: Path,
    systems: Iterable[tuple[str, str]],
) -> Subject:
    """Load a trained model and real text: Multi30k's validation text unless files are given."""
    bundle = load_bundle(resolve_model(run))
    languages, decoding = bundle.config.languages, bundle.config.decoding
    lines = [
        list(read_lines(path or Path(os.environ["MULTI30K"]) / f"val.{language}.gz"))
        for path, language in zip(files, (languages.source, languages.target), strict=True)
    ]
    sources = bundle.tokenizer.encode_sources(lines[0][:num_sentences])
    by_ratio = [
        int(len(ids) * decoding.max_length_ratio) + decoding.max_length_offset for ids in sources
    ]
    limits = [min(limit, bundle.config.model.max_target_length) for limit in by_ratio]
    return Subject(
        "trained",
        f"{_describe(bundle.config.model)}, trained; the first {len(sources)} sentences of "
        f"{files[0] or 'Multi30k, validation'}",
        bundle,
        _export(bundle, folder / "trained", systems),
        _sentences(bundle, sources, limits),
        lines[1][:num_sentences],
    )


def _export(
    bundle: Bundle, folder: Path, systems: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], Path]:
    """Export a model for every system and precision; pellucid takes the bundle."""
    exporters = {"hugging_face": export_marian, "ctranslate2": export_ctranslate2}
    folders = {}
    for system, precision in systems:
        folders[system, precision] = bundle.folder.absolute()
        if system in exporters:
            folders[system, precision] = folder.absolute() / f"{system}-{precision}"
            exporters[system](bundle, folders[system, precision], precision)
    return folders


def _sentences(
    bundle: Bundle, sources: Sequence[list[int]], limits: Sequence[int]
) -> list[dict[str, Any]]:
    return [
        {"ids": ids, "tokens": bundle.tokenizer.source_tokens(ids[:-1]), "limit": limit}
        for ids, limit in zip(sources, limits, strict=True)
    ]


def numbered_words(size: int) -> SubwordVocabulary:
    """Make a SentencePiece model whose words are numbers, which every system can read."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(str(number) for number in range(size - 4)),
        model_writer=model,
        model_type="word",
        vocab_size=size,
        character_coverage=1.0,
        normalization_rule_name="identity",
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
        minloglevel=2,
    )
    return SubwordVocabulary(model.getvalue())


def _describe(config: ModelConfig) -> str:
    return (
        f"{config.num_encoder_layers} + {config.num_decoder_layers} layers, "
        f"d_model {config.d_model}, d_ff {config.d_ff}, {config.num_heads} heads, "
        f"vocabulary {config.target_vocabulary_size:,}"
    )
