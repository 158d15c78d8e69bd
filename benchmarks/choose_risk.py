"""Choose by minimum Bayes risk among the translations of one model, or of several seeds.

    MULTI30K=DIR python benchmarks/choose_risk.py RUN [RUN ...] --folder build/risk

Each RUN is a model of `multi30k-en-fr-lowercased` with another seed. Of each sentence every model
and their ensemble write their best translations (a beam) and some drawn ones (samples). The chosen
translation is the one whose expected utility is highest: its mean chrF or BLEU against all others
of the list, each weighted equally, by its probability or by its score (Kumar and Byrne 2004; Eikema
and Aziz 2020). It is compared with the first of the same list, which the search itself would take.

All settings are measured on validation. The best one of each kind of model (single, ensemble) is
then scored once on test_2016_flickr, with the p value of a paired bootstrap. Lists are kept in the
folder: what is there is not translated again.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from side_by_side.machine import describe
from similar_texts import read

import pellucid
from pellucid.evaluation.corpus_scores import compare, evaluate_corpus
from pellucid.evaluation.statistics import Scoring

RESULTS = Path(__file__).parent / "results"
SPLITS = ("val", "test_2016_flickr")
ENSEMBLE = "ensemble"
TOGETHER = "all seeds"
"""The lists of single models, put together."""
BASELINE = "beam 5"
LIMIT = 0.5
"""The BLEU that a choice must gain to become an option of `translate`."""
DRAWN = {"sample": True, "epsilon": 0.02}
"""Freitag et al. 2023, "Epsilon Sampling Rocks", found this bound best for choices by risk."""


class Candidate(NamedTuple):
    """A translation and the model's log-probability of it."""

    text: str
    log_probability: float


Lists = list[list[Candidate]]
"""The candidates of each sentence, the best first."""

Counts = NDArray[np.float64]
Place = tuple[str, str]
"""A model, or several, and a search."""


def overlaps(texts: Sequence[Sequence[str]], sizes: range) -> tuple[Counts, Counts]:
    """Count the sequences that texts have in common, pair by pair.

    Args:
        texts: the letters or the words of each.
        sizes: lengths of the sequences.

    Returns:
        For each length the sequences in common, (length, text, text), and those of each text,
        (length, text).
    """
    common = []
    totals = []
    for size in sizes:
        columns: dict[tuple[str, ...], int] = {}
        counted = []
        for text in texts:
            grams = Counter(tuple(text[at : at + size]) for at in range(len(text) - size + 1))
            counted.append({columns.setdefault(one, len(columns)): n for one, n in grams.items()})
        counts = np.zeros((len(texts), len(columns)), np.int16)
        for row, found in enumerate(counted):
            counts[row, list(found)] = list(found.values())
        common.append(np.minimum(counts[:, None], counts[None]).sum(axis=-1, dtype=np.float64))
        totals.append(counts.sum(axis=-1, dtype=np.float64))
    return np.array(common), np.array(totals)


def chrf(texts: Sequence[str]) -> Counts:
    """Return chrF of each text (row) against each other one (column), from 0 to 1.

    It is the mean over lengths of F with beta 2; lengths that neither text has do not count.

    Source:
        Popović 2015, "chrF: character n-gram F-score for automatic MT evaluation".
    """
    common, totals = overlaps([list(text.replace(" ", "")) for text in texts], range(1, 7))
    both = totals[:, :, None] + 4 * totals[:, None, :]
    is_there = both > 0
    scores = np.divide(5 * common, both, out=np.zeros_like(common), where=is_there)
    num_lengths = is_there.sum(axis=0)
    return np.where(num_lengths > 0, scores.sum(axis=0) / np.maximum(num_lengths, 1), 1.0)


def bleu(texts: Sequence[str]) -> Counts:
    """Return BLEU of each text (row) against each other one (column), from 0 to 1.

    One is added to the counts of sequences of two words and more.

    Source:
        Lin and Och 2004, "ORANGE: a Method for Evaluating Automatic Evaluation Metrics".
    """
    common, totals = overlaps([text.split() for text in texts], range(1, 5))
    common[1:] += 1
    wanted = totals.copy()
    wanted[1:] += 1
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(common / wanted[:, :, None]).mean(axis=0)
        shortness = np.minimum(0.0, 1 - totals[0][None, :] / totals[0][:, None])
        scores = np.exp(logs + shortness)
    return np.where(common[0] > 0, scores, 0.0)


