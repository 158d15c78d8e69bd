"""The need for heads: their number at equal width, their distance, and how many can be cut."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from pellucid.bundle import Bundle
from pellucid.data import make_source_batch
from pellucid.inside.changes.place import Place, all_heads
from pellucid.lessons.why.cells import (
    Cells,
    Column,
    average,
    decide,
    each_seed,
    join_rows,
    judge_seeds,
    measure_cells,
    say_seeds,
    write,
)
from pellucid.lessons.why.head_weights import WithoutHeads, weights_of_heads
from pellucid.lessons.why.packaged import (
    load_packaged,
    packaged_name,
    pairs_of,
    untrained_twin,
    write_examples_of,
)
from pellucid.lessons.why.result import Found, Panel, ResultTable, Verdict
from pellucid.lessons.why.setting import MeasurementSetting
from pellucid.lessons.why.tiny.trials import (
    LEARNED,
    TaskName,
    TextToLearn,
    make_task,
    make_untrained,
    run_trial,
)
from pellucid.machine.randomness import generator
from pellucid.model import EncoderDecoder

NUMBERS = (1, 2, 4, 8, 16)
WIDTH = 32
FASTER = 1.1
SEVERAL = 4
"""Heads that are compared with one: those of the packaged model."""
FREE = 0.01
"""A rise of the loss up to this, in nats per token, counts as none."""
TEXTS: tuple[TaskName, ...] = ("lists", "pronouns")
_TEXTS = {"lists": "lists of animals", "pronouns": "sentences with pronouns"}
"""Each text in a sentence."""


_SAME = f"the correct translations of other sentences stay as probable, within {FREE:.0%} per token"
"""What counts as no loss; a rise of the loss by so little takes as much off a probability."""

_ONLY = {"packaged": "the model is `demo`, not a tiny one", "tiny": "the model is a tiny one"}
"""The condition if heads are further apart in models of one kind only."""


def add_needed_heads(setting: MeasurementSetting, found: Found) -> Found:
    """Add trainings by number of heads, distances between heads, and cutting heads."""
    count = setting.choose(60, 2)
    distances = measure_cells(
        setting,
        f"{packaged_name()}: distances, {count} sentences",
        lambda seed: _packaged_distances(count, seed),
    )
    cuts = measure_cells(
        setting,
        f"{packaged_name()}: cutting heads, {count} and {count} sentences",
        lambda seed: cut_heads(seed, count),
        read=_by_number,
    )
    numbers = setting.choose(NUMBERS, (1, 2))
    free = count_free(cuts)
    is_same = len(set(cuts.all("head", cut=1))) == 1
    taught = join_rows(_teach(setting, text, numbers) for text in TEXTS)
    return found.plus(
        f". With the decoder, `demo` has {cuts.values('cut')[-1]} heads. Each seed draws "
        "sentences, and heads were removed one after another, each time the one that these "
        "sentences need least. "
        f"{each_seed(say_seeds(free))}, {say_seeds(free)} can be removed, and {_SAME}. "
        f"{'The same head' if is_same else 'Which head'} is needed least "
        f"{'with each seed' if is_same else 'depends on the seed'}. The table also has tiny "
        "networks with one head instead of several, and says how differently two heads attend",
        f" Number of heads: tiny models of width {WIDTH}, whose heads share "
        f"it, learn lists of animals and pronouns; learned means a training loss below {LEARNED} "
        "nats. Distance: the share of its weight that one head gives to other words than another "
        "head of the same layer, averaged over rows and pairs of heads. Cutting: each time the "
        f"head of encoder and decoder whose loss least raises the loss on {count} sentences; "
        f"the curve is that of {count} others, with the true translations.",
        verdicts={
            "matrices": judge_seeds(judge_number, taught),
            "unique": judge_seeds(judge_head_distance, distances, taught.where(text="pronouns")),
            "needed": judge_seeds(judge_cut, cuts),
        },
        tables=[
            *(_number_table(taught, text) for text in TEXTS),
            _distance_table(distances, taught),
            _cut_table(cuts),
        ],
        panels=_panels(taught, cuts),
    )


def judge_number(cells: Cells) -> Verdict:
    """Judge by the updates that one head needs, compared with several at equal width."""
    several = SEVERAL if SEVERAL in cells.values("heads") else max(cells.values("heads"))
    ratios: dict[str, list[float]] = {}
    for text in cells.values("text"):
        alone = cells.all("updates", text=text, heads=1)
        shared = cells.all("updates", text=text, heads=several)
        ratios[text] = [one / more for one, more in zip(alone, shared, strict=True)]
    return decide(
        f"holds if one head needs {FASTER} times the updates of {several} heads that share its "
        "width, or more, in every text; fails otherwise",
        "; ".join(f"{text}: one head needs × {write(ratio)}" for text, ratio in ratios.items()),
        "If several heads are of use, a network with one head should take longer to learn. Tiny "
        f"networks with one head were compared with networks of {several} heads that share its "
        "width. "
        + " ".join(
            f"To learn {_TEXTS[text]}, one head needs {say_seeds(ratio, '.2f')} times the "
            "updates, seed by seed."
            for text, ratio in ratios.items()
        )
        + f" To hold, it must be {FASTER} times or more for both texts: one text is not enough.",
        fails=min(map(fmean, ratios.values())) < FASTER,
    )


def judge_head_distance(packaged: Cells, tiny: Cells) -> Verdict:
    """Judge by the distance between heads of trained models, compared with random weights.

    Args:
        packaged: of the packaged model and of untrained ones.
        tiny: of tiny models after and before training.
    """
    models = {"packaged": packaged, "tiny": tiny}
    means = {
        name: [average(cells.all(when)) for when in ("trained", "untrained")]
        for name, cells in models.items()
    }
    is_more = {name: trained > untrained for name, (trained, untrained) in means.items()}
    return decide(
        "holds if trained heads are further apart than those of random weights, in the packaged "
        "and in the tiny models; fails if in neither",
        "; ".join(
            f"{name}: {trained:.2f} trained, {untrained:.2f} untrained"
            for name, (trained, untrained) in means.items()
        ),
        "The numbers in Q, K and V of two heads always differ, since the random numbers that the "
        "matrices begin with do. So the question became: does training make two heads of a layer "
        "attend more differently? Of the attention of one head, "
        f"{means['packaged'][0]:.0%} would have to move to other words to equal that of another "
        "head, on average in `demo`. With random matrices in the same network it is "
        f"{means['packaged'][1]:.0%}. In tiny networks it is {means['tiny'][0]:.0%} after training "
        f"and {means['tiny'][1]:.0%} before it. To hold, it must be more after training in `demo` "
        "and in tiny networks.",
        fails=not any(is_more.values()),
        unless={
            condition: is_more[name] and not all(is_more.values())
            for name, condition in _ONLY.items()
        },
    )


def judge_cut(cells: Cells) -> Verdict:
    """Judge by whether a head can be cut without loss."""
    free = count_free(cells)
    return decide(
        f"no loss is a rise by at most {FREE} nats a token; holds if no head can be cut without "
        "loss, fails if one can",
        f"heads cut without loss: {write(free, 'd')} of {cells.values('cut')[-1]}",
        f"{each_seed(say_seeds(free))}, {say_seeds(free)} of the {cells.values('cut')[-1]} heads "
        f"of `demo` can be removed, and {_SAME}. To hold, it must be none.",
        fails=fmean(free) >= 1,
    )


def count_free(cells: Cells) -> list[int]:
    """Count, for each seed, the most heads cut with a loss within `FREE` of the whole model's."""
    found = []
    for seed in cells.values("seed"):
        losses = cells.all("loss", seed=seed)
        # The most, not the first: a loss may rise above the limit and fall below it again.
        found.append(max(n for n, loss in enumerate(losses) if loss <= losses[0] + FREE))
    return found


