"""The recurrent model that comes with the package, next to the Transformer in it.

`make_recurrent_model.py` makes it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest

import pellucid
from pellucid.bundle import load_bundle, resolve_model
from pellucid.config import load_recipe
from pellucid.corpora import SplitName, make_split, seed_examples
from pellucid.demo import evaluate_split
from pellucid.translate.translator import Translator

Run = Callable[..., subprocess.CompletedProcess[str]]
SENTENCE = "The pizza came out of the oven and it tasted good"


@pytest.fixture(scope="module")
def translator() -> Translator:
    return pellucid.load("demo-recurrent")


def test_recurrent_model_is_small_and_of_its_recipe() -> None:
    folder = resolve_model("demo-recurrent")
    assert sum(path.stat().st_size for path in folder.iterdir()) < 3_300_000
    bundle = load_bundle(folder)
    recipe = load_recipe(Path(str(files("pellucid") / "recipes" / "packaged-recurrent.toml")))
    sizes = ("source_vocabulary_size", "target_vocabulary_size")
    vocabularies = {name: getattr(bundle.config.model, name) for name in sizes}
    assert bundle.config.model == recipe.model.model_copy(update=vocabularies)


def test_both_packaged_models_share_their_words() -> None:
    """The Transformer may have read more, and so know more words than the recurrent model."""
    demo, recurrent = (load_bundle(resolve_model(name)) for name in ("demo", "demo-recurrent"))
    for side in ("source", "target"):
        words, others = ({*one.tokenizer.vocabulary(side)} for one in (demo, recurrent))
        assert len(others & words) > 0.85 * len(others)
    counts = [sum(p.numel() for p in bundle.model.parameters()) for bundle in (demo, recurrent)]
    assert counts[1] <= 1.05 * counts[0]


@pytest.mark.parametrize(
    ("name", "least"), [("test", 0.93), ("compositional", 0.88), ("pronoun", 0.88)]
)
def test_recurrent_model_translates_unseen_sentences(
    name: SplitName, least: float, translator: Translator
) -> None:
    examples = make_split(name, count=300)
    result = evaluate_split(translator, name, [(e.source, e.target) for e in examples])
    assert result.exact_match >= least


def test_recurrent_model_translates_the_texts_own_sentences(translator: Translator) -> None:
    examples = seed_examples()
    translations = translator.translate([example.source for example in examples])
    assert [t.text for t in translations] == [example.target for example in examples]


def test_replay_agrees_with_the_decode(translator: Translator) -> None:
    for example in seed_examples():
        assert translator.look(example.source).checks["decode"] < 1e-4


def test_both_packaged_models_answer_next_to_each_other(run_forked: Run) -> None:
    done = run_forked("look", "demo", SENTENCE, "--compare-model", "demo-recurrent")
    assert done.returncode == 0
    assert done.stderr.count("This sentence is in the text that the model learned from.") == 1
    assert "Both answer the same." in done.stdout
    assert done.stdout.count("La pizza est sortie du four et elle avait bon goût") == 2