UTILITIES: dict[str, Callable[[Sequence[str]], Counts]] = {"chrf": chrf, "bleu": bleu}
WEIGHTS = ("equal", "probability", "score 3", "score 10", "score 30")
"""Equally; by the model's probability; by e to so many times the score that a beam ranks by."""
ALPHA = 1.6
"""The length penalty of the recipe."""


def score_of(candidate: Candidate) -> float:
    """Return the log-probability divided by the length penalty, of the length in words."""
    length = len(candidate.text.split()) + 1
    return candidate.log_probability / ((5 + length) / 6) ** ALPHA


def weigh(candidates: Sequence[Candidate], weights: str) -> dict[str, float]:
    """Return the weight of each different text; they sum to 1.

    Equal weights count a text as often as it was drawn. By probability or score a text that
    several lists hold counts once, with its largest.
    """
    if weights == "equal":
        counts = Counter(one.text for one in candidates)
        return {text: count / len(candidates) for text, count in counts.items()}
    kind, _, times = weights.partition(" ")
    logs: dict[str, float] = {}
    for one in candidates:
        log = one.log_probability if kind == "probability" else float(times) * score_of(one)
        logs[one.text] = max(log, logs.get(one.text, -math.inf))
    largest = max(logs.values())
    raw = {text: math.exp(log - largest) for text, log in logs.items()}
    total = sum(raw.values())
    return {text: one / total for text, one in raw.items()}


def choose(lists: Lists, utility: str, weights: Sequence[str]) -> dict[str, list[str]]:
    """Return the texts with the highest expected utility, for each kind of weights.

    Of texts with equal utility the first is chosen.
    """
    chosen: dict[str, list[str]] = {one: [] for one in weights}
    for candidates in lists:
        texts = list(dict.fromkeys(one.text for one in candidates))
        utilities = UTILITIES[utility](texts)
        for kind in weights:
            weighed = weigh(candidates, kind)
            expected = utilities @ np.array([weighed[text] for text in texts])
            chosen[kind].append(texts[int(expected.argmax())])
    return chosen


def write_lists(
    translator: pellucid.Translator, sources: Sequence[str], path: Path, how: dict[str, Any]
) -> tuple[Lists, float]:
    """Translate, or read what an earlier call wrote; return the lists and the seconds they took."""
    if not path.is_file():
        began = time.process_time()
        found = translator.translate(list(sources), **how)
        lists = [[(one.text, one.log_probability) for one in line.hypotheses] for line in found]
        kept = {"seconds": time.process_time() - began, "lists": lists}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(kept, ensure_ascii=False), encoding="utf-8")
    kept = json.loads(path.read_text(encoding="utf-8"))
    return [[Candidate(*one) for one in line] for line in kept["lists"]], kept["seconds"]


def joined(several: Sequence[Lists]) -> Lists:
    """Put the lists of several models together, sentence by sentence."""
    return [[one for line in lines for one in line] for lines in zip(*several, strict=True)]


def gather(
    runs: Sequence[str], split: str, options: argparse.Namespace
) -> dict[Place, tuple[Lists, float]]:
    """Return the lists of each model and search, with the processor seconds that they took."""
    sources = read(f"{split}.lc.norm.tok.en.gz")[: options.lines]
    searches: dict[str, dict[str, Any]] = {
        BASELINE: {"beam": 5},
        f"{options.n_best} best": {"beam": options.n_best, "n_best": options.n_best},
    }
    if options.samples:
        searches[f"{options.samples} samples"] = {**DRAWN, "n_best": options.samples}
    models: dict[str, tuple[str, ...]] = {
        f"seed {at}": (run,) for at, run in enumerate(runs, start=1)
    }
    if len(runs) > 1:
        models[ENSEMBLE] = tuple(runs)
    found: dict[Place, tuple[Lists, float]] = {}
    for model, (run, *more) in models.items():
        translator = pellucid.load(run, ensemble=more, threads=options.threads)
        for search, how in searches.items():
            path = options.folder / f"{split}, {model}, {search}.json"
            found[model, search] = write_lists(translator, sources, path, how)
            print(f"{split}: {model}, {search}, {found[model, search][1]:.0f} s", flush=True)
    if len(runs) > 1:
        for search in list(searches)[1:]:
            parts = [found[f"seed {at}", search] for at in range(1, len(runs) + 1)]
            lists = joined([one for one, _ in parts])
            found[TOGETHER, search] = (lists, sum(seconds for _, seconds in parts))
    return found


