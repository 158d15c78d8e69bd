"""Compare the traces of a model with what TransformerLens records of its export to MarianMT.

    pip install transformer_lens
    python benchmarks/in_transformer_lens.py

A model with random weights is exported, opened with ``TransformerBridge``, and given the same
source and target as `pellucid.inside`. The logits and the weights of every head must be equal to
1e-5. Both compute in double precision: in float32 they differ by 1e-4
(weights) and 1e-3 (logits), perhaps since attention of random weights is sharp.
"""

from __future__ import annotations

import argparse
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from decode_peers.subjects import UNREACHABLE, random_subject
from side_by_side.results import write_result
from transformer_lens.model_bridge import TransformerBridge

from pellucid.formats.to_marian import export_marian
from pellucid.inside import replay
from pellucid.inside.ask import Ask
from pellucid.inside.pair import PairData

# Ours and theirs, of a layer.
SITES = {
    "encoder.{}.self": "encoder_blocks.{}.attn.hook_pattern",
    "decoder.{}.self": "decoder_blocks.{}.self_attn.hook_pattern",
    "decoder.{}.cross": "decoder_blocks.{}.cross_attn.hook_pattern",
}
MOST = 1e-5


def main() -> None:
    """Compare, print, and write the result file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", default="tiny", help="a size of decode_peers/subjects.py")
    parser.add_argument("--sentences", type=int, default=3)
    parser.add_argument("--out", type=Path, help="the result file (default: a dated one)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        subject = random_subject(given.size, given.sentences, folder, [])
        export_marian(subject.bundle, folder / "marian", "float32")
        bridge = TransformerBridge.boot_transformers(str(folder / "marian"), dtype=torch.float64)
        found = [compare(subject.bundle, bridge, one["ids"]) for one in subject.sentences]
    largest = {name: max(one[name] for one in found) for name in found[0]}
    for name, difference in largest.items():
        print(f"{name}: {difference:.1e}")
    written = {
        "model": subject.title,
        "sentences": given.sentences,
        "transformer_lens": version("transformer_lens"),
        "largest_differences": largest,
    }
    write_result("in-transformer-lens", written, (), given.out)
    assert max(largest.values()) <= MOST, f"a difference is larger than {MOST}"


def compare(bundle, bridge, source_ids: list[int]) -> dict[str, float]:  # type: ignore[no-untyped-def]
    """Find the largest differences of one sentence, by array; its source is also the target."""
    pair = PairData(bundle.exact_model, bundle.tokenizer, tuple(source_ids), tuple(source_ids))
    trace = replay(pair, Ask(stages=("weights", "logits")))
    read_1T = torch.tensor([pair.read_ids])
    source_1S = torch.tensor([source_ids])
    logits_1TV, cache = bridge.run_with_cache(source_1S, decoder_input=read_1T)
    config = bundle.config.model
    logits_TV = trace.arrays["decoder.logits"]
    # The bias of tokens that are never written is so large that float32, as a trace has it, rounds
    # their logits by more than the difference that is looked for.
    written = logits_TV[0] > UNREACHABLE / 2
    found = {"logits": gap(logits_TV[:, written], logits_1TV[0][:, written])}
    for ours, theirs in SITES.items():
        is_encoder = ours.startswith("encoder")
        count = config.num_encoder_layers if is_encoder else config.num_decoder_layers
        found[ours.format("*")] = max(
            gap(trace.arrays[f"{ours.format(layer)}.weights"], cache[theirs.format(layer)][0])
            for layer in range(count)
        )
    return found


def gap(ours: np.ndarray, theirs: torch.Tensor) -> float:
    """Find the largest difference of two arrays."""
    return float(np.abs(ours - theirs.detach().numpy()).max())


if __name__ == "__main__":
    main()
