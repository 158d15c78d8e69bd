"""The diagonal: whether a word attends most to itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pellucid.attention import attend_with_embeddings
from pellucid.inside.pair import Keeper
from pellucid.lessons.why.packaged import load_packaged, untrained_twin, write_examples_of
from pellucid.lessons.why.result import (
    NOTES,
    STUDY_NOTES,
    Finding,
    Measurement,
    Panel,
    Plot,
    Series,
    Statement,
    Table,
    Verdict,
)
from pellucid.lessons.why.setting import Setting
from pellucid.model import EncoderDecoder

__all__ = ["OwnWeight", "count_rows", "judge", "measure"]

USUALLY = 0.5

NOTES_SAY = Statement(
    NOTES, "section 3.3", "scores between the same word are usually highest in practice"
)
STUDY_SAY = Statement(
    STUDY_NOTES, "", "it is weighted much more heavily because it's so much more similar to itself"
)


@dataclass(frozen=True)
class OwnWeight:
    """The weight of words on themselves in one attention.

    Attributes:
        place: the head, or another name.
        highest: the share of words whose own weight is the highest of their row.
        own: the average weight on oneself.
    """

    place: str
    highest: float
    own: float


@torch.inference_mode()
def measure(setting: Setting) -> Measurement:
    """Count the words that attend most to themselves, for each head of the encoder."""
    bundle = load_packaged()
    examples = write_examples_of(setting.choose(300, 11), seed=setting.seed)
    sources = [bundle.tokenizer.encode_source(example.source) for example in examples]
    trained = _count(bundle.model, sources)
    setting.say("an untrained model of the same shape")
    untrained = _count(untrained_twin(bundle, seed=setting.seed), sources)
    plain = _count_embeddings(bundle.model, sources)
    chance = len(sources) / sum(map(len, sources))
    mean, raw = _mean(trained), _mean(untrained)
    best = max(trained, key=lambda one: one.highest)
    return Measurement(
        claim="diagonal",
        question="Does a word attend most to itself?",
        number=f"In the packaged model {mean:.0%} of all words attend most to themselves, averaged "
        f"over the heads of the encoder; {best.highest:.0%} in {best.place}. By chance it would be "
        f"{chance:.0%}.",
        method=f"Encoder self-attention of {len(sources)} new sentences: the share of tokens, "
        "</s> included, whose own weight is the largest of their row. The untrained model has the "
        "same shape and random weights. Without projections, queries and keys are the embeddings "
        "with positions themselves.",
        findings=(
            Finding(NOTES_SAY, judge(trained, plain, chance)),
            Finding(STUDY_SAY, judge(trained, plain, chance)),
        ),
        tables=(_table(trained, untrained, plain, chance),),
        plot=_plot(trained, untrained, plain, chance),
        notes=(
            f"The untrained model has {raw:.0%}: nothing in attention favors the word itself, "
            "because queries and keys are projected by different matrices. Without projections a "
            "score is x·x, which is hard to beat.",
            "The residual connection carries the word itself past attention, so that a head is "
            "free to look elsewhere.",
        ),
        to_try=("pellucid attend lets-go", 'pellucid look demo "The pizza is good." --kind self'),
        seed=setting.seed,
        size=setting.size,
    )


def judge(trained: Sequence[OwnWeight], plain: OwnWeight, chance: float) -> Verdict:
    """Judge by the share of words with the highest weight on themselves.

    Args:
        trained: the heads of the trained encoder.
        plain: attention without projections.
        chance: the share if every word were the highest equally often.
    """
    mean = _mean(trained)
    usual = [one for one in trained if one.highest > USUALLY]
    rule = (
        f"usually means more than {USUALLY:.0%} of the words; holds if the average over all heads "
        "is above that, fails if no head is, nor attention without projections"
    )
    numbers = (
        f"average {mean:.0%}, {len(usual)} of {len(trained)} heads above {USUALLY:.0%}, without "
        f"projections {plain.highest:.0%}, chance {chance:.0%}"
    )
    if mean > USUALLY:
        return Verdict("holds", "", rule, numbers)
    if usual:
        names = ", ".join(one.place for one in usual)
        return Verdict("holds only if", f"it is about {names}", rule, numbers)
    if plain.highest > USUALLY:
        condition = "queries and keys are the embeddings themselves, without projections"
        return Verdict("holds only if", condition, rule, numbers)
    return Verdict("fails", "", rule, numbers)


def count_rows(weights_HLM: Tensor) -> tuple[Tensor, Tensor]:
    """Count for each head the rows whose diagonal is highest, and sum the diagonal."""
    own_HL = weights_HLM.diagonal(dim1=-2, dim2=-1)
    is_highest_HL = weights_HLM.argmax(dim=-1) == torch.arange(own_HL.shape[-1])
    return is_highest_HL.sum(dim=-1), own_HL.sum(dim=-1)


def _mean(heads: Sequence[OwnWeight]) -> float:
    return sum(one.highest for one in heads) / len(heads)


def _count(model: EncoderDecoder, sources: Sequence[Sequence[int]]) -> list[OwnWeight]:
    config = model.config
    sums = torch.zeros(config.num_encoder_layers, 2, config.num_heads)
    for ids in sources:
        keeper = Keeper(("weights",))
        model.encode(torch.tensor([ids]), probe=keeper)
        for layer in range(config.num_encoder_layers):
            both = count_rows(keeper.found[f"encoder.{layer}.self.weights"][0])
            sums[layer] += torch.stack(both)
    shares = sums / sum(map(len, sources))
    return [
        OwnWeight(f"layer {layer} head {head}", *shares[layer, :, head].tolist())
        for layer in range(config.num_encoder_layers)
        for head in range(config.num_heads)
    ]


def _count_embeddings(model: EncoderDecoder, sources: Sequence[Sequence[int]]) -> OwnWeight:
    sums = torch.zeros(2)
    for ids in sources:
        keeper = Keeper(("input",), ("encoder.0.self",))
        model.encode(torch.tensor([ids]), probe=keeper)
        steps = attend_with_embeddings(keeper.found["encoder.0.self.input"][0])
        sums += torch.stack([one[0] for one in count_rows(steps.weights[None])])
    return OwnWeight("without projections", *(sums / sum(map(len, sources))).tolist())


def _table(
    trained: Sequence[OwnWeight], untrained: Sequence[OwnWeight], plain: OwnWeight, chance: float
) -> Table:
    rows: list[tuple[str | float | None, ...]] = [
        (one.place, 100 * one.highest, one.own, 100 * other.highest, other.own)
        for one, other in zip(trained, untrained, strict=True)
    ]
    rows.append(("without projections", 100 * plain.highest, plain.own, None, None))
    rows.append(("chance", 100 * chance, chance, 100 * chance, chance))
    return Table(
        "Words that attend most to themselves, and their average weight on themselves",
        ("", "highest, %", "weight", "untrained, %", "weight"),
        ("", ".0f", ".2f", ".0f", ".2f"),
        tuple(rows),
    )


def _plot(
    trained: Sequence[OwnWeight], untrained: Sequence[OwnWeight], plain: OwnWeight, chance: float
) -> Plot:
    names = tuple(one.place.replace("layer ", "").replace(" head ", ".") for one in trained)
    places = tuple(float(place) for place in range(len(names) + 1))
    nothing = float("nan")
    return Plot(
        (
            Panel(
                "Words that attend most to themselves",
                "encoder layer.head, and embeddings without projections",
                "% of words",
                (
                    Series("packaged model", places,
                           (*(100 * one.highest for one in trained), nothing), "accent"),
                    Series("untrained", places,
                           (*(100 * one.highest for one in untrained), nothing)),
                    Series("without projections", places,
                           (*(nothing for _ in trained), 100 * plain.highest)),
                    Series("chance", places, tuple(100 * chance for _ in places), "faint"),
                ),
                kind="bars", names=(*names, "x·x"), y_range=(0, 100),
            ),
        )
    )  # fmt: skip
