"""A translator on `nn.Transformer` as courses build it, its vocabularies, and its description."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

SPECIAL = ["<unk>", "<pad>", "<s>", "</s>"]
WORDS = {
    "source": "ein hund frisst einen apfel , der rot ist .",
    "target": "a dog eats an apple that is so red .",
}
D, F, H, LONGEST = 34, 53, 2, 23
TOML = """
[model]
num_heads = {heads}
norm = "{norm}"
activation = "{activation}"
embedding_scale = "{scale}"
positions = "{positions}"

[vocabulary]
kind = "{kind}"
source = "source.txt"
target = "target.json"
source_start = false

[languages]
source = "de"
target = "en"
"""


def tokens_of(side: str, kind: str = "words") -> list[str]:
    words = WORDS[side].split()
    return [*SPECIAL, *(words if kind == "words" else sorted({*WORDS[side]}))]


def sines(length: int, width: int) -> Tensor:
    """PyTorch's tutorial."""
    turns = torch.exp(-torch.arange(0, width, 2) * math.log(10000) / width)
    angles = torch.arange(length)[:, None] * turns
    table = torch.zeros(length, width)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()
    return table


class Positions(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        if kind == "learned":
            self.pos_embedding = nn.Parameter(torch.randn(1, LONGEST, D))
        else:
            table = sines(LONGEST, D)[:, None]
            self.register_buffer("pos_embedding", table, persistent=kind == "table")

    def forward(self, length: int) -> Tensor:
        return self.pos_embedding.reshape(LONGEST, D)[:length]


class Course(nn.Module):
    """Names as in PyTorch's tutorial on translation."""

    def __init__(
        self,
        *,
        norm_first: bool = False,
        batch_first: bool = False,
        activation: str = "relu",
        positions: str = "table",
        scale: bool = True,
        kind: str = "words",
        bias: bool = True,
        is_tied: bool = False,
    ) -> None:
        super().__init__()
        sizes = [len(tokens_of(side, kind)) for side in ("source", "target")]
        self.batch_first = batch_first
        self.scale = math.sqrt(D) if scale else 1.0
        self.transformer = nn.Transformer(
            *(D, H, 3, 2, F),
            dropout=0.0,
            activation=activation,
            norm_first=norm_first,
            batch_first=batch_first,
            bias=bias,
        )
        self.generator = nn.Linear(D, sizes[1], bias=not is_tied)
        self.src_tok_emb = nn.Embedding(sizes[0], D)
        self.tgt_tok_emb = nn.Embedding(sizes[1], D)
        self.positional_encoding = Positions(positions)
        numbers = torch.Generator().manual_seed(11)
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.3, generator=numbers)
        if is_tied:
            self.generator.weight = self.tgt_tok_emb.weight
        self.eval()

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        vectors = [
            embedding(ids) * self.scale + self.positional_encoding(ids.shape[1])
            for embedding, ids in ((self.src_tok_emb, source_BS), (self.tgt_tok_emb, target_BT))
        ]
        if not self.batch_first:
            vectors = [one.transpose(0, 1) for one in vectors]
        mask = nn.Transformer.generate_square_subsequent_mask(target_BT.shape[1])
        states = self.transformer(*vectors, tgt_mask=mask)
        logits: Tensor = self.generator(states if self.batch_first else states.transpose(0, 1))
        return logits


def write_course(folder: Path, *, kind: str = "words", **how: Any) -> Course:
    """Write checkpoint.pt, source.txt, target.json and description.toml."""
    model = Course(kind=kind, **how)
    folder.mkdir(parents=True, exist_ok=True)
    torch.save({"epoch": 3, "model_state_dict": model.state_dict()}, folder / "checkpoint.pt")
    lines = "".join(f"{token}\n" for token in tokens_of("source", kind))
    (folder / "source.txt").write_text(lines, encoding="utf-8")
    ids = {token: id_ for id_, token in enumerate(tokens_of("target", kind))}
    (folder / "target.json").write_text(json.dumps(ids), encoding="utf-8")
    positions = {"learned": "table"}.get(
        how.get("positions", "table"), how.get("positions", "table")
    )
    text = TOML.format(
        heads=H,
        norm="pre" if how.get("norm_first") else "post",
        activation=how.get("activation", "relu"),
        scale="sqrt" if how.get("scale", True) else "none",
        positions=positions,
        kind=kind,
    )
    (folder / "description.toml").write_text(text, encoding="utf-8")
    return model
