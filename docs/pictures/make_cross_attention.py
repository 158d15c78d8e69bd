"""Draw the cross-attention of one decoder layer, head by head, for one sentence.

    python docs/pictures/make_cross_attention.py [MODEL] [--text TEXT] [--layer L] [--out FILE]

The sentence is translated greedily and replayed; nothing is averaged and no token is hidden.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt

import pellucid
from pellucid.inside import CrossAttention, replay_cross_attention

matplotlib.use("Agg")


def draw(attention: CrossAttention, layer: int, caption: str) -> plt.Figure:
    """One panel a head, the same scale from 0 to 1 everywhere."""
    weights_HTS = attention.weights_NHTS[layer]
    num_heads = weights_HTS.shape[0]
    figure, panels = plt.subplots(
        1, num_heads, figsize=(2.2 + 2.6 * num_heads, 4.9), sharey=True, layout="constrained"
    )
    source = attention.source_tokens
    for head, panel in enumerate(panels):
        image = panel.imshow(weights_HTS[head], cmap="cividis", vmin=0, vmax=1, aspect="auto")
        panel.set_title(f"head {head}", fontsize=10)
        panel.set_xticks(range(len(source)), source, rotation=60, ha="right", fontsize=8)
    rows = [
        f"{read} → {predicted}"
        for read, predicted in zip(attention.read_tokens, attention.predicted_tokens, strict=True)
    ]
    panels[0].set_yticks(range(len(rows)), rows, fontsize=8)
    panels[0].set_ylabel("decoder row: reads → predicts", fontsize=9)
    figure.colorbar(image, ax=panels, label="weight", fraction=0.03, pad=0.01)
    figure.suptitle(caption, fontsize=9)
    return figure


def main() -> None:
    """Draw one picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="demo")
    parser.add_argument("--text", default="The pizza came out of the oven and it tasted good")
    parser.add_argument("--layer", type=int, default=-1, help="the last unless given")
    default_out = Path(__file__).with_name("cross-attention.png")
    parser.add_argument("--out", type=Path, default=default_out)
    arguments = parser.parse_args()
    translator = pellucid.load(arguments.model)
    (translation,) = translator.translate([arguments.text])
    assert translator.bundle is not None
    attention = replay_cross_attention(
        translator.bundle,
        arguments.text,
        translation.ids,
        log_probabilities=translation.token_log_probabilities,
    )
    layer = arguments.layer % attention.weights_NHTS.shape[0]
    caption = (
        f"Cross-attention weights, decoder layer {layer}, every head, greedy search, float32, "
        f"model {translator.bundle.model_hash[:8]}"
    )
    draw(attention, layer, caption).savefig(arguments.out, dpi=110)


if __name__ == "__main__":
    main()
