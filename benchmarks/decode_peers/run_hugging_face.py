"""One measured run of Hugging Face's MarianMT and its `generate`: ids in, ids out."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from decode_peers.measured import Sentence, Translate, measure
from transformers import MarianMTModel


def load(work: dict[str, Any]) -> tuple[Translate, dict[str, str]]:
    """Load the model, without the generation rules that would slow it down."""
    model = MarianMTModel.from_pretrained(
        work["model"],
        dtype=getattr(torch, work["precision"]),
        attn_implementation=work["attention"],
    ).eval()
    model.generation_config.bad_words_ids = None
    model.generation_config.max_length = None
    pad, eos = model.config.pad_token_id, model.config.eos_token_id

    @torch.inference_mode()
    def translate(sentences: list[Sentence], beam: int, batch_size: int) -> list[Any]:
        options: dict[str, Any] = {
            "num_beams": beam,
            "do_sample": False,
            **({"length_penalty": 1.0, "early_stopping": False} if beam > 1 else {}),
        }
        order = sorted(range(len(sentences)), key=lambda i: -len(sentences[i]["ids"]))
        outputs: list[Any] = [None] * len(sentences)
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            rows = [sentences[i]["ids"] for i in batch]
            source = torch.tensor([row + [pad] * (len(rows[0]) - len(row)) for row in rows])
            lengths = torch.tensor([len(row) for row in rows])[:, None]
            limit = max(sentences[i]["limit"] for i in batch)
            found = model.generate(
                input_ids=source,
                attention_mask=(torch.arange(source.shape[1]) < lengths).long(),
                max_new_tokens=limit,
                **({"min_new_tokens": limit} if work["use_minimum_length"] else {}),
                **options,
            )
            for i, ids in zip(batch, found[:, 1:].tolist(), strict=True):
                outputs[i] = ids[: ids.index(eos) + 1] if eos in ids else ids
        return outputs

    return translate, {
        "transformers": transformers.__version__,
        "torch": torch.__version__,
        "threads": str(torch.get_num_threads()),
    }


if __name__ == "__main__":
    measure(load)
