"""Share of padding in an epoch of Multi30k, compared with sorting only by target length.

MULTI30K=DIR python benchmarks/padding.py [--language fr] [--budget 4096] [--epochs 40]
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

import numpy as np

from pellucid.config import DataConfig, TokenizerRecipe
from pellucid.data import EpochPlan, padding_share, plan_epoch
from pellucid.text.reading.sentence_pairs import read_pairs
from pellucid.text.tokenizers.kinds import learn_tokenizer


def sorted_by_target(targets: np.ndarray, budget: int) -> EpochPlan:
    """Fill batches in the order of target length, without regard to source lengths."""
    pairs = np.argsort(targets, kind="stable")
    starts = [0]
    for place, pair in enumerate(pairs):
        if (place - starts[-1] + 1) * int(targets[pair]) > budget:
            starts.append(place)
    ends = [*starts[1:], len(pairs)]
    return EpochPlan(0, pairs, np.array(starts), np.array(ends))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--language", default="fr")
    parser.add_argument("--budget", type=int, default=4096)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--vocabulary", type=int, default=8000)
    arguments = parser.parse_args()
    language = arguments.language
    data = DataConfig(
        folder="$MULTI30K",
        train=("train.en.gz", f"train.{language}.gz"),
        validation=("val.en.gz", f"val.{language}.gz"),
    )
    pairs = list(read_pairs(data, "train", Path.cwd()))
    tokenizer = learn_tokenizer(
        TokenizerRecipe(vocabulary_size=arguments.vocabulary),
        lambda: (pair.source for pair in pairs),
        lambda: (pair.target for pair in pairs),
    )
    encoded = (
        tokenizer.encode_sources([pair.source for pair in pairs]),
        tokenizer.encode_targets([pair.target for pair in pairs]),
    )
    sources, targets = (np.array([len(ids) for ids in side], dtype=np.int32) for side in encoded)
    shares = [
        padding_share(
            plan_epoch(
                sources, targets, seed=1, epoch=epoch, max_tokens_per_batch=arguments.budget
            ),
            sources,
            targets,
        )
        for epoch in range(arguments.epochs)
    ]
    ragged = padding_share(sorted_by_target(targets, arguments.budget), sources, targets)
    print(f"en-{language}, vocabulary {arguments.vocabulary}, budget {arguments.budget} a side:")
    print(f"  padding, {len(shares)} epochs: mean {statistics.mean(shares):.2%}, ", end="")
    print(f"worst {max(shares):.2%}")
    print(f"  sorted only by target length: {ragged:.2%}")


if __name__ == "__main__":
    main()
