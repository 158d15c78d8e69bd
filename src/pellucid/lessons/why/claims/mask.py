"""The look-ahead mask: training without it is easier than possible, and decoding is lost."""

from __future__ import annotations

import math
from typing import Any

import torch

from pellucid.inside.pair import Keeper
from pellucid.lessons.why.cells import (
    PERCENT,
    Cells,
    Column,
    decide,
    judge_seeds,
    measure_cells,
)
from pellucid.lessons.why.result import Found, Panel, ResultTable, Series, Verdict
from pellucid.lessons.why.setting import MeasurementSetting
from pellucid.lessons.why.tiny.learn import (
    Pair,
    Tiny,
    loss_on,
    make_tiny,
    thin,
    train_tiny,
    translate_tiny,
)
from pellucid.lessons.why.tiny.tiny_language import draw_ambiguous, is_translation

CHEATS = 0.25
"""It cheats if its loss is below this share of what no fair model can undercut."""
LOST = 0.25
"""It cannot translate if fewer sentences are right than this share."""

MASKED = "with the mask"
OPEN = "without the mask"


def measure(setting: MeasurementSetting) -> Found:
    """Train equal models with and without the mask, of two depths in the long form."""
    count, steps = setting.choose((12000, 400), (100, 6), (12000, 300))
    num_tests, every = setting.choose((200, 1), (11, 1), (200, 10))

    def teach(depth: int, model: str, seed: int) -> dict[str, Any]:
        return train_one(depth, model == MASKED, (count, num_tests, steps, every), seed)

    cells = measure_cells(
        setting,
        f"training {{model}}, {{depth}} layers, {count} sentences, {steps} updates",
        teach,
        depth=setting.choose((1,), (1,), (1, 2)),
        model=(MASKED, OPEN),
    )
    floor = cells.mean("floor")
    cheat = hardest(cells, OPEN)
    fair = hardest(cells, MASKED)
    return Found(
        "in training a decoder predicts each next word of the correct translation. Without the "
        "mask it sees that word, and can copy it. Its loss falls to "
        f"{cheat['training_loss']:.4f}. A coin had decided which of two French words stands for a "
        "verb, and nobody can foresee a coin. So without seeing the next word, the lowest possible "
        f"loss is {floor:.4f}. When the decoder translates, no next word is there to copy. A model "
        f"trained without the mask then translates {cheat['exact']:.0%} of new sentences "
        f"correctly, where either of the two verbs counts as correct. A model trained with it "
        f"translates {fair['exact']:.0%} correctly",
        f"Equal models with and without the mask learn {count:,} sentences of a tiny English and "
        f"French in {steps} updates. Each verb has two French words, and a coin decides which one "
        "a sentence has: it cannot be foreseen, and a fair model pays log 2 nats for it. Decoding "
        "is greedy. Of several depths the verdict takes the one that is harder on the claim.",
        {"cheat": judge_seeds(judge, cells)},
        (_table(cells, floor),),
        _panels(cells, floor, every),
        (
            # Results of long forms were kept without a text.
            *(() if setting.is_long else (_example(cells),)),
        ),
    )


