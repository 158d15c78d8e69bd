"""Relevance, not proximity: the weight on an antecedent as words are put before its pronoun."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pellucid.lessons.why.cells import (
    PERCENT,
    Cells,
    Column,
    decide,
    each_seed,
    join_rows,
    judge_seeds,
    measure_cells,
    say_seeds,
)
from pellucid.lessons.why.claims.parts.apart import draw_apart_packaged, draw_apart_tiny, look_apart
from pellucid.lessons.why.head_weights import weights_of_heads
from pellucid.lessons.why.packaged import load_packaged, packaged_name, write_examples_of
from pellucid.lessons.why.result import Found, Panel, ResultTable, Verdict
from pellucid.lessons.why.setting import MeasurementSetting
from pellucid.lessons.why.tiny.learn import make_tiny, train_tiny
from pellucid.lessons.why.tiny.two_nouns import draw_hesitant

RIGHT = 0.9
LONG = "trained with 0 to 100"
SHORT = "trained with 0 to 10"
PACKAGED = "packaged model"
_SAID = {
    LONG: "A tiny translator that was trained with 0 to 100 words between",
    SHORT: "One that was trained with 0 to 10",
    PACKAGED: "The small translator `demo`",
}
"""Each model in a sentence."""


def measure(setting: MeasurementSetting) -> Found:
    """Put words between an antecedent and its pronoun, and explain weights by distance."""
    count = setting.choose(300, 12, 1000)
    shares = measure_cells(
        setting,
        f"{packaged_name()}: shares that distance explains, {count} sentences",
        lambda seed: _explain_packaged(count, seed),
        is_quick=True,
        read=_name_heads,
    )
    cells = _measure_reach(setting)
    far = cells.values("words")[-1]
    right = cells.mean("right", model=LONG, words=far)
    return Found(
        f"{_say_heads(shares)}. How far does attention reach? With {far} words between “it” and "
        "its noun, a tiny translator writes the right French word for “it” in "
        f"{right:.0%} of the sentences, if it was trained with that many words between",
        "Tiny: sentences such as “the soup was next to the bag um well and it tasted good”, "
        "with 0 to 100 hesitations, which the translation leaves out. Packaged model: adjectives "
        "before the second noun of sentences of the built-in corpus, which never has so many; the "
        "true translation without them is given. The predicate decides between the nouns, half of "
        "the time for each. The weight is that on the antecedent "
        "in the attention that gives it most without words between, chosen on other sentences: "
        "the row of it or of the last word in the encoder, or of the pronoun in the decoder. "
        f"Shares: the part of the variance around even weights, in {count} sentences of which "
        "half teach and half test.",
        verdicts={
            "shares": judge_seeds(judge_shares, shares),
            "reach": judge_seeds(judge_reach, cells),
        },
        tables=(
            *_reach_tables(cells),
            shares.table(
                "Share of the weights that is explained in the packaged model, %",
                "place",
                (
                    Column("by distance", "distance", scale=100),
                    Column("by the words", "words", scale=100),
                    Column("by both", "both", scale=100),
                ),
            ),
        ),
        panels=_panels(cells, shares),
    )


def _say_heads(shares: Cells) -> str:
    """Count the heads whose weights the words explain better than the distance, with each seed."""
    heads = shares.values("place")
    clear = 0
    unsteady = 0
    for head in heads:
        by_words = [row["words"] > row["distance"] for row in shares.where(place=head).rows]
        # With every seed, or it does not count.
        clear += all(by_words)
        unsteady += any(by_words) and not all(by_words)
    more = f". In {unsteady} more it depends on the seed" if unsteady else ""
    others = ". In the others the distance does" if clear + unsteady < len(heads) else ""
    return (
        f"the encoder of the small translator `demo` has {len(heads)} heads. The attention weights "
        "of each were predicted in two ways: from which two words they join, and from how far "
        f"apart the two stand. In {clear} heads the words predict them better{more}{others}"
    )


def judge_reach(cells: Cells) -> Verdict:
    """Judge by the distance up to which pronouns are right.

    The weight on the antecedent is shown only: a model may gather what it needs in other ways than
    by one direct look.
    """
    words = cells.values("words")
    reached = []
    numbers = []
    said = []
    for model in cells.values("model"):
        here = cells.where(model=model)
        good = [number for number in words if here.mean("right", words=number) >= RIGHT]
        # A distance counts only if all shorter ones are reached.
        known = [number for number, other in zip(good, words, strict=False) if number == other]
        if known == words:
            reached.append(model)
        farthest = f"{known[-1]} words" if known else "no distance"
        said.append(f"{_SAID[model]} is right in {here.mean('right', words=words[-1]):.0%}.")
        near = here.mean("weight", words=words[0]) / here.mean("even", words=words[0])
        far = here.mean("weight", words=words[-1]) / here.mean("even", words=words[-1])
        numbers.append(
            f"{model}: {farthest}; at {words[-1]} right {here.mean('right', words=words[-1]):.0%}, "
            f"weight {near:.1f} to {far:.1f} times even"
        )
    return decide(
        f"reached: {RIGHT:.0%} of the pronouns right; holds if all models reach the largest "
        "distance, only for what was trained if the model that was trained with it does, fails "
        "otherwise",
        "; ".join(numbers),
        f"In how many sentences is the French word for “it” right, with {words[-1]} words between "
        f"“it” and its noun? {' '.join(said)} To hold, it must "
        f"be {RIGHT:.0%} for all of them, with fewer words between, too.",
        fails=LONG not in reached,
        unless={"training had words as far apart": reached != cells.values("model")},
    )


def judge_shares(shares: Cells) -> Verdict:
    """Judge by whether words or distance explain more of each head's weights."""
    heads = shares.values("place")
    distance = [shares.mean("distance", place=head) for head in heads]
    words = [shares.mean("words", place=head) for head in heads]
    more = sum(word > far for word, far in zip(words, distance, strict=True))
    each = [
        sum(row["words"] > row["distance"] for row in shares.where(seed=seed).rows)
        for seed in shares.values("seed")
    ]
    return decide(
        "holds if in every head the words explain more than the distance does, fails otherwise",
        f"words explain more in {more} of {len(heads)} heads; distance explains "
        f"{min(distance):.0%} to {max(distance):.0%}".replace("-", "−"),
        f"{each_seed(say_seeds(each))}, the two words predict the weights better than the distance "
        f"does in {say_seeds(each)} of the {len(heads)} heads in the encoder of `demo`. To hold, "
        "it must be all of them.",
        fails=more < len(heads),
    )


