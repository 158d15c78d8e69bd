"""Attention in range: how even or sharp it is, what rests on the end, and which head decides.

    python benchmarks/attention_range.py MODEL... [--count 300] [--exact 0] [--out FILE]

For every attention, over test sentences of the built-in corpus, all heads together: the share of
rows that are nearly even (entropy above 95 % of the most possible) and of rows with a weight above
0.99, both without rows of a single key; the weight on the last source token (where the decoder
reads itself, on the first target token), and the standard deviation of the scaled scores that the
mask allows. Where rows are even, attention does nothing; where that deviation is large, softmax is
saturated: its gradient is next to zero and no weight between 0 and 1 is left to see.

For the sentence of the pizza: the words that one head reads clearly in the row of "it", and the
heads whose cut turns only "elle" to "il". With --exact: translations of so many sentences of each
split that are exactly right, and of the sentences of the texts.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from side_by_side.results import write_result

from pellucid import load
from pellucid.corpora import SplitName, make_split, seed_examples
from pellucid.demo import evaluate_split
from pellucid.inside.ask import Ask
from pellucid.inside.changes.change import Changes, CutHead
from pellucid.inside.changes.place import all_heads
from pellucid.inside.changes.what_if import UNCHANGED, decode_under
from pellucid.inside.line_traces import Replaying
from pellucid.inside.pair import make_pair
from pellucid.machine.hardware import use_threads
from pellucid.translate.translator import Translator

PIZZA = "The pizza came out of the oven and it tasted good."
SHARP = 0.99
EVEN = 0.95
CLEAR = 0.3
"""The weight from which a cell of a map stands out."""

SPLITS: tuple[SplitName, ...] = ("test", "compositional", "pronoun")
FORMAT = "{:<20} {:>8} {:>8} {:>12} {:>10}"


def main() -> None:
    """Measure every model, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--count", type=int, default=300, help="test sentences to look into")
    parser.add_argument("--exact", type=int, default=0, help="sentences of each split to translate")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", type=Path, help="the file of the results")
    asked = parser.parse_args()
    use_threads(asked.threads)
    found = {}
    for name in asked.models:
        translator = load(name)
        layers = measure_layers(translator, asked.count)
        flips, clear = find_deciding_heads(translator)
        found[name] = {"layers": layers, "heads that decide": flips, "row of it": clear}
        found[name] |= {"exact": measure_exact(translator, asked.exact)} if asked.exact else {}
        show(name, found[name])
    result = {"sentences": asked.count, "models": found}
    write_result("attention-range", result, (), asked.out)


def measure_layers(translator: Translator, count: int) -> dict[str, dict[str, float]]:
    """Measure every attention."""
    sources = [example.source for example in make_split("test", count=count)]
    ask = Ask("*", stages=("weights", "masked"))
    rows: dict[str, list[np.ndarray]] = {}
    scores: dict[str, list[np.ndarray]] = {}
    for (trace,) in translator.look_at_each(sources, Replaying(ask)):
        for name, array in trace.arrays.items():
            site, _, stage = name.rpartition(".")
            if stage == "masked":
                scores.setdefault(site, []).append(array[np.isfinite(array)])
            else:
                rows.setdefault(site, []).append(describe_rows(site, array))
    found = {}
    for site, parts in rows.items():
        largest, evenness, end = np.concatenate(parts).T
        found[site] = {
            "even": float((evenness > EVEN).mean()),
            "sharp": float((largest > SHARP).mean()),
            "end": float(end.mean()),
            "deviation": float(np.concatenate(scores[site]).std(dtype=np.float64)),
        }
    return found


def describe_rows(site: str, weights_HLM: np.ndarray) -> np.ndarray:
    """Give each row's largest weight, share of the most entropy, and weight on the end."""
    is_causal = site.startswith("decoder") and site.endswith("self")
    num_rows, num_keys = weights_HLM.shape[1:]
    keys_L = np.arange(1, num_rows + 1) if is_causal else np.full(num_rows, num_keys)
    logarithms = np.log(np.where(weights_HLM > 0, weights_HLM, 1))
    most_L = np.log(np.maximum(keys_L, 2))
    evenness_HL = -(weights_HLM * logarithms).sum(axis=-1) / most_L
    end_HL = weights_HLM[:, :, 0 if is_causal else -1]
    figures = np.stack((weights_HLM.max(axis=-1), evenness_HL, end_HL), axis=-1)
    return figures[:, keys_L > 1].reshape(-1, 3)


def find_deciding_heads(translator: Translator) -> tuple[list[str], dict[str, dict[str, float]]]:
    """Find the heads whose cut turns only "elle" to "il", and what the row of "it" reads."""
    trace = translator.look(PIZZA, ask=Ask("encoder"))
    pair = make_pair(translator.bundle, PIZZA, str(trace.decoding["text"]))
    length = 2 * len(pair.target_ids) + 20
    before = decode_under(pair, UNCHANGED, max_length=length).text.split()
    wanted = ["il" if word == "elle" else word for word in before]
    flips = []
    for place in all_heads(pair.model.config):
        changed = decode_under(pair, Changes(CutHead(place)), max_length=length).text.split()
        if changed == wanted != before:
            flips.append(str(place))
    row = trace.source_tokens.index("it")
    clear: dict[str, dict[str, float]] = {}
    for name, weights_HSS in trace.arrays.items():
        for head, weights_S in zip(trace.heads, weights_HSS[:, row], strict=True):
            cells = zip(trace.source_tokens, weights_S.tolist(), strict=True)
            if found := {token: weight for token, weight in cells if weight > CLEAR}:
                clear[f"{name.removesuffix('.weights')}.{head}"] = found
    return flips, clear


def measure_exact(translator: Translator, count: int) -> dict[str, float]:
    """Measure the share of translations that are exactly right."""
    found = {}
    for name in SPLITS:
        examples = make_split(name, count=count)
        pairs = [(example.source, example.target) for example in examples]
        found[name] = evaluate_split(translator, name, pairs).exact_match
    seeds = seed_examples()
    translations = translator.translate([example.source for example in seeds])
    right = [one.text == seed.target for one, seed in zip(translations, seeds, strict=True)]
    return found | {"sentences of the texts": sum(right) / len(right)}


def show(name: str, found: dict[str, Any]) -> None:
    """Print what was found for one model."""
    print(f"\n{name}")
    print(FORMAT.format("attention", "even", f"> {SHARP}", "on the end", "deviation"))
    for site, figures in found["layers"].items():
        shares = [f"{figures[name]:.0%}" for name in ("even", "sharp", "end")]
        print(FORMAT.format(site, *shares, f"{figures['deviation']:.1f}"))
    print(f'Cut, these turn only "elle" to "il": {", ".join(found["heads that decide"]) or "none"}')
    for head, cells in found["row of it"].items():
        words = ", ".join(f"{token} {weight:.2f}" for token, weight in cells.items())
        print(f'Row of "it", {head}: {words}')
    for split, share in found.get("exact", {}).items():
        print(f"Exactly right, {split}: {share:.1%}")


if __name__ == "__main__":
    main()
