"""``show-me-the-money``: from embeddings to a decoding loop, and the same rows in one pass.

The notes print embeddings, positions and a filter S; they describe decoding without numbers. The
small model that decodes here is ours: no projections (Q, K and V are the input itself), one
encoder and one decoder layer of the notes' attention with add and norm, no feed-forward network,
and an output layer that knows this one answer by heart.

Source:
    Notes "Transformers", sections 3.2, 3.3, 3.6, 4.1 and 4.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from pellucid.attention.masks import causal_mask
from pellucid.attention.positions import sinusoidal_positions
from pellucid.by_hand.example_numbers import read_matrix
from pellucid.by_hand.printed import (
    NOT_ON_YOUR_LIFE_TOKENS,
    SHOW_ME_THE_MONEY_TOKENS,
    find_numbers,
)
from pellucid.by_hand.sheet import (
    AttentionByHand,
    NamedMatrix,
    Part,
    Step,
    WorkedExample,
    attend_by_hand,
    make_given,
    make_step,
    make_weight_step,
    matrix,
    named_matrix,
    write_example,
    write_number,
    write_part,
)
from pellucid.by_hand.small_translator import (
    END,
    NUM_STEPS,
    PAIRS,
    START,
    TARGET_WORDS,
    WIDTH,
    Learned,
    learn,
    train_answers,
)
from pellucid.by_hand.written_stages import Product, stage_steps

_READ = NOT_ON_YOUR_LIFE_TOKENS[:-1]
_PREDICTED = NOT_ON_YOUR_LIFE_TOKENS[1:]
_SOURCE = SHOW_ME_THE_MONEY_TOKENS
_SURENESS = 4.0

_QUESTION, _ANSWER = PAIRS[0]
_READ_AFTER = (START, *_ANSWER.split())
_NUM_TOKENS = sum(len(target.split()) + 1 for _, target in PAIRS)
_BAR = 40


@dataclass(frozen=True, eq=False)
class DecoderPass:
    """The results of one run of the decoder over some rows, up to its states."""

    read: tuple[str, ...]
    input_TD: Tensor
    itself: AttentionByHand
    across: AttentionByHand
    states_TD: Tensor


def show_me_the_money(watch: Callable[[int, float], None] | None = None) -> WorkedExample:
    """Work out the encoder's input, its attention, the decoding loop, and the loop in one pass.

    Then a small model is trained, with and without the mask.

    Args:
        watch: is called with the step and the loss while the model is trained.
    """
    x_SD = _add_positions(read_matrix("show-me-the-money.embeddings"))
    encoder = attend_by_hand(x_SD, x_SD, x_SD, query_names=_SOURCE)
    memory_SD = _add_and_norm(x_SD, encoder.context_LE)
    forced = run_decoder(_READ, memory_SD)
    turns = decode_by_heart(memory_SD, forced.states_TD)
    return write_example(
        "show-me-the-money",
        _input_part(),
        _filter_part(),
        _encoder_part(encoder, memory_SD),
        *(_turn_part(index, turn, forced.states_TD) for index, turn in enumerate(turns)),
        _loop_part(turns, forced.states_TD),
        *_forced_parts(forced, turns),
        _unmasked_part(forced, memory_SD),
        *trained_parts(*_train(watch)),
    )


def _train(watch: Callable[[int, float], None] | None) -> tuple[Learned, Learned]:
    """Train with and without the mask; only watched training is done again."""
    if watch is None:
        return learn(True), learn(False)
    masked, unmasked = (train_answers(has_mask=has, watch=watch) for has in (True, False))
    return masked, unmasked


def run_decoder(read: Sequence[str], memory_SD: Tensor, *, has_mask: bool = True) -> DecoderPass:
    """Run the decoder over all rows at once, up to the states before the output layer.

    Args:
        read: the decoder's input, tokens from ``<start>`` on.
        memory_SD: the encoder's output.
        has_mask: False lets a row see those after it.
    """
    embeddings_RD = read_matrix("show-me-the-money.target_embeddings")
    input_TD = _add_positions(embeddings_RD[[_READ.index(token) for token in read]])
    # Without the mask, rows of the one pass would see the answer.
    mask_LM = causal_mask(len(read))[0, 0] if has_mask else None
    itself = attend_by_hand(input_TD, input_TD, input_TD, query_names=read, mask_LM=mask_LM)
    after_TD = _add_and_norm(input_TD, itself.context_LE)
    across = attend_by_hand(after_TD, memory_SD, memory_SD, query_names=read, key_names=_SOURCE)
    states_TD = _add_and_norm(after_TD, across.context_LE)
    return DecoderPass(tuple(read), input_TD, itself, across, states_TD)


def decode_by_heart(memory_SD: Tensor, known_TD: Tensor) -> tuple[DecoderPass, ...]:
    """Decode greedily: each turn reads all tokens so far, and its last row chooses the next.

    Args:
        memory_SD: the encoder's output.
        known_TD: the states that the output layer knows, one for each token it can predict.
    """
    read = [_READ[0]]
    turns: list[DecoderPass] = []
    while len(turns) < len(_READ):
        turns.append(run_decoder(read, memory_SD))
        chosen = _choose(_probabilities(turns[-1].states_TD, known_TD)[-1])
        if chosen == _PREDICTED[-1]:
            break
        read.append(chosen)
    return tuple(turns)


def _probabilities(states_TD: Tensor, known_VD: Tensor) -> Tensor:
    """Apply a linear layer and a softmax: the nearer a token's known state, the likelier it is."""
    bias_V = -known_VD.square().sum(dim=-1) / 2
    return (_SURENESS * (states_TD @ known_VD.T + bias_V)).softmax(dim=-1)


