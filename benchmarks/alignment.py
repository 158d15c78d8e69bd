"""Alignment error of every view, on the built-in corpus and, against word statistics, on Multi30k.

    python benchmarks/alignment.py [--model demo] [--count 300] [--picture FILE]
    MULTI30K=DIR python benchmarks/alignment.py --multi30k runs/multi30k-en-fr

Built-in: view and rule are chosen on the validation split and scored once on the test split, with
exact gold links. Multi30k has no gold links, so views are compared with those of IBM Model 1 from
the same text: sure if both directions have the link, possible if one has it. The built-in corpus
also measures how good such links are.
"""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from side_by_side.results import write_result

from pellucid.bundle import Bundle, load_bundle, resolve_model
from pellucid.corpora import Example, make_split
from pellucid.evaluation.word_links import GoldLinks, LinkScore, score_links
from pellucid.inside.align.direction import Judged, make_direction
from pellucid.inside.align.link_views import View
from pellucid.text.link_choices import CONVENTIONS, LINK_RULES, LinkRule
from pellucid.text.reading.lines import read_lines
from pellucid.text.token_words import split_pieces

SAMPLE_SIZES = (5, 20, 100)
NUM_SAMPLES = 5
MODEL_1_ITERATIONS = 5


def to_gold(examples: Sequence[Example]) -> list[GoldLinks]:
    """Return the corpus's own links, all sure."""
    return [GoldLinks(frozenset(e.alignment), frozenset(e.alignment)) for e in examples]


def show(score: LinkScore) -> str:
    """Write error and interval in per cent."""
    return f"{100 * score.error:.1f} [{100 * score.low:.1f}, {100 * score.high:.1f}]"


def best_of(judged: Sequence[Judged], **wanted: Any) -> Judged:
    """Return the view with the least error among those that fit."""
    fitting = [one for one in judged if all(getattr(one.view, k) == v for k, v in wanted.items())]
    return min(fitting, key=lambda one: one.score.error)


def judge(
    bundle: Bundle, rule: LinkRule, sources: list[str], targets: list[str], golds: list[GoldLinks]
) -> list[Judged]:
    """Score all views."""
    direction = make_direction(bundle, rule=rule)
    return direction.judge(sources, targets, golds, tell=lambda *_: None)


def choose_and_test(bundle: Bundle, rule: LinkRule, count: int) -> dict[str, Any]:
    """Choose views on validation, and score them on test."""
    splits = {name: make_split(name, count=count) for name in ("validation", "test")}
    judged = {
        name: judge(
            bundle, rule, [e.source for e in split], [e.target for e in split], to_gold(split)
        )
        for name, split in splits.items()
    }
    tested = {one.view: one.score for one in judged["test"]}
    wanted: dict[str, dict[str, Any]] = {
        "all": {},
        "single heads": {"map": "head"},
        "layer means": {"map": "layer-mean"},
        "norms": {"map": "norms"},
        "norms of whole layers": {"map": "norms", "head": None},
        "reads": {"convention": "reads"},
    }
    last = bundle.config.model.num_decoder_layers - 1
    found: dict[str, Any] = {}
    for name, one in wanted.items():
        view = best_of(judged["validation"], **one).view
        found[name] = {"view": str(view), **vars(tested[view])}
        print(f"  best of {name}: {view}: test {show(tested[view])}")
    for convention in CONVENTIONS:
        view = View(last, "layer-mean", None, convention)
        found[f"last layer averaged, {convention}"] = vars(tested[view])
        print(f"  last layer averaged, {convention}: test {show(tested[view])}")
    found["recommended"] = recommend(bundle, rule, splits["validation"], tested)
    found["views"] = {
        str(one.view): {"validation": one.score.error, "test": tested[one.view].error}
        for one in judged["validation"]
    }
    return found


def recommend(
    bundle: Bundle, rule: LinkRule, examples: list[Example], tested: dict[View, LinkScore]
) -> dict[str, list[float]]:
    """Measure test errors of views recommended without gold links, for samples of some sizes."""
    direction = make_direction(bundle, rule=rule)
    draw = random.Random(1)
    found = {}
    for size in (*SAMPLE_SIZES, len(examples)):
        errors = []
        for _ in range(NUM_SAMPLES if size < len(examples) else 1):
            chosen = draw.sample(examples, size)
            sources, targets = [e.source for e in chosen], [e.target for e in chosen]
            errors.append(tested[direction.recommend(sources, targets)[0].view].error)
        found[str(size)] = errors
        text = " ".join(f"{100 * error:.1f}" for error in errors)
        print(f"  recommended without gold by {size} pairs: test {text}")
    return found


def words_of(lines: Sequence[str]) -> list[list[str]]:
    """Split lines into pieces without case and marks."""
    return [
        [piece.casefold().strip(".,;:!?\"'()\u202f") for piece in split_pieces(line)]
        for line in lines
    ]