def distance_between(weights_HLM: Tensor) -> float:
    """Compute the mean distance between pairs of heads: half of the sum of absolute gaps.

    It is 0 for heads with the same weights, 1 for heads that never look at the same word.
    """
    num_heads = len(weights_HLM)
    # Rows sum to 1, so half of the absolute gaps is the share that moved.
    gaps_HHL = (weights_HLM[:, None] - weights_HLM[None]).abs().sum(dim=-1) / 2
    # A head's distance from itself is 0, and does not count.
    return float(gaps_HHL.mean(dim=-1).sum() / (num_heads * (num_heads - 1)))


def _teach(setting: MeasurementSetting, text: TaskName, numbers: Sequence[int]) -> Cells:
    steps = make_task(text, setting, seed=setting.seed).steps
    return measure_cells(
        setting,
        f"{{text}}, {{heads}} heads, {steps} updates",
        lambda text, heads, seed: _train(make_task(text, setting, seed=seed), heads, seed),
        text=(text,),
        heads=numbers,
    )


def _train(task: TextToLearn, num_heads: int, seed: int) -> dict[str, Any]:
    """Train with a number of heads, and measure their distance before and after."""
    trial, tiny = run_trial(task, seed=seed, num_heads=num_heads)
    record: dict[str, Any] = asdict(trial) | {"trained": None, "untrained": None}
    if num_heads > 1:
        raw = make_untrained(task, tiny, seed=seed)
        sources = tiny.source.encode_all([pair[0] for pair in task.tests[:40]])
        record["trained"] = _distance(tiny.model, sources)
        record["untrained"] = _distance(raw.model, sources)
    return record


@torch.inference_mode()
def _distance(model: EncoderDecoder, sources: Sequence[Sequence[int]]) -> float:
    """Average the distance between heads over the encoder's layers and some sentences."""
    found = [
        distance_between(weights_HLM)
        for ids in sources
        for weights_HLM in weights_of_heads(model, ids).values()
    ]
    return sum(found) / len(found)


def _packaged_distances(count: int, seed: int) -> dict[str, float]:
    bundle = load_packaged()
    examples = write_examples_of(count, seed=seed)
    sources = [bundle.tokenizer.encode_source(one.source) for one in examples]
    twin = untrained_twin(bundle, seed=seed)
    return {"trained": _distance(bundle.model, sources), "untrained": _distance(twin, sources)}