def _choose(probabilities_V: Tensor) -> str:
    return _PREDICTED[int(probabilities_V.argmax())]


def _add_positions(embeddings_LD: Tensor) -> Tensor:
    return embeddings_LD + sinusoidal_positions(*embeddings_LD.shape, dtype=embeddings_LD.dtype)


def _add_and_norm(x_LD: Tensor, context_LD: Tensor | None) -> Tensor:
    """Apply equations 15 and 16: without gain and bias, with the variance of the whole row."""
    total_LD = x_LD if context_LD is None else x_LD + context_LD
    return F.layer_norm(total_LD, total_LD.shape[-1:])


def _input_part() -> Part:
    embeddings_SD = read_matrix("show-me-the-money.embeddings")
    positions_SD = sinusoidal_positions(4, 4, dtype=embeddings_SD.dtype)
    names = tuple(f"{word} ({position})" for position, word in enumerate(_SOURCE))
    return write_part(
        "show-me-the-money.input",
        make_given("X′", named_matrix(_SOURCE, embeddings_SD, "x"), "one embedding a word"),
        make_step(
            "P",
            "sin(i ÷ 10000^(2j/4)), cos(i ÷ 10000^(2j/4)) for the pairs j = 0, 1",
            named_matrix(names, positions_SD, "p"),
            printed=find_numbers("PE"),
        ),
        make_step(
            "X",
            "X′ + P",
            named_matrix(_SOURCE, embeddings_SD + positions_SD, "x"),
            printed=find_numbers("equation 5, “money”"),
        ),
    )


def _filter_part() -> Part:
    weights = NamedMatrix(_SOURCE, _SOURCE, read_matrix("show-me-the-money.filter"))
    return write_part(
        "show-me-the-money.filter",
        make_step("weights", "S, printed", weights, printed=find_numbers("section 3.3")),
    )


def _encoder_part(encoder: AttentionByHand, memory_SD: Tensor) -> Part:
    normed = make_step(
        "add and norm",
        "LayerNorm(X + context)",
        named_matrix(_SOURCE, memory_SD, "m"),
        note="Without gain and bias, with the population variance. This goes into every decoder "
        "layer.",
    )
    return write_part("show-me-the-money.encoder", *stage_steps(encoder), normed, attention=encoder)


