"""Vectors of one sentence in another: the numbers, what is refused, and the command."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pellucid
from pellucid.corpora import iterate_split
from pellucid.errors import InputError
from pellucid.inside import Pair, make_pair, patch
from pellucid.inside.ask import arrays_of
from pellucid.inside.measures.patching import Patching
from pellucid.translate.translator import Translator

sys.path.insert(0, str(Path(__file__).parent))
from numpy_transformer import NumpyTransformer

Run = Callable[..., subprocess.CompletedProcess[str]]
A = "The pizza came out of the oven and it tasted good."
B = "The cake came out of the oven and it tasted good."
TARGETS = (
    "La pizza est sortie du four et elle avait bon goût.",
    "La pizza est sortie du four et il avait bon goût.",
)


@pytest.fixture(scope="module")
def demo() -> Translator:
    return pellucid.load("demo")


def pair_of(model: Translator, source: str, target: str) -> Pair:
    return make_pair(model.own_bundle, source, target, float64=True)


@pytest.fixture(scope="module")
def pizza(demo: Translator) -> tuple[Pair, Pair]:
    return pair_of(demo, A, TARGETS[0]), pair_of(demo, B, TARGETS[1])


class Patched(NumpyTransformer):
    """The second Transformer, with one slice of one array replaced."""

    name: str = ""
    index: Any = None
    vector: Any = None

    def keep(self, name: str, array: np.ndarray) -> np.ndarray:
        if name == self.name:
            array = array.copy()
            array[self.index] = self.vector
        return super().keep(name, array)


def test_shares_of_fifty_pairs_equal_a_second_transformers(demo: Translator) -> None:
    folder = demo.own_bundle.folder
    draw = random.Random(7)
    examples = list(islice(iterate_split("pronoun"), 100))
    plain, patched = NumpyTransformer(folder), Patched(folder)
    left = [w for w in arrays_of(demo.model.config) if not w.name.startswith("decoder.logits")]
    draw.shuffle(left)
    for first, second in zip(examples[::2], examples[1::2], strict=True):
        a, b = (pair_of(demo, e.source, e.target) for e in (first, second))
        task = Patching(a, b)
        ids = a.target_ids[task.row], b.target_ids[task.row]
        read = [a.tokenizer.config.target_start_id, *a.target_ids[: task.row]]
        of_a = dict(plain.run(a.source_ids, read))
        start = plain.run(b.source_ids, read)["decoder.logits"][-1]

        def preference(logits: np.ndarray, ids: tuple[int, int] = ids) -> float:
            return float(logits[ids[0]] - logits[ids[1]])

        whole = preference(of_a["decoder.logits"][-1]) - preference(start)
        is_whole = len(task.sources) == len(a.source_ids) == len(b.source_ids)
        for array in [w for w in left if is_whole or w.axes[-1] != "S"][:3]:
            left.remove(array)
            here, there = draw.choice(task.positions(array.axes.removeprefix("H")[0]))
            head = draw.randrange(demo.model.config.num_heads) if array.axes[0] == "H" else None
            found = patch(a, b, [array.name], [there], None if head is None else [head])
            before = (here,) if head is None else (head, here)
            patched.name, patched.vector = array.name, of_a[array.name][before]
            patched.index = (there,) if head is None else (head, there)
            logits = patched.run(b.source_ids, read)["decoder.logits"][-1]
            share = (preference(logits) - preference(start)) / whole
            assert found.matrix[0, 0] == pytest.approx(share, abs=1e-9)
    assert not left


def test_everything_restores_all_and_a_sentence_of_its_own_nothing(
    pizza: tuple[Pair, Pair],
) -> None:
    found = patch(*pizza)
    assert found.matrix[:, -1].tolist() == [1.0, 1.0, 1.0]
    assert found.column_labels[-1] == "(all)"
    same = found.column_tokens.index("came")
    assert found.matrix[0, same] == 0.0


def test_gender_moves_from_the_noun_to_the_pronoun_in_the_first_layer(
    pizza: tuple[Pair, Pair],
) -> None:
    found = patch(*pizza)
    cake, it = (found.column_tokens.index(word) for word in ("cake", "it"))
    assert found.matrix[0, cake] > 0.9
    assert found.matrix[-1, it] > 0.9
    assert abs(found.matrix[-1, cake]) < 0.1


def test_sentences_of_other_lengths_are_aligned_by_their_words(demo: Translator) -> None:
    b = pair_of(demo, "The big cake came out of the oven and it tasted good.", TARGETS[1])
    a = pair_of(demo, A, TARGETS[0])
    task = Patching(a, b)
    named = [(a.source_tokens[i], b.source_tokens[j]) for i, j in task.positions("S")]
    assert ("pizza", "cake") in named
    assert [i for i, j in named if i != j] == ["pizza"]
    assert "big" not in patch(a, b).column_tokens
    with pytest.raises(InputError, match=r"Position 1 \(big\) aligns with no position"):
        patch(a, b, positions=[1])
    with pytest.raises(InputError, match=r"encoder\.0\.self\.weights has a column for each word"):
        patch(a, b, ["encoder.0.self.weights"])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"sites": ["encoder.7"]}, "such as encoder.0"),
        ({"sites": ["encoder.0", "decoder.0"]}, "source positions or of decoder rows"),
        ({"sites": ["encoder.0"], "heads": [0]}, "has no heads"),
        ({"sites": ["encoder.0.self.value"], "heads": [9]}, "head"),
        ({"positions": [99]}, "position"),
    ],
)
def test_what_does_not_exist_is_refused(
    pizza: tuple[Pair, Pair], options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        patch(*pizza, **options)


def test_sentences_without_a_difference_are_refused(demo: Translator) -> None:
    with pytest.raises(InputError, match="both are translated the same"):
        patch(pair_of(demo, A, TARGETS[0]), pair_of(demo, B, TARGETS[0]))
    with pytest.raises(InputError, match="both prefer"):
        patch(pair_of(demo, A, TARGETS[0]), pair_of(demo, A, TARGETS[1]))


def test_command_shows_draws_and_writes_the_map(run_here: Run, tmp_path: Path) -> None:
    command = ("look", "demo", B, "--patch-from", A, "--why", "elle", "--not", "il")
    shown = run_here(*command)
    assert shown.returncode == 0, shown.stderr
    assert "elle (A) or il (B)" in shown.stdout
    files = [tmp_path / name for name in ("p.json", "p.svg")]
    chosen = ("--position", "it", "--at", "encoder.0")
    done = run_here(*command, *chosen, "--json", str(files[0]), "--svg", str(files[1]))
    assert done.returncode == 0, done.stderr
    record = json.loads(files[0].read_text())
    assert record["columns"] == ["it", "(all)"]
    assert record["answers"] == ["elle", "il"]
    assert len(record["shares"]) == 1
    assert files[1].read_text().startswith("<?xml")


@pytest.mark.parametrize("model", ["demo-recurrent", "demo-untrained"])
def test_twins_are_patched_with_a_given_translation(run_here: Run, model: str) -> None:
    words = ("--why", "elle", "--not", "il", "--target", TARGETS[0])
    done = run_here("look", model, B, "--patch-from", A, *words)
    assert done.returncode == 0, done.stderr
    assert "(all)" in done.stdout


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--at", "encoder"), "--at needs --patch-from"),
        (("--patch-from", B), "both are translated the same"),
        (("--patch-from", A, "--position", "house"), "--position must be a word of the source"),
        (("--patch-from", A, "--lens"), "--lens"),
        (("--patch-from", "\ud800"), "--patch-from"),
    ],
)
def test_impossible_requests_give_one_sentence_and_2(
    run_here: Run, options: tuple[str, ...], sentence: str
) -> None:
    done = run_here("look", "demo", B, *options)
    assert done.returncode == 2
    assert sentence in done.stderr