def _measure_reach(setting: MeasurementSetting) -> Cells:
    words = setting.choose((0, 1, 3, 10, 30, 100), (0, 5))
    steps, count = setting.choose((400, 40), (3, 4))

    def train(model: str, seed: int) -> list[dict[str, Any]]:
        # The same text but for the distances that training has met.
        most = setting.choose(100 if model == LONG else 10, 5)
        text = [one[0] for one in draw_hesitant(10 * steps, most=most, seed=seed, part="train")]
        tiny = make_tiny(text, seed=seed, num_encoder_layers=2, num_heads=2, d_model=32, d_ff=64)
        tiny = train_tiny(tiny, text, steps=steps, seed=seed, rate=5e-3, rows=32)
        return look_apart(
            tiny.model, lambda n, part: draw_apart_tiny(tiny, count, n, seed=seed, part=part), words
        )

    def look(model: str, seed: int) -> list[dict[str, Any]]:
        bundle = load_packaged()
        return look_apart(
            bundle.model,
            lambda n, part: draw_apart_packaged(bundle, count, n, seed=seed, part=part),
            words,
        )

    models = setting.choose((LONG,), (LONG,), (LONG, SHORT))
    key = f"tiny model {{model}} words between, {steps} updates"
    packaged = f"{packaged_name()}, adjectives between, {count} sentences"
    return join_rows(
        (
            measure_cells(setting, key, train, model=models),
            measure_cells(setting, packaged, look, model=(PACKAGED,)),
        )
    ).add(times=lambda row: row["weight"] / row["even"])


@torch.inference_mode()
def _explain_packaged(count: int, seed: int) -> list[dict[str, float]]:
    """Explain the weights of every head of the packaged encoder, layer by layer."""
    bundle = load_packaged()
    examples = write_examples_of(count, seed=seed)
    sources = [bundle.tokenizer.encode_source(example.source) for example in examples]
    weights = [
        torch.cat([*weights_of_heads(bundle.model, ids).values()]).numpy() for ids in sources
    ]
    return explain(weights, sources)


def _name_heads(found: list[dict[str, float]]) -> list[dict[str, Any]]:
    heads = load_packaged().model.config.num_heads
    return [
        {"place": f"layer {place // heads} head {place % heads}", **head}
        for place, head in enumerate(found)
    ]


