"""Claims about recurrent models: equal sizes, letters, gradients, errors, verdicts."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
import torch

from pellucid.lessons.why.cells import Cells, write
from pellucid.lessons.why.claims import gradients, memory, order, parallel
from pellucid.lessons.why.claims.gradients import gradient_from_last, gradient_without_gates
from pellucid.lessons.why.claims.memory import SPANS, draw_corpus, tabulate_corpus, translate_corpus
from pellucid.lessons.why.result import Verdict
from pellucid.lessons.why.setting import MeasurementSetting
from pellucid.lessons.why.tiny.learn import (
    END,
    FORMS,
    PAD,
    START,
    Form,
    Tiny,
    count_exact,
    count_trained_numbers,
    make_form,
    make_pair_batch,
    make_tiny,
    train_tiny,
)
from pellucid.lessons.why.tiny.random_letters import (
    LETTERS,
    Check,
    Course,
    draw_letters,
    share_right,
    study_training,
)
from pellucid.lessons.why.tiny.tiny_language import draw_uneven, kind_of, order_of
from pellucid.machine.randomness import generator
from pellucid.model import RecurrentModel


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("form", FORMS)
def test_form_has_as_many_weights_as_the_transformer(form: Form, width: int) -> None:
    sizes = {"d_model": width, "d_ff": 2 * width}
    wanted = count_trained_numbers(make_form("Transformer", LETTERS, seed=1, **sizes))
    tiny = make_form(form, LETTERS, seed=1, **sizes)
    assert count_trained_numbers(tiny) == pytest.approx(wanted, rel=0.05)
    assert tiny.model.config.is_recurrent == (form != "Transformer")


@pytest.mark.parametrize("form", FORMS)
def test_form_learns_pairs_by_heart(form: Form) -> None:
    pairs = [("a b", "x y"), ("b a", "y x"), ("a", "x"), ("b", "y")]
    tiny = make_form(form, pairs, seed=1, d_model=16, d_ff=32, num_heads=2)
    train_tiny(tiny, pairs, steps=60, seed=1, rate=2e-2, rows=4)
    assert count_exact(tiny, pairs) == 1.0


def test_letters_to_recall_and_to_copy_end_in_the_end_token() -> None:
    recall = draw_letters("recall", 7, rows=3, numbers=generator(1, "test"))
    copy = draw_letters("copy", 7, rows=3, numbers=generator(1, "test"))
    assert recall.source_BS.tolist() == copy.source_BS.tolist() == copy.target_out_BT.tolist()
    assert recall.source_BS.shape == (3, 8)
    assert recall.target_out_BT[:, 0].tolist() == recall.source_BS[:, 0].tolist()
    assert recall.target_out_BT[:, 1].tolist() == [END] * 3


def test_share_right_counts_letters_and_not_the_end() -> None:
    tiny = make_form("fixed vector", LETTERS, seed=1, d_model=16, d_ff=32)
    batch = draw_letters("copy", 5, rows=11, numbers=generator(1, "test"))
    right = 0
    for source_S, wanted_T in zip(batch.source_BS, batch.target_out_BT, strict=True):
        read = torch.tensor([[START, *wanted_T[:-1].tolist()]])
        with torch.no_grad():
            logits_TV = tiny.model(source_S[None], read)[0]
        right += int((logits_TV.argmax(dim=-1) == wanted_T)[:5].sum())
    assert share_right(tiny, batch) == pytest.approx(right / 55)


def test_course_is_read_after_updates_and_after_seconds() -> None:
    course = Course((Check(0, 0.0, 0.1), Check(25, 2.0, 0.3), Check(50, 4.0, 0.7)))
    assert [course.after_updates(n) for n in (0, 24, 25, 50, 99)] == [0.1, 0.1, 0.3, 0.7, 0.7]
    assert [course.after_seconds(n) for n in (0.0, 1.9, 3.0, 9.0)] == [0.1, 0.1, 0.3, 0.7]
    assert course.pace == pytest.approx(0.08)


def test_study_trains_until_updates_and_time_are_used_or_all_is_learned() -> None:
    def run(updates: int, seconds: float, enough: float) -> Course:
        tiny = make_form("additive", LETTERS, seed=1, d_model=16, d_ff=32)
        return study_training(
            tiny, "recall", 3, updates=updates, seconds=seconds, seed=1, rows=4, enough=enough
        )

    assert [check.updates for check in run(4, 0.0, 2).checks] == [0, 2, 4]
    longer = run(4, 0.15, 2).checks
    assert longer[-1].updates > 4
    assert longer[-2].seconds < 0.15 <= longer[-1].seconds
    assert [check.updates for check in run(4, 0.0, 0.0).checks] == [0, 2]


def test_study_teaches_recall() -> None:
    tiny = make_form("additive", LETTERS, seed=1, d_model=32, d_ff=64)
    course = study_training(tiny, "recall", 5, updates=120, seconds=0, seed=1)
    assert course.checks[0].share < 0.4
    assert course.checks[-1].share >= 0.99


def recurrent(form: Form = "fixed vector") -> tuple[Tiny, RecurrentModel]:
    tiny = make_form(form, LETTERS, seed=1, d_model=16, d_ff=32)
    assert isinstance(tiny.model, RecurrentModel)
    return tiny, tiny.model


@pytest.mark.parametrize("form", ["fixed vector", "additive"])
def test_gradient_through_a_gate_falls_by_what_the_gate_keeps(form: Form) -> None:
    tiny, model = recurrent(form)
    cell = model.encoder.layers[0].left_to_right
    width = cell.state.in_features
    with torch.no_grad():
        # The gate is 0.8 everywhere, and the candidate depends on the input only.
        cell.state.weight.zero_()
        cell.input.weight[: 2 * width] = 0
        cell.input.bias[width : 2 * width] = torch.logit(torch.tensor(0.8))
        cell.input.weight[2 * width :] *= 1e-4
    found = gradient_from_last(tiny, 11, seed=1, rows=3)
    assert len(found) == 10
    for distance, length in enumerate(found):
        assert length == pytest.approx(found[0] * 0.8**distance, rel=1e-4)


def test_gradient_without_gates_falls_by_the_weight_of_the_state() -> None:
    tiny, model = recurrent()
    cell = model.encoder.layers[0].left_to_right
    width = cell.state.in_features
    with torch.no_grad():
        cell.state.weight[2 * width :] = 0.3 * torch.eye(width)
        cell.input.weight[2 * width :] *= 1e-4
    found = gradient_without_gates(tiny, 7, seed=1, rows=3)
    assert [b / a for a, b in pairwise(found)] == pytest.approx([0.3] * 5)


def test_uneven_lists_have_all_kinds_and_colors_last() -> None:
    train = draw_uneven(300, phrases=(1, 2, 3), seed=1, part="train")
    test = draw_uneven(50, phrases=(2, 3), seed=1, part="test")
    assert not {source for source, _ in train} & {source for source, _ in test}
    assert {kind_of(pair) for pair in test} == {"shorter", "equal", "longer"}
    assert kind_of(("the black guinea pig", "le cobaye noir")) == "shorter"
    assert kind_of(("the black mantis", "la mante religieuse noire")) == "longer"
    for _, target in train:
        assert set(order_of(target, target)) <= {"right"}
        for phrase in target.split(" et "):
            words = phrase.split()
            assert (words[-1] in ("noire", "blanche", "verte", "grise", "brune")) <= (
                words[0] == "la"
            )


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("le loup noir et la vache verte", ["right", "right"]),
        ("le noir loup et la vache verte", ["order", "right"]),
        ("le noir chien et la souris verte", ["order", "words"]),
        ("la vache verte", ["words", "missing"]),
        ("", ["missing", "missing"]),
    ],
)
def test_order_of_tells_order_from_words(written: str, found: list[str]) -> None:
    assert order_of(written, "le loup noir et la vache verte") == found
    assert order_of("le loup et " + written, "le loup et le loup noir et la vache verte") == found


def test_count_errors_gives_shares_of_animals_and_of_lists() -> None:
    pairs = [
        ("the black guinea pig", "le cobaye noir"),
        ("the black cow", "la vache noire"),
        ("the green cow", "la vache verte"),
        ("the mantis", "la mante religieuse"),
    ]
    written = ["le noir cobaye", "la vache noire", "la vache", "la mante religieuse"]
    found = order.count_errors(written, pairs)
    assert [found[name] for name in ("right", "order", "words", "missing")] == pytest.approx(
        [1 / 3, 1 / 3, 1 / 3, 0]
    )
    assert (found["wrong shorter"], found["length shorter"]) == (1, 0)
    assert (found["wrong equal"], found["length equal"]) == (0.5, 0.5)
    assert (found["wrong longer"], found["length longer"]) == (0, 0)


def test_own_words_are_those_that_the_model_decodes() -> None:
    pairs = [("a b", "x y z"), ("b a a", "y x")]
    tiny = make_tiny(pairs, seed=1, d_model=16, d_ff=32)
    sources, targets = (
        side.encode_all([pair[place] for pair in pairs])
        for place, side in enumerate((tiny.source, tiny.target))
    )
    batch = make_pair_batch(sources, targets)
    own = parallel.put_own_words(tiny, batch)
    assert own.target_out_BT is batch.target_out_BT
    with torch.no_grad():
        logits_BTV = tiny.model(own.source_BS, own.target_in_BT, own.source_mask_BS)
    for row, (read_T, likeliest_T, mask_T) in enumerate(
        zip(own.target_in_BT, logits_BTV.argmax(dim=-1), own.target_mask_BT, strict=True)
    ):
        length = int(mask_T.sum())
        assert read_T[0] == START
        for place in range(1, length):
            if read_T[place - 1] == END:
                assert read_T[place] == END
            else:
                assert read_T[place] == likeliest_T[place - 1], (row, place)
        assert (read_T[length:] == PAD).all()


def test_own_words_of_a_perfect_model_are_the_correct_ones() -> None:
    pairs = [("a b", "x y"), ("b a", "y x"), ("a", "x"), ("b", "y")]
    tiny = make_tiny(pairs, seed=1, d_model=16, d_ff=32, num_heads=2)
    parallel.train_on(tiny, pairs, is_own=False, updates=60, seed=1, rows=4)
    assert count_exact(tiny, pairs) == 1.0
    batch = make_pair_batch(
        tiny.source.encode_all([source for source, _ in pairs]),
        tiny.target.encode_all([target for _, target in pairs]),
    )
    assert torch.equal(parallel.put_own_words(tiny, batch).target_in_BT, batch.target_in_BT)


def test_corpus_is_cut_into_words_and_marks_and_spans_cover_it() -> None:
    pairs = draw_corpus(200, seed=1, part="test")
    words = {word for pair in pairs for text in pair for word in text.split()}
    assert all(word.isalnum() or len(word) == 1 for word in words)
    assert all(text == text.lower() for pair in pairs for text in pair)
    places = [place for span in SPANS for place in span.choose(pairs)]
    assert len(places) == len(set(places)) > 180


def test_corpus_is_translated_by_every_form_in_both_readings() -> None:
    found = translate_corpus(
        MeasurementSetting(size="toy", seed=3), sentences=60, updates=2, tests=60
    )
    assert [one["form"] for one in found.rows] == [*FORMS, *FORMS]
    assert [one["reading"] for one in found.rows] == ["equal updates"] * 4 + ["equal time"] * 4
    for one in found.rows:
        assert len(one["scores"]) == len(SPANS)
        assert all(0 <= score <= 100 for score in one["scores"])
    table = tabulate_corpus(found)
    assert table.rows[3] == ("Transformer", "equal updates", *found.rows[3]["scores"])


def test_line_over_seeds_has_means_and_a_dot_for_each() -> None:
    shares = ((5, 0.9), (5, 1.0), (5, 1.1), (7, 0.5), (7, 0.5), (7, 0.5))
    cells = Cells(tuple({"length": length, "share": share} for length, share in shares))
    line = cells.line("x", "length", "share", scale=100)
    assert line.y == pytest.approx((100, 50))
    assert line.dots[0] == pytest.approx((90, 100, 110))
    assert Cells(({"length": 5, "share": 0.5},)).line("x", "length", "share").dots == ()
    assert write([1.0, 2.0, 3.0], ".1f") == "1.0 · 2.0 · 3.0"
    assert write([2.0]) == "2"


def expect(verdict: Verdict, outcome: str, part_of_condition: str = "") -> None:
    assert verdict.outcome == outcome
    assert part_of_condition in verdict.condition
    assert bool(verdict.condition) == (outcome == "holds only if")


@pytest.mark.parametrize(
    ("vector", "additive", "transformer", "outcome"),
    [
        (0.1, 0.2, 1.0, "holds"),
        (0.1, 1.0, 1.0, "holds only if"),
        (0.1, 0.7, 1.0, "fails"),
        (0.8, 1.0, 1.0, "fails"),
        (0.1, 0.2, 0.3, "fails"),
    ],
)
def test_memory_is_judged_by_the_first_of_20_letters(
    vector: float, additive: float, transformer: float, outcome: str
) -> None:
    shares = {"fixed vector": vector, "additive": additive, "Transformer": transformer}

    def judge(*last: tuple[int, float]) -> Verdict:
        return memory.judge(Cells(tuple(
            {"form": form, "length": length, "seed": 1, "share": one}
            for form, share in shares.items() for length, one in ((5, 1.0), (20, share), *last)
        )))  # fmt: skip

    expect(judge(), outcome)
    # The length was chosen before: a longer one is shown only.
    expect(judge((400, 0.1)), outcome)
    assert "at 400 letters" in judge((400, 0.1)).numbers


@pytest.mark.parametrize(
    ("untrained", "trained", "transformer", "outcome", "condition"),
    [
        (1e-8, 1e-5, 0.9, "holds", ""),
        (1e-8, 0.2, 0.9, "holds only if", "not trained yet"),
        (0.2, 1e-8, 0.9, "holds only if", "the network is trained"),
        (0.2, 0.2, 0.9, "fails", ""),
        (1e-8, 1e-5, 0.01, "fails", ""),
    ],
)
def test_gradients_are_judged_by_the_largest_distance(
    untrained: float, trained: float, transformer: float, outcome: str, condition: str
) -> None:
    rows = [
        {"form": form, "distance": distance, "seed": 1, "untrained": before, "trained": after}
        for form, ends in (
            ("fixed vector", (untrained, trained)),
            ("Transformer", (transformer, transformer)),
        )
        for distance, (before, after) in enumerate(((1.0, 1.0), (0.5, 0.5), ends), start=1)
    ]
    expect(gradients.judge(Cells(tuple(rows))), outcome, condition)


GOOD = {"right": 1.0, "order": 0.0, "words": 0.0, "missing": 0.0}


@pytest.mark.parametrize(
    ("vector", "additive", "transformer", "outcome"),
    [
        (0.2, 0.1, 0.0, "holds"),
        (0.2, 0.0, 0.0, "holds only if"),
        (0.01, 0.0, 0.0, "fails"),
        (0.2, 0.2, 0.2, "fails"),
    ],
)
def test_order_is_judged_by_words_in_a_wrong_order(
    vector: float, additive: float, transformer: float, outcome: str
) -> None:
    shares = {"fixed vector": vector, "additive": additive, "Transformer": transformer}
    rows = [GOOD | {"form": form, "seed": 1, "order": share} for form, share in shares.items()]
    expect(order.judge_word_order(Cells(tuple(rows))), outcome)


@pytest.mark.parametrize(
    ("uneven", "even", "additive", "outcome", "condition"),
    [
        (0.3, 0.2, 0.2, "holds", ""),
        (0.3, 0.2, 0.0, "holds only if", "one vector"),
        (0.3, 0.3, 0.0, "fails", ""),
        (0.02, 0.0, 0.0, "fails", ""),
    ],
)
def test_size_is_judged_by_lists_of_other_and_of_the_same_size(
    uneven: float, even: float, additive: float, outcome: str, condition: str
) -> None:
    def judge(*transformer: float) -> Verdict:
        shares = {"fixed vector": (uneven, even), "additive": (additive, 0.0)}
        return order.judge_size(Cells(tuple(
            {"form": form, "seed": 1, "length shorter": other, "length longer": other,
             "length equal": same}
            for form, (other, same) in {**shares, "Transformer": transformer}.items()
        )))  # fmt: skip

    expect(judge(0.0, 0.0), outcome, condition)
    if uneven - even >= 0.05:
        expect(judge(uneven, uneven - 0.1), "fails")


@pytest.mark.parametrize(
    ("transformer", "encoder", "outcome", "condition"),
    [
        ((30.0, 30.0), (30.0, 30.0), "holds", ""),
        ((11.0, 30.0), (30.0, 30.0), "holds only if", "texts are long (64 tokens)"),
        ((30.0, 30.0), (11.0, 11.0), "fails", ""),
        ((11.0, 11.0), (11.0, 11.0), "fails", ""),
    ],
)
def test_sequence_is_judged_by_tokens_per_second(
    transformer: tuple[float, float],
    encoder: tuple[float, float],
    outcome: str,
    condition: str,
) -> None:
    def cells(fast: tuple[float, float]) -> Cells:
        speeds = {
            ("fixed vector", 8): [9.0, 11.0],
            ("fixed vector", 64): [10.0],
            ("Transformer", 8): [fast[0]],
            ("Transformer", 64): [fast[1]],
        }
        return Cells(tuple(
            {"form": form, "length": length, "seed": seed, "speed": speed}
            for (form, length), found in speeds.items() for seed, speed in enumerate(found)
        ))  # fmt: skip

    verdict = parallel.judge_sequence(cells(transformer), cells(encoder))
    expect(verdict, outcome, condition)
    # Of whole networks and of encoders, at both lengths.
    assert len(re.findall(r"[\d.]+ times as fast", verdict.reason)) == 4


def test_races_of_several_seeds_are_averaged() -> None:
    first = {"length": 5, "seed": 1, "pass_seconds": 1.0, "loop_seconds": 4.0, "pass_loss": 2.0,
             "loop_loss": 2.0, "gradient_difference": 1e-9}  # fmt: skip
    second = first | {"seed": 2, "pass_seconds": 3.0, "gradient_difference": 1e-8}
    (race,) = parallel.average_races(Cells((first, second))).rows
    assert race["pass_seconds"] == race["speedup"] == 2.0
    assert race["gradient_difference"] == 1e-8
