"""Draw the cross-attention of one decoder layer, head by head, for one sentence.

    python docs/pictures/make_cross_attention.py MODEL [--text TEXT] [--layer L] [--out FILE]

The sentence is translated greedily; then the same tokens go through the model once more,
teacher-forced, with a probe that keeps the weights. Nothing is averaged and no token is hidden.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import torch
from torch import Tensor

import pellucid
from pellucid.translator import Translator

matplotlib.use("Agg")


class Keep:
    """A probe that keeps the weights of one site."""

    def __init__(self, site: str) -> None:
        self.site = site
        self.weights_HLM: Tensor | None = None

    def see(self, site: str, stage: str, tensor: Tensor) -> None:
        """Keep the weights where they pass by."""
        if site == self.site and stage == "weights":
            self.weights_HLM = tensor[0]


@torch.inference_mode()
def cross_attention(
    translator: Translator, text: str, layer: int
) -> tuple[Tensor, list[str], list[str], list[str]]:
    """Weights (heads, rows, source), source pieces, and what each row reads and predicts."""
    tokenizer = translator.tokenizer
    translation = translator.translate([text])[0]
    source_ids = tokenizer.encode_source(text)
    read_ids = [tokenizer.config.target_start_id, *translation.ids[:-1]]
    probe = Keep(f"decoder.{layer}.cross")
    translator.model(torch.tensor([source_ids]), torch.tensor([read_ids]), probe=probe)
    assert probe.weights_HLM is not None
    return (
        probe.weights_HLM,
        tokenizer.source_tokens(source_ids),
        tokenizer.target_tokens(read_ids),
        list(translation.tokens),
    )


def draw(
    weights_HLM: Tensor, source: list[str], reads: list[str], predicts: list[str], caption: str
) -> plt.Figure:
    """One panel a head, the same scale from 0 to 1 everywhere."""
    num_heads = weights_HLM.shape[0]
    figure, panels = plt.subplots(
        1, num_heads, figsize=(2.2 + 2.6 * num_heads, 4.9), sharey=True, layout="constrained"
    )
    for head, panel in enumerate(panels):
        image = panel.imshow(weights_HLM[head], cmap="cividis", vmin=0, vmax=1, aspect="auto")
        panel.set_title(f"head {head}", fontsize=10)
        panel.set_xticks(range(len(source)), source, rotation=60, ha="right", fontsize=8)
    rows = [f"{read} → {predicted}" for read, predicted in zip(reads, predicts, strict=True)]
    panels[0].set_yticks(range(len(rows)), rows, fontsize=8)
    panels[0].set_ylabel("decoder row: reads → predicts", fontsize=9)
    figure.colorbar(image, ax=panels, label="weight", fraction=0.03, pad=0.01)
    figure.suptitle(caption, fontsize=9)
    return figure


def main() -> None:
    """Draw one picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--text", default="A girl in a blue dress is eating an ice cream.")
    parser.add_argument("--layer", type=int, default=3)
    default_out = Path(__file__).with_name("cross-attention.png")
    parser.add_argument("--out", type=Path, default=default_out)
    arguments = parser.parse_args()
    translator = pellucid.load(arguments.model)
    found = cross_attention(translator, arguments.text, arguments.layer)
    assert translator.bundle is not None
    caption = (
        f"Cross-attention weights, decoder layer {arguments.layer}, every head, "
        f"greedy search, float32, model {translator.bundle.model_hash[:8]}"
    )
    draw(*found, caption).savefig(arguments.out, dpi=110)


if __name__ == "__main__":
    main()