def model_1(ones: list[list[str]], others: list[list[str]]) -> list[set[tuple[int, int]]]:
    """Link each word of ``others`` to the likeliest of ``ones``: IBM Model 1.

    Source:
        Brown et al. 1993, "The Mathematics of Statistical Machine Translation", section 4.1.
    """
    one_ids: dict[str, int] = {}
    other_ids: dict[str, int] = {}
    sides = [
        [[ids.setdefault(word, len(ids)) for word in line] for line in lines]
        for ids, lines in ((one_ids, ones), (other_ids, others))
    ]
    first, second, place, index, group = [], [], [], [], 0
    for left, right in zip(*sides, strict=True):
        for j, word in enumerate(right):
            first += left
            second += [word] * len(left)
            place += [(i, j) for i in range(len(left))]
            index += [group] * len(left)
            group += 1
    first_array, groups = np.array(first), np.array(index)
    keys, cell = np.unique(first_array * len(other_ids) + np.array(second), return_inverse=True)
    probability = np.ones(len(keys))
    for _ in range(MODEL_1_ITERATIONS):
        posterior = probability[cell]
        posterior /= np.bincount(groups, posterior)[groups]
        counts = np.bincount(cell, posterior)
        probability = counts / np.bincount(keys // len(other_ids), counts)[keys // len(other_ids)]
    order = np.lexsort((-probability[cell], groups))
    is_first = np.diff(groups[order], prepend=-1) > 0
    best = dict(zip(groups[order][is_first].tolist(), order[is_first].tolist(), strict=True))
    links, group = [], 0
    for right in sides[1]:
        members = range(group, group + len(right))
        links.append({place[best[one]] for one in members if one in best})
        group += len(right)
    return links


def statistical_links(sources: Sequence[str], targets: Sequence[str]) -> list[GoldLinks]:
    """Link words only by statistics: sure if both directions have a link, possible if one has."""
    ones, others = words_of(sources), words_of(targets)
    there = model_1(ones, others)
    back = [{(i, j) for j, i in links} for links in model_1(others, ones)]
    return [GoldLinks(frozenset(a & b), frozenset(a | b)) for a, b in zip(there, back, strict=True)]


def compare_with_statistics(
    bundle: Bundle, sources: list[str], targets: list[str], count: int
) -> dict[str, Any]:
    """Score views against the statistical links of the first pairs."""
    links = statistical_links(sources, targets)[:count]
    found: dict[str, Any] = {}
    for rule in LINK_RULES:
        judged = judge(bundle, rule, sources[:count], targets[:count], links)
        direction = make_direction(bundle, rule=rule)
        recommended = direction.recommend(sources[:count], targets[:count])
        for name, one in {
            "best": best_of(judged),
            "best head": best_of(judged, map="head"),
            "best layer mean": best_of(judged, map="layer-mean"),
            "best norms": best_of(judged, map="norms"),
            "best, predicts": best_of(judged, convention="predicts"),
            "best, reads": best_of(judged, convention="reads"),
        }.items():
            found[f"{rule}: {name}"] = {"view": str(one.view), **vars(one.score)}
            print(f"  {rule}: {name}: {one.view}: {show(one.score)}")
        found[f"{rule}: recommended"] = str(recommended[0].view)
        print(f"  {rule}: recommended: {recommended[0].view} {recommended[0].consistency:.3f}")
        found[f"{rule}: views"] = {str(one.view): one.score.error for one in judged}
        for one in judged:
            print(f"    {one.view}: {show(one.score)}")
    return found


def draw(views: dict[str, dict[str, float]], path: Path) -> None:
    """Draw the test errors of all views as bars, one color for each convention."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    places = list(dict.fromkeys(name.rpartition(", ")[0] for name in views))
    figure, axes = plt.subplots(figsize=(7, 0.28 * len(places) + 1), layout="constrained")
    for convention, color, offset in (("predicts", "#0072b2", -0.2), ("reads", "#e69f00", 0.2)):
        errors = [100 * views[f"{place}, {convention}"]["test"] for place in places]
        rows = np.arange(len(places)) + offset
        bars = axes.barh(rows, errors, height=0.38, color=color, label=convention)
        axes.bar_label(bars, fmt="%.0f", fontsize=6, padding=2)
    axes.set_yticks(range(len(places)), places, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("alignment error in %, test split of the built-in corpus, --link-rule both")
    title = "a decoder row counts for the token that it"
    figure.legend(title=title, fontsize=8, ncols=2, loc="outside upper center")
    figure.savefig(path, dpi=130)


def main() -> None:
    """Measure, print, and write the result file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="demo")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--multi30k", metavar="MODEL")
    parser.add_argument("--train-lines", type=int, default=10_000)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    count = arguments.count
    found: dict[str, Any] = {}
    if arguments.multi30k:
        data, languages = Path(os.environ["MULTI30K"]), ("en", "fr")
        test, train = (
            [list(read_lines(data / f"{name}.{one}.gz")) for one in languages]
            for name in ("test_2016_flickr", "train")
        )
        sources, targets = (
            one[:count] + other[: arguments.train_lines]
            for one, other in zip(test, train, strict=True)
        )
        print(f"Multi30k, {count} test pairs, against IBM Model 1 of {len(sources)} pairs:")
        bundle = load_bundle(resolve_model(arguments.multi30k))
        found["multi30k"] = compare_with_statistics(bundle, sources, targets, count)
    else:
        bundle = load_bundle(resolve_model(arguments.model))
        for rule in LINK_RULES:
            print(f"built-in, {count} pairs a split, links: {rule}")
            found[rule] = choose_and_test(bundle, rule, count)
        examples = make_split("test", count=count) + make_split("train", count=4000)
        links = statistical_links([e.source for e in examples], [e.target for e in examples])
        for name, side in (("intersection", "sure"), ("union", "possible")):
            hypotheses = [getattr(one, side) for one in links[:count]]
            score = score_links(hypotheses, to_gold(examples[:count]))
            found[f"IBM Model 1, {name}"] = vars(score)
            print(f"IBM Model 1, {name}: test {show(score)}, precision {score.precision:.3f}")
        if arguments.picture:
            draw(found["both"]["views"], arguments.picture)
    name = "alignment-multi30k" if arguments.multi30k else "alignment"
    write_result(name, found, (), arguments.out)


if __name__ == "__main__":
    main()
