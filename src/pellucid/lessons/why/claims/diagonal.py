"""The diagonal: whether a word attends most to itself, then to the most similar word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pellucid.attention import attend_with_embeddings
from pellucid.inside.measures.agreement import spearman
from pellucid.inside.pair import Keeper
from pellucid.lessons.why.cells import (
    PERCENT,
    Cells,
    Column,
    decide,
    join_rows,
    judge_seeds,
    measure_cells,
)
from pellucid.lessons.why.head_weights import weights_of_heads
from pellucid.lessons.why.packaged import (
    load_packaged,
    packaged_name,
    pairs_of,
    untrained_twin,
    write_examples_of,
)
from pellucid.lessons.why.result import Found, Panel, ResultTable, Series, Verdict
from pellucid.lessons.why.setting import MeasurementSetting
from pellucid.lessons.why.tiny.learn import START
from pellucid.lessons.why.tiny.trials import make_task, make_untrained, run_trial
from pellucid.model import EncoderDecoder

USUALLY = 0.5
TRAINED = "packaged model"
UNTRAINED = "untrained model"
PLAIN = "without projections"


def measure(setting: MeasurementSetting) -> Found:
    """Look at the rows of all heads, trained and not, and at attention without projections."""
    count = setting.choose(300, 11)
    parts = setting.choose(("encoder",), ("encoder",), ("encoder", "decoder"))
    heads = measure_cells(
        setting,
        f"{packaged_name()}: {{kind}}, {{part}}, {count} sentences",
        lambda kind, part, seed: _look(kind, part, count, seed),
        is_quick=True,
        part=parts,
        kind=(TRAINED, UNTRAINED),
    )
    plain = measure_cells(
        setting,
        f"{packaged_name()}: {{kind}}, {count} sentences",
        lambda kind, part, seed: [look_at_inputs(load_packaged().model, _sentences(count, seed))],
        is_quick=True,
        part=("encoder",),
        # A single kind, so that both measurements have the same axes and can be joined.
        kind=(PLAIN,),
    )
    cells = join_rows((heads, plain))
    raw = fmean(_by_head(cells, "highest", kind=UNTRAINED).values())
    usual = judge_seeds(judge, cells)
    found = Found(
        _say(cells),
        f"Self-attention in {count} new sentences for each seed: the share of tokens, </s> "
        "included, whose own weight is the largest of their row. Ranks: Spearman's correlation of "
        "the weights on the other words with the cosines of the embeddings; first: the share of "
        "words that give the most similar other word the most. The untrained model has the same "
        "shape and random weights. Without projections, queries and keys are the embeddings with "
        "positions themselves, in one head of the whole width.",
        {"usual": usual, "study": usual, "similar": judge_seeds(judge_similar, cells)},
        tuple(_table(part, cells.where(part=part)) for part in parts),
        (
            _panel(cells, "Words that attend most to themselves", "% of words", "highest", 100),
            _panel(cells, "Weights ranked as similarities", "rank correlation", "ranks", 1),
        ),
        (
            f"The untrained model has {raw:.0%}: nothing in attention favors the word "
            "itself, because queries and keys are projected by different matrices. Without "
            "projections a score is x·x, which is hard to beat.",
        ),
    )
    if not setting.is_long:
        return found
    return found.plus(
        method=" Tiny models learn pronouns, with one text and first weights a seed.",
        tables=[_tiny_table(_look_at_tiny(setting))],
    )


def _say(cells: Cells) -> str:
    """Say how many words attend most to themselves: without projections, and in each part."""
    plain = cells.where(kind=PLAIN)
    decoder = cells.where(kind=TRAINED, part="decoder")
    said = (
        "take the embedding of each word as its query and as its key, and then "
        f"{plain.mean('highest'):.0%} of the words attend most to themselves. The small translator "
        "`demo` makes queries and keys with learned matrices instead. On average over the heads of "
        f"its encoder {fmean(_by_head(cells, 'highest').values()):.0%} of the words attend most "
        f"to themselves. By chance {plain.mean('chance'):.0%} would"
    )
    if decoder.rows:
        said += (
            f". In its decoder {decoder.mean('highest'):.0%} do. By chance "
            f"{decoder.mean('chance'):.0%} would, as each word sees only itself and those before it"
        )
    ranks = fmean(_by_head(cells, "ranks").values())
    return (
        f"{said}. Do similar words get more weight? How similar two words are was measured by the "
        "cosine of their embeddings. The word itself was left out. A rank correlation of 1 then "
        "means that the most similar word gets the most weight, the next most similar the next, "
        "and so on. With the embeddings themselves it is "
        f"{plain.mean('ranks'):.2f}. It is not 1, since scores also depend on how long "
        "the vectors of the embeddings are, and on positions, which are added to them. In the "
        f"encoder of `demo` it is {ranks:.2f} on average"
    ).replace(" -", " −")


def judge(cells: Cells) -> Verdict:
    """Judge by the share of words with the highest weight on themselves."""
    heads = _by_head(cells, "highest")
    plain = cells.mean("highest", kind=PLAIN)
    decoder = _by_head(cells, "highest", part="decoder")
    numbers = (
        f"average {fmean(heads.values()):.0%}, {len(_usual(heads))} of {len(heads)} heads above "
        f"{USUALLY:.0%}, without projections {plain:.0%}, chance "
        f"{cells.mean('chance', kind=PLAIN):.0%}"
    )
    # Only the long form looks at it.
    if decoder:
        chance = cells.mean("chance", kind=TRAINED, part="decoder")
        numbers += (
            f"; decoder: average {fmean(decoder.values()):.0%}, {len(_usual(decoder))} of "
            f"{len(decoder)} heads above {USUALLY:.0%}, chance {chance:.0%}"
        )
    rule = (
        f"usually means more than {USUALLY:.0%} of the words; holds if the average over all heads "
        "is above that, only without projections if it is there, fails otherwise"
    )
    reason = (
        f"In the encoder of `demo`, {fmean(heads.values()):.0%} of the words attend most to "
        f"themselves, on average over its {len(heads)} heads. To hold, it must be more than "
        f"{USUALLY:.0%}. If queries and keys are the embeddings themselves, {plain:.0%} do."
    )
    return _decide(rule, numbers, reason, heads, plain)


def judge_similar(cells: Cells) -> Verdict:
    """Judge by the rank correlation of weights on other words with the embeddings' cosines."""
    heads = _by_head(cells, "ranks")
    plain = cells.mean("ranks", kind=PLAIN)
    numbers = (
        f"average {fmean(heads.values()):.2f}, from {min(heads.values()):.2f} to "
        f"{max(heads.values()):.2f}; without projections {plain:.2f}; most weight to the most "
        f"similar: {fmean(_by_head(cells, 'first').values()):.0%}, chance "
        f"{cells.mean('chance_first', kind=PLAIN):.0%}"
    ).replace("-", "−")
    rule = (
        f"holds if the rank correlation, averaged over all heads, is above {USUALLY}, only without "
        "projections if it is there, fails otherwise"
    )
    reason = (
        "In the encoder of `demo`, weights follow the similarity of words with a rank correlation "
        f"of {fmean(heads.values()):.2f}, on average over its {len(heads)} heads. To hold, it must "
        f"be above {USUALLY}. If queries and keys are the embeddings themselves, it is {plain:.2f}."
    ).replace(" -", " −")
    return _decide(rule, numbers, reason, heads, plain)


