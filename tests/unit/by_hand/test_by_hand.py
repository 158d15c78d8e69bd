"""Attention by hand: the examples are what their functions give, and every written sum is right."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from pellucid.attention import attend, attend_to_others, attend_with_keys, attend_with_values
from pellucid.by_hand.example_numbers import read_matrix, read_numbers
from pellucid.by_hand.examples.by_name import EXAMPLES
from pellucid.by_hand.examples.gradient import (
    GRADIENT_INPUT,
    GRADIENT_WEIGHTS,
    RATE,
    WANTED,
    attend_row,
    backward,
    loss_of,
)
from pellucid.by_hand.examples.lets_go import share_of_own_weight_first
from pellucid.by_hand.examples.not_on_your_life import not_on_your_life
from pellucid.by_hand.examples.room_number import (
    ngram_similarity,
    ngrams,
    sound_similarity,
    soundex,
)
from pellucid.by_hand.examples.show_me_the_money import decode_by_heart, run_decoder
from pellucid.by_hand.matrices import read_example
from pellucid.by_hand.row import follow_row_of
from pellucid.by_hand.sheet import (
    AttentionByHand,
    Step,
    WorkedExample,
    attend_by_hand,
    matrix,
    write_number,
)
from pellucid.errors import DataError, InputError


@cache
def worked(name: str) -> WorkedExample:
    """Work an example once: one of them trains a model."""
    return EXAMPLES[name]()


def attentions(example: WorkedExample) -> list[AttentionByHand]:
    return [part.attention for part in example.parts if part.attention is not None]


def steps(example: WorkedExample) -> Iterator[Step]:
    for part in example.parts:
        yield from part.steps


def part_of(example: WorkedExample, title: str) -> AttentionByHand:
    (found,) = (p.attention for p in example.parts if p.title == title)
    assert found is not None
    return found


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_every_attention_keeps_the_definitions(name: str) -> None:
    for a in attentions(worked(name)):
        assert a.scores_LM.dtype == torch.float64
        torch.testing.assert_close(a.scaled_LM, a.scores_LM / a.divisor)
        torch.testing.assert_close(a.weights_LM, a.exponentials_LM / a.sums_L1)
        torch.testing.assert_close(
            a.weights_LM.sum(dim=-1), torch.ones(len(a.query_names)).double()
        )
        if a.value_ME is not None and a.context_LE is not None:
            context = a.weights_LM @ a.value_ME
            context = context if a.added_LE is None else context + a.added_LE
            torch.testing.assert_close(a.context_LE, context)


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_every_printed_number_that_differs_says_why(name: str) -> None:
    for step in steps(worked(name)):
        for number in step.printed:
            assert number.printed, number.place
            assert number.is_right or (number.cause and number.largest_difference > 0), number.place


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_tables_have_a_name_for_every_row_and_column(name: str) -> None:
    for step in steps(worked(name)):
        for table in step.tables:
            assert table.values_LX.shape == (len(table.rows), len(table.columns)), step.name


def test_toy_four_forms_are_those_of_the_library() -> None:
    x, wq, wk, wv = (
        read_matrix(f"toy-four.{name}") for name in ("embeddings", "query", "key", "value")
    )
    is_other = ~torch.eye(3, dtype=torch.bool)
    first, second, third, whole, network = attentions(worked("toy-four"))
    expected = {
        attend_to_others(x): first,
        attend_with_keys(x, wq, wk, mask=is_other): second,
        attend_with_values(x, wq, wk, wv, mask=is_other): third,
        attend_with_values(x, wq, wk, wv): whole,
    }
    for library, by_hand in expected.items():
        assert by_hand.context_LE is not None
        torch.testing.assert_close(by_hand.context_LE[0], library.context[1])
    for form in (second, third):
        assert form.scores_LM[0, [0, 2]].tolist() == [40, 26]
        assert form.scaled_LM[0, [0, 2]].tolist() == [20, 13]
        assert form.weights_LM[0, [0, 2]].tolist() == pytest.approx([0.999089, 0.000911], abs=5e-7)
    assert network.scores_LM.tolist() != third.scores_LM.tolist()


@pytest.mark.parametrize(("title", "is_transposed"), [("First", False), ("Second", True)])
def test_pizza_both_readings_equal_numpy(title: str, is_transposed: bool) -> None:
    x = np.array(read_numbers("pizza.embeddings"))
    w = np.array(read_numbers("pizza.weight"))
    formula = "X·Wᵀ" if is_transposed else "X·W"
    for words, rows in (("three words", 3), ("with <EOS>", 4)):
        found = part_of(worked("pizza"), f"{title} reading, {formula}: {words}")
        q = x[:rows] @ (w.T if is_transposed else w)
        e = np.exp(q @ q.T / np.sqrt(2))
        weights = e / e.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(found.weights_LM.numpy(), weights, rtol=1e-12)
        assert found.context_LE is not None
        np.testing.assert_allclose(found.context_LE.numpy(), weights @ q, rtol=1e-12)


def test_pizza_printed_numbers_are_off_by_known_amounts() -> None:
    off = {n.place: n.largest_difference for s in steps(worked("pizza")) for n in s.printed}
    assert off["Query of “awesome”, X·W"] == pytest.approx(4.9410)
    assert off["Query of “awesome”, X·Wᵀ"] == pytest.approx(5.6238)
    assert off["row “Pizza”, X·W"] == pytest.approx(0.39852, abs=1e-6)
    assert off["final row “Pizza”, X·W"] == pytest.approx(3.835527, abs=1e-6)
    assert off["“0.38 % similar”"] == pytest.approx(37.62)


@pytest.mark.parametrize("d_key", [1, 50, 64, 100])
def test_not_on_your_life_any_d_key_equals_numpy(d_key: int) -> None:
    scores = np.array(read_numbers("not-on-your-life.scores"))
    e = np.tril(np.exp(scores / np.sqrt(d_key)))
    example = not_on_your_life(d_key)
    (attention,) = attentions(example)
    np.testing.assert_allclose(
        attention.weights_LM.numpy(), e / e.sum(axis=1, keepdims=True), rtol=1e-12, atol=1e-300
    )
    printed = {n.place: n for s in steps(example) for n in s.printed if "S′" in n.place}
    assert printed["section 4.2, S′, `not`"].computed == tuple(attention.weights_LM[1].tolist())
    assert f"computed with d_k = {d_key}" in printed["section 4.2, S′, `not`"].cause


def test_not_on_your_life_default_is_off_by_what_the_rows_say() -> None:
    off = [
        n.largest_difference
        for s in steps(worked("not-on-your-life"))
        for n in s.printed
        if "S′" in n.place
    ]
    assert off == pytest.approx([0, 0.0378, 0.0351, 0.0583, 0.0167, 0.0759], abs=5e-5)


@pytest.mark.parametrize("d_key", [0, -64, 10**7])
def test_not_on_your_life_impossible_d_key_is_refused(d_key: int) -> None:
    with pytest.raises(InputError, match=rf"is {d_key} \(d_key\)"):
        not_on_your_life(d_key)


def test_help_me_scores_are_the_printed_ones_and_weights_follow() -> None:
    first, second = attentions(worked("help-me"))
    assert first.scores_LM.tolist() == [[6, 4]]
    assert second.scores_LM.tolist() == [[3, 8]]
    assert first.weights_LM[0].tolist() == pytest.approx([0.622459, 0.377541], abs=5e-7)
    assert second.weights_LM[0].tolist() == pytest.approx([0.222700, 0.777300], abs=5e-7)
    assert first.query_LK is not None
    assert first.query_LK.shape == (1, 16)
    both = worked("help-me").parts[-1].steps[0].tables[0].values_LX
    assert first.context_LE is not None
    assert second.context_LE is not None
    torch.testing.assert_close(both, torch.cat([first.context_LE, second.context_LE]))


@pytest.mark.parametrize(
    ("name", "code"),
    [
        *(("Smith", "S530"), ("Summeth", "S530"), ("Smeeth", "S530"), ("Summer", "S560")),
        *(("Robert", "R163"), ("Rupert", "R163"), ("Rubin", "R150"), ("Ashcraft", "A261")),
        *(("Tymczak", "T522"), ("Pfister", "P236"), ("Honeyman", "H555"), ("Lee", "L000")),
    ],
)
def test_soundex_known_names_have_their_codes(name: str, code: str) -> None:
    assert soundex(name) == code


def test_soundex_nothing_to_sound_is_refused() -> None:
    with pytest.raises(InputError, match="letter from a to z"):
        soundex("42")


def test_ngrams_share_of_pairs_is_dice() -> None:
    assert ngrams("Summer") == ("su", "um", "mm", "me", "er")
    assert ngram_similarity(["Summeth"], ["Smith", "Summer", "Smeeth"]).tolist() == [
        [2 / 10, 8 / 11, 6 / 11]
    ]
    assert ngram_similarity(["aaa"], ["aa", "a", "bb"]).tolist() == [[2 / 3, 0, 0]]


def test_sound_similarity_counts_places_that_differ() -> None:
    assert sound_similarity(["Summeth"], ["Smith", "Summer", "Lee"]).tolist() == [[0, -1, -3]]


def test_room_number_each_similarity_soft_and_hard() -> None:
    answers = {
        n.place.removeprefix("room of Summeth, "): n.computed[0]
        for s in steps(worked("room-number"))
        for n in s.printed
    }
    shares = np.exp([-3, -2, -2])
    soft = float(shares @ [200, 201, 202] / shares.sum())
    assert answers["soft, by edit distance"] == pytest.approx(soft)
    assert answers["hard, by edit distance"] == 201.5
    assert answers["hard, by shared pairs of letters"] == 201
    assert answers["soft, by sound"] == pytest.approx(201)
    assert answers["hard, by sound"] == 201
    assert answers["the first of those that sound most alike"] == 200


def test_room_number_soft_parts_add_up_to_the_printed_answer() -> None:
    for part in worked("room-number").parts:
        if part.attention is not None:
            (number,) = part.steps[-1].printed
            assert part.attention.context_LE is not None
            assert number.computed[0] == pytest.approx(float(part.attention.context_LE))


TARGET = ("<start>", "not", "on", "your", "life")


def test_show_me_the_money_every_turn_reads_all_tokens_so_far() -> None:
    titles = [part.title for part in worked("show-me-the-money").parts]
    turns = [title for title in titles if title.startswith("Turn")]
    assert turns == [
        f"Turn {n}: the decoder's input is {' '.join(TARGET[:n])}" for n in range(1, 6)
    ]
    (loop,) = (s for s in steps(worked("show-me-the-money")) if "next token" in s.name)
    assert loop.lines[-1] == "turn 5: <start> not on your life → <end>"


def test_show_me_the_money_loop_equals_one_pass_and_without_mask_it_does_not() -> None:
    memory = torch.rand(3, 4, generator=torch.Generator().manual_seed(1)).double()
    forced = run_decoder(TARGET, memory)
    turns = decode_by_heart(memory, forced.states_TD)
    assert [turn.read for turn in turns] == [TARGET[:n] for n in range(1, 6)]
    for rows, turn in enumerate(turns, start=1):
        torch.testing.assert_close(turn.states_TD, forced.states_TD[:rows])
    free = run_decoder(TARGET, memory, has_mask=False)
    assert (free.states_TD[:-1] - forced.states_TD[:-1]).abs().max() > 0.1
    assert (forced.itself.weights_LM.triu(1) == 0).all()


def test_show_me_the_money_layer_norm_has_no_gain_and_the_variance_of_the_row() -> None:
    memory = torch.eye(3, 4).double()
    states = run_decoder(TARGET, memory).states_TD
    np.testing.assert_allclose(states.mean(dim=-1), 0, atol=1e-12)
    np.testing.assert_allclose(states.square().mean(dim=-1), 1, atol=1e-3)


def test_lets_go_is_drawn_the_same_each_time_and_chance_decides() -> None:
    again, before = EXAMPLES["lets-go"](), worked("lets-go")
    for one, other in zip(steps(again), steps(before), strict=True):
        for a, b in zip(one.tables, other.tables, strict=True):
            assert torch.equal(a.values_LX, b.values_LX)
    assert 0.4 < share_of_own_weight_first(read_matrix("lets-go.embeddings")) < 0.6


def test_lets_go_same_word_has_another_key_in_another_place() -> None:
    (keys,) = (
        s.tables[0].values_LX for s in steps(worked("lets-go")) if s.formula.startswith("of “go”")
    )
    assert len({tuple(key) for key in keys.tolist()}) == len(keys) == 3


def evaluate(text: str) -> float:
    """Evaluate a written piece of arithmetic."""
    symbols = {"−∞": "(-math.inf)", "−": "-", "·": "*", "÷": "/", "exp": "math.exp"}
    symbols |= {"²": "**2", "√": "math.sqrt", "sin": "math.sin", "cos": "math.cos", "^": "**"}
    for symbol, code in symbols.items():
        text = text.replace(symbol, code)
    return float(eval(text, {"math": math}))


@pytest.mark.parametrize("name", EXAMPLES)
def test_row_every_written_equation_holds(name: str) -> None:
    example = worked(name)
    checked = 0
    for row in range(max(len(a.query_names) for a in attentions(example))):
        for step in steps(follow_row_of(example, row)):
            for line in step.lines:
                sides = re.split(r" = ", line.rpartition(": ")[2])
                numeric = [
                    side
                    for side in sides
                    if not re.search(r"[a-zA-Zμσε]", re.sub("exp|max|sin|cos|e[+−]", "", side))
                ]
                numeric = [side for side in numeric if not side.startswith("#")]
                values = [evaluate(side) for side in numeric]
                for one, other in pairwise(values):
                    assert one == pytest.approx(other, abs=3e-4, rel=2e-5), line
                    checked += 1
    assert checked > 8


def test_row_that_is_not_there_is_refused_with_the_range() -> None:
    rows = r"from 0 to 5, but is 6 \(row, not-on-your-life\)\. Choose one of: 0 <start>, 1 not,"
    with pytest.raises(InputError, match=rows):
        follow_row_of(worked("not-on-your-life"), 6)
    with pytest.raises(InputError, match="is -1"):
        follow_row_of(worked("pizza"), -1)


def test_attend_by_hand_row_that_may_attend_nowhere_has_nothing() -> None:
    x = matrix([[1, 2, 3], [4, 5, 6]])
    mask = torch.tensor([[False, False], [True, False]])
    found = attend_by_hand(x, x, x, query_names=("a", "b"), mask_LM=mask)
    assert found.context_LE is not None
    assert found.context_LE.tolist() == [[0, 0, 0], [1, 2, 3]]
    assert found.sums_L1.tolist() == [[0], [1]]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0.0, "0"), (-0.5, "−0.5"), (2.0, "2"), (0.1234567, "0.123457")),
        *((-math.inf, "−∞"), (1e-9, "1e−09"), (2.5e12, "2.5e+12")),
    ],
)
def test_write_number_is_short_and_never_hides_a_number(value: float, text: str) -> None:
    assert write_number(value) == text


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_toml_x_and_weights_equal_attend(tmp_path: Path) -> None:
    text = """tokens = ["a", "b", "c"]