def explain(
    weights: Sequence[NDArray[np.floating]], sentences: Sequence[Sequence[int]]
) -> list[dict[str, float]]:
    r"""Measure for each head what its weights can be foreseen from.

    The mean weight above even ones is learned for each distance, and for each pair of words, from
    every second sentence; the others are foreseen. A mean counts one weight more, which is even,
    so that rare pairs do not decide.

    A share is $1 - \sum(w - \hat w)^2 / \sum(w - 1/n)^2$: 1 if every weight is foreseen, 0 if no
    better than even weights over the n words; below 0 if worse.

    Args:
        weights: for each sentence ``weights_HLM`` of the heads.
        sentences: the numbers of its words.

    Returns:
        For each head the shares that can be foreseen from the ``distance`` between the two words
        with its direction, from the two ``words``, and from ``both``, the distance first.
    """
    above = []
    distance = []
    words = []
    is_known = []
    for place, (weights_HLM, ids) in enumerate(zip(weights, sentences, strict=True)):
        length = len(ids)
        # Above even weights, so that sentences of all lengths compare.
        above.append(weights_HLM.reshape(len(weights_HLM), -1) - 1 / length)
        i_LM, j_LM = np.indices((length, length))
        distance.append((j_LM - i_LM).ravel())
        ids_L = np.asarray(ids, dtype=np.int64)
        # One number for each pair of words.
        words.append((ids_L[:, None] * 2**31 + ids_L[None]).ravel())
        # Every second sentence teaches, so that both halves are of one kind.
        is_known.append(np.full(length * length, place % 2 == 0))
    above_HP = np.concatenate(above, axis=1)
    known_P = np.concatenate(is_known)
    by_distance_P = np.unique(np.concatenate(distance), return_inverse=True)[1]
    by_words_P = np.unique(np.concatenate(words), return_inverse=True)[1]
    found = []
    for above_P in above_HP:
        far_P = _foresee(above_P, by_distance_P, known_P)
        word_P = _foresee(above_P, by_words_P, known_P)
        # The words explain what the distance has left.
        both_P = far_P + _foresee(above_P - far_P, by_words_P, known_P)
        total = float((above_P[~known_P] ** 2).sum())
        found.append(
            {
                name: 1 - float(((above_P - guess_P)[~known_P] ** 2).sum()) / total
                for name, guess_P in (("distance", far_P), ("words", word_P), ("both", both_P))
            }
        )
    return found


def _foresee(
    above_P: NDArray[np.floating], group_P: NDArray[np.intp], known_P: NDArray[np.bool_]
) -> NDArray[np.floating]:
    """Give each place the mean of its group over the known places."""
    size = int(group_P.max()) + 1
    sums = np.bincount(group_P[known_P], above_P[known_P], size)
    counts = np.bincount(group_P[known_P], minlength=size)
    # The one more is even, that is 0 above even: a pair seen once is half believed.
    return np.asarray((sums / (counts + 1))[group_P])


def _reach_tables(cells: Cells) -> Iterator[ResultTable]:
    for model in cells.values("model"):
        curve = cells.where(model=model)
        yield curve.table(
            f"{model}, by the words between: {', '.join(curve.values('place'))}",
            "words",
            (
                Column("antecedent", "weight"),
                Column("other noun", "other"),
                Column("times even", "times"),
                Column("right, %", "right", scale=100),
            ),
            head="words",
        )


def _panels(cells: Cells, shares: Cells) -> tuple[Panel, ...]:
    # The numbers of words stand too far apart for an axis.
    words = tuple(cells.each("words"))
    heads = [place.replace("layer ", "").replace(" head ", ".") for place in shares.values("place")]
    return (
        cells.panel(
            "Weight on the antecedent",
            ("words between", "share of the row"),
            cells.each("model"),
            "words",
            "weight",
            names=words,
            y_range=(0.0, 1.0),
        ),
        cells.panel(
            "Pronouns that are right",
            ("words between", "%"),
            cells.each("model"),
            "words",
            "right",
            scale=100,
            names=words,
            y_range=PERCENT,
        ),
        shares.panel(
            "Weights explained, packaged model",
            ("encoder layer.head", "%"),
            {"by distance": "distance", "by the two words": "words"},
            "place",
            scale=100,
            kind="bars",
            names=tuple(heads),
        ),
    )