def baseline_of(place: Place, found: dict[Place, tuple[Lists, float]]) -> list[str]:
    """Return the first of the same list, which costs no more: what the search itself would take.

    For lists of all seeds it is the ensemble's first, for samples a beam of 5.
    """
    model, search = place
    model = ENSEMBLE if model == TOGETHER else model
    search = search if search.endswith("best") else BASELINE
    lists, _ = found[model, search]
    return [line[0].text for line in lists]


def score(texts: Sequence[str], references: Sequence[str]) -> float:
    """Return the BLEU of tokenized text."""
    return evaluate_corpus(texts, references, Scoring(is_tokenized=True)).bleu.score


def rows_of(
    found: dict[Place, tuple[Lists, float]], references: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Choose among all lists in all ways, and score each choice next to its baseline."""
    for place, (lists, seconds) in found.items():
        row = {"model": place[0], "search": place[1], "seconds": seconds}
        baseline = score(baseline_of(place, found), references)
        yield {**row, "bleu": baseline}
        if place[1] == BASELINE:
            continue
        for utility in UTILITIES:
            began = time.process_time()
            chosen = choose(lists, utility, WEIGHTS)
            took = time.process_time() - began
            for weights, texts in chosen.items():
                found_bleu = score(texts, references)
                yield {
                    **row,
                    "utility": utility,
                    "weights": weights,
                    "bleu": found_bleu,
                    "gain": found_bleu - baseline,
                    "seconds_of_choice": took / len(WEIGHTS),
                }


def best_of(rows: Sequence[dict[str, Any]], *, single: bool) -> dict[str, Any] | None:
    """Return the row with the largest gain, of single models or of several."""
    fitting = [row for row in rows if "gain" in row and row["model"].startswith("seed") == single]
    return max(fitting, key=lambda row: row["gain"], default=None)


def score_once(
    row: dict[str, Any], found: dict[Place, tuple[Lists, float]], references: Sequence[str]
) -> dict[str, Any]:
    """Score one setting next to its baseline, with the p value of the difference."""
    place = (row["model"], row["search"])
    chosen = choose(found[place][0], row["utility"], [row["weights"]])[row["weights"]]
    first = baseline_of(place, found)
    result = compare(chosen, first, references, Scoring(is_tokenized=True)).bleu
    setting = {key: row[key] for key in ("model", "search", "utility", "weights")}
    scores = {"bleu": result.score, "first": result.baseline, "p": result.p_value}
    return {**setting, **scores, "gain": result.difference}


def main() -> None:
    """Measure on validation, choose there, score the test text once, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("runs", nargs="+", metavar="RUN")
    parser.add_argument("--folder", type=Path, default=Path("build/risk"))
    parser.add_argument("--n-best", type=int, default=12)
    parser.add_argument("--samples", type=int, default=24, help="0 for none")
    parser.add_argument("--lines", type=int, help="of each text only so many (default: all)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--note", default="", help="about machine and models")
    parser.add_argument("--out", type=Path, help="default: a dated file in results/")
    options = parser.parse_args()
    validation, test = (read(f"{split}.lc.norm.tok.fr.gz")[: options.lines] for split in SPLITS)
    found = gather(options.runs, SPLITS[0], options)
    rows = list(rows_of(found, validation))
    for row in sorted(rows, key=lambda row: row["bleu"]):
        print(json.dumps(row))
    chosen = [row for single in (True, False) if (row := best_of(rows, single=single))]
    found = gather(options.runs, SPLITS[1], options)
    tests = [score_once(row, found, test) for row in chosen]
    date = datetime.now(UTC).date().isoformat()
    manifests = [
        json.loads((Path(run) / "bundle" / "manifest.json").read_text()) for run in options.runs
    ]
    result = {
        "date": date,
        "command": f"python benchmarks/choose_risk.py RUN ... --n-best {options.n_best} "
        f"--samples {options.samples}",
        "machine": describe(),
        "note": options.note,
        "runs": [{**one["training"], **one["metrics"]} for one in manifests],
        "validation": rows,
        "test": tests,
        "pays": any(row["gain"] >= LIMIT for row in chosen),
    }
    path = options.out or RESULTS / f"{date}-choose-risk.json"
    path.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps(tests, indent=2))
    print(path)


if __name__ == "__main__":
    main()
