"""Text in, text out: order, odd lines, and log-probabilities that add up."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

import pellucid
from pellucid.config import DecodingConfig
from pellucid.errors import DataError
from pellucid.machine.turns import taking_turns
from pellucid.translate.results import TranslatedHypothesis
from pellucid.translate.translator import Translator
from pellucid.translate.written_lines import _join

WORDS = ["The", "pizza", "came out", "of the oven", "La", "four"]
ODD = [
    "",
    "   ",
    "\u2028",
    "\x00\x07",
    "🍕 🍕",
    "שלום עולם",
    "漢字",
    "a\u00a0b",
    "\ufeff",
    "e\u0301",
]


@pytest.fixture(scope="module")
def translator(bundle_folder: Path) -> Translator:
    return pellucid.load(bundle_folder)


def test_translate_order_is_kept_and_neighbours_do_not_matter(translator: Translator) -> None:
    texts = [f"{a} {b}" for a in WORDS for b in WORDS] + WORDS
    together = translator.translate(texts, batch_tokens=29)
    assert [translation.source for translation in together] == texts
    alone = [translator.translate([text])[0] for text in texts]
    assert [t.ids for t in together] == [t.ids for t in alone]
    for left, right in zip(together, alone, strict=True):
        assert left.log_probability == pytest.approx(right.log_probability, abs=1e-5)


@pytest.mark.parametrize("text", ODD)
def test_translate_odd_line_gives_one_line(text: str, translator: Translator) -> None:
    (translation,) = translator.translate([text])
    assert translation.error is None
    assert "\n" not in translation.text
    if not text.strip():
        assert translation.text == text


def test_translate_huge_line_is_an_error_of_that_line_alone(translator: Translator) -> None:
    found = translator.translate(["The pizza", "pizza " * 20_000, "The oven"])
    assert [translation.error is None for translation in found] == [True, False, True]
    assert found[1].error is not None
    assert "at most 19 tokens" in found[1].error
    assert found[1].text == ""


def test_translate_text_that_is_not_utf8_is_an_error_of_that_line_alone(
    translator: Translator,
) -> None:
    alone, damaged = (
        translator.translate(["The pizza"]),
        translator.translate(["The pizza", "The \ud800"]),
    )
    assert damaged[0].hypotheses[0].text == alone[0].hypotheses[0].text
    assert damaged[1].hypotheses == ()
    assert "U+D800" in (damaged[1].error or "")


def test_translate_no_lines_gives_none(translator: Translator) -> None:
    assert translator.translate([]) == []


def test_translation_log_probability_equals_the_score_of_its_tokens(
    translator: Translator,
) -> None:
    for translation in translator.translate(WORDS):
        total = sum(translation.token_log_probabilities)
        assert translation.log_probability == pytest.approx(total)
        penalty = ((5 + len(translation.ids)) / 6) ** 0.6
        assert translation.score == pytest.approx(translation.log_probability / penalty)
        assert len(translation.tokens) == len(translation.ids)


def test_score_of_a_translation_equals_its_own_log_probability(translator: Translator) -> None:
    finished = [t for t in translator.translate(WORDS) if t.tokens[-1] == "</s>"]
    scored = translator.score([t.source for t in finished], [t.text for t in finished])
    for translation, result in zip(finished, scored, strict=True):
        if result.ids == translation.ids:
            expected = translation.log_probability
            assert result.log_probability == pytest.approx(expected, abs=1e-4)


def test_score_batches_give_what_single_pairs_give(translator: Translator) -> None:
    sources, targets = WORDS, WORDS[::-1]
    together = translator.score(sources, targets, batch_tokens=17)
    for result, source, target in zip(together, sources, targets, strict=True):
        (alone,) = translator.score([source], [target])
        assert result.tokens == alone.tokens
        assert result.log_probability == pytest.approx(alone.log_probability, abs=1e-5)
        assert result.log_probability == pytest.approx(sum(result.token_log_probabilities))


def test_score_empty_target_is_the_end_alone(translator: Translator) -> None:
    (result,) = translator.score(["The pizza"], [""])
    assert result.tokens == ("</s>",)
    assert result.log_probability < 0


def test_score_different_numbers_of_lines_is_refused(translator: Translator) -> None:
    with pytest.raises(DataError, match="2 sources and 1 targets"):
        translator.score(["a", "b"], ["a"])


@pytest.mark.parametrize("count", [1, 3, 7])
def test_joined_hypotheses_are_the_best_of_all_combinations(count: int) -> None:
    rng = random.Random(count)
    parts = [
        [
            TranslatedHypothesis(f"{part}.{rank}", score=score)
            for rank, score in enumerate(sorted((-rng.random() for _ in range(7)), reverse=True))
        ]
        for part in range(4)
    ]
    config = DecodingConfig(beam=7, n_best=count)
    found = _join(parts, ["", None, None, None, ""], config)
    ranked = sorted(itertools.product(*parts), key=lambda row: -sum(one.score for one in row))
    assert [one.parts for one in found] == ranked[:count]


def test_joining_thousands_of_lines_takes_no_more_for_each() -> None:
    steps: list[int] = []
    with taking_turns(lambda: steps.append(1)):
        parts = [[TranslatedHypothesis("a", score=-1.0)] * 3] * 5000
        config = DecodingConfig(beam=3, n_best=3)
        (best, *_) = _join(parts, ["", *["\n"] * 4999, ""], config)
    assert len(best.parts) == len(steps) == 5000