def _turn_part(index: int, turn: DecoderPass, known_TD: Tensor) -> Part:
    read = turn.read
    last = turn.read[-1:]
    probabilities_TV = _probabilities(turn.states_TD, known_TD)[-1:]
    chosen = _choose(probabilities_TV[0])
    end = " That ends the loop." if chosen == _PREDICTED[-1] else ""
    itself = NamedMatrix(read, read, turn.itself.weights_LM)
    across = NamedMatrix(read, _SOURCE, turn.across.weights_LM)
    return write_part(
        f"show-me-the-money.{'turns' if index else 'turn'}",
        make_step("input", "embedding + position", named_matrix(read, turn.input_TD, "y")),
        make_step("weights", "masked self-attention, every row", itself),
        make_step("weights", "cross-attention to the encoder's output, every row", across),
        make_step("state", "after add and norm", named_matrix(read, turn.states_TD, "s")),
        make_step(
            "probabilities",
            f"softmax of the output layer, only the last row (reads {last[0]})",
            NamedMatrix(last, _PREDICTED, probabilities_TV),
            lines=[f"reads {last[0]} → predicts {chosen}.{end}"],
        ),
        index=index + 1,
        read=" ".join(read),
        last=read[-1],
    )


def _loop_part(turns: Sequence[DecoderPass], known_TD: Tensor) -> Part:
    chosen = [_choose(_probabilities(turn.states_TD, known_TD)[-1]) for turn in turns]
    lines = [
        f"turn {index}: {' '.join(turn.read)} → {token}"
        for index, (turn, token) in enumerate(zip(turns, chosen, strict=True), start=1)
    ]
    return write_part(
        "show-me-the-money.loop", make_step("decoder's input → next token", lines=lines)
    )


def _forced_parts(forced: DecoderPass, turns: Sequence[DecoderPass]) -> tuple[Part, ...]:
    probabilities_TV = _probabilities(forced.states_TD, forced.states_TD)
    loss = -probabilities_TV.diagonal().log()
    rows_TV = torch.cat([_probabilities(turn.states_TD, forced.states_TD)[-1:] for turn in turns])
    apart = float((rows_TV - probabilities_TV[: len(rows_TV)]).abs().max())
    lines = [
        f"reads {read} → predicts {said}: {write_number(value)}"
        for read, said, value in zip(forced.read, _PREDICTED, loss.tolist(), strict=True)
    ]
    probabilities = NamedMatrix(_READ, _PREDICTED, probabilities_TV)
    return (
        write_part(
            "show-me-the-money.forced_itself", *stage_steps(forced.itself), attention=forced.itself
        ),
        write_part(
            "show-me-the-money.forced_across", *stage_steps(forced.across), attention=forced.across
        ),
        write_part(
            "show-me-the-money.forced_predicted",
            make_step("state", "after add and norm", named_matrix(_READ, forced.states_TD, "s")),
            make_step("probabilities", "softmax of the output layer", probabilities),
            make_step(
                "cross-entropy",
                "−ln of the right token's probability, averaged over the sequence",
                lines=[*lines, f"average: {write_number(float(loss.mean()))}"],
            ),
            apart=write_number(apart),
        ),
    )


def _unmasked_part(forced: DecoderPass, memory_SD: Tensor) -> Part:
    free = run_decoder(_READ, memory_SD, has_mask=False)
    apart = float((free.states_TD - forced.states_TD).abs().max())
    weights = NamedMatrix(_READ, _READ, free.itself.weights_LM)
    return write_part(
        "show-me-the-money.unmasked",
        make_step("weights", "self-attention without a mask", weights),
        apart=write_number(apart),
    )


def trained_parts(masked: Learned, unmasked: Learned) -> tuple[Part, ...]:
    """Show two trainings, with and without the look-ahead mask, and how each decodes."""
    return (
        _task_part(),
        _loss_part(masked),
        _trained_loop_part(masked),
        _itself_part(masked),
        write_part("show-me-the-money.trained_answers", _answer_step(masked)),
        _cheating_part(masked, unmasked),
        _glance_part(unmasked),
        write_part("show-me-the-money.lost", _answer_step(unmasked)),
    )


def _task_part() -> Part:
    lines = [f"{source} → {target}" for source, target in PAIRS]
    return write_part(
        "show-me-the-money.trained_task",
        make_step("pairs", "question → answer", lines=lines),
        width=WIDTH,
    )