def train_one(
    depth: int, has_mask: bool, sizes: tuple[int, int, int, int], seed: int
) -> dict[str, Any]:
    """Train a model with or without the mask, and let it translate new sentences.

    Args:
        depth: layers of the encoder and of the decoder.
        has_mask: True for a decoder with the look-ahead mask.
        sizes: sentences to learn, new sentences, updates, and updates to a kept loss.
        seed: of the sentences and the weights.
    """
    count, num_tests, steps, every = sizes
    train = draw_ambiguous(count, seed=seed, part="train")
    test = draw_ambiguous(num_tests, seed=seed, part="test")
    layers = {"num_encoder_layers": depth, "num_decoder_layers": depth}
    tiny = make_tiny([*train, *test], seed=seed, look_ahead_mask=has_mask, **layers)
    tiny = train_tiny(tiny, train, steps=steps, seed=seed)
    written = translate_tiny(tiny, [pair[0] for pair in test])
    # Either word for the verb counts, as no model can know which was drawn.
    right = sum(is_translation(text, pair) for text, pair in zip(written, test, strict=True))
    # A single update's loss depends on its batch.
    tail = tiny.losses[-max(1, steps // 20) :]
    return {
        "floor": least_when_fair(train),
        "losses": thin(tiny.losses, every),
        "training_loss": sum(tail) / len(tail),
        "test_loss": loss_on(tiny, test),
        "exact": right / len(test),
        "weight_on_next": weight_on_next(tiny, test),
        "example": (*test[0], written[0]),
    }


def hardest(cells: Cells, model: str) -> dict[str, float]:
    """Take the numbers of the depth that is hardest on the claim."""
    # The claim says that without the mask the loss is low, few sentences are right, and the weight
    # on the next token is high: hardest on it is whatever says so least.
    above, below = (min, max) if model == MASKED else (max, min)
    found = {}
    for name, choose in (("training_loss", above), ("exact", above), ("weight_on_next", below)):
        found[name] = choose(
            cells.mean(name, depth=depth, model=model) for depth in cells.values("depth")
        )
    return found


def judge(cells: Cells) -> Verdict:
    """Judge by the loss that no fair model can reach, by decoding, and by the weights."""
    floor = cells.mean("floor")
    cheat = hardest(cells, OPEN)
    fair = hardest(cells, MASKED)
    rule = (
        f"it cheats if its loss is below {CHEATS:.0%} of the least that is possible without seeing "
        f"the answer, and the masked model's is not; it cannot translate if less than {LOST:.0%} "
        "of its sentences are right, and at least twice as many of the masked model's; holds if "
        "both are so"
    )
    numbers = (
        f"loss {cheat['training_loss']:.4f} without and {fair['training_loss']:.4f} with the mask, "
        f"least possible {floor:.4f}; right {cheat['exact']:.0%} and {fair['exact']:.0%}; weight "
        f"on the next token {cheat['weight_on_next']:.0%} and {fair['weight_on_next']:.0%}"
    )
    cheats = cheat["training_loss"] < CHEATS * floor <= fair["training_loss"]
    is_lost = cheat["exact"] < LOST and fair["exact"] >= 2 * cheat["exact"] and fair["exact"] > 0
    reason = (
        f"Without the mask the loss falls to {cheat['training_loss']:.4f}. With it, to "
        f"{fair['training_loss']:.4f}. It counts as cheating below {CHEATS * floor:.4f}, a quarter "
        "of the lowest loss that is possible without seeing the next word. Of new sentences "
        f"{cheat['exact']:.0%} are then right. To hold, it must be less than {LOST:.0%}, and at "
        f"most half as many as with the mask, where it is {fair['exact']:.0%}."
    )
    return decide(rule, numbers, reason, fails=not (cheats and is_lost), unless={})


def least_when_fair(pairs: list[Pair]) -> float:
    """Compute the loss, in nats a word, that no model without a view of the answer undercuts.

    A drawn verb costs log 2 and the other words nothing, if the model is perfect.
    """
    words = sum(len(french.split()) + 1 for _, french in pairs)
    return math.log(2) * len(pairs) / words


@torch.inference_mode()
def weight_on_next(tiny: Tiny, pairs: list[Pair]) -> float:
    """Average the weight on the next token over rows, for the head of the decoder with the most."""
    keeper = Keeper(("weights",), ("decoder.0.self",))
    batch = tiny.batch(pairs)
    # As in training: without the look-ahead mask, padding must be hidden.
    hidden = None if tiny.model.config.look_ahead_mask else batch.target_mask_BT
    tiny.model(
        batch.source_BS,
        batch.target_in_BT,
        batch.source_mask_BS,
        target_mask_BT=hidden,
        probe=keeper,
    )
    weights_BHTM = keeper.found["decoder.0.self.weights"]
    next_BHX = weights_BHTM.diagonal(offset=1, dim1=-2, dim2=-1)
    has_next_BX = batch.target_mask_BT[:, 1:]
    sums_H = (next_BHX * has_next_BX[:, None]).sum(dim=(0, 2))
    # The head that looks ahead most: one is enough to cheat.
    return float((sums_H / has_next_BX.sum()).max())


def _example(cells: Cells) -> str:
    english, french, masked = cells.all("example", model=MASKED)[0]
    opened = cells.all("example", model=OPEN)[0][-1]
    return f"“{english}” is “{french}”. With the mask: “{masked}”. Without: “{opened[:60]}”."


def _table(cells: Cells, floor: float) -> ResultTable:
    return cells.table(
        "Loss in nats a word, sentences translated, weight on the next token in the decoder's "
        "first layer, head with the most",
        ("depth", "model"),
        (
            Column("training loss", "training_loss", ".4f"),
            Column("test loss", "test_loss", ".4f"),
            Column("right, %", "exact", ".0f", 100),
            Column("next token, %", "weight_on_next", ".0f", 100),
        ),
        head=("layers", ""),
        more=[(None, "least when fair", floor, floor, None, None)],
    )


def _panels(cells: Cells, floor: float, every: int) -> tuple[Panel, Panel]:
    updates = cells.updates("losses", every)
    ends = (0.0 if every > 1 else 1.0, every * float(len(updates)))
    lines = {
        f"{model}, {depth} layers" if depth > 1 else model: {"model": model, "depth": depth}
        for model in (OPEN, MASKED)
        for depth in cells.values("depth")
    }
    return (
        cells.panel(
            "Training loss",
            ("update", "nats a word"),
            lines,
            updates,
            "losses",
            more=[Series("least possible when fair", ends, (floor, floor), "faint")],
            y_log=True,
        ),
        cells.panel(
            "New sentences translated",
            ("layers", "% right"),
            {model: {"model": model} for model in (OPEN, MASKED)},
            "depth",
            "exact",
            scale=100,
            kind="bars",
            y_range=PERCENT,
        ),
    )
