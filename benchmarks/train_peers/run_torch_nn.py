"""One measured run of PyTorch's own Transformer layers in a plain loop."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from train_peers.loop import Logits, measure

LONGEST = 1024


class Model(nn.Module):
    """Encoder and decoder of `torch.nn`, with the embeddings and output that they lack.

    Dropout stands where the paper has it: not on attention weights and not inside the
    feed-forward layer, where `torch.nn` has it too.
    """

    def __init__(self, size: dict[str, int], vocabulary: int, dropout: float) -> None:
        super().__init__()
        self.width = size["d_model"]
        self.embedding = nn.Embedding(vocabulary, self.width)
        nn.init.normal_(self.embedding.weight, std=self.width**-0.5)
        angle = torch.arange(LONGEST)[:, None] / 10_000 ** (
            torch.arange(0, self.width, 2) / self.width
        )
        positions = torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)
        self.register_buffer("positions", positions, persistent=False)
        self.dropout = nn.Dropout(dropout)
        values = (self.width, size["num_heads"], size["d_ff"], dropout)
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(*values, batch_first=True),
            size["num_encoder_layers"],
            enable_nested_tensor=False,
        )
        self.decoder = nn.TransformerDecoder(
            nn.TransformerDecoderLayer(*values, batch_first=True), size["num_decoder_layers"]
        )
        for layer in (*self.encoder.layers, *self.decoder.layers):
            layer.dropout.p = 0.0
        for module in self.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0

    def forward(self, source: Tensor, is_token: Tensor, read: Tensor) -> Tensor:
        """Return the logits of every target position."""
        memory = self.encoder(self._embed(source), src_key_padding_mask=~is_token)
        causal = nn.Transformer.generate_square_subsequent_mask(read.shape[1], read.device)
        states = self.decoder(
            self._embed(read),
            memory,
            tgt_mask=causal,
            tgt_is_causal=True,
            memory_key_padding_mask=~is_token,
        )
        return nn.functional.linear(states, self.embedding.weight)

    def _embed(self, ids: Tensor) -> Tensor:
        scaled = self.embedding(ids) * math.sqrt(self.width)
        return self.dropout(scaled + self.positions[: ids.shape[1]])


def build(work: dict[str, Any]) -> tuple[nn.Module, Logits, dict[str, str]]:
    """Make a new model of the given size."""
    model = Model(work["size"], work["vocabulary"], work["dropout"])
    return model, model, {}


if __name__ == "__main__":
    measure(build)