def _decide(
    rule: str, numbers: str, reason: str, heads: Mapping[str, float], plain: float
) -> Verdict:
    is_mean = fmean(heads.values()) > USUALLY
    return decide(
        rule,
        numbers,
        reason,
        fails=not is_mean and plain <= USUALLY,
        unless={"queries and keys are the embeddings themselves": not is_mean},
    )


def _usual(heads: Mapping[str, float]) -> list[str]:
    return [place for place, share in heads.items() if share > USUALLY]


def _by_head(
    cells: Cells, name: str, *, kind: str = TRAINED, part: str = "encoder"
) -> dict[str, float]:
    """Average each head of one model over the seeds."""
    here = cells.where(kind=kind, part=part)
    return {place: here.mean(name, place=place) for place in here.values("place")}


def _look(kind: str, part: str, count: int, seed: int) -> list[dict[str, Any]]:
    bundle = load_packaged()
    model = bundle.model if kind == TRAINED else untrained_twin(bundle, seed=seed)
    return look_at_heads(model, _sentences(count, seed), part)


def _sentences(count: int, seed: int) -> list[tuple[list[int], list[int]]]:
    pairs = pairs_of(load_packaged(), write_examples_of(count, seed=seed))
    return [(list(pair.source_ids), list(pair.read_ids)) for pair in pairs]


