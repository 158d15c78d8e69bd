"""Alignment error and translations of models with a guided head, compared with one without.

    python benchmarks/guided_head.py --work DIR [--seeds 1] [--count 300]

Each model is the recipe `demo` on the built-in corpus (about 3 minutes on 2 cores). The guided
ones teach one head exact links, in either convention, or links that the model without a guided head
found in the training text by itself (Garg et al. 2019, section 4.2). The map to read is chosen on
the validation split and scored on the test split, and so is the head that was taught.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

from alignment import best_of, judge, show, to_gold
from side_by_side.results import write_result

from pellucid import load
from pellucid.bundle import load_bundle
from pellucid.corpora import DEFAULT_COUNTS, make_split, write_examples
from pellucid.demo import evaluate_split
from pellucid.inside.align.link_views import View
from pellucid.text.link_choices import LINK_RULES, LinkRule

LAYER, HEAD = 1, 0


def pellucid(*arguments: str) -> None:
    """Run a command of the package, and fail if it fails."""
    print("$ pellucid", *arguments, flush=True)
    subprocess.run([sys.executable, "-m", "pellucid", *arguments], check=True)


def write_corpus(folder: Path) -> None:
    """Write the splits of the demo as files, with their links."""
    for name in DEFAULT_COUNTS:
        if not (folder / f"{name}.align").exists():
            write_examples(folder, name, make_split(name))


def train(run: Path, corpus: Path, seed: int, *changes: str) -> None:
    """Train the recipe of the demo, or resume it."""
    settings = (f"data.folder={corpus.resolve()}", f"training.seed={seed}", *changes)
    sets = [part for setting in settings for part in ("--set", setting)]
    pellucid("train", "tiny-en-fr", "-o", str(run), *sets)


def guide(links: str, convention: str, weight: float) -> tuple[str, ...]:
    """Return the settings of a guided head."""
    return (
        f"data.train_alignments={links}",
        f"training.guided_head=decoder.{LAYER}.cross.{HEAD}",
        f"training.guided_weight={weight}",
        f"training.guided_convention={convention}",
    )


def score(run: Path, count: int, convention: str | None) -> dict[str, Any]:
    """Score the view chosen on validation, and the guided head, on the test split."""
    bundle = load_bundle(run / "bundle")
    found: dict[str, Any] = {}
    rules: tuple[LinkRule, ...] = LINK_RULES
    for rule in rules:
        judged = {}
        for name in ("validation", "test"):
            split = make_split(name, count=count)  # type: ignore[arg-type]
            sources, targets = [e.source for e in split], [e.target for e in split]
            judged[name] = judge(bundle, rule, sources, targets, to_gold(split))
        tested = {one.view: one.score for one in judged["test"]}
        views = {
            "chosen": best_of(judged["validation"]).view,
            "chosen head": best_of(judged["validation"], map="head").view,
        }
        if convention is not None:
            views["guided head"] = View(LAYER, "head", HEAD, convention)  # type: ignore[arg-type]
        for name, view in views.items():
            found[f"{rule}: {name}"] = {"view": str(view), **vars(tested[view])}
            print(f"  {rule}: {name}: {view}: test {show(tested[view])}", flush=True)
    translator = load(run)
    for name in ("test", "compositional", "pronoun"):
        pairs = [(e.source, e.target) for e in make_split(name)]  # type: ignore[arg-type]
        found[f"exact match, {name}"] = evaluate_split(translator, name, pairs).exact_match
        print(f"  exact match, {name}: {found[f'exact match, {name}']:.3f}", flush=True)
    return found


def measure(work: Path, seed: int, count: int, weight: float) -> dict[str, Any]:
    """Train the four models of one seed and score them."""
    corpus = work / "corpus"
    write_corpus(corpus)
    plain = work / f"plain-{seed}"
    train(plain, corpus, seed)
    found = {"without": score(plain, count, None)}
    own = f"own-{seed}.align"
    if not (corpus / own).exists():
        sides = ("--source", str(corpus / "train.en"), "--target", str(corpus / "train.fr"))
        pellucid("align", str(plain), *sides, "-o", str(corpus / own))
    for links, convention in (
        ("train.align", "predicts"),
        ("train.align", "reads"),
        (own, "predicts"),
    ):
        name = f"{'own' if links == own else 'exact'} links, {convention}"
        run = work / f"{name.replace(', ', '-').replace(' ', '-')}-{seed}"
        train(run, corpus, seed, *guide(links, convention, weight))
        print(name)
        found[name] = score(run, count, convention)
    return found


def main() -> None:
    """Measure, print, and write the result file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder for corpus and runs")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--weight", type=float, default=0.05)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    seeds = range(1, arguments.seeds + 1)
    found = {
        f"seed {seed}": measure(arguments.work, seed, arguments.count, arguments.weight)
        for seed in seeds
    }
    write_result("guided-head", found, (), arguments.out)


if __name__ == "__main__":
    main()
