"""``show-me-the-money``: from embeddings to a decoding loop, and the same rows in one pass.

The notes print embeddings, positions and a filter S; they describe decoding without numbers. The
small model that decodes here is ours: no projections (Q, K and V are the input itself), one
encoder and one decoder layer of the notes' attention with add and norm, no feed-forward network,
and an output layer that knows this one answer by heart.

Source:
    Notes "Transformers", sections 3.2, 3.3, 3.6, 4.1 and 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from pellucid.attention.masks import causal_mask
from pellucid.attention.positions import sinusoidal_positions
from pellucid.by_hand.examples.trained_answer import trained_parts
from pellucid.by_hand.learning import Learned, learn, train_answers
from pellucid.by_hand.printed import find_numbers
from pellucid.by_hand.sheet import (
    AttentionByHand,
    Example,
    Part,
    Table,
    attend_by_hand,
    make_step,
    matrix,
    table,
    write_number,
)
from pellucid.by_hand.stages import stage_steps
from pellucid.by_hand.texts import (
    ATTENTION_FILTER,
    NOT_ON_YOUR_LIFE_TOKENS,
    SHOW_ME_THE_MONEY_EMBEDDINGS,
    SHOW_ME_THE_MONEY_TOKENS,
)

TARGET_EMBEDDINGS = (
    (0.05, 0.11, 0.92, 0.37),
    (0.74, 0.18, 0.25, 0.61),
    (0.33, 0.86, 0.07, 0.52),
    (0.91, 0.42, 0.58, 0.16),
    (0.27, 0.69, 0.81, 0.94),
)
"""Ours, one for each token that the decoder reads: ``<start>``, not, on, your, life."""

_READ, _PREDICTED = NOT_ON_YOUR_LIFE_TOKENS[:-1], NOT_ON_YOUR_LIFE_TOKENS[1:]
_SOURCE = SHOW_ME_THE_MONEY_TOKENS
_SURENESS = 4.0


@dataclass(frozen=True, eq=False)
class DecoderPass:
    """The results of one run of the decoder over some rows, up to its states."""

    read: tuple[str, ...]
    input_TD: Tensor
    itself: AttentionByHand
    after_itself_TD: Tensor
    across: AttentionByHand
    states_TD: Tensor


def show_me_the_money(watch: Callable[[int, float], None] | None = None) -> Example:
    """Work out the encoder's input, its attention, the decoding loop, and the loop in one pass.

    Then a small model is trained, with and without the mask.

    Args:
        watch: is called with the step and the loss while the model is trained.
    """
    x_SD = _add_positions(matrix(SHOW_ME_THE_MONEY_EMBEDDINGS))
    encoder = attend_by_hand(x_SD, x_SD, x_SD, query_names=_SOURCE)
    memory_SD = _add_and_norm(x_SD, encoder.context_LE)
    forced = run_decoder(_READ, memory_SD)
    turns = decode_by_heart(memory_SD, forced.states_TD)
    return Example(
        name="show-me-the-money",
        title="“Show me the money”, answered by “Not on your life!”",
        text='Notes "Transformers"',
        note="Embeddings and S are those of the notes. They describe decoding in words only; the "
        "small model that decodes here is ours: queries, keys and values are the input itself, "
        "one encoder and one decoder layer with add and norm, no feed-forward network, and an "
        "output layer that knows this one answer by heart. Its numbers show how decoding goes, "
        "not what a trained model would say. The last pages train one, in about two seconds.",
        parts=(
            _input_part(),
            _filter_part(),
            _encoder_part(encoder, memory_SD),
            *(_turn_part(index, turn, forced.states_TD) for index, turn in enumerate(turns)),
            _loop_part(turns, forced.states_TD),
            *_forced_parts(forced, turns),
            _unmasked_part(forced, memory_SD),
            *trained_parts(*_train(watch)),
        ),
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
    embeddings = matrix([TARGET_EMBEDDINGS[_READ.index(token)] for token in read])
    input_TD = _add_positions(embeddings)
    mask_LM = causal_mask(len(read))[0, 0] if has_mask else None
    itself = attend_by_hand(input_TD, input_TD, input_TD, query_names=read, mask_LM=mask_LM)
    after_TD = _add_and_norm(input_TD, itself.context_LE)
    across = attend_by_hand(after_TD, memory_SD, memory_SD, query_names=read, key_names=_SOURCE)
    states_TD = _add_and_norm(after_TD, across.context_LE)
    return DecoderPass(tuple(read), input_TD, itself, after_TD, across, states_TD)


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
    embeddings_SD = matrix(SHOW_ME_THE_MONEY_EMBEDDINGS)
    positions_SD = sinusoidal_positions(4, 4, dtype=embeddings_SD.dtype)
    names = tuple(f"{word} ({position})" for position, word in enumerate(_SOURCE))
    return Part(
        "The encoder's input: X = X′ + P",
        "A word's embedding plus the encoding of its place. Positions count from 0, and angles are "
        "in radians. (The example positions writes every angle out.)",
        (
            make_step(
                "X′", "one embedding a word", table(_SOURCE, embeddings_SD, "x"), is_given=True
            ),
            make_step(
                "P",
                "sin(i ÷ 10000^(2j/4)), cos(i ÷ 10000^(2j/4)) for the pairs j = 0, 1",
                table(names, positions_SD, "p"),
                printed=find_numbers("PE"),
            ),
            make_step(
                "X",
                "X′ + P",
                table(_SOURCE, embeddings_SD + positions_SD, "x"),
                printed=find_numbers("equation 5, “money”"),
            ),
        ),
        corrections=(
            "The notes say that the frequency rises as i gets smaller; it rises as j does.",
        ),
    )


def _filter_part() -> Part:
    weights = Table(_SOURCE, _SOURCE, matrix(ATTENTION_FILTER))
    return Part(
        "The attention filter S as it is printed",
        "A row says how much its word attends to each word. No queries, keys or scores are given "
        "for it, so it cannot be recomputed. It can be checked: its rows sum to 1, and the "
        "diagonal is the largest of each row.",
        (make_step("weights", "S, printed", weights, printed=find_numbers("section 3.3")),),
    )


def _encoder_part(encoder: AttentionByHand, memory_SD: Tensor) -> Part:
    normed = make_step(
        "add and norm",
        "LayerNorm(X + context)",
        table(_SOURCE, memory_SD, "m"),
        note="Without gain and bias, with the population variance. This goes into every decoder "
        "layer.",
    )
    return Part(
        "The encoder's self-attention, with X for queries, keys and values",
        "Without matrices a word's vector is query, key and value at once. Attention mixes the "
        "rows; add and norm keeps each word's own row in the sum.",
        (*stage_steps(encoder), normed),
        encoder,
    )


def _turn_part(index: int, turn: DecoderPass, known_TD: Tensor) -> Part:
    read, last = turn.read, turn.read[-1:]
    probabilities_TV = _probabilities(turn.states_TD, known_TD)[-1:]
    chosen = _choose(probabilities_TV[0])
    end = " That ends the loop." if chosen == _PREDICTED[-1] else ""
    itself = Table(read, read, turn.itself.weights_LM)
    across = Table(read, _SOURCE, turn.across.weights_LM)
    return Part(
        f"Turn {index + 1}: the decoder's input is {' '.join(read)}",
        "The decoder reads all tokens so far, attends to them and to the question, and its last "
        "row chooses the next token."
        if index == 0
        else f"One token more, {read[-1]}. Its row is new; the mask keeps the rows before as they "
        "were.",
        (
            make_step("input", "embedding + position", table(read, turn.input_TD, "y")),
            make_step("weights", "masked self-attention, every row", itself),
            make_step("weights", "cross-attention to the encoder's output, every row", across),
            make_step("state", "after add and norm", table(read, turn.states_TD, "s")),
            make_step(
                "probabilities",
                f"softmax of the output layer, only the last row (reads {last[0]})",
                Table(last, _PREDICTED, probabilities_TV),
                lines=[f"reads {last[0]} → predicts {chosen}.{end}"],
            ),
        ),
    )


def _loop_part(turns: Sequence[DecoderPass], known_TD: Tensor) -> Part:
    chosen = [_choose(_probabilities(turn.states_TD, known_TD)[-1]) for turn in turns]
    lines = [
        f"turn {index}: {' '.join(turn.read)} → {token}"
        for index, (turn, token) in enumerate(zip(turns, chosen, strict=True), start=1)
    ]
    return Part(
        "The loop in short",
        "Each turn reads everything so far: t rows in, t rows out, of which the last is used.",
        (make_step("decoder's input → next token", lines=lines),),
        corrections=(
            "The notes say “one token to one token”; that holds only with a cache of keys and "
            "values.",
        ),
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
    probabilities = Table(_READ, _PREDICTED, probabilities_TV)
    return (
        Part(
            "Teacher-forced: masked self-attention of all rows in one pass",
            "The whole correct answer is the input, shifted by one; the mask keeps each row from "
            "seeing what it is to predict.",
            stage_steps(forced.itself),
            forced.itself,
        ),
        Part(
            "Teacher-forced: cross-attention of all rows",
            "Queries are the rows after add and norm, keys and values the encoder's output.",
            stage_steps(forced.across),
            forced.across,
        ),
        Part(
            "Teacher-forced: what each row predicts",
            f"Largest difference from the rows of the loop: {write_number(apart)}.",
            (
                make_step("state", "after add and norm", table(_READ, forced.states_TD, "s")),
                make_step("probabilities", "softmax of the output layer", probabilities),
                make_step(
                    "cross-entropy",
                    "−ln of the right token's probability, averaged over the sequence",
                    lines=[*lines, f"average: {write_number(float(loss.mean()))}"],
                ),
            ),
        ),
    )


def _unmasked_part(forced: DecoderPass, memory_SD: Tensor) -> Part:
    free = run_decoder(_READ, memory_SD, has_mask=False)
    apart = float((free.states_TD - forced.states_TD).abs().max())
    weights = Table(_READ, _READ, free.itself.weights_LM)
    return Part(
        "Without the look-ahead mask",
        "Each row would see the token that it is to predict, and its state would be another, by "
        f"up to {write_number(apart)}. Such training would be useless for decoding, where that "
        "token does not exist yet.",
        (make_step("weights", "self-attention without a mask", weights),),
    )
