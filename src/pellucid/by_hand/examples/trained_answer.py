"""Parts of ``show-me-the-money`` whose weights are trained while the reader waits.

Source:
    Notes "Transformers", sections 4.1 and 4.2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from pellucid.by_hand.learning import (
    END,
    NUM_STEPS,
    PAIRS,
    START,
    TARGET_WORDS,
    WIDTH,
    Learned,
)
from pellucid.by_hand.sheet import (
    AttentionByHand,
    Part,
    Step,
    Table,
    make_step,
    make_weight_step,
    matrix,
    table,
    write_number,
)
from pellucid.by_hand.stages import Product, stage_steps

_SOURCE, _TARGET = PAIRS[0]
_READ = (START, *_TARGET.split())
_NUM_TOKENS = sum(len(target.split()) + 1 for _, target in PAIRS)
_BAR = 40


def trained_parts(masked: Learned, unmasked: Learned) -> tuple[Part, ...]:
    """Show two trainings, with and without the look-ahead mask, and how each decodes."""
    return (
        _task_part(),
        _loss_part(masked),
        _loop_part(masked),
        _itself_part(masked),
        _answers_part(masked),
        _cheating_part(masked, unmasked),
        _glance_part(unmasked),
        _lost_part(unmasked),
    )


def _task_part() -> Part:
    lines = [f"{source} → {target}" for source, target in PAIRS]
    return Part(
        "Trained before your eyes: the task",
        "So far the weights were ours. Now they are drawn at random and trained on eight pairs of "
        f"ours, the notes' pair first. One encoder and one decoder layer, width {WIDTH}, one "
        "head, add and norm, no feed-forward network. The answers share their words, so that the "
        "next word follows only from the question and all words so far.",
        (make_step("pairs", "question → answer", lines=lines),),
    )


def _loss_part(masked: Learned) -> Part:
    chance = math.log(len(TARGET_WORDS))
    lines = [
        f"step {step}: {'█' * round(_BAR * min(loss / chance, 1.0))} {loss:.4f}"
        for step, loss in masked.losses.items()
    ]
    return Part(
        "The loss falls",
        "The loss is the cross-entropy: −ln of the probability of the right next word, averaged. "
        f"A guess among {len(TARGET_WORDS)} words would give ln {len(TARGET_WORDS)} = "
        f"{write_number(chance)}. All rows of all answers are computed in one pass (teacher "
        "forcing); the mask keeps a row from seeing the word that it is to predict.",
        (
            make_step("loss", f"{NUM_STEPS} steps of Adam", lines=lines),
            make_step(
                "rows predicted right",
                "the right words are read",
                lines=[f"{masked.num_forced_right} of {_NUM_TOKENS}"],
            ),
        ),
    )


def _loop_part(masked: Learned) -> Part:
    turns = masked.decode(_SOURCE)
    lines = [
        f"reads {' '.join(turn.read)} → predicts {turn.chosen} "
        f"({write_number(round(float(turn.probabilities_V.max()), 4))})"
        for turn in turns
    ]
    names = tuple(f"after {turn.read[-1]}" for turn in turns)
    rows = matrix([turn.probabilities_V.tolist() for turn in turns])
    return Part(
        f"The loop with trained weights: “{_SOURCE}”",
        "The right words are not given now: each turn reads its own words so far, and "
        "the most probable token of the last row is chosen, until it is the end token.",
        (
            make_step("loop", "all words so far → the next one", lines=lines),
            make_step(
                "probabilities", "of the last row of each turn", Table(names, TARGET_WORDS, rows)
            ),
        ),
    )


def _itself_part(masked: Learned) -> Part:
    itself, _ = masked.attend(_SOURCE, _READ)
    x_TD = masked.decoder_input(_READ)
    weights = {role: masked.weights[f"itself {role}"] for role in "qkv"}
    stages = stage_steps(
        itself,
        products={
            name: Product(_READ, x_TD, weights[name[0]]) for name in ("query", "key", "value")
        },
        formulas={name: f"x · W^{name[0]}" for name in ("query", "key", "value")},
    )
    rows = table(_READ, x_TD, "x")
    inputs = make_step("x", "learned embedding + position", rows, is_given=True)
    given = [make_weight_step(f"W^{role}", weights[role], "learned") for role in "qkv"]
    return Part(
        "Masked self-attention of the decoder, with learned projections",
        "No one chose these numbers; gradients did. Multiplied out they are as plain as those "
        "before: x·W, products, shares, a sum.",
        (inputs, *given, *stages),
        itself,
    )


def _answers_part(masked: Learned) -> Part:
    return Part(
        "All eight answers, decoded",
        "The loop from <start> to <end> for every question. The weights know all of them by "
        "heart, which is all that eight pairs can teach.",
        (_answer_step(masked),),
    )


def _cheating_part(masked: Learned, unmasked: Learned) -> Part:
    rows = [[masked.losses[step], unmasked.losses[step]] for step in masked.losses]
    names = tuple(f"step {step}" for step in masked.losses)
    losses = Table(names, ("with mask", "without"), matrix(rows).round(decimals=4))
    lines = [
        f"with the mask: {masked.num_forced_right} of {_NUM_TOKENS}",
        f"without: {unmasked.num_forced_right} of {_NUM_TOKENS}",
    ]
    return Part(
        "The same training without the mask: the loss falls to 0",
        "Same pairs, same first weights, same steps; only the mask is gone. The loss falls "
        "toward 0 as well. Judged by its loss, nothing is wrong with this model.",
        (
            make_step("loss", "by step", losses),
            make_step("rows predicted right", "the right words are read", lines=lines),
        ),
    )


def _glance_part(unmasked: Learned) -> Part:
    itself, _ = unmasked.attend(_SOURCE, _READ)
    glance = float(itself.weights_LM[0, 1:].sum())
    return Part(
        "Without the mask: where the rows look",
        "Each row should predict the word that the next row reads, and now it can look there. "
        "Weights above the diagonal are glances at words that do not exist yet when decoding: "
        f"the row of {START} gives them {glance:.2f} of its attention.",
        (_weights_step(itself), *_ahead_step(itself)),
    )


def _weights_step(itself: AttentionByHand) -> Step:
    weights = Table(itself.query_names, itself.key_names, itself.weights_LM)
    return make_step("weights", "self-attention of the decoder without a mask", weights)


def _ahead_step(itself: AttentionByHand) -> Iterator[Step]:
    ahead = itself.weights_LM.triu(1).sum(dim=-1).tolist()[:-1]
    lines = [
        f"{name}: {write_number(share)}"
        for name, share in zip(itself.query_names, ahead, strict=False)
    ]
    yield make_step("share of later rows", "the weights right of the diagonal, added", lines=lines)


def _lost_part(unmasked: Learned) -> Part:
    return Part(
        "Without the mask: decoding is lost",
        "The loop begins with <start>, and there is no next row to glance at. The decoder has "
        "learned to copy, not to answer. A training loss says nothing if training shows what "
        "decoding cannot see.",
        (_answer_step(unmasked),),
    )


def _answer_step(learned: Learned) -> Step:
    answers = [(source, target, learned.answer(source)) for source, target in PAIRS]
    lines = [
        f"{source} → {answer or END}" + ("" if answer == target else f" (not: {target})")
        for source, target, answer in answers
    ]
    right = sum(answer == target for _, target, answer in answers)
    return make_step("answers", f"{right} of {len(PAIRS)} right", lines=lines)
