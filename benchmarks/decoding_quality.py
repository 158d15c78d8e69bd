"""Translation quality by search: width, length penalty, precision, batch size, round trips.

    MULTI30K=DIR python benchmarks/decoding_quality.py --model runs/multi30k-en-fr
    MULTI30K=DIR python benchmarks/decoding_quality.py --model runs/multi30k-en-fr --test

Measured on validation: BLEU of greedy search and of every beam with every penalty, in each
precision; how many sentences change with the size of the batch, in each precision and with
`strict`, and what `strict` costs; how many hypotheses have a text that the tokenizer would cut into
other tokens. The setting with the best BLEU in float32 is chosen, and of equals the cheaper one.
With --test the test text is translated once, with that setting. --parts grid measures a part.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import os
import shlex
import statistics
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from side_by_side.machine import describe, has_fast_bfloat16

from pellucid import load
from pellucid.evaluation.corpus_scores import corpus_bleu_score, evaluate_corpus
from pellucid.evaluation.statistics import Scoring
from pellucid.text.reading.lines import read_lines
from pellucid.translate.translator import Translation, Translator

RESULTS = Path(__file__).parent / "results"
ALPHAS = {"gnmt": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2), "average": (0.5, 1.0)}
BATCH_TOKENS = (64, 512, 4096, 16384)
USUAL_BATCH_TOKENS = 4096
GREEDY = {"beam": 1}


def main() -> None:
    """Measure what was asked for, and write the result file."""
    arguments = parse()
    translator = load(arguments.model)
    sources, references = read(translator, "val", arguments.lines)
    parts = {
        "grid": lambda: measure_grid(translator, sources, references, arguments),
        "batches": lambda: measure_batches(translator, sources, arguments),
        "round_trips": lambda: measure_round_trips(translator, sources, arguments.beam),
    }
    result: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": shlex.join(["python", "benchmarks/decoding_quality.py", *sys.argv[1:]]),
        "machine": describe(),
        "model": translator.bundle.model_hash,
        "validation_sentences": len(sources),
        **{name: parts[name]() for name in arguments.parts},
    }
    if arguments.test:
        options = result["grid"]["chosen"]["options"]
        result["test"] = measure_test(translator, options, arguments.lines)
    languages = translator.bundle.config.languages
    name = f"{result['date']}-decoding-quality-{languages.source}-{languages.target}.json"
    path = arguments.out or RESULTS / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    print(path)


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    parts = ["grid", "batches", "round_trips"]
    fast = ["float32", *(["bfloat16"] if has_fast_bfloat16() else []), "int8"]
    add("--model", metavar="RUN", required=True, help="a trained model")
    add("--lines", type=int, help="number of sentences (default: all)")
    add("--parts", nargs="*", choices=parts, default=parts)
    add("--beam", type=int, default=5, help="width of the beam for batches and round trips")
    add("--beams", type=int, nargs="*", default=[4, 5, 10], help="widths of the beams of the grid")
    add("--precisions", nargs="+", choices=["float32", "bfloat16", "int8"], default=fast)
    add("--test", action="store_true", help="translate the test text as well, once")
    add("--out", type=Path, help="the result file (default: a dated one in results/)")
    arguments = parser.parse_args()
    if "MULTI30K" not in os.environ:
        parser.error("MULTI30K must be set to the folder of Multi30k")
    if arguments.test and "grid" not in arguments.parts:
        parser.error("--test needs the part grid, which chooses the setting")
    if arguments.precisions[0] != "float32":
        parser.error("--precisions must begin with float32, which the others are compared with")
    return arguments


def read(translator: Translator, split: str, count: int | None) -> tuple[list[str], list[str]]:
    """Read the sentences of a split of Multi30k and their translations."""
    folder, languages = Path(os.environ["MULTI30K"]), translator.bundle.config.languages
    sources, references = (
        list(itertools.islice(read_lines(folder / f"{split}.{language}.gz"), count))
        for language in (languages.source, languages.target)
    )
    return sources, references


def measure_grid(
    translator: Translator,
    sources: list[str],
    references: list[str],
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    """Measure BLEU of every search in every precision, and choose the best in float32."""
    searches = [
        GREEDY,
        *(
            {"beam": beam, "length_penalty": penalty, "alpha": alpha}
            for beam in sorted(arguments.beams)
            for penalty, alphas in ALPHAS.items()
            for alpha in alphas
        ),
    ]
    rows = []
    for precision, options in itertools.product(arguments.precisions, searches):
        translations, seconds = translate(translator, sources, **options, precision=precision)
        bleu = corpus_bleu_score([one.text for one in translations], references)
        tokens = sum(len(one.ids) for one in translations)
        rows.append(
            {"options": options, "precision": precision, "bleu": bleu}
            | {"target_tokens": tokens, "seconds": seconds}
        )
        print(f"{bleu:.2f}  {precision:<8}  {_spell(options):<28}  {seconds:.1f} s", flush=True)
    # Of equals, max returns the first, which has the narrower beam.
    chosen = max((row for row in rows if row["precision"] == "float32"), key=lambda r: r["bleu"])
    losses = {
        row["precision"]: chosen["bleu"] - row["bleu"]
        for row in rows
        if row["options"] == chosen["options"]
    }
    print(f"chosen: {_spell(chosen['options'])}, BLEU {chosen['bleu']:.2f}; lost by", end=" ")
    print(", ".join(f"{name} {loss:.2f}" for name, loss in losses.items()))
    return {"searches": rows, "chosen": {**chosen, "bleu_lost": losses}}


def measure_batches(
    translator: Translator, sources: list[str], arguments: argparse.Namespace
) -> dict[str, Any]:
    """Count sentences that change with the batch, by default and strictly, and time both."""
    ways = [*({"precision": precision} for precision in arguments.precisions), {"strict": True}]
    found: dict[str, Any] = {}
    for search in (GREEDY, {"beam": arguments.beam}):
        outputs: dict[str, dict[int, list[tuple[int, ...]]]] = {}
        rows: dict[str, Any] = {}
        for way in ways:
            name = way.get("precision", "strict")
            seconds, outputs[name] = {}, {}
            for size in BATCH_TOKENS:
                options = {"precision": "float32", **search, **way, "batch_tokens": size}
                translations, seconds[size] = translate(translator, sources, **options)
                outputs[name][size] = [one.ids for one in translations]
            changed = _count_different(*outputs[name].values())
            rows[name] = {"seconds": seconds, "sentences_that_change": changed}
            print(f"{_spell(search)}, {name}: {changed} of {len(sources)} change with the batch")
        usual = rows["float32"]["seconds"]
        cost = statistics.median(rows["strict"]["seconds"][size] / usual[size] for size in usual)
        print(f"{_spell(search)}, strict: {cost:.2f} times as long as float32", flush=True)
        found[_spell(search)] = {
            **rows,
            "float32_is_not_strict": {
                size: _count_different(outputs["float32"][size], outputs["strict"][size])
                for size in BATCH_TOKENS
            },
            "strict_seconds_over_float32": cost,
        }
    return found


def measure_round_trips(translator: Translator, sources: list[str], beam: int) -> dict[str, Any]:
    """Measure the share of finished hypotheses whose text would be cut into other tokens."""
    found = {}
    for options in (GREEDY, {"beam": beam, "n_best": beam}):
        translations, _ = translate(translator, sources, **options)
        eos_id = translator.tokenizer.config.eos_id
        kept = [
            [one for one in translation.hypotheses if one.ids and one.ids[-1] == eos_id]
            for translation in translations
        ]
        of_best = [_is_other(translator, ranked[0]) for ranked in kept if ranked]
        of_all = [_is_other(translator, one) for ranked in kept for one in ranked]
        found[_spell(options)] = {
            "hypotheses": len(of_all),
            "unfinished": sum(len(one.hypotheses) for one in translations) - len(of_all),
            "share_of_best": statistics.mean(of_best),
            "share_of_all": statistics.mean(of_all),
        }
        print(
            f"{_spell(options)}: {statistics.mean(of_best):.2%} of the best and "
            f"{statistics.mean(of_all):.2%} of {len(of_all)} hypotheses would be cut "
            "into other tokens",
            flush=True,
        )
    return found


def measure_test(
    translator: Translator, options: dict[str, Any], count: int | None
) -> dict[str, Any]:
    """Translate the test text once, with the setting chosen on validation."""
    sources, references = read(translator, "test_2016_flickr", count)
    translations, seconds = translate(translator, sources, **options, precision="float32")
    texts = [one.text for one in translations]
    target = translator.bundle.config.languages.target
    scores = {
        "cased": evaluate_corpus(texts, references),
        "lowercased_tokenized": evaluate_corpus(
            texts, references, Scoring(lowercased_tokenized=target)
        ),
    }
    for name, evaluation in scores.items():
        bleu = evaluation.bleu
        print(f"test, {name}: BLEU {bleu.score:.2f} ({bleu.low:.2f} to {bleu.high:.2f})")
    return {
        "file": "test_2016_flickr",
        "options": options,
        "sentences": len(sources),
        "seconds": seconds,
        **{name: asdict(evaluation) for name, evaluation in scores.items()},
    }


def translate(
    translator: Translator,
    sources: list[str],
    *,
    batch_tokens: int = USUAL_BATCH_TOKENS,
    **options: Any,
) -> tuple[list[Translation], float]:
    """Translate after a warm-up, and return the time it took."""
    translator.translate(sources[:8], batch_tokens=batch_tokens, **options)
    started = time.perf_counter()
    translations = translator.translate(sources, batch_tokens=batch_tokens, **options)
    return translations, time.perf_counter() - started


def _count_different(*outputs: list[tuple[int, ...]]) -> int:
    return sum(len(set(one)) > 1 for one in zip(*outputs, strict=True))


def _is_other(translator: Translator, hypothesis: Any) -> bool:
    return list(hypothesis.ids) != translator.tokenizer.encode_target(hypothesis.text)


def _spell(options: dict[str, Any]) -> str:
    if options["beam"] == 1:
        return "greedy"
    extra = [f"{options[name]}" for name in ("length_penalty", "alpha") if name in options]
    best = [f"{options['n_best']} best"] if "n_best" in options else []
    return " ".join([f"beam {options['beam']}", *extra, *best])


if __name__ == "__main__":
    main()
