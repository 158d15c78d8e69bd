"""The measure that chooses the model to keep, and trainings that learn nothing."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from small_runs import make_recipe, read_metrics, write_text

from pellucid.bundle import load_bundle
from pellucid.config import TokenizerConfig
from pellucid.errors import ConfigurationError, TrainingError
from pellucid.evaluation.corpus_scores import bleu_for_ranking
from pellucid.text.reading.sentence_pairs import SentencePair
from pellucid.training.loop import train
from pellucid.training.run import validator
from pellucid.training.validation import Validation, describe_measuring, validate_model
from pellucid.translate.results import Translation

Figures = tuple[float, float, float]
"""Loss, BLEU and chrF of one validation."""


def set_validations(
    monkeypatch: pytest.MonkeyPatch, figures: Sequence[Figures], *, is_bleu_useful: bool = True
) -> None:
    """Let validations find these, one after the other."""
    left = iter(figures)

    def validate(translator: Any, pairs: Sequence[SentencePair]) -> Validation:
        targets = tuple(pair.target for pair in pairs)
        return Validation(*next(left), targets, is_bleu_useful=is_bleu_useful)

    monkeypatch.setattr(validator, "validate_model", validate)


def run_with(tmp_path: Path, **training: Any) -> Any:
    settings = {"validate_every": 2, "max_steps": 8, **training}
    return train(
        make_recipe(training=settings), tmp_path / "run", recipe_folder=tmp_path, progress=False
    )


def state_of(run: Path) -> dict[str, Any]:
    newest = max((run / "checkpoints").iterdir())
    state: dict[str, Any] = json.loads((newest / "state.json").read_text())
    return state


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("best_by", "figures", "best_step", "words"),
    [
        # BLEU decides although chrF and loss say otherwise.
        ("auto", [(1, 10, 50), (2, 12, 40), (3, 11, 60), (1, 9, 70)], 4, "BLEU 12.0"),
        # BLEU is 0 throughout.
        ("auto", [(4, 0, 1.2), (3, 0, 30), (2, 0, 91.7), (3, 0, 80)], 6, "chrF 91.7 (BLEU 0.0)"),
        # BLEU is equal.
        ("auto", [(1, 12, 50), (1, 12, 60), (1, 12, 55), (1, 11, 99)], 4, "BLEU 12.0"),
        # The model writes the same sentence for ever, and the loss falls.
        ("auto", [(5, 0, 1), (4, 0, 1), (3, 0, 1), (3.5, 0, 1)], 6, "chrF 1.0 (BLEU 0.0)"),
        ("bleu", [(1, 12, 50), (1, 12, 60), (1, 0, 70), (1, 11, 80)], 2, "BLEU 12.0"),
        ("chrf", [(1, 12, 50), (1, 9, 60), (2, 30, 60), (1, 40, 40)], 4, "chrF 60.0 (BLEU 9.0)"),
        ("loss", [(2, 12, 50), (1, 9, 60), (1, 9, 80), (3, 40, 40)], 4, "loss 1.000 (BLEU 9.0)"),
    ],
)
def test_the_model_that_is_kept_is_the_best_by_the_measure(
    best_by: str,
    figures: list[Figures],
    best_step: int,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_text(tmp_path)
    set_validations(monkeypatch, figures)
    summary = run_with(tmp_path, best_by=best_by)
    assert summary.best_step == best_step
    best = figures[best_step // 2 - 1]
    assert (summary.best_loss, summary.best_bleu, summary.best_chrf) == best
    manifest = load_bundle(summary.bundle).manifest
    assert manifest["metrics"]["best_step"] == best_step
    assert f"best validation {words} at step {best_step}" in (tmp_path / "run/log.txt").read_text()


def test_bleu_that_says_little_leaves_the_choice_to_chrf(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path)
    figures = [(1, 0.9, 5.0), (1, 0.3, 9.0), (1, 0.8, 7.0), (1, 0.1, 20.0)]
    set_validations(monkeypatch, figures, is_bleu_useful=False)
    summary = run_with(tmp_path)
    assert (summary.best_step, summary.best_chrf) == (8, 20.0)
    log = (tmp_path / "run/log.txt").read_text()
    assert log.count("(best so far, by chrF)") == 2


def test_patience_counts_by_the_same_measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path)
    rising = [(1, 0, chrf) for chrf in (1, 20, 40, 60)]
    set_validations(monkeypatch, [*rising, (1, 0, 50), (1, 0, 55)])
    summary = run_with(tmp_path, patience=2, max_steps=100)
    assert (summary.steps, summary.best_step) == (12, 8)


def test_a_resumed_run_remembers_the_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_text(tmp_path)
    set_validations(monkeypatch, [(1, 0, 40), (1, 0, 30)])
    run_with(tmp_path, max_steps=4)
    assert state_of(tmp_path / "run")["best_rank"] == [0, 40, -1]
    set_validations(monkeypatch, [(1, 0, 35), (1, 0, 41)])
    summary = run_with(tmp_path)
    assert (summary.best_step, summary.best_chrf) == (8, 41)
    with pytest.raises(ConfigurationError, match=r"training\.best_by differs"):
        run_with(tmp_path, best_by="loss")


@pytest.mark.parametrize(
    ("hypotheses", "references", "is_useful"),
    [
        (["a b c d e"], ["a b c d f"], True),
        (["a b c x d"], ["a b c d f"], False),
        (["a b"], ["a b"], False),
        (["我喜欢红色的书"], ["我喜欢蓝色的书"], False),
        (["我很喜欢蓝色的书"], ["我喜欢蓝色的书"], True),
        (["a"], ["一"], False),
    ],
)
def test_bleu_for_ranking_needs_a_right_sequence_of_four(
    hypotheses: list[str], references: list[str], is_useful: bool
) -> None:
    assert bleu_for_ranking(hypotheses, references, tokenize="zh")[1] == is_useful


class Echo:
    """A translator that knows the targets, in the composed form."""

    def __init__(self, pairs: Sequence[SentencePair], **config: Any) -> None:
        self._pairs = pairs
        self.tokenizer = self
        self.config = TokenizerConfig(**config)

    def score(self, sources: Sequence[str], targets: Sequence[str], **_: int) -> list[Any]:
        return []

    def translate(self, sources: Sequence[str], **_: int) -> list[Translation]:
        lines = (unicodedata.normalize("NFC", pair.target) for pair in self._pairs)
        if self.config.lowercase:
            lines = (line.lower() for line in lines)
        return [Translation(line, (Said(line),)) for line in lines]  # type: ignore[arg-type]


class Said:
    def __init__(self, text: str) -> None:
        self.text = text


@pytest.mark.parametrize(
    ("target", "config", "said"),
    [
        ("我的朋友今天看见了红色的书。", {}, ["tokenizer zh"]),
        ("私の友達は今日赤い本を見ました。", {}, ["tokenizer char"]),
        ("เพื่อนของฉันเห็นหนังสือสีแดงวันนี้", {}, ["tokenizer char"]),
        ("Ouvrir fichier", {}, ["fewer than four tokens"]),
        ("To\u0302i muo\u0302\u0301n mo\u0323\u0302t quye\u0302\u0309n sa\u0301ch", {}, ["(nfc)"]),
        ("Le Chat Noir DORT ici", {"kind": "words", "lowercase": True}, ["(nfc+lc)"]),
        ("Le chat noir dort ici", {}, []),
    ],
)
def test_validation_suits_the_text_and_says_how(
    target: str, config: dict[str, Any], said: list[str]
) -> None:
    pairs = [SentencePair("x", target, "here")] * 3
    found = validate_model(Echo(pairs, **config), pairs)  # type: ignore[arg-type]
    assert found.bleu == pytest.approx(100)
    assert found.chrf == pytest.approx(100)
    sentences = list(describe_measuring(pairs, TokenizerConfig(**config), "auto"))
    assert len(sentences) == len(said)
    assert all(word in sentence for word, sentence in zip(said, sentences, strict=True))
    assert (
        "chosen by chrF, then loss"
        in list(describe_measuring(pairs, TokenizerConfig(**config), "chrf"))[-1]
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"learning_rate": 20.0},
        {"learning_rate": 20.0, "optimizer": "muon", "muon_learning_rate": 5.0},
        {"learning_rate": 20.0, "optimizer": "adamw", "averaging": "running"},
    ],
)
def test_a_model_that_learned_nothing_is_said_and_ends_with_1(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    write_text(tmp_path)
    settings |= {"precision": "float32", "warmup_steps": 1, "max_steps": 20, "validate_every": 10}
    for _ in range(2):  # Again, without an update.
        with pytest.raises(TrainingError, match="must learn something, but its loss") as caught:
            run_with(tmp_path, **settings)
        assert caught.value.exit_code == 1
        assert "lower training.learning_rate (its peak was 20)" in str(caught.value)
        assert ("muon_learning_rate (5)" in str(caught.value)) == ("muon_learning_rate" in settings)
        assert "guessing gives 4." in str(caught.value) or "guessing gives 5." in str(caught.value)
    log = (tmp_path / "run/log.txt").read_text()
    assert "The loss is far above that of guessing" in log
    assert "Done" not in log
    assert [line["step"] for line in read_metrics(tmp_path / "run") if line["kind"] == "validation"]


def test_a_loss_that_is_high_only_in_validation_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path)
    set_validations(monkeypatch, [(30.0, 1.0, 2.0)] * 4)
    assert run_with(tmp_path).steps == 8
    log = (tmp_path / "run/log.txt").read_text()
    assert "has learned nothing of the validation text" in log
    assert "Done" in log
