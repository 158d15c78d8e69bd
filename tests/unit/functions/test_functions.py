"""What a command does, a function of its name does: train, evaluate, convert, export, align."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pellucid
from pellucid.config import Recipe
from pellucid.corpora import make_split
from pellucid.errors import ConfigurationError, InputError, PellucidError
from pellucid.evaluation.corpus_scores import evaluate_corpus
from pellucid.translate.translator import Translator

SOURCES = ["The soup was cold.", "The cat slept.", "The girl closed the window."]
TARGETS = ["La soupe était froide.", "Le chat dormait.", "La fille a fermé la fenêtre."]
SMALL = {"model.d_model": 32, "training.max_steps": 2, "data.split": 20}


@pytest.fixture
def pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_report: None) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [f"{pair.source}\t{pair.target}\n" for pair in make_split("train", count=400)]
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def translator() -> Translator:
    return pellucid.load("demo")


# Train


def test_table_is_trained_on_with_settings_chosen_for_it(pairs: Path) -> None:
    found = pellucid.train(
        pairs, source_language="en", target_language="fr", settings=SMALL, progress=False
    )
    assert found.steps == 2
    assert found.run == Path("runs/pairs")
    recipe = (found.run / "recipe.toml").read_text(encoding="utf-8")
    # The paper's optimizer is Adam; the command chooses another for so little text.
    assert 'optimizer = "muon"' in recipe
    assert found.load(beam=2).translate(SOURCES[0]).error is None
    again = pellucid.train(
        pairs, source_language="en", target_language="fr", settings=SMALL, progress=False
    )
    assert (again.steps, again.bleu, again.loss) == (found.steps, found.bleu, found.loss)
    assert len(pellucid.evaluate(found.run).hypotheses) == 20


def test_no_minutes_are_refused_before_anything_is_written(pairs: Path) -> None:
    with pytest.raises(InputError, match="minutes must be more than 0"):
        pellucid.train(pairs, source_language="en", target_language="fr", minutes=0)
    assert not Path("runs").exists()


def test_recipe_object_is_trained_on_with_what_it_leaves_open_chosen(pairs: Path) -> None:
    recipe = Recipe.model_validate(
        {
            "data": {
                "source_language": "en",
                "target_language": "fr",
                "train": [str(pairs)],
                "split": 20,
            },
            "model": {"size": "tiny"},
        }
    )
    found = pellucid.train(recipe, output="own", settings={"training.max_steps": 1}, progress=False)
    assert found.model == Path("own/bundle")
    assert found.model.is_dir()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"lr": 1.0}, "must be section.key, but is 'lr'. Did you mean 'training.learning_rate'?"),
        ({"training.lr": 1.0}, "The key 'training.lr' is unknown"),
        ({"training.max_steps": None}, "must be a number, a text, True, False or a list of these"),
        (["training.max_steps=3"], "settings must be a dict such as"),
    ],
)
def test_wrong_setting_is_one_sentence(pairs: Path, settings: Any, sentence: str) -> None:
    with pytest.raises(ConfigurationError if isinstance(settings, dict) else InputError) as caught:
        pellucid.train(pairs, source_language="en", target_language="fr", settings=settings)
    assert sentence in str(caught.value)


# Evaluate


def test_model_is_evaluated_with_the_search_that_is_asked_for(
    translator: Translator, tmp_path: Path
) -> None:
    greedy = pellucid.evaluate(translator, source=SOURCES, reference=TARGETS)
    beam = pellucid.evaluate("demo", source=SOURCES, reference=TARGETS, beam=5)
    assert greedy.decoding is not None
    assert beam.decoding is not None
    assert (greedy.decoding.beam, beam.decoding.beam) == (1, 5)
    assert beam.hypotheses == tuple(str(one) for one in translator.translate(SOURCES, beam=5))
    (tmp_path / "source").write_text("\n".join(SOURCES) + "\n", "utf-8")
    (tmp_path / "reference").write_text("\n".join(TARGETS) + "\n", "utf-8")
    files = pellucid.evaluate(
        "demo", source=tmp_path / "source", reference=str(tmp_path / "reference"), beam=5
    )
    assert files == beam
    assert repr(beam).startswith(f"<BLEU {beam.bleu.score:.2f} [")


def test_the_device_is_that_of_the_model_that_is_loaded(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    choose = "pellucid.translate.translator.resolve_device"
    monkeypatch.setattr(choose, lambda name: asked.append(name) or "cpu")
    found = pellucid.evaluate("demo", source=SOURCES, reference=TARGETS, device="auto")
    assert found.hypotheses
    assert asked == ["auto"]
    with pytest.raises(InputError, match="A translator has its device already"):
        pellucid.evaluate(translator, source=SOURCES, reference=TARGETS, device="cpu")


def test_given_translations_are_scored_as_by_the_evaluation() -> None:
    found = pellucid.evaluate(hypothesis=SOURCES, reference=[TARGETS, SOURCES], against=TARGETS)
    plain = evaluate_corpus(SOURCES, [TARGETS, SOURCES])
    assert (found.bleu, found.chrf, found.ter) == (plain.bleu, plain.chrf, plain.ter)
    assert found.comparison is not None
    assert found.comparison.bleu.difference == 0


def test_tokenization_is_named_as_by_the_command() -> None:
    texts = ["Un chien dort ici ."] * 5
    none = pellucid.evaluate(hypothesis=texts, reference=texts, tokenize="none")
    assert "|tok:none|" in none.bleu.signature
    moses = pellucid.evaluate(hypothesis=texts, reference=texts, moses="fr")
    assert "moses" in moses.bleu.signature
    for old, new in (("tokenized", "tokenize"), ("lowercased_tokenized", "moses")):
        with pytest.raises(PellucidError, match=f"Did you mean '{new}'"):
            pellucid.evaluate(hypothesis=texts, reference=texts, **{old: "fr"})  # type: ignore[arg-type]
    with pytest.raises(PellucidError, match="tokenize cannot be combined with moses"):
        pellucid.evaluate(hypothesis=texts, reference=texts, tokenize="none", moses="fr")


def test_changed_model_is_compared_with_itself(translator: Translator) -> None:
    found = pellucid.evaluate(
        translator, source=SOURCES, reference=TARGETS, changes="cut decoder.1.cross.0"
    )
    assert found.comparison is not None
    assert found.comparison.bleu.score == found.bleu.score
    assert translator.changes is None


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: pellucid.evaluate(reference=["a"]), "needs either a model or a hypothesis"),
        (lambda: pellucid.evaluate("demo", source=["a"]), "needs a reference"),
        (lambda: pellucid.evaluate("demo", reference=["a"]), "needs text to translate"),
        (
            lambda: pellucid.evaluate("demo", source=["a"], reference=["a"], num_beams=3),  # type: ignore[call-arg]
            "Did you mean 'beam'?",
        ),
    ],
)
def test_missing_text_is_one_sentence(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(PellucidError) as caught:
        call()
    assert sentence in str(caught.value)


# Convert and export


def test_bundle_is_exported_and_measured(tmp_path: Path) -> None:
    plain = pellucid.export("demo", tmp_path / "a", format="pellucid", precision="int8")
    assert (plain.precision, plain.before) == ("int8", None)
    found = pellucid.export(
        "demo", tmp_path / "b", format="pellucid", precision="auto", source=SOURCES * 3,
        reference=TARGETS * 3,
    )  # fmt: skip
    assert found.precision == "int8"
    assert found.before is not None
    manifest = json.loads((tmp_path / "b" / "manifest.json").read_text("utf-8"))
    assert manifest["exported"]["bleu"]["before"] == found.before
    assert pellucid.load(found.folder).translate(SOURCES[0]).text == TARGETS[0]
    with pytest.raises(InputError, match="b exists"):
        pellucid.export("demo", tmp_path / "b", format="pellucid")
    with pytest.raises(InputError, match=r"precision auto needs lines"):
        pellucid.export("demo", tmp_path / "c", format="pellucid", precision="auto")


# Align


def test_given_pairs_are_linked(translator: Translator) -> None:
    one = translator.align(SOURCES[0], TARGETS[0])
    assert one.alignment == ((0, 0), (1, 1), (2, 2), (3, 3))
    assert one.source_words == ("The", "soup", "was", "cold.")
    assert one._repr_html_().count("<line ") == 4
    several = translator.align([*SOURCES, "so\udcffup"], [*TARGETS, "soupe"])
    assert several[0] == one
    assert several[-1].alignment == ()
    assert "UTF-8" in str(several[-1].error)
    tokens = translator.align(SOURCES[0], TARGETS[0], words="subwords")
    assert tokens.target_words == translator.translate(SOURCES[0]).tokens[:-1]