def _loss_part(masked: Learned) -> Part:
    chance = math.log(len(TARGET_WORDS))
    lines = [
        f"step {step}: {'█' * round(_BAR * min(loss / chance, 1.0))} {loss:.4f}"
        for step, loss in masked.losses.items()
    ]
    right = f"{masked.num_forced_right} of {_NUM_TOKENS}"
    return write_part(
        "show-me-the-money.loss",
        make_step("loss", f"{NUM_STEPS} steps of Adam", lines=lines),
        make_step("rows predicted right", "the right words are read", lines=[right]),
        words=len(TARGET_WORDS),
        chance=write_number(chance),
    )


def _trained_loop_part(masked: Learned) -> Part:
    turns = masked.decode(_QUESTION)
    lines = [
        f"reads {' '.join(turn.read)} → predicts {turn.chosen} "
        f"({write_number(round(float(turn.probabilities_V.max()), 4))})"
        for turn in turns
    ]
    names = tuple(f"after {turn.read[-1]}" for turn in turns)
    rows = matrix([turn.probabilities_V.tolist() for turn in turns])
    return write_part(
        "show-me-the-money.trained_loop",
        make_step("loop", "all words so far → the next one", lines=lines),
        make_step(
            "probabilities", "of the last row of each turn", NamedMatrix(names, TARGET_WORDS, rows)
        ),
        source=_QUESTION,
    )


def _itself_part(masked: Learned) -> Part:
    itself, _ = masked.attend(_QUESTION, _READ_AFTER)
    x_TD = masked.decoder_input(_READ_AFTER)
    weights = {role: masked.weights[f"itself {role}"] for role in "qkv"}
    stages = stage_steps(
        itself,
        products={
            name: Product(_READ_AFTER, x_TD, weights[name[0]]) for name in ("query", "key", "value")
        },
        formulas={name: f"x · W^{name[0]}" for name in ("query", "key", "value")},
    )
    rows = named_matrix(_READ_AFTER, x_TD, "x")
    inputs = make_given("x", rows, "learned embedding + position")
    given = [make_weight_step(f"W^{role}", weights[role], "learned") for role in "qkv"]
    return write_part("show-me-the-money.trained_itself", inputs, *given, *stages, attention=itself)


def _cheating_part(masked: Learned, unmasked: Learned) -> Part:
    rows = [[masked.losses[step], unmasked.losses[step]] for step in masked.losses]
    names = tuple(f"step {step}" for step in masked.losses)
    losses = NamedMatrix(names, ("with mask", "without"), matrix(rows).round(decimals=4))
    lines = [
        f"with the mask: {masked.num_forced_right} of {_NUM_TOKENS}",
        f"without: {unmasked.num_forced_right} of {_NUM_TOKENS}",
    ]
    return write_part(
        "show-me-the-money.cheating",
        make_step("loss", "by step", losses),
        make_step("rows predicted right", "the right words are read", lines=lines),
    )


def _glance_part(unmasked: Learned) -> Part:
    itself, _ = unmasked.attend(_QUESTION, _READ_AFTER)
    weights = NamedMatrix(itself.query_names, itself.key_names, itself.weights_LM)
    ahead = itself.weights_LM.triu(1).sum(dim=-1).tolist()[:-1]
    lines = [
        f"{name}: {write_number(share)}"
        for name, share in zip(itself.query_names, ahead, strict=False)
    ]
    return write_part(
        "show-me-the-money.glance",
        make_step("weights", "self-attention of the decoder without a mask", weights),
        make_step("share of later rows", "the weights right of the diagonal, added", lines=lines),
        start=START,
        glance=float(itself.weights_LM[0, 1:].sum()),
    )


def _answer_step(learned: Learned) -> Step:
    answers = [(source, target, learned.answer(source)) for source, target in PAIRS]
    lines = [
        f"{source} → {answer or END}" + ("" if answer == target else f" (not: {target})")
        for source, target, answer in answers
    ]
    right = sum(answer == target for _, target, answer in answers)
    return make_step("answers", f"{right} of {len(PAIRS)} right", lines=lines)
