"""Attention in range: how sharp attention is, what rests on the end, and which head decides.

    python benchmarks/attention_range.py MODEL... [--count 300] [--exact 0] [--out FILE]

For every layer of self-attention, over test sentences of the built-in corpus, all heads together:
the share of rows with a weight above 0.99, the weight on the last source token (in the decoder on
the first target token), and the standard deviation of the scaled scores that the mask allows. Where
that deviation is large, softmax is saturated: its gradient is next to zero and no weight between 0
and 1 is left to see.

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
CLEAR = 0.3
"""The weight from which a cell of a map stands out."""

SPLITS: tuple[SplitName, ...] = ("test", "compositional", "pronoun")
FORMAT = "{:<20} {:>8} {:>12} {:>10}"


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
    """Measure every layer of self-attention."""
    sources = [example.source for example in make_split("test", count=count)]
    ask = Ask("*.*.self", stages=("weights", "masked"))
    weights: dict[str, list[np.ndarray]] = {}
    scores: dict[str, list[np.ndarray]] = {}
    for (trace,) in translator.look_at_each(sources, Replaying(ask)):
        for name, array in trace.arrays.items():
            site, _, stage = name.rpartition(".")
            if stage == "masked":
                scores.setdefault(site, []).append(array[np.isfinite(array)])
                continue
            end_HL = array[:, :, -1 if site.startswith("encoder") else 0]
            pair = np.stack((array.max(axis=-1), end_HL), axis=-1).reshape(-1, 2)
            weights.setdefault(site, []).append(pair)
    found = {}
    for site, parts in weights.items():
        largest, end = np.concatenate(parts).T
        found[site] = {
            "sharp": float((largest > SHARP).mean()),
            "end": float(end.mean()),
            "deviation": float(np.concatenate(scores[site]).std(dtype=np.float64)),
        }
    return found


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
    print(FORMAT.format("layer", f"> {SHARP}", "on the end", "deviation"))
    for site, figures in found["layers"].items():
        cells = (f"{figures['sharp']:.0%}", f"{figures['end']:.0%}", f"{figures['deviation']:.1f}")
        print(FORMAT.format(site, *cells))
    print(f'Cut, these turn only "elle" to "il": {", ".join(found["heads that decide"]) or "none"}')
    for head, cells in found["row of it"].items():
        words = ", ".join(f"{token} {weight:.2f}" for token, weight in cells.items())
        print(f'Row of "it", {head}: {words}')
    for split, share in found.get("exact", {}).items():
        print(f"Exactly right, {split}: {share:.1%}")


if __name__ == "__main__":
    main()