def _look_at_tiny(setting: MeasurementSetting) -> Cells:
    """Look at tiny models before and after they have learned pronouns."""

    def look(seed: int) -> dict[str, Any]:
        task = make_task("pronouns", setting, seed=seed)
        # Compared with its own first weights, which the same seed draws again.
        _, tiny = run_trial(task, seed=seed)
        raw = make_untrained(task, tiny, seed=seed)
        sentences = [
            (tiny.source.encode(source), [START, *tiny.target.encode(target)[:-1]])
            for source, target in task.tests
        ]
        return {
            "trained": look_at_heads(tiny.model, sentences),
            "untrained": look_at_heads(raw.model, sentences),
        }

    return measure_cells(
        setting,
        f"tiny model, pronouns, {make_task('pronouns', setting, seed=1).steps} updates",
        look,
        read=lambda found: [{"kind": kind, **one} for kind in found for one in found[kind]],
    )


def _table(part: str, cells: Cells) -> ResultTable:
    raw = {"kind": UNTRAINED}
    chance = cells.all("chance", kind=TRAINED)[0]
    first = cells.all("chance_first", kind=TRAINED)[0]
    # Attention without projections is another row of the same columns.
    cells = cells.add(has_learned=lambda row: row["kind"] != UNTRAINED)
    learned = {"has_learned": True}
    return cells.table(
        f"Words of the {part} that attend most to themselves, and similarity of the others",
        "place",
        (
            Column("highest, %", "highest", scale=100, where=learned),
            Column("weight", "own", where=learned),
            Column("ranks", "ranks", where=learned),
            Column("first, %", "first", scale=100, where=learned),
            Column("untrained, %", "highest", scale=100, where=raw),
            Column("ranks", "ranks", where=raw),
        ),
        more=[("chance", 100 * chance, chance, 0.0, 100 * first, 100 * chance, 0.0)],
    )


def _tiny_table(tiny: Cells) -> ResultTable:
    columns = (
        Column("highest, %", "highest", scale=100, where={"kind": "trained"}),
        Column("ranks", "ranks", where={"kind": "trained"}),
        Column("untrained, %", "highest", scale=100, where={"kind": "untrained"}),
        Column("ranks", "ranks", where={"kind": "untrained"}),
    )
    title = "Tiny models that learned pronouns: words that attend most to themselves"
    return tiny.table(title, "place", columns)


def _panel(cells: Cells, title: str, label: str, name: str, scale: float) -> Panel:
    encoder = cells.where(part="encoder")
    reference: list[Series] = []
    if name == "highest":
        reference = [encoder.bars("chance", "place", "chance", "faint", scale=scale, kind=TRAINED)]
    heads = [one.replace("layer ", "").replace(" head ", ".") for one in encoder.values("place")]
    return encoder.panel(
        title,
        ("encoder layer.head, and embeddings without projections", label),
        {
            "packaged model": {"kind": TRAINED},
            "untrained": {"kind": UNTRAINED},
            PLAIN: {"kind": PLAIN},
        },
        "place",
        name,
        scale=scale,
        more=reference,
        kind="bars",
        names=(*heads[:-1], "x·x"),
        y_range=PERCENT if scale == 100 else None,
    )


_LEAST = 3
"""The other words that a row must have for a rank correlation."""


