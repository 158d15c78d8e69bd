"""A small random model in the form of Hugging Face's MarianMT, as such folders are distributed."""

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

os.environ.setdefault("HF_HUB_OFFLINE", "1")
marian = pytest.importorskip("transformers.models.marian")

H, F, LONGEST = 3, 19, 47
D = 2 * H * 11
NEVER = -30.0

ENGLISH = "the black cat eats a red apple in kitchen while dog sleeps near old door"
FRENCH = "le chat noir mange une pomme rouge dans la cuisine près du vieil étang"


def sentences(text: str) -> list[str]:
    dice, words = random.Random(7), text.split(" ")
    return [" ".join(dice.choices(words, k=dice.randint(3, 11))) + "." for _ in range(300)]


@cache
def cutter(language: str) -> bytes:
    """A SentencePiece model as OPUS-MT trains them, its normalization included."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences(ENGLISH if language == "en" else FRENCH)),
        model_writer=model,
        model_type="unigram",
        vocab_size=61,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return model.getvalue()


def pieces(language: str) -> list[str]:
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(cutter(language))
    found = [processor.id_to_piece(id_) for id_ in range(len(processor))]
    # Some pieces are left out, so that they are unknown to the model.
    return [piece for piece in found if piece not in ("<unk>", "<s>", "</s>")][:-3]


def write_theirs(folder: Path, **changes: Any) -> Any:
    """Write a small random MarianMT model and its tokenizer, as they are distributed."""
    is_separate = changes.get("share_encoder_decoder_embeddings") is False
    special = ["</s>", "<unk>", ">>fra<<"]
    if is_separate:
        sides = [[*special, "<pad>", *pieces("en")], [*special, "<pad>", *pieces("fr")]]
    else:
        sides = [[*special, *dict.fromkeys([*pieces("en"), *pieces("fr")]), "<pad>"]]
    pad = sides[0].index("<pad>")
    config = marian.MarianConfig(
        **{
            "vocab_size": len(sides[0]),
            "decoder_vocab_size": len(sides[-1]),
            "d_model": D,
            "encoder_layers": 3,
            "decoder_layers": 2,
            "encoder_attention_heads": H,
            "decoder_attention_heads": H,
            "encoder_ffn_dim": F,
            "decoder_ffn_dim": F,
            "max_position_embeddings": LONGEST,
            "activation_function": "swish",
            "scale_embedding": True,
            "pad_token_id": pad,
            "eos_token_id": 0,
            "decoder_start_token_id": pad,
            "forced_eos_token_id": None,
            **changes,
        }
    )
    theirs = marian.MarianMTModel(config).eval()
    randomize(theirs)
    theirs.final_logits_bias[0, pad] = NEVER
    theirs.generation_config.update(bad_words_ids=[[pad]])
    theirs.save_pretrained(folder)
    change_json(folder / "generation_config.json", max_length=31, bad_words_ids=[[pad]])
    for name, language in (("source", "en"), ("target", "fr")):
        (folder / f"{name}.spm").write_bytes(cutter(language))
    for name, tokens in zip(("vocab.json", "target_vocab.json"), sides, strict=False):
        (folder / name).write_text(json.dumps({token: i for i, token in enumerate(tokens)}))
    settings = {"source_lang": "en", "target_lang": "fr", "separate_vocabs": is_separate}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return theirs


def change_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def randomize(theirs: Any) -> None:
    numbers = torch.Generator().manual_seed(43)
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            if "embed_positions" not in name:
                width = parameter.shape[1] ** -0.5 if parameter.dim() == 2 else 0.3
                center = 1.0 if name.endswith("norm.weight") else 0.0
                parameter.normal_(center, width, generator=numbers)
        theirs.final_logits_bias.normal_(generator=numbers)
