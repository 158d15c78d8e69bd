"""Evaluation: hand-computed scores, intervals, significance, and what bad input gets."""

from __future__ import annotations

import math
import random
import subprocess
import sys

import numpy as np
import pytest

from pellucid.errors import ConfigurationError, DataError, InputError
from pellucid.evaluation.corpus_scores import (
    _p_value,
    compare,
    corpus_bleu_score,
    corpus_chrf_score,
    evaluate_corpus,
)
from pellucid.evaluation.resampling import draw_resamples
from pellucid.evaluation.statistics import Scoring
from pellucid.evaluation.ter import count_word_edits
from pellucid.evaluation.tokenization import MOSES_LANGUAGES, lowercase_and_tokenize

REFERENCE = "the cat sat on the red mat"
SENTENCE = "a man in blue shirt stands on the ladder and cleans one tall window"
WORDS = SENTENCE.split()


def make_references(num_lines: int) -> list[str]:
    draw = random.Random(7)
    return [" ".join(draw.choices(WORDS, k=draw.randint(5, 13))) for _ in range(num_lines)]


def damage(lines: list[str], share: float, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [
        " ".join("wrong" if draw.random() < share else word for word in line.split())
        for line in lines
    ]


def test_bleu_one_wrong_last_word_equals_hand_computation() -> None:
    # 6 of 7 words, 5 of 6 pairs, 4 of 5 triples, 3 of 4 fours are right; no brevity penalty.
    expected = 100 * (6 / 7 * 5 / 6 * 4 / 5 * 3 / 4) ** (1 / 4)
    score = corpus_bleu_score(["the cat sat on the red rug"], [REFERENCE])
    assert score == pytest.approx(expected, abs=1e-10)


def test_bleu_short_hypothesis_pays_brevity_penalty() -> None:
    score = corpus_bleu_score(["the cat sat on the"], [REFERENCE])
    assert score == pytest.approx(100 * math.exp(1 - 7 / 5), abs=1e-10)


def test_bleu_counts_over_corpus_rather_than_averaging_sentences() -> None:
    references = ["one two three four five", "six seven eight nine ten"]
    hypotheses = ["one two three four five", "six seven eight nine x"]
    expected = 100 * (9 / 10 * 7 / 8 * 5 / 6 * 3 / 4) ** (1 / 4)
    assert corpus_bleu_score(hypotheses, references) == pytest.approx(expected, abs=1e-10)


def test_ter_counts_edits_and_one_shift() -> None:
    one_substitution = evaluate_corpus(["the cat sat on the red rug"], [REFERENCE])
    assert one_substitution.ter.score == pytest.approx(100 / 7, abs=1e-10)
    one_shift = evaluate_corpus(["on the red mat the cat sat"], [REFERENCE])
    assert one_shift.ter.score == pytest.approx(100 / 7, abs=1e-10)


def test_chrf_single_letters_equals_hand_computation() -> None:
    # "ab" against "ac": 1 of 2 letters, 0 of 1 pairs; mean precision and recall both 1/4.
    assert corpus_chrf_score(["ab"], ["ac"]) == pytest.approx(25.0, abs=1e-10)


def test_evaluate_corpus_perfect_translation_scores_best() -> None:
    lines = make_references(11)
    evaluation = evaluate_corpus(lines, lines, Scoring(num_resamples=53))
    for score, best in ((evaluation.bleu, 100), (evaluation.chrf, 100), (evaluation.ter, 0)):
        assert score.score == pytest.approx(best, abs=1e-9)
        assert score.low == pytest.approx(best, abs=1e-9)
        assert score.high == pytest.approx(best, abs=1e-9)


def test_evaluate_corpus_interval_contains_score_and_narrows_with_more_sentences() -> None:
    widths = []
    for num_lines in (29, 463):
        references = make_references(num_lines)
        evaluation = evaluate_corpus(
            damage(references, 0.2, 3), references, Scoring(num_resamples=211)
        )
        for score in (evaluation.bleu, evaluation.chrf, evaluation.ter):
            assert score.low < score.score < score.high
        widths.append(evaluation.bleu.high - evaluation.bleu.low)
    assert widths[1] < widths[0] / 2


def test_evaluate_corpus_interval_depends_on_seed_only() -> None:
    references = make_references(31)
    hypotheses = damage(references, 0.3, 5)
    first = evaluate_corpus(hypotheses, references, Scoring(num_resamples=101, seed=17))
    again = evaluate_corpus(hypotheses, references, Scoring(num_resamples=101, seed=17))
    other = evaluate_corpus(hypotheses, references, Scoring(num_resamples=101, seed=19))
    assert first == again
    assert first.bleu.score == other.bleu.score
    assert first.bleu.low != other.bleu.low


def test_evaluate_corpus_ignores_sacrebleu_environment_seed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    references = make_references(23)
    hypotheses = damage(references, 0.3, 5)
    first = evaluate_corpus(hypotheses, references, Scoring(num_resamples=43))
    monkeypatch.setenv("SACREBLEU_SEED", "77")
    assert evaluate_corpus(hypotheses, references, Scoring(num_resamples=43)) == first


def test_ter_very_long_line_ends_and_signature_tells() -> None:
    draw = random.Random(13)
    words = [str(draw.randrange(2999)) for _ in range(2003)]
    hypothesis = " ".join(["new", *words[:-1]])
    long = evaluate_corpus([hypothesis], [" ".join(words)], Scoring(num_resamples=2)).ter
    assert long.score == pytest.approx(100 * 2 / 2003, abs=1e-10)
    assert "|noshift:1|" in long.signature
    assert "noshift" not in evaluate_corpus([REFERENCE], [REFERENCE]).ter.signature
    draw.shuffle(words)
    assert evaluate_corpus([" ".join(words)], [hypothesis], Scoring(num_resamples=2)).ter.score > 50


@pytest.mark.parametrize("language", [None, "fr"])
@pytest.mark.parametrize(
    ("hypotheses", "references"),
    [([""], [""]), ([""], ["un chien ."]), (["un chien ."], [""]), (["", " "], ["a", "\u2028"])],
)
def test_evaluate_corpus_empty_lines_give_finite_scores(
    language: str | None, hypotheses: list[str], references: list[str]
) -> None:
    evaluation = evaluate_corpus(
        hypotheses, references, Scoring(lowercased_tokenized=language, num_resamples=5)
    )
    for score in (evaluation.bleu, evaluation.chrf, evaluation.ter):
        assert all(math.isfinite(value) for value in (score.score, score.low, score.high))
    assert evaluation.bleu.score == 0
    comparison = compare(hypotheses, hypotheses, references, Scoring(num_resamples=5))
    assert comparison.ter.difference == 0


@pytest.mark.parametrize(
    "text", ["\x00\x07\x1b[0m", "🙂🙂", "שלום עולם", "a\u2028b\u0085c", "DOTMULTI"]
)
def test_evaluate_corpus_strange_characters_do_not_crash(text: str) -> None:
    for language in (None, "de"):
        evaluation = evaluate_corpus(
            [text, REFERENCE],
            [text, REFERENCE],
            Scoring(lowercased_tokenized=language, num_resamples=2),
        )
        assert evaluation.ter.score == 0


def test_signature_names_what_was_done() -> None:
    lines = ["Un chien noir ."]
    plain = evaluate_corpus(lines, lines, Scoring(num_resamples=41, seed=3))
    assert plain.bleu.signature.startswith("nrefs:1|bs:41|seed:3|case:mixed|eff:no|tok:13a|")
    assert "moses" not in plain.bleu.signature
    processed = evaluate_corpus(
        lines, lines, Scoring(lowercased_tokenized="fr", num_resamples=41, seed=3)
    )
    for score in (processed.bleu, processed.chrf, processed.ter):
        assert "|moses:fr|steps:lc+norm+tok+escape|sacremoses:" in score.signature
    assert "|tok:none|" in processed.bleu.signature


@pytest.mark.parametrize(
    ("language", "raw", "expected"),
    [
        ("fr", "L'homme s'assoit aujourd'hui.", "l&apos; homme s&apos; assoit aujourd&apos; hui ."),
        (
            "fr",
            "Une fille dit\u00a0: «\u00a0J\u2019aime ça\u00a0!\u00a0»",
            "une fille dit : &quot; j&apos; aime ça ! &quot;",
        ),
        (
            "fr",
            "Un t-shirt, 3,5 mètres & <b>|[x]",
            "un t-shirt , 3,5 mètres &amp; &lt; b &gt; &#124; &#91; x &#93;",
        ),
        ("fr", 'Il crie "Attention."', "il crie &quot; attention &quot; ."),
        ("de", "„Geht's?“ \u2013 fragt er …", "&quot; geht &apos; s ? &quot; - fragt er ..."),
        ("en", "The dog's ball isn't RED.", "the dog &apos;s ball isn &apos;t red ."),
        ("en", "", ""),
    ],
)
def test_lowercase_and_tokenize_known_lines_give_what_moses_gives(
    language: str, raw: str, expected: str
) -> None:
    assert lowercase_and_tokenize([raw], language) == [expected]


def test_evaluate_corpus_lowercased_tokenized_ignores_case_and_spacing_of_punctuation() -> None:
    hypotheses, references = ["UN HOMME S\u2019ASSOIT, LÀ ."], ["Un homme s'assoit, là."]
    assert evaluate_corpus(hypotheses, references, Scoring(num_resamples=2)).bleu.score < 50
    processed = evaluate_corpus(
        hypotheses, references, Scoring(lowercased_tokenized="fr", num_resamples=2)
    )
    assert processed.bleu.score == pytest.approx(100, abs=1e-9)
    assert processed.ter.score == 0


def test_compare_identical_systems_differ_by_nothing() -> None:
    references = make_references(37)
    hypotheses = damage(references, 0.2, 3)
    comparison = compare(hypotheses, list(hypotheses), references, Scoring(num_resamples=101))
    for part in (comparison.bleu, comparison.chrf, comparison.ter):
        assert part.difference == 0
        assert part.p_value == 1


def test_compare_clearly_better_system_is_significant() -> None:
    references = make_references(101)
    better, worse = damage(references, 0.05, 3), damage(references, 0.4, 5)
    comparison = compare(better, worse, references, Scoring(num_resamples=199))
    assert comparison.bleu.difference > 0
    assert comparison.ter.difference < 0
    for part in (comparison.bleu, comparison.chrf, comparison.ter):
        assert part.difference == part.score - part.baseline
        assert part.p_value == pytest.approx(1 / 200)
    swapped = compare(worse, better, references, Scoring(num_resamples=199))
    assert swapped.bleu.difference == -comparison.bleu.difference
    assert swapped.bleu.p_value == comparison.bleu.p_value


def test_p_value_of_equally_good_systems_is_below_005_one_time_in_twenty() -> None:
    draw, num_trials, num_lines = np.random.default_rng(7), 1000, 100
    # How much better a line is by one of two systems, dealt to the two by a coin.
    sizes = draw.gamma(1.0, size=num_lines)
    times = np.array(list(draw_resamples(num_lines, 400, 12345)), dtype=np.float64)
    low = 0
    for _ in range(num_trials):
        differences = sizes * draw.choice((-1.0, 1.0), size=num_lines)
        low += _p_value(times @ differences, float(differences.sum())) < 0.05
    assert 0.03 < low / num_trials < 0.075


def test_compare_one_line_shows_no_difference_to_be_more_than_chance() -> None:
    comparison = compare(["a b c d e"], ["a b x d e"], ["a b c d e"])
    assert comparison.chrf.difference > 0
    assert comparison.chrf.p_value == 1


def test_compare_equally_damaged_systems_are_not_significant() -> None:
    references = make_references(101)
    first, second = damage(references, 0.2, 3), damage(references, 0.2, 23)
    comparison = compare(first, second, references, Scoring(num_resamples=199))
    assert comparison.bleu.p_value > 0.05
    assert comparison == compare(first, second, references, Scoring(num_resamples=199))


def test_compare_scores_equal_those_of_evaluate_corpus() -> None:
    references = make_references(13)
    first, second = damage(references, 0.2, 3), damage(references, 0.3, 5)
    comparison = compare(
        first, second, references, Scoring(lowercased_tokenized="de", num_resamples=47)
    )
    alone = evaluate_corpus(first, references, Scoring(lowercased_tokenized="de", num_resamples=47))
    assert comparison.bleu.score == alone.bleu.score
    assert comparison.ter.signature == alone.ter.signature


def test_evaluate_corpus_different_lengths_names_both_counts() -> None:
    with pytest.raises(DataError, match="2 hypotheses and 3 references"):
        evaluate_corpus(["a", "b"], ["a", "b", "c"])
    with pytest.raises(DataError, match="2 hypotheses and 1 references"):
        corpus_bleu_score(["a", "b"], ["a"])
    with pytest.raises(DataError, match="2 hypotheses and 1 baseline lines and 2 references"):
        compare(["a", "b"], ["a"], ["a", "b"])


def test_evaluate_corpus_no_lines_is_data_error() -> None:
    with pytest.raises(DataError, match="at least one line"):
        evaluate_corpus([], [])
    with pytest.raises(DataError, match="at least one line"):
        compare([], [], [])


@pytest.mark.parametrize("hypotheses", ["abc", ["a", "b", None], [b"a", "b", "c"]])
def test_evaluate_corpus_anything_but_strings_is_input_error(hypotheses: list[str]) -> None:
    with pytest.raises(InputError, match="hypotheses must be a sequence of strings"):
        evaluate_corpus(hypotheses, ["a", "b", "c"])


def test_evaluate_corpus_unknown_language_lists_known_codes() -> None:
    with pytest.raises(ConfigurationError, match=r"'xx'.*cs, de, el, en.*fr"):
        evaluate_corpus(["a"], ["a"], Scoring(lowercased_tokenized="xx"))


def test_moses_languages_are_those_of_sacremoses() -> None:
    from sacremoses.corpus import NonbreakingPrefixes

    assert set(MOSES_LANGUAGES) == set(NonbreakingPrefixes().available_langs.values())


@pytest.mark.parametrize(("num_resamples", "seed"), [(1, 3), (0, 3), (5, -1)])
def test_evaluate_corpus_impossible_resampling_is_configuration_error(
    num_resamples: int, seed: int
) -> None:
    with pytest.raises(ConfigurationError):
        evaluate_corpus(["a"], ["a"], Scoring(num_resamples=num_resamples, seed=seed))


@pytest.mark.parametrize(
    ("words", "reference", "expected"),
    [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "", 3), ("abcd", "bcda", 2), ("", "", 0)],
)
def test_edit_distance_known_words_give_known_distances(
    words: str, reference: str, expected: int
) -> None:
    assert count_word_edits(words, reference) == expected


def test_import_leaves_torch_and_sacremoses_unimported() -> None:
    code = "import sys, pellucid.evaluation; print({'torch', 'sacremoses'} & set(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "set()"
