"""The pronoun test: maps that point at the antecedent, and a probe of the pronoun in each layer.

    python benchmarks/pronouns.py [--model demo] [--count 2000] [--choose 400]

Heads are chosen on validation sentences and tested on minimal pairs. `--count 200 --choose 100`
is a short run.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from antecedents.cases import (
    RULES,
    Case,
    Share,
    choose_reading,
    count_hits,
    make_cases,
    share_by,
    share_of_hits,
)
from antecedents.probe import Word, collect_layers, probe_layers
from antecedents.readings import CUTS, read_cuts, read_heads, read_map

import pellucid
from pellucid.bundle import Bundle
from pellucid.corpora import Example, make_split
from pellucid.corpora.pronouns import FRAMES
from pellucid.inside import Pair, measure
from pellucid.inside.measures.maps import source_words

RESULTS = Path(__file__).parent / "results"
WORDS: tuple[Word, ...] = ("pronoun", "predicate")


def _of(name: str) -> Callable[[Pair], np.ndarray]:
    """Return a function for one measure's map: decoder rows by source tokens.

    A word's number stands at its first token.
    """

    def make(pair: Pair) -> np.ndarray:
        matrix = measure(pair, name).source_matrix
        if matrix.shape[1] == len(pair.source_ids):
            return matrix
        on_tokens = np.zeros((len(matrix), len(pair.source_ids)))
        on_tokens[:, [word[0] for word in source_words(pair)]] = matrix
        return on_tokens

    return make


MEASURED = {
    f"{name}, predicts": read_map(name, _of(name), "predicts")
    for name in ("alti", "rollout", "gradients", "occlusion")
}
"""Measures of all layers together, from the source tokens to the rows that predict the pronoun."""


def main() -> None:
    """Measure, print, and write the result file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="demo")
    parser.add_argument("--count", type=int, default=2000, help="sentences of the pronoun test")
    parser.add_argument("--choose", type=int, default=400, help="validation sentences")
    parser.add_argument("--seed", type=int, default=1, help="seed of the corpus")
    parser.add_argument("--write", action="store_true", help="write a dated file of results")
    arguments = parser.parse_args()
    started = time.perf_counter()
    translator = pellucid.load(arguments.model)
    bundle = translator.bundle
    assert bundle is not None
    examples = make_split("pronoun", seed=arguments.seed, count=arguments.count)
    cases = make_cases(bundle, examples, is_paired=True)
    chosen_on = make_cases(bundle, _validation(arguments.choose, arguments.seed), is_paired=False)
    hits = count_hits(cases, [read_heads, read_cuts, *MEASURED.values()])
    validation_hits = count_hits(chosen_on, [read_heads])
    heads = [name for name in validation_hits if name not in RULES]
    best = _best_of_each_kind(validation_hits, heads)
    texts = [translation.text for translation in translator.translate([e.source for e in examples])]
    shares = [share_of_hits(name, hits[name], cases) for name in (*RULES, *best, *MEASURED, *CUTS)]
    result = {
        "model": arguments.model,
        "model_hash": bundle.model_hash,
        "num_cases": len(cases),
        "num_validation_cases": len(chosen_on),
        "translated_exactly": float(
            np.mean([text == e.target for text, e in zip(texts, examples, strict=True)])
        ),
        "shares": [asdict(share) for share in shares],
        "heads": _spread(hits, heads),
        "by_distance": _break_down(hits, cases, shares, "distance"),
        "by_nouns_between": _break_down(hits, cases, shares, "num_between"),
        "probes": _probes(bundle, cases),
    }
    _print(result)
    print(f"{time.perf_counter() - started:.0f} seconds")
    if arguments.write:
        _write(result, vars(arguments))


def _validation(count: int, seed: int) -> list[Example]:
    """Return validation sentences with a pronoun that only the predicate decides."""
    examples = make_split("validation", seed=seed, count=min(6 * count, 12_000))
    return [example for example in examples if example.construction in FRAMES][:count]


def _best_of_each_kind(hits: dict[str, np.ndarray], heads: Sequence[str]) -> list[str]:
    """Choose the best head of each part, kind of attention and measure."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for name in heads:
        part, _, kind, _ = name.split(" ")[0].split(".")
        groups.setdefault((part, kind, name.split(" ")[1].rstrip(",")), []).append(name)
    return [choose_reading(hits, names) for names in groups.values()]


def _spread(hits: dict[str, np.ndarray], heads: Sequence[str]) -> dict[str, Any]:
    """Return how often a head drawn at random is right, by measure: mean and range over heads."""
    found = {}
    for kind in ("weights", "norms"):
        values = [float(hits[name].mean()) for name in heads if f" {kind}," in name]
        mean = float(np.mean(values))
        found[kind] = {"mean": mean, "low": min(values), "high": max(values)}
    return found


def _break_down(
    hits: dict[str, np.ndarray], cases: Sequence[Case], shares: Sequence[Share], name: str
) -> dict[str, dict[int, Any]]:
    return {
        share.name: {
            value: asdict(part)
            for value, part in share_by(
                share.name, hits[share.name], cases, lambda case: int(getattr(case, name))
            ).items()
        }
        for share in shares
    }


def _probes(bundle: Bundle, cases: Sequence[Case]) -> list[dict[str, Any]]:
    """Train the probes of both words on one set of files."""
    with tempfile.TemporaryDirectory() as folder:
        files = collect_layers(bundle, cases, Path(folder))
        results = [one for word in WORDS for one in probe_layers(cases, files, word=word)]
    return [{**asdict(one), "selectivity": one.selectivity} for one in results]


def _print(result: dict[str, Any]) -> None:
    print(f"{result['num_cases']} cases; translated exactly {result['translated_exactly']:.1%}")
    print(f"random head: {json.dumps(result['heads'])}")
    for share in result["shares"]:
        _print_share(share["name"], share)
    for title in ("by_distance", "by_nouns_between"):
        print(title.replace("_", " "))
        for name, parts in result[title].items():
            texts = [
                f"{value}: {part['share']:.2f} ({part['num_cases']})"
                for value, part in parts.items()
            ]
            print(f"  {name:42}", "  ".join(texts))
    for probe in result["probes"]:
        name = f"probe {probe['word']}, {probe['layer']}, {probe['task']}"
        _print_share(name, probe["accuracy"])
        print(f"  {'control':42} {probe['control']['share']:6.1%}")


def _print_share(name: str, share: dict[str, Any]) -> None:
    both = share["both_right"]
    pairs = "" if both is None else f"  both of a pair {both:6.1%}"
    print(f"{name:44} {share['share']:6.1%}  [{share['low']:.1%}, {share['high']:.1%}]{pairs}")


def _write(result: dict[str, Any], arguments: dict[str, Any]) -> None:
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    whole = {
        "date": date,
        "command": "python benchmarks/pronouns.py --write",
        "arguments": arguments,
        "machine": platform.processor() or platform.machine(),
        "torch": torch.__version__,
        **result,
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{date}-pronouns.json").write_text(json.dumps(whole, indent=2) + "\n")


if __name__ == "__main__":
    main()
