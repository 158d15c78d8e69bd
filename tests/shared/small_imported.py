"""A bundle as conversion makes it of a model of Marian: random weights, and subwords of two models.

It needs none of the libraries that read or write other formats.
"""

from __future__ import annotations

import io
import random
from functools import cache
from pathlib import Path

import sentencepiece
import torch

from pellucid.bundle import Bundle, load_bundle, save_bundle
from pellucid.config import BundleConfig, DecodingConfig, ModelConfig, TokenizerConfig
from pellucid.model import Transformer, initialize
from pellucid.model.unowned import silence_logits
from pellucid.text.tokenizers.marian import MarianTokenizer
from pellucid.text.tokenizers.tokenizer import write_vocabulary

__all__ = ["write_imported"]

ENGLISH = "the black cat eats a red apple in kitchen while dog sleeps near old door"
FRENCH = "le chat noir mange une pomme rouge dans la cuisine pendant que chien dort"


@cache
def _cutter(words: str) -> bytes:
    dice, found = random.Random(7), io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(
            " ".join(dice.choices(words.split(" "), k=dice.randint(3, 11))) for _ in range(300)
        ),
        model_writer=found,
        vocab_size=61,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return found.getvalue()


def _pieces(words: str) -> list[str]:
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(_cutter(words))
    found = [processor.id_to_piece(id_) for id_ in range(len(processor))]
    return [piece for piece in found if piece not in ("<unk>", "<s>", "</s>")]


def make_tokenizer(codes: tuple[str, ...] = ()) -> MarianTokenizer:
    """Cut English and French with one list of ids: `</s>`, `<unk>`, codes, pieces, `<pad>`."""
    marked = [f">>{code}<<" for code in codes]
    pieces = dict.fromkeys([*_pieces(ENGLISH), *_pieces(FRENCH)])
    tokens = ["</s>", "<unk>", *marked, *pieces, "<pad>"]
    config = TokenizerConfig(
        normalization="none",
        pad_id=len(tokens) - 1,
        unk_id=1,
        bos_id=None,
        eos_id=0,
        target_start_id=len(tokens) - 1,
    )
    files = {
        "source.model": _cutter(ENGLISH),
        "target.model": _cutter(FRENCH),
        "vocabulary.txt": write_vocabulary(tokens),
    }
    return MarianTokenizer.load(config, files, "here")


def write_imported(folder: Path, codes: tuple[str, ...] = ()) -> Bundle:
    """Write a bundle of a model that was trained with some language codes, or without any."""
    tokenizer = make_tokenizer(codes)
    config = ModelConfig(
        d_model=66,
        d_ff=19,
        num_heads=3,
        num_encoder_layers=2,
        num_decoder_layers=2,
        projection_bias=True,
        positions="sinusoidal_halves",
        source_vocabulary_size=tokenizer.source_vocabulary_size,
        target_vocabulary_size=tokenizer.target_vocabulary_size,
        max_source_length=47,
        max_target_length=47,
    )
    model = Transformer(config, has_output_bias=True)
    initialize(model, 1)
    numbers = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(std=0.3, generator=numbers)
    save_bundle(
        folder,
        config=BundleConfig(
            decoding=DecodingConfig(beam=3, length_penalty="average", alpha=1.0),
            model=config,
            tokenizer=tokenizer.config,
        ),
        weights=silence_logits(model.state_dict(), [tokenizer.config.pad_id]),
        tokenizer=tokenizer,
        recipe_toml="",
        provenance={},
    )
    return load_bundle(folder)