class _Sentences:
    """Sentences with their true translations, as one batch."""

    def __init__(self, bundle: Bundle, seed: int, part: int, count: int) -> None:
        # One half decides, the other one judges.
        examples = write_examples_of(2 * count, seed=seed)[part * count : (part + 1) * count]
        pairs = pairs_of(bundle, examples)
        pad = bundle.tokenizer.config.pad_id
        self._model = bundle.model
        self._source, self._mask = make_source_batch([p.source_ids for p in pairs], pad_id=pad)
        self._read, self._is_real = make_source_batch([p.read_ids for p in pairs], pad_id=pad)
        self._target, _ = make_source_batch([p.target_ids for p in pairs], pad_id=pad)

    @torch.inference_mode()
    def score(self, cut: Collection[Place]) -> tuple[float, float]:
        """Compute the loss per token and the share of tokens that are the likeliest."""
        probe = WithoutHeads(cut)
        memory = self._model.encode(self._source, self._mask, probe=probe)
        states = self._model.decode(self._read, memory, self._mask, probe=probe)
        logs_PV = self._model.logits(states)[self._is_real].log_softmax(dim=-1)
        target_P = self._target[self._is_real]
        loss = -logs_PV.gather(1, target_P[:, None]).mean()
        return float(loss), float((logs_PV.argmax(dim=-1) == target_P).float().mean())


def cut_heads(seed: int, count: int) -> dict[str, list[Any]]:
    """Cut the head that costs least, again and again; judge the order on other sentences.

    Args:
        seed: of the sentences and of the drawn order.
        count: the number of sentences that decide, and of those that judge.

    Returns:
        The heads in the ``order`` in which they were cut; with 0, 1, 2, … heads cut the
        ``losses`` on other sentences, in nats per token, and the share of their tokens that are
        the likeliest (``right``); and the losses if the order is drawn (``random``).
    """
    bundle = load_packaged()
    left = list(all_heads(bundle.model.config))
    shuffled = [left[i] for i in generator(seed, "why cut").permutation(len(left))]
    chosen = _Sentences(bundle, seed, 0, count)
    others = _Sentences(bundle, seed, 1, count)
    cut: list[Place] = []
    scores = [others.score([])]
    # Nothing is cut yet in either order.
    drawn = [scores[0][0]]
    while left:
        # Greedy: all orders of 24 heads are too many to try.
        cut.append(min(left, key=lambda head: chosen.score([*cut, head])[0]))
        # A head that is cut stays cut.
        left.remove(cut[-1])
        scores.append(others.score(cut))
        drawn.append(others.score(shuffled[: len(cut)])[0])
    losses, right = map(list, zip(*scores, strict=True))
    return {"order": list(map(str, cut)), "losses": losses, "right": right, "random": drawn}


def _by_number(found: dict[str, list[Any]]) -> list[dict[str, float]]:
    # Without any head cut there is none that was cut last.
    heads = ["", *found["order"]]
    columns = zip(heads, found["losses"], found["right"], found["random"], strict=True)
    return [
        {"cut": cut, "head": head, "loss": loss, "right": right, "random": random}
        for cut, (head, loss, right, random) in enumerate(columns)
    ]


def _number_table(cells: Cells, text: str) -> ResultTable:
    cells = cells.add(width=lambda row: WIDTH // row["heads"])
    columns = (
        Column("width of one", "width", "d", over_seeds="first"),
        Column("updates", "updates"),
        Column("right, %", "exact", scale=100),
        Column("loss", "loss"),
    )
    title = f"Number of heads at width {WIDTH}: {text}"
    return cells.where(text=text).table(title, "heads", columns, head="heads")


def _distance_table(packaged: Cells, taught: Cells) -> ResultTable:
    # One head has no distance from another.
    several = Cells(tuple(row for row in taught.rows if row["heads"] > 1))
    cells = join_rows(
        (
            packaged.add(label=lambda row: "packaged model, 4 heads"),
            several.add(label=lambda row: f"tiny, {row['heads']} heads, {row['text']}"),
        )
    )
    return cells.table(
        "Distance between heads of one layer, 0 for the same weights to 1 for no word in common",
        "label",
        (Column("trained", "trained"), Column("untrained", "untrained")),
    )


def _cut_table(cells: Cells) -> ResultTable:
    columns = (
        Column("loss", "loss"),
        Column("tokens right, %", "right", scale=100),
        Column("loss, order drawn", "random"),
    )
    # Every second row is enough to see the course.
    even = Cells(tuple(row for row in cells.rows if row["cut"] % 2 == 0))
    return even.table("Packaged model with heads cut", "cut", columns, head="heads cut")


def _panels(taught: Cells, cuts: Cells) -> tuple[Panel, Panel]:
    return (
        taught.panel(
            "Updates until the text is learned",
            ("heads at equal width", "updates"),
            taught.each("text"),
            "heads",
            "updates",
            x_log=True,
        ),
        cuts.panel(
            "Loss without heads",
            ("heads cut, of all", "nats a token"),
            {"the least needed first": "loss", "order drawn": "random"},
            "cut",
            y_log=True,
        ),
    )