mask = "causal"
x = [[1, 0.5], [-2, 3], [0.25, 1]]
w_query = [[1, 2, 3, 4, 5], [0, 1, 0, 1, 0]]
w_key = [[0.1, 0.2, 0, 0, 1], [1, 0, -1, 0, 0]]
w_value = [[1, 2, 3, 4, 5, 6, 7], [7, 6, 5, 4, 3, 2, 1]]
"""
    (found,) = attentions(read_example(write(tmp_path, "own.toml", text)))
    x = np.array([[1, 0.5], [-2, 3], [0.25, 1]])
    wq = np.array([[1, 2, 3, 4, 5], [0, 1, 0, 1, 0]])
    wk = np.array([[0.1, 0.2, 0, 0, 1], [1, 0, -1, 0, 0]])
    wv = np.array([[1, 2, 3, 4, 5, 6, 7], [7, 6, 5, 4, 3, 2, 1]])
    expected = attend(x @ wq, x @ wk, x @ wv, np.tril(np.ones((3, 3), dtype=bool)))
    torch.testing.assert_close(found.context_LE, expected.context)
    assert found.query_names == found.key_names == ("a", "b", "c")


def test_toml_own_queries_keys_and_values_may_have_widths_of_their_own(tmp_path: Path) -> None:
    text = """query = [[1, 2, 3], [4, 5, 6]]
key = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1], [2, 0, 2]]
value = [[1], [2], [3], [4], [5]]
mask = [[true, false, true, true, false], [false, false, false, false, false]]
scale = 2.5
tokens = ["ask", "silent"]
"""
    (found,) = attentions(read_example(write(tmp_path, "own.toml", text)))
    assert found.scaled_LM[0].tolist() == pytest.approx([0.4, 0.8, 1.2, 2.4, 3.2])
    assert found.key_names == ("#0", "#1", "#2", "#3", "#4")
    e = np.exp([0.4, 1.2, 2.4])
    assert found.context_LE is not None
    assert found.context_LE[:, 0].tolist() == pytest.approx([e @ [1, 3, 4] / e.sum(), 0])


@pytest.mark.parametrize(("scale", "divisor"), [("true", 3**0.5), ("false", 1), ("7", 7)])
def test_toml_scale_says_what_scores_are_divided_by(
    tmp_path: Path, scale: str, divisor: float
) -> None:
    text = f"x = [[1, 2, 3]]\nscale = {scale}\n"
    (found,) = attentions(read_example(write(tmp_path, "own.toml", text)))
    assert found.divisor == pytest.approx(divisor)


@pytest.mark.parametrize("header", ["", "Pizza, is, awesome\n", '"Pizza","is","awe,some"\r\n'])
def test_csv_is_queries_keys_and_values_at_once(tmp_path: Path, header: str) -> None:
    rows = "0.1,2.13\n0.11,2.13\n\n 0.21, 3.13\n"
    (found,) = attentions(read_example(write(tmp_path, "own.csv", header + rows)))
    x = [[0.1, 2.13], [0.11, 2.13], [0.21, 3.13]]
    torch.testing.assert_close(found.context_LE, attend(matrix(x), matrix(x), matrix(x)).context)
    assert found.query_names[0] == ("Pizza" if header else "#0")


def test_toml_and_csv_of_the_guide_are_worked_out(tmp_path: Path) -> None:
    page = Path(__file__).parents[3] / "docs" / "guides" / "attention-by-hand.md"
    blocks = re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 4
    for block in blocks:
        assert attentions(read_example(write(tmp_path, "guide.toml", block)))
    (table,) = re.findall(r"```\n(Pizza,.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    (found,) = attentions(read_example(write(tmp_path, "guide.csv", table)))
    assert found.query_names == ("Pizza", "is", "awesome")


@pytest.mark.parametrize("name", ["positions", "norm", "joined", "feed_forward", "after_attention"])
def test_words_for_a_part_that_the_example_lacks_are_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'x = [[1, 2], [3, 4]]\n\n[parts.{name}]\ntitle = "Mine"\n')
    with pytest.raises(DataError, match=rf"\[parts\.{name}\] must be a part .*toml:3, parts"):
        read_example(path)
    path.write_text('x = [[1, 2], [3, 4]]\n\n[parts.attention]\ntitle = "Mine"\n')
    assert [part.title for part in read_example(path).parts][-1] == "Mine"


def test_gradient_by_hand_is_that_of_autograd_and_of_finite_differences() -> None:
    x_LD = torch.tensor(GRADIENT_INPUT, dtype=torch.float64)
    query_DK, key_DK, value_DE = (torch.tensor(w, dtype=torch.float64) for w in GRADIENT_WEIGHTS)
    found = backward(attend_row(query_DK))
    tracked_DK = query_DK.clone().requires_grad_()
    steps = attend(x_LD[-1:] @ tracked_DK, x_LD @ key_DK, x_LD @ value_DE)
    for stage in (steps.weights, steps.scaled, steps.scores):
        stage.retain_grad()
    loss = 0.5 * (steps.context - WANTED).square().sum()
    loss.backward()
    assert loss_of(attend_row(query_DK)) == pytest.approx(loss.item())
    for name in ("weights", "scaled", "scores"):
        assert found[name].tolist() == pytest.approx(getattr(steps, name).grad[0].tolist()), name
    assert tracked_DK.grad is not None
    assert found["W^q"].flatten().tolist() == pytest.approx(tracked_DK.grad.flatten().tolist())

    parts = {part.title: part for part in EXAMPLES["gradient"]().parts}
    (check,) = parts["Is it right? Each number of W^q is moved a little"].steps
    by_hand, slope, difference = check.tables[0].values_LX.T
    assert by_hand.tolist() == pytest.approx(found["W^q"].flatten().tolist())
    assert slope.tolist() == pytest.approx(by_hand.tolist(), abs=1e-6)
    assert difference.abs().max() < 1e-6
    assert loss_of(attend_row(query_DK - RATE * found["W^q"])) < loss.item()


def test_padding_by_hand_leaves_the_contexts_of_the_words() -> None:
    (attention,) = (part.attention for part in EXAMPLES["padding"]().parts if part.attention)
    assert attention.weights_LM[:, 2:].abs().max() == 0
    alone = attend(
        *(tensor[:2] for tensor in (attention.query_LK, attention.key_MK, attention.value_ME))  # type: ignore[index]
    )
    assert attention.context_LE is not None
    assert torch.allclose(attention.context_LE[:2], alone.context)