class _Sums:
    """Adds up the rows of one attention with H heads."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._sums_4H = np.zeros((4, len(names)))
        self._chances = np.zeros(2)
        self._rows = 0
        self._ranked = 0

    def add(self, weights_HLM: Tensor, vectors_LD: Tensor, *, is_causal: bool) -> None:
        """Add the rows of a sentence whose words have these embeddings."""
        length = weights_HLM.shape[-1]
        highest_H, own_H = count_rows(weights_HLM)
        self._sums_4H[0] += highest_H.numpy()
        self._sums_4H[1] += own_H.numpy()
        self._rows += length
        unit_LD = torch.nn.functional.normalize(vectors_LD, dim=-1)
        similar_LL = (unit_LD @ unit_LD.T).numpy()
        for row in range(length):
            seen = row + 1 if is_causal else length
            self._chances[0] += 1 / seen
            # Two words always correlate perfectly.
            if seen - 1 < _LEAST:
                continue
            # The diagonal is judged by itself.
            others = [column for column in range(seen) if column != row]
            given_HO = weights_HLM[:, row, others].numpy()
            ranks_H, is_first_H = rank_with(given_HO, similar_LL[row, others])
            self._sums_4H[2] += ranks_H
            self._sums_4H[3] += is_first_H
            self._chances[1] += 1 / len(others)
            self._ranked += 1

    def finish(self) -> list[dict[str, Any]]:
        """Divide the sums by the numbers of rows.

        Returns:
            For each head its ``place``; ``highest``, the share of words whose own weight is the
            highest of their row; ``own``, the average weight on oneself; ``ranks``, the rank
            correlation of the weights on other words with the cosines of the embeddings, averaged
            over words that see three others or more; ``first``, the share of those words that give
            the most similar other word the most; and by chance ``chance`` for ``highest`` and
            ``chance_first`` for ``first``.
        """
        ranked = max(1, self._ranked)
        numbers = self._sums_4H / np.array([self._rows, self._rows, ranked, ranked])[:, None]
        chances = {
            "chance": float(self._chances[0] / self._rows),
            "chance_first": float(self._chances[1] / ranked),
        }
        return [
            {
                "place": name,
                **dict(zip(("highest", "own", "ranks", "first"), map(float, column), strict=True)),
                **chances,
            }
            for name, column in zip(self._names, numbers.T, strict=True)
        ]


def count_rows(weights_HLM: Tensor) -> tuple[Tensor, Tensor]:
    """Count for each head the rows whose diagonal is highest, and sum the diagonal."""
    own_HL = weights_HLM.diagonal(dim1=-2, dim2=-1)
    is_highest_HL = weights_HLM.argmax(dim=-1) == torch.arange(own_HL.shape[-1])
    return is_highest_HL.sum(dim=-1), own_HL.sum(dim=-1)


def rank_with(
    given_HO: NDArray[np.floating], similar_O: NDArray[np.floating]
) -> tuple[NDArray[np.floating], NDArray[np.bool_]]:
    """Compare each head's weights on O other words with the similarity of those words.

    Returns:
        Spearman's rank correlations, 0 if all ranks are the same, and whether the most similar word
        has the largest weight.
    """
    # Equal weights have no rank: they follow nothing.
    ranks_H = np.nan_to_num([spearman(given_O, similar_O) for given_O in given_HO])
    # Words that occur twice are equally similar, so either is the most similar.
    return ranks_H, similar_O[given_HO.argmax(axis=1)] >= similar_O.max() - 1e-6


@torch.inference_mode()
def look_at_heads(
    model: EncoderDecoder,
    sentences: Sequence[tuple[Sequence[int], Sequence[int]]],
    part: str = "encoder",
) -> list[dict[str, Any]]:
    """Look at the self-attention of every head of one part of a model.

    Args:
        model: it reads the sentences.
        sentences: the source, and what the decoder reads.
        part: ``encoder`` or ``decoder``, whose words see only those before them.
    """
    config = model.config
    is_causal = part == "decoder" and config.look_ahead_mask
    layers = range(getattr(config, f"num_{part}_layers"))
    embedding = model.embedding_of("source" if part == "encoder" else "target")
    sums = _Sums(
        [f"layer {layer} head {head}" for layer in layers for head in range(config.num_heads)]
    )
    for source, read in sentences:
        found = weights_of_heads(model, source, read if part == "decoder" else ())
        weights_XLM = torch.cat([found[f"{part}.{layer}.self"] for layer in layers])
        words = torch.tensor(list(source if part == "encoder" else read))
        sums.add(weights_XLM, embedding(words), is_causal=is_causal)
    return sums.finish()


@torch.inference_mode()
def look_at_inputs(
    model: EncoderDecoder, sentences: Sequence[tuple[Sequence[int], Sequence[int]]]
) -> dict[str, Any]:
    """Look at attention in which the encoder's inputs, with positions, are queries and keys."""
    sums = _Sums(["without projections"])
    for source, _ in sentences:
        keeper = Keeper(("input",), ("encoder.0.self",))
        words = torch.tensor([list(source)])
        model.encode(words, probe=keeper)
        steps = attend_with_embeddings(keeper.found["encoder.0.self.input"][0])
        embeddings_LD = model.embedding_of("source")(words[0])
        sums.add(steps.weights[None], embeddings_LD, is_causal=False)
    return sums.finish()[0]
