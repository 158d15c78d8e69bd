"""Heads: what each one looks at, whether no other does the same, and whether it is needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch

from pellucid.corpora import Example
from pellucid.inside.changes.place import all_heads
from pellucid.inside.pair import PairData
from pellucid.lessons.why.cells import Cells, Column, decide, judge_seeds, measure_cells
from pellucid.lessons.why.claims.parts.needed_heads import add_needed_heads
from pellucid.lessons.why.head_weights import WithoutHeads, weights_of_heads
from pellucid.lessons.why.packaged import (
    load_packaged,
    packaged_name,
    pairs_of,
    write_examples_of,
)
from pellucid.lessons.why.result import Found, Panel, ResultTable, Series, Verdict
from pellucid.lessons.why.setting import MeasurementSetting
from pellucid.text.token_words import words_of_tokens

CLEAR = 1.5
"""A head has a feature if it gives it this many times the weight that chance would."""

Places = list[tuple[int, int]]
"""Rows and the columns that they should attend to."""

FEATURES = {
    "itself": "itself",
    "previous": "prev.",
    "next": "next",
    "end": "end",
    "antecedent": "anteced.",
    "article": "article",
}
"""Each feature, and how a table writes it."""
SAID = {
    "itself": "the word itself",
    "previous": "the previous word",
    "next": "the next word",
    "end": "the end of the sentence",
    "antecedent": "the noun that a pronoun stands for",
    "article": "the article before a noun",
}
"""Each feature in an answer."""
_PLACES_ONLY = ("itself", "previous", "next", "end")


def measure(setting: MeasurementSetting) -> Found:
    """Measure features, distances and the effect of removal for each head of the encoder."""
    num_sentences, num_scored = setting.choose((300, 80), (17, 5))
    cells = measure_cells(
        setting,
        f"{packaged_name()}: features in {num_sentences} sentences, loss in {num_scored}",
        lambda seed: _look(setting, num_sentences, num_scored, seed),
        is_quick=True,
    )
    first = cells.where(seed=setting.seed)
    clear = Counter(feature for feature in first.all("feature") if feature != "–")
    favored = [
        f"{SAID[feature]} in {number} head{'s' if number > 1 else ''}"
        for feature, number in clear.most_common()
    ]
    others = len(first.rows) - clear.total()
    is_shared = len(clear) < clear.total()
    found = Found(
        f"the encoder of the small translator `demo` has {len(first.rows)} heads. A head has a "
        "feature if one kind of word, such as the next word, gets from it at least "
        f"{CLEAR} times the weight that it would get by chance. {clear.total()} of the "
        f"{len(first.rows)} heads have one. There are {len(clear)} different features"
        f"{', so that several heads share one' * is_shared}{': ' * bool(favored)}"
        f"{', '.join(favored)}" + bool(others) * ". The others have none that was tested",
        f"Encoder self-attention of the packaged model in {num_sentences} new sentences. A "
        "lift is the weight that a head gives to a feature, divided by what even weights would "
        "give; 1 is chance. Features: the token itself, the previous, the next, </s>; the "
        "antecedent of a pronoun; the article before a word. The "
        f"loss is that of {num_scored} true translations when the head's context is set to 0.",
        {"features": judge_seeds(judge, cells)},
        (_table(cells),),
        _panels(cells),
    )
    return add_needed_heads(setting, found) if setting.is_long else found


@torch.inference_mode()
def _look(
    setting: MeasurementSetting, num_sentences: int, num_scored: int, seed: int
) -> list[dict[str, Any]]:
    """Look at every head of the packaged encoder.

    Returns:
        For each head its lift of each feature, the largest ``lift``, the ``feature`` that has it,
        the ``loss`` without the head as a rise per token, in nats, and the distance of its weights
        from the ``nearest`` other head's, from 0 for the same to 1 for none in common.
    """
    bundle = load_packaged()
    examples = write_examples_of(num_sentences, seed=seed)
    pairs = pairs_of(bundle, examples)
    heads = [head for head in all_heads(bundle.model.config) if head.part == "encoder"]
    sums = torch.zeros(len(heads), len(FEATURES))
    evens = torch.zeros(len(FEATURES))
    distances_HH = torch.zeros(len(heads), len(heads))
    for pair, example in zip(pairs, examples, strict=True):
        weights_HLM = torch.cat(list(weights_of_heads(bundle.model, pair.source_ids).values()))
        for index, places in enumerate(find_features(pair, example)):
            for row, column in places:
                sums[:, index] += weights_HLM[:, row, column]
                # By chance each word of the sentence would get the same.
                evens[index] += 1 / weights_HLM.shape[-1]
        gaps = (weights_HLM[:, None] - weights_HLM[None]).abs().sum(dim=-1).mean(dim=-1)
        distances_HH += gaps / 2 / len(pairs)
    distances_HH.fill_diagonal_(1.0)  # A head is not its own nearest one.
    some = pairs[:num_scored]
    before = _loss(some)
    found = []
    for index, head in enumerate(heads):
        setting.say(f"without layer {head.layer} head {head.head}")
        # A feature that occurs in no sentence has a lift of 0.
        lifts = (sums[index] / evens.clamp_min(1e-9)).tolist()
        found.append(
            {
                "place": f"{head.layer}.{head.head}",
                "loss": _loss(some, WithoutHeads([head])) - before,
                "nearest": float(distances_HH[index].min()),
                **name_feature(dict(zip(FEATURES, lifts, strict=True))),
            }
        )
    return found


def name_feature(lifts: dict[str, float]) -> dict[str, Any]:
    """Add the feature with the largest lift; a dash if none is clear."""
    # A head may have several features; the clearest names it.
    best = max(lifts, key=lambda name: lifts[name])
    feature = best if lifts[best] >= CLEAR else "–"
    return lifts | {"lift": lifts[best], "feature": feature}


def judge(cells: Cells) -> Verdict:
    """Judge by the features of the heads: clear ones, different ones, linguistic ones."""
    # Reversed, so that the first seed has the last word.
    favorites = {row["place"]: row["feature"] for row in reversed(cells.rows)}
    total = len(favorites)
    losses = cells.all("loss")
    named = [feature for feature in favorites.values() if feature != "–"]
    linguistic = [name for name in named if name not in _PLACES_ONLY]
    return decide(
        f"a feature is clear from {CLEAR} times chance; holds if every head has a clear one that "
        "no other head has and that is more than a place in the sentence; fails otherwise",
        f"{len(named)} of {total} heads have a clear feature, {len(set(named))} different; "
        f"{len(linguistic)} are more than a place; removing a head costs {min(losses):.3f} to "
        f"{max(losses):.3f} nats".replace("-", "−"),
        f"The {total} heads of the encoder of `demo` have {len(set(named))} different features. "
        f"A feature counts from {CLEAR} times the weight by chance. To hold, each head must have "
        "one of its own, and it must be linguistic, such as the noun that a pronoun stands for. "
        f"Only {len(linguistic)} of the heads have such a feature. The others look at a place in "
        "the sentence, such as the next word.",
        fails=min(len(set(named)), len(linguistic)) < total,
    )


def find_features(pair: PairData, example: Example) -> list[Places]:
    """Find, for each of `FEATURES`, the rows that have it and the columns where it is.

    Args:
        pair: the sentence, tokenized.
        example: the same sentence with the antecedents of its pronouns.
    """
    length = len(pair.source_ids)
    words = _words_of_source(pair, example)
    pronouns: Places = [
        (row, column)
        for pronoun in example.pronouns
        for row in words[pronoun.source]
        for column in words[pronoun.source_antecedent]
    ]
    written = [word.lower() for word in example.source.split(" ")]
    articles: Places = [
        (row, column)
        for place, word in enumerate(written[:-1])
        if word in ("the", "a", "an", "some")
        for row in words[place + 1]
        for column in words[place]
    ]
    return [
        [(row, row) for row in range(length)],
        [(row, row - 1) for row in range(1, length)],
        [(row, row + 1) for row in range(length - 1)],
        # The end token itself is left out, as it would look at itself.
        [(row, length - 1) for row in range(length - 1)],
        pronouns,
        articles,
    ]


def _words_of_source(pair: PairData, example: Example) -> list[list[int]]:
    """List the source tokens of each word between spaces."""
    owners = words_of_tokens(pair.tokenizer, "source", example.source, pair.source_ids)
    words: list[list[int]] = [[] for _ in example.source.split(" ")]
    for token, owned in enumerate(owners):
        for word in owned:
            words[word].append(token)
    return words


def _loss(pairs: Sequence[PairData], probe: WithoutHeads | None = None) -> float:
    logs = [pair.log_probabilities(probe=probe) for pair in pairs]
    return -float(torch.cat(logs).mean())


def _table(cells: Cells) -> ResultTable:
    columns = (
        *(Column(short, feature, ".1f") for feature, short in FEATURES.items()),
        Column("strongest", "feature", "", over_seeds="first"),
        Column("nearest", "nearest", ".2f"),
        Column("loss", "loss", ".3f"),
    )
    return cells.table(
        "Lifts of the features, the strongest, distance of the nearest head, and loss without it",
        "place",
        columns,
    )


def _panels(cells: Cells) -> tuple[Panel, Panel]:
    # The rows of the first seed come with their features; other seeds may say another one.
    first = [cells.where(place=place).rows[0] for place in cells.values("place")]
    ends = (0.0, len(first) - 1.0)
    return (
        cells.panel(
            "Loss without the head",
            ("encoder layer.head", "rise in nats a token"),
            {"": {}},
            "place",
            "loss",
            kind="bars",
        ),
        cells.panel(
            "Lift of the strongest feature",
            ("encoder layer.head", "times the weight by chance"),
            {"strongest feature": {}},
            "place",
            "lift",
            more=[Series("chance", ends, (1.0, 1.0), "faint")],
            kind="bars",
            names=tuple(f"{row['place']}\n{row['feature']}" for row in first),
        ),
    )
