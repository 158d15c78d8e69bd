"""Small random models of fairseq's families in Hugging Face's form, as they are distributed."""

from __future__ import annotations

import io
import json
import os
import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch
from small_marian import ENGLISH, FRENCH, sentences

os.environ.setdefault("HF_HUB_OFFLINE", "1")
transformers = pytest.importorskip("transformers")

LANGUAGES = ("deu_Latn", "eng_Latn", "fra_Latn", "zho_Hans", "zho_Hant")
SHAPES = {
    "deep": {"d_model": 24, "heads": 2, "ffn": 40, "encoder": 3, "decoder": 2},
    "narrow": {"d_model": 12, "heads": 3, "ffn": 19, "encoder": 1, "decoder": 3},
    "wide": {"d_model": 64, "heads": 4, "ffn": 96, "encoder": 2, "decoder": 1},
}


@cache
def cutter(kind: str) -> bytes:
    """A SentencePiece model of both languages."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*sentences(ENGLISH), *sentences(FRENCH)]),
        model_writer=model,
        model_type=kind,
        vocab_size=90,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return model.getvalue()


def pieces(kind: str) -> list[str]:
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(cutter(kind))
    return [processor.id_to_piece(id_) for id_ in range(len(processor))]


@cache
def byte_pairs() -> str:
    """A tokenizer.json of pairs of bytes, learned from both languages."""
    learner = pytest.importorskip("tokenizers").ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    learner.train_from_iterator(
        [*sentences(ENGLISH), *sentences(FRENCH)], vocab_size=330, special_tokens=special
    )
    made: str = learner.to_str()
    return made


def write_byte_pairs(folder: Path) -> tuple[Any, int]:
    """Write the files of a BART's tokenizer, old and new; return it and the number of its ids."""
    model = json.loads(byte_pairs())["model"]
    (folder / "vocab.json").write_text(json.dumps(model["vocab"]))
    merges = "".join(f"{' '.join(one)}\n" for one in model["merges"])
    (folder / "merges.txt").write_text(f"#version: 0.2\n{merges}")
    made = transformers.BartTokenizer.from_pretrained(folder)
    made.save_pretrained(folder)
    return made, len(made) + 2


def write_tokenizer(folder: Path, family: str) -> tuple[Any, int]:
    """Write a tokenizer of a family; return it and the number of its ids."""
    folder.mkdir(parents=True)
    if family == "bart":
        return write_byte_pairs(folder)
    kind = "unigram" if family == "mbart" else "bpe"
    (folder / "sentencepiece.bpe.model").write_bytes(cutter(kind))
    if family in ("m2m", "small"):
        tokens = ["<s>", "<pad>", "</s>", "<unk>", *pieces(kind)[3:]]
        (folder / "vocab.json").write_text(json.dumps({one: id_ for id_, one in enumerate(tokens)}))
        made = transformers.M2M100Tokenizer(
            str(folder / "vocab.json"), str(folder / "sentencepiece.bpe.model")
        )
        made.save_pretrained(folder)
        if family == "small":
            change(folder / "tokenizer_config.json", tokenizer_class="SMALL100Tokenizer")
        # Behind the languages come rows for words that were never made up.
        return made, len(tokens) + 100 + 8
    name = "NllbTokenizer" if family == "nllb" else "MBart50Tokenizer"
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name}))
    more = {"extra_special_tokens": list(LANGUAGES)} if family == "nllb" else {}
    made = getattr(transformers, name).from_pretrained(folder, **more)
    made.save_pretrained(folder)
    return made, len(made) + 2


def write_model(
    folder: Path, family: str, shape: str = "deep", dtype: str = "float32", **changes: Any
) -> tuple[Any, Any]:
    """Write a model and its tokenizer; return both, the model in float32."""
    made, size = write_tokenizer(folder, family)
    sizes = SHAPES[shape]
    common = {
        "vocab_size": size,
        "d_model": sizes["d_model"],
        "encoder_layers": sizes["encoder"],
        "decoder_layers": sizes["decoder"],
        "encoder_attention_heads": sizes["heads"],
        "decoder_attention_heads": sizes["heads"],
        "encoder_ffn_dim": sizes["ffn"],
        "decoder_ffn_dim": sizes["ffn"],
        "max_position_embeddings": 64,
        "decoder_start_token_id": 2,
        "forced_eos_token_id": None,
        **changes,
    }
    if family == "mbart":
        model = transformers.MBartForConditionalGeneration(
            transformers.MBartConfig(scale_embedding=True, **common)
        )
    elif family == "bart":
        model = transformers.BartForConditionalGeneration(transformers.BartConfig(**common))
    else:
        model = transformers.M2M100ForConditionalGeneration(transformers.M2M100Config(**common))
    numbers = torch.Generator().manual_seed(43)
    with torch.no_grad():
        for name, one in model.named_parameters():
            width = one.shape[1] ** -0.5 if one.dim() == 2 else 0.3
            one.normal_(1.0 if name.endswith("norm.weight") else 0.0, width, generator=numbers)
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.normal_(generator=numbers)
    model.eval().to(getattr(torch, dtype)).save_pretrained(folder)
    change(folder / "generation_config.json", max_length=31)
    # Read again: to round the model has rounded its sines, too, which no file holds.
    return type(model).from_pretrained(folder, dtype=torch.float32).eval(), made


def change(path: Path, **changes: Any) -> None:
    values = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**values, **changes}))


def random_sentences(count: int) -> list[str]:
    dice = random.Random(3)
    words = f"{ENGLISH} {FRENCH} Zoë 7 (a) unlike".split(" ")
    return [" ".join(dice.choices(words, k=dice.randint(1, 9))) for _ in range(count)]
