"""One measured run of Hugging Face's MarianMT in a plain loop."""

from __future__ import annotations

from typing import Any

import transformers
from torch import Tensor, nn
from train_peers.loop import END, PAD, START, Logits, measure
from transformers import MarianConfig, MarianMTModel


def build(work: dict[str, Any]) -> tuple[nn.Module, Logits, dict[str, str]]:
    """Make a new model of the given size."""
    size = work["size"]
    config = MarianConfig(
        vocab_size=work["vocabulary"],
        d_model=size["d_model"],
        encoder_layers=size["num_encoder_layers"],
        decoder_layers=size["num_decoder_layers"],
        encoder_ffn_dim=size["d_ff"],
        decoder_ffn_dim=size["d_ff"],
        encoder_attention_heads=size["num_heads"],
        decoder_attention_heads=size["num_heads"],
        activation_function="relu",
        dropout=work["dropout"],
        scale_embedding=True,
        use_cache=False,
        pad_token_id=PAD,
        eos_token_id=END,
        forced_eos_token_id=END,
        decoder_start_token_id=START,
        attn_implementation=work["attention"],
    )
    model = MarianMTModel(config)

    def logits_of(source: Tensor, is_token: Tensor, read: Tensor) -> Tensor:
        found: Tensor = model(
            input_ids=source, attention_mask=is_token.long(), decoder_input_ids=read
        ).logits
        return found

    return model, logits_of, {"transformers": transformers.__version__}


if __name__ == "__main__":
    measure(build)
