"""One row followed number by number: every shown number follows from those before it."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from made_up_traces import make_trace as make_made_up_trace
from of_subwords import SUBWORDS
from rich.console import Console

import pellucid
from pellucid.cli.look.sentence_tables import describe_heads
from pellucid.errors import InputError
from pellucid.inside import Pair, Trace
from pellucid.inside.changes.change import Changes, parse_change
from pellucid.inside.show.steps import NumberTable, follow_one_row
from pellucid.inside.show.terminal import draw_matrix, draw_table, say_matrix, say_table
from pellucid.inside.show.view import (
    CLEAREST,
    TAUGHT,
    WHY_IT_RESTS,
    HeadView,
    mean_entropy,
    usual_head,
)
from pellucid.inside.verify import verify_cell
from pellucid.inside.vocabulary import best_words, vectors_of_words
from pellucid.translate.translator import Translator

SOURCE = "The pizza came out of the oven."


@pytest.fixture(scope="module")
def translator() -> Translator:
    return pellucid.load(SUBWORDS)


@pytest.fixture(scope="module")
def whole(translator: Translator) -> Trace:
    return translator.look(SOURCE, everything=True)


def steps_of(translator: Translator, view: HeadView, row: int) -> dict[str, NumberTable]:
    steps = follow_one_row(view, translator.model.config, row, column=2)
    return {step.title.split(":")[0]: step for step in steps}


def test_products_add_up_to_the_score_and_exponentials_to_the_weights(
    whole: Trace, translator: Translator
) -> None:
    steps = steps_of(translator, HeadView(whole, "decoder", 1, "cross", 3), 4)
    products = steps["Their product, dimension by dimension"].rows
    assert len(products) == 24
    *words, total = steps["Scores become weights"].rows
    assert [word[0] for word in words] == list(whole.source_tokens)
    assert float(products[-1][4]) == pytest.approx(float(words[2][1]), abs=1e-4)
    for _, score, scaled, masked, exponential, weight in words:
        assert float(scaled) == pytest.approx(float(score) / math.sqrt(24), abs=1e-5)
        assert masked == scaled
        assert float(weight) == pytest.approx(float(exponential) / float(total[4]), abs=1e-5)
    assert float(total[5]) == pytest.approx(1, abs=1e-5)


def test_weighted_values_add_up_to_the_context_and_logits_to_the_probability(
    whole: Trace, translator: Translator
) -> None:
    steps = steps_of(translator, HeadView(whole, "decoder", 0, "self", 1), 3)
    *parts, context = steps["Weights times values"].rows
    for column in range(1, 6):
        total = sum(float(part[column]) for part in parts)
        assert total == pytest.approx(float(context[column]), abs=1e-5)
    assert steps["Scores become weights"].rows[4][3] == -math.inf
    chosen, likeliest, everything = steps["Logits become probabilities"].rows
    log_probability = float(chosen[1]) - float(everything[1])
    assert log_probability == pytest.approx(whole.log_probabilities[3], abs=1e-5)
    assert float(likeliest[2]) >= float(chosen[2]) - 1e-6


def test_the_encoder_is_followed_without_logits(whole: Trace, translator: Translator) -> None:
    steps = steps_of(translator, HeadView(whole, "encoder", 0, "self", 0), 1)
    assert "Logits become probabilities" not in steps
    way_in = steps["The token's vector"].rows
    for column in range(1, 6):
        embedding, position, total = (float(row[column]) for row in way_in[:3])
        assert embedding + position == pytest.approx(total, abs=1e-5)


@pytest.mark.parametrize(("row", "column"), [(99, 0), (-1, 0), (0, 99)])
def test_rows_and_columns_that_are_not_there_are_refused(
    whole: Trace, translator: Translator, row: int, column: int
) -> None:
    view = HeadView(whole, "decoder", 0, "cross", 0)
    with pytest.raises(InputError, match="must be from 0 to"):
        list(follow_one_row(view, translator.model.config, row, column=column))


@pytest.mark.parametrize(
    "site", ["encoder.0.self", "encoder.1.self", "decoder.1.self", "decoder.0.cross"]
)
def test_a_weight_is_recomputed_from_the_files_alone(
    whole: Trace, translator: Translator, site: str
) -> None:
    for row, column in ((0, 0), (3, 1), (2, 5)):
        found = verify_cell(translator.bundle, whole, site, 2, row, column)
        assert found.difference < 1e-6
        assert found.shown == whole[f"{site}.2.weights"][row, column]


def test_a_trace_of_another_model_is_not_verified(whole: Trace, translator: Translator) -> None:
    from dataclasses import replace

    other = replace(whole, model={"model_hash": "0" * 64})
    with pytest.raises(InputError, match="the trace's own"):
        verify_cell(translator.bundle, other, "encoder.0.self", 0, 0, 0)


@pytest.mark.parametrize("part", ["encoder", "decoder"])
def test_the_table_of_words_holds_the_very_vectors_of_layer_0(
    whole: Trace, translator: Translator, part: str
) -> None:
    pair = Pair(translator.model, translator.tokenizer, whole.source_ids, whole.predicted_ids)
    ids = whole.source_ids if part == "encoder" else whole.target_ids
    for position in (0, 4):
        vectors = vectors_of_words(pair, part, position, 3)  # type: ignore[arg-type]
        for stage, table in zip(("query", "key", "value"), vectors, strict=True):
            seen = whole[f"{part}.0.self.3.{stage}"][position]
            np.testing.assert_allclose(table[ids[position]].numpy(), seen, atol=1e-4)
    matches = best_words(pair, part, head=3, row=2, position=1, most=1000)  # type: ignore[arg-type]
    token = whole.source_tokens[1] if part == "encoder" else whole.target_tokens[1]
    (own,) = [match.scaled for match in matches if match.token == token]
    assert own == pytest.approx(whole[f"{part}.0.self.3.scaled"][2, 1], abs=1e-4)
    assert [m.scaled for m in matches] == sorted((m.scaled for m in matches), reverse=True)


def test_the_clearest_head_has_the_least_entropy() -> None:
    sharp, flat = np.eye(3), np.full((3, 3), 1 / 3)
    assert mean_entropy(sharp) == 0
    assert mean_entropy(flat) == pytest.approx(math.log(3))
    arrays = {"decoder.0.cross.weights": np.stack([flat, sharp])}
    trace = Trace(arrays, (), (), (), (), (), (), (), (), heads=(2, 5))
    view, why = usual_head(trace, ["decoder.0.cross.weights"])
    assert (view.site, view.head, why) == ("decoder.0.cross", 5, CLEAREST)
    assert usual_head(trace, ["decoder.0.cross.weights"], (2,))[0].head == 2


def test_the_head_that_was_taught_links_comes_before_a_clearer_one() -> None:
    arrays = {"decoder.0.cross.weights": np.stack([np.full((3, 3), 1 / 3), np.eye(3)])}
    model = {"taught_head": "decoder.0.cross.2"}
    trace = Trace(arrays, (), (), (), (), (), (), (), (), heads=(2, 5), model=model)
    view, why = usual_head(trace, ["decoder.0.cross.weights"])
    assert (view.head, view.is_taught, why) == (2, True, TAUGHT)
    view, why = usual_head(trace, ["decoder.0.cross.weights"], (5,))
    assert (view.head, view.is_taught, why) == (5, False, CLEAREST)


def rest_of(site: str, weights_LM: np.ndarray) -> str:
    made = make_made_up_trace(model={"taught_head": "decoder.1.cross.0"})
    arrays = {**made.arrays, f"{site}.weights": np.stack([weights_LM] * 3)}
    view = HeadView.of(replace(made, arrays=arrays), f"{site}.weights", 1)
    assert bool(view.rests_on) == (WHY_IT_RESTS in view.describe_special())
    return view.rests_on


def test_a_head_rests_where_half_of_its_weight_is_on_the_end() -> None:
    cross = np.zeros((4, 5))  # <s> La pizza est, by The pizza came out </s>
    cross[:, 4], cross[:, 1] = 0.5, 0.5
    assert rest_of("decoder.0.cross", cross) == "</s>"
    cross[0] = [0, 0.1, 0, 0.41, 0.49]
    assert rest_of("decoder.0.cross", cross) == ""
    # The row that predicts the end may well read the end.
    cross[:3] = [[1, 0, 0, 0, 0], [0, 0, 0, 0, 1], [0, 1, 0, 0, 0]]
    cross[3] = [0, 0, 0, 0, 1]
    assert rest_of("decoder.0.cross", cross) == ""


def test_a_head_of_the_decoder_rests_where_half_of_its_weight_is_on_the_start() -> None:
    own = np.zeros((4, 4))
    own[0] = [1, 0, 0, 0]  # The first row sees nothing else.
    own[1:] = [[0.6, 0.4, 0, 0], [0.5, 0.25, 0.25, 0], [0.4, 0, 0, 0.6]]
    assert rest_of("decoder.1.self", own) == "<s>"
    own[3] = [0.1, 0, 0, 0.9]
    assert rest_of("decoder.1.self", own) == ""


def test_the_table_of_heads_names_the_taught_head_and_those_that_rest() -> None:
    made = make_made_up_trace(model={"taught_head": "decoder.1.cross.2"})
    weights = np.full((3, 4, 5), 0.2)
    weights[1] = [0.1, 0.1, 0.1, 0.1, 0.6]
    arrays = {"decoder.1.cross.weights": weights}
    assert list(describe_heads(replace(made, arrays=arrays))) == [
        "decoder.1.cross.2 is the head that was taught word links in training.",
        "Heads that rest on </s> with half of their weight or more: decoder.1.cross.1.",
        "A head that a row does not need rests there, which costs nothing.",
        "Heads that look at all words alike in most rows, and are idle there: "
        "decoder.1.cross.0, decoder.1.cross.2.",
    ]
    arrays["decoder.1.cross.weights"] = np.full((3, 4, 5), [0.6, 0.1, 0.1, 0.1, 0.1])
    assert list(describe_heads(replace(made, arrays=arrays, model={}))) == []


def test_a_wide_map_continues_below_with_every_number_once() -> None:
    values = np.arange(7 * 23, dtype=np.float64).reshape(7, 23) / 200
    rows = [f"row{i}" for i in range(7)]
    columns = ["日本語の長い長い長い言葉" if i == 3 else f"c{i}" for i in range(23)]
    lines = list(draw_matrix(values, rows, columns, is_share=True, width=60))
    assert max(line.cell_len for line in lines) <= 60
    numbers = sorted(float(n) for line in lines for n in line.plain.split() if "." in n)
    assert numbers == sorted(float(f"{v:.2f}") for v in values.flatten())
    narrow = list(draw_matrix(values, rows, columns, is_share=True, width=3))
    assert len(narrow) == 23 * 9


def test_labels_are_cut_only_where_they_can_still_be_told_apart() -> None:
    paths = [f"encoder.1.self.1.context > decoder.*.cross.{one}" for one in ("key", "value")]
    heads = [f"encoder.1.self.{head}" for head in range(2)]
    values = np.full((2, 4), 0.5)
    columns = [*heads, "est → sorties", "elle → avait"]
    head, *rows = draw_matrix(values, paths, columns, is_share=True, width=120)
    assert head.plain.split()[:2] == heads
    assert "est → sorties elle → avait" in head.plain
    assert len({row.plain for row in rows[:2]}) == 2


def test_said_rows_name_the_largest_and_what_is_left() -> None:
    values = np.array([[0.5, 0.1, 0.4], [-math.inf, 2.0, 1.0]])
    shares, signed = (
        list(say_matrix(values, ["a", "b"], ["x", "y", "z"], is_share=is_share, most=2))
        for is_share in (True, False)
    )
    assert shares[0] == "row 0, a: x 0.50, z 0.40, the other 1 together 0.10"
    assert signed[1] == "row 1, b: y 2.00, z 1.00, 1 more"


def test_said_rows_of_signed_numbers_name_what_speaks_against_too() -> None:
    values = np.array([[0.2, -0.98, 0.0, -1e-9]])
    (said,) = say_matrix(values, ["a"], ["w", "x", "y", "z"], is_share=False, most=3)
    assert said == "row 0, a: x -0.98, w 0.20, z 0.00, 1 more"


def test_steps_fit_a_window_and_are_said_in_full(whole: Trace, translator: Translator) -> None:
    steps = follow_one_row(HeadView(whole, "decoder", 1, "cross", 0), translator.model.config, 2)
    console = Console(width=80, record=True, file=None, force_terminal=False)
    with console.capture() as capture:
        for step in steps:
            console.print(*draw_table(step, width=80), sep="\n")
            said = list(say_table(step))
            assert len(said) == 1 + len(step.rows)
    assert max(map(len, capture.get().splitlines())) <= 80
    assert not re.search(r"\d…", capture.get())


def test_whole_vectors_have_every_number_in_blocks_that_fit(
    whole: Trace, translator: Translator
) -> None:
    view, config = HeadView(whole, "decoder", 1, "cross", 0), translator.model.config
    steps = {step.title: step for step in follow_one_row(view, config, 2, shown=None)}
    network = steps["The feed-forward network of layer 1"]
    inner = next(row for row in network.rows if row[0] == "inner")
    numbers = whole["decoder.1.feed_forward.inner"][2]
    np.testing.assert_array_equal(inner[1:-1], numbers)
    entering = next(row for row in network.rows if row[0] == "input")
    np.testing.assert_array_equal(
        entering[1 : 1 + config.d_model], whole["decoder.1.feed_forward.input"][2]
    )
    assert set(entering[1 + config.d_model : -1]) == {""}
    console = Console(width=80, force_terminal=False)
    with console.capture() as capture:
        console.print(*draw_table(network, width=80), sep="\n")
    printed = capture.get()
    assert max(map(len, printed.splitlines())) <= 80
    for number in numbers:
        assert f"{number:.4f}".replace("-", "−") in printed


def test_a_trace_that_was_changed_is_not_verified(translator: Translator) -> None:
    changes = Changes(parse_change("mean encoder.0.self.2"))
    changed = translator.look("The pizza is good.", changes=changes)
    with pytest.raises(InputError, match=r"was changed on the way \(mean encoder\.0\.self\.2\)"):
        verify_cell(translator.bundle, changed, "encoder.0.self", 2, 0, 0)
