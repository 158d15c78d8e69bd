"""Scores, intervals and p-values are sacreBLEU's own."""

from __future__ import annotations

import random

import numpy as np
import pytest
import sacrebleu
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest

from pellucid.evaluation.corpus_scores import (
    compare,
    corpus_bleu_score,
    corpus_chrf_score,
    evaluate_corpus,
)
from pellucid.evaluation.statistics import Scoring, resample_scores
from pellucid.evaluation.tokenization import lowercase_and_tokenize

NUM_RESAMPLES = 173
SENTENCE = "L'homme à la chemise bleue, debout : il nettoie une fenêtre (très haute) aujourd'hui !"
WORDS = SENTENCE.split()


@pytest.fixture(scope="module")
def texts() -> tuple[list[str], list[str], list[str]]:
    draw = random.Random(11)
    references = [" ".join(draw.choices(WORDS, k=draw.randint(1, 17))) for _ in range(67)]
    systems = []
    for share in (0.15, 0.18):
        lines = []
        for reference in references:
            words = ["faux" if draw.random() < share else word for word in reference.split()]
            words.insert(draw.randrange(len(words)), words.pop())
            lines.append(" ".join(words))
        systems.append(lines)
    systems[0][5] = ""
    return systems[0], systems[1], references


def test_evaluate_corpus_scores_equal_sacrebleu(
    texts: tuple[list[str], list[str], list[str]],
) -> None:
    hypotheses, _, references = texts
    evaluation = evaluate_corpus(hypotheses, references, Scoring(num_resamples=2))
    assert evaluation.bleu.score == sacrebleu.corpus_bleu(hypotheses, [references]).score
    assert evaluation.chrf.score == sacrebleu.corpus_chrf(hypotheses, [references]).score
    assert evaluation.ter.score == sacrebleu.corpus_ter(hypotheses, [references]).score
    assert corpus_bleu_score(hypotheses, references) == evaluation.bleu.score
    assert corpus_chrf_score(hypotheses, references) == evaluation.chrf.score


def test_evaluate_corpus_interval_and_signature_equal_sacrebleu(
    texts: tuple[list[str], list[str], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    hypotheses, _, references = texts
    monkeypatch.setenv("SACREBLEU_SEED", "29")
    evaluation = evaluate_corpus(
        hypotheses, references, Scoring(num_resamples=NUM_RESAMPLES, seed=29)
    )
    for metric, ours in (
        (BLEU(), evaluation.bleu),
        (CHRF(), evaluation.chrf),
        (TER(), evaluation.ter),
    ):
        theirs = metric.corpus_score(hypotheses, [references], n_bootstrap=NUM_RESAMPLES)
        # sacreBLEU sums in float32.
        assert (ours.high - ours.low) / 2 == pytest.approx(theirs._ci, rel=1e-5)
        assert ours.signature == str(metric.get_signature())


def test_evaluate_corpus_lowercased_tokenized_equals_sacrebleu_on_processed_text(
    texts: tuple[list[str], list[str], list[str]],
) -> None:
    hypotheses, _, references = texts
    evaluation = evaluate_corpus(
        hypotheses, references, Scoring(lowercased_tokenized="fr", num_resamples=2)
    )
    theirs = sacrebleu.corpus_bleu(
        lowercase_and_tokenize(hypotheses, "fr"),
        [lowercase_and_tokenize(references, "fr")],
        tokenize="none",
        force=True,
    )
    assert evaluation.bleu.score == theirs.score


def test_evaluate_corpus_of_tokenized_text_equals_sacrebleu_without_tokenization(
    texts: tuple[list[str], list[str], list[str]],
) -> None:
    hypotheses, _, references = ([f"{line} l' eau !" for line in lines] for lines in texts)
    evaluation = evaluate_corpus(
        hypotheses, references, Scoring(is_tokenized=True, num_resamples=2)
    )
    theirs = sacrebleu.corpus_bleu(hypotheses, [references], tokenize="none", force=True)
    assert evaluation.bleu.score == theirs.score
    assert "tok:none" in evaluation.bleu.signature
    assert evaluation.bleu.score != evaluate_corpus(hypotheses, references).bleu.score


def test_compare_samples_equal_sacrebleu_whose_p_values_count_one_tail(
    texts: tuple[list[str], list[str], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    hypotheses, baseline, references = texts
    monkeypatch.setenv("SACREBLEU_SEED", "31")
    test = PairedTest(
        [("baseline", baseline), ("system", hypotheses)],
        {"BLEU": BLEU(), "chrF2": CHRF(), "TER": TER()},
        [references],
        test_type="bs",
        n_samples=NUM_RESAMPLES,
    )
    signatures, results = test()
    comparison = compare(
        hypotheses, baseline, references, Scoring(num_resamples=NUM_RESAMPLES, seed=31)
    )
    scoring = Scoring(num_resamples=NUM_RESAMPLES, seed=31)
    systems = {"hypotheses": hypotheses, "baseline": baseline}
    resampled, _ = resample_scores(systems, references, scoring)
    for name, ours, samples in (
        ("BLEU", comparison.bleu, resampled["bleu"].samples),
        ("chrF2", comparison.chrf, resampled["chrf"].samples),
        ("TER", comparison.ter, resampled["ter"].samples),
    ):
        sizes = np.abs(samples[0] - samples[1])
        num_larger = np.sum(sizes - sizes.mean() > abs(ours.difference))
        one_tail = (num_larger + 1) / (NUM_RESAMPLES + 1)
        theirs_baseline, theirs = results[name]
        assert ours.baseline == pytest.approx(theirs_baseline.score, abs=1e-10)
        assert ours.score == pytest.approx(theirs.score, abs=1e-10)
        assert one_tail == pytest.approx(theirs.p_value, abs=1e-10)
        assert 0.01 < one_tail < ours.p_value < 1
        assert sorted(ours.signature.split("|")) == sorted(str(signatures[name]).split("|"))
