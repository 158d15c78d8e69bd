"""The small model that comes with the package translates as when it was shipped.

It was made by ``pellucid demo`` and is the bundle of that run, unchanged.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

import pellucid
from pellucid.bundle import resolve_model
from pellucid.corpora import SplitName, make_split, seed_examples
from pellucid.demo import evaluate_split, row_of_piece
from pellucid.translator import Translator

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def translator() -> Translator:
    return pellucid.load("demo")


def test_demo_model_is_small() -> None:
    folder = resolve_model("demo")
    assert sum(path.stat().st_size for path in folder.iterdir()) < 2_000_000


@pytest.mark.parametrize(
    ("name", "least"), [("test", 0.97), ("compositional", 0.90), ("pronoun", 0.97)]
)
def test_demo_model_translates_unseen_sentences(
    name: SplitName, least: float, translator: Translator
) -> None:
    examples = make_split(name, count=400)
    result = evaluate_split(translator, name, [(e.source, e.target) for e in examples])
    assert result.exact_match >= least
    if result.num_pairs_right is not None:
        assert result.num_pairs_right >= 0.95 * len(examples) / 2


def test_demo_model_translates_the_texts_own_sentences(translator: Translator) -> None:
    examples = seed_examples()
    translations = translator.translate([example.source for example in examples])
    assert [t.text for t in translations] == [example.target for example in examples]


def test_demo_model_replay_of_every_sentence_agrees_with_its_decode(
    translator: Translator,
) -> None:
    for example in seed_examples():
        trace = translator.look(example.source)
        assert trace.checks["decode"] < 1e-4
        for pronoun in example.pronouns:
            assert row_of_piece(trace, pronoun.target) is not None


def test_demo_is_a_model_on_the_command_line(run_cli: Run) -> None:
    sentence = "The pizza came out of the oven and it tasted good"
    done = run_cli("translate", "demo", stdin=f"{sentence}\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "La pizza est sortie du four et elle avait bon goût\n"
