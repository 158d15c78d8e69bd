"""Vectors of one sentence in another: the numbers, what is refused, and the command."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pellucid
from pellucid.corpora import iterate_split
from pellucid.errors import DataError, InputError
from pellucid.inside import Pair, patch, patch_corpus
from pellucid.inside.ask import arrays_of
from pellucid.inside.pair import make_pair, states_of
from pellucid.inside.patches.patched_places import OneArray
from pellucid.inside.patches.two_runs import Patching
from pellucid.lessons.walks.walk import read_outputs
from pellucid.terminal.grid import write_fixed
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
    return make_pair(model.bundle, source, target, float64=True)


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
    folder = demo.bundle.folder
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
            found = patch(a, b, [str(OneArray(array.name, head))], [there], row=task.row)
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
    # A batch of both runs rounds otherwise than each alone.
    assert found.matrix[:, -1] == pytest.approx([1.0, 1.0, 1.0], abs=1e-12)
    assert found.column_labels[-1] == "(all)"
    same = found.column_tokens.index("came")
    assert found.matrix[0, same] == 0.0


def word_with_the_gender() -> tuple[int, str]:
    """Tell after which layer which word has it: that whose line decides the pronoun."""
    head, row, _ = re.split("[:>]", read_outputs()["cells"]["pronoun"])
    return int(head.split(".")[1]) + 1, row


def test_gender_moves_from_the_noun_to_the_word_that_reads_it(pizza: tuple[Pair, Pair]) -> None:
    found = patch(*pizza)
    layer, word = word_with_the_gender()
    cake, reader = (found.column_tokens.index(one) for one in ("cake", word))
    assert found.matrix[0, cake] > 0.9
    assert abs(found.matrix[layer - 1, reader]) < 0.1
    assert found.matrix[layer, reader] > 0.8
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
        ({"sites": ["encoder.0.self.0.output"]}, "has no heads"),
        ({"sites": ["encoder.0.self.9.value"]}, "head must be from 0"),
        ({"sites": ["encoder.0.feed_forward.1"]}, "A site must be"),
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
    with pytest.raises(InputError, match="equally"):
        patch(pair_of(demo, A, TARGETS[0]), pair_of(demo, A, TARGETS[1]))


def test_command_shows_draws_and_writes_the_map(run_here: Run, tmp_path: Path) -> None:
    command = ("patch", "demo", A, B, "--word", "elle", "--not", "il")
    shown = run_here(*command)
    assert shown.returncode == 0, shown.stderr
    assert "elle (A) or il (B)" in shown.stdout
    assert "differ in" not in shown.stderr
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        first = run_here("patch", "demo", A, B, "--at", "encoder.1", "--position", "it")
    assert re.search(r"warning: The translations differ in \d places, .* first: ", first.stderr)
    files = [tmp_path / name for name in ("p.json", "p.svg")]
    chosen = ("--position", "it", "--at", "encoder.0")
    done = run_here(*command, *chosen, "-o", str(files[0]), "-o", str(files[1]))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert run_here(*command, *chosen, "--json").stdout == files[0].read_text()
    record = json.loads(files[0].read_text())
    assert record["columns"] == ["it", "(all)"]
    assert record["answers"] == ["elle", "il"]
    assert len(record["shares"]) == 1
    assert files[1].read_text().startswith("<?xml")


def test_command_follows_paths_gradients_and_noise(
    run_here: Run, demo: Translator, tmp_path: Path
) -> None:
    a, b = (demo.pair(text, float64=True) for text in (A, B))
    asked = ("--word", "elle", "--not", "il", "--position", "it", "--json")
    for options, given in (
        (("--at", "encoder.*.self.1 > decoder.*.cross"), {}),
        (("--by-gradient",), {"by_gradient": True}),
    ):
        done = run_here("patch", "demo", A, B, *asked, *options)
        site = options[1] if len(options) > 1 else None
        place = b.source_tokens.index("it")
        found = patch(a, b, site, [place], why="elle", other="il", **given)
        record = json.loads(done.stdout)
        assert record["shares"] == [pytest.approx(row, abs=1e-9) for row in found.matrix.tolist()]
        assert tuple(record["rows"]) == found.row_labels
        assert record["title"] == found.title
    noise = ("patch", "demo", A, "--noise", "pizza", "--word", "elle", "--at", "encoder.1")
    picture = tmp_path / "noise.svg"
    shown = run_here(*noise, "--position", "it")
    assert "elle without pizza, total effect" in shown.stdout
    written = run_here(*noise, "--position", "it", "--json", "-o", str(picture))
    record = json.loads(written.stdout)
    assert len(record["effects"]) == 1
    assert record["columns"] == ["it", "(all)"]
    assert picture.read_text().startswith("<?xml")
    rows = ("--word", "elle", "--not", "il", "--at", "decoder.1", "--position", "et", "--json")
    written = run_here("patch", "demo", A, B, *rows)
    assert json.loads(written.stdout)["columns"] == ["et", "(all)"]
    path = "encoder.1.self.1 > decoder.*.cross.key"
    written = run_here(*noise[:-1], path, "--position", "it", "--json")
    assert json.loads(written.stdout)["title"].endswith(", by way of decoder.*.cross.key")


@pytest.mark.parametrize("model", ["demo-recurrent", "demo-untrained"])
def test_twins_are_patched_with_a_given_translation(run_here: Run, model: str) -> None:
    words = ("--word", "elle", "--not", "il", "--translation", TARGETS[0])
    done = run_here("patch", model, A, B, *words)
    assert done.returncode == 0, done.stderr
    assert "(all)" in done.stdout


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ((), "patch needs two sentences, FROM and INTO"),
        ((A, "--source", "x"), "has 2 and --source"),
        ((B,), "both are translated the same"),
        ((A, "--position", "house"), "--position must be a word of the source"),
        ((A, "--not", "il"), "--not needs --word"),
        ((A, "--csv"), "--csv needs PAIRS or --source"),
        (("--noise", "cake"), "--noise needs --word or --row"),
        ((A, "--noise", "cake", "--word", "il"), "--noise needs one sentence, but 2 are given"),
        (("--noise", "cak", "--word", "il"), "Did you mean 'cake'"),
        ((A, "--at", "encoder.0 > decoder.0.crss"), "Did you mean 'decoder.0.cross'"),
        ((A, "-o", "x.html"), "must end in .svg, .png, .pdf or .json"),
        (("\ud800",), "INTO must be UTF-8"),
    ],
)
def test_impossible_requests_give_one_sentence_and_2(
    run_here: Run, options: tuple[str, ...], sentence: str
) -> None:
    done = run_here("patch", "demo", B, *options)
    assert done.returncode == 2
    assert sentence in done.stderr


def pronoun_lines(count: int) -> tuple[list[str], list[str]]:
    examples = list(islice(iterate_split("pronoun"), 2 * count))
    return [one.source for one in examples], [one.target for one in examples]


def test_shares_of_a_corpus_are_the_pairs_shares_weighted_by_their_differences(
    demo: Translator,
) -> None:
    sources, targets = pronoun_lines(11)
    found = patch_corpus(demo.bundle, sources, targets, words=["it"])
    assert found.num_pairs == 11
    assert not found.left_out
    assert found.shares.rows == tuple(states_of(demo.bundle.exact_model, "encoder"))
    assert found.shares.columns == ("(changed)", "it", "(others)", "(all)")
    shares, weights, is_there, wholes = [], [], [], []
    for number in range(0, 22, 2):
        a, b = (make_pair(demo.bundle, sources[one], targets[one]) for one in (number, number + 1))
        task = Patching(a, b)
        first, second = task.preferences
        weights.append(abs(first - second))
        wholes.append(patch(a, b, row=task.row).matrix[:, -1] * weights[-1])
        place = b.source_tokens.index("it") if "it" in b.source_tokens else -1
        if a.source_tokens[task.sources.get(place, -1)] != "it":
            continue
        is_there.append(number // 2)
        shares.append(patch(a, b, positions=[place], row=task.row).matrix[:, 0])
    assert found.counts == (11, len(is_there), 11, 11)
    values, kept = np.array(shares), np.array(weights)[is_there]
    expected = (values * kept[:, None]).sum(axis=0) / kept.sum()
    assert found.shares.column("it").tolist() == pytest.approx(expected.tolist(), abs=1e-4)
    whole = np.sum(wholes, axis=0) / sum(weights)
    assert found.shares.column("(all)").tolist() == pytest.approx(whole.tolist(), abs=1e-4)
    for row, value in enumerate(found.shares.column("it")):
        low, high = found.low.column("it")[row], found.high.column("it")[row]
        assert low <= value <= high
    # The standard error of a ratio, from its residuals, gives nearly the same interval.
    residuals = (values[:, -1] - expected[-1]) * kept
    wide = 1.96 * residuals.std(ddof=1) * len(kept) ** 0.5 / kept.sum()
    width = found.high.column("it")[-1] - found.low.column("it")[-1]
    assert width == pytest.approx(2 * wide, rel=0.5)


def test_gender_is_in_the_changed_words_before_and_in_the_one_that_read_it_after_the_layers(
    demo: Translator,
) -> None:
    targets = [text.replace("pizza", noun) for noun in ("pizza", "soupe") for text in TARGETS]
    lines = [A, B, A.replace("pizza", "soup"), B]
    _, word = word_with_the_gender()
    found = patch_corpus(demo.bundle, lines, targets, words=[word])
    assert found.num_pairs == 2
    changed, reader = found.shares.column("(changed)"), found.shares.column(word)
    assert changed[0] == pytest.approx(1.0, abs=1e-4)
    assert reader[0] == pytest.approx(0.0, abs=1e-4)
    assert reader[-1] > 0.7
    assert found.low.column(word)[-1] > 0.5 > changed[-1]


def test_pairs_that_cannot_be_patched_are_left_out_with_the_reason(demo: Translator) -> None:
    sources = [A, B, "The soup was cold.", "The soup was cold.", A, ""]
    found = patch_corpus(demo.bundle, sources, sites=["encoder.0.self.1.value", "encoder.0.self.3"])
    assert found.num_pairs == 1
    assert found.shares.rows == ("encoder.0.self.1.value", "encoder.0.self.3.context")
    said = " ".join(found.left_out)
    assert "lines 3 and 4: The two sentences must have different translations" in said
    assert "line 6: The line is empty" in said
    rows = patch_corpus(demo.bundle, [A, B], list(TARGETS), sites=["decoder"]).shares
    assert rows.columns == ("(last row)", "(earlier rows)", "(all)")
    assert rows.column("(last row)")[-1] == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize(
    ("sources", "options", "sentence"),
    [
        ([A], {}, "Lines to patch must come in pairs, but there are 1"),
        ([A, A], {}, "No pair can be patched; lines 1 and 2"),
        ([A, B], {"sites": ["encoder.9"]}, "such as encoder.0"),
        ([A, B], {"sites": ["encoder.0.self.*.output"]}, "has no heads"),
        ([A, B], {"sites": ["decoder.0"], "words": ["it"]}, "have no decoder rows"),
    ],
)
def test_corpus_to_patch_that_does_not_fit_is_refused(
    demo: Translator, sources: list[str], options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises((InputError, DataError), match=sentence):
        patch_corpus(demo.bundle, sources, **options)


def test_command_patches_a_corpus_by_the_gradient(
    run_here: Run, write_lines: Callable[..., str]
) -> None:
    files = ("--source", write_lines("s", A, B), "--target", write_lines("t", *TARGETS))
    done = run_here("patch", "demo", *files, "--at", "encoder.1", "--by-gradient", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["name"] == "attribution-patching"


def test_command_patches_pairs_of_lines(
    run_here: Run, write_lines: Callable[..., str], demo: Translator
) -> None:
    sources, targets = pronoun_lines(5)
    files = ("--source", write_lines("s", *sources), "--target", write_lines("t", *targets))
    found = patch_corpus(demo.bundle, sources, targets, words=["it"])
    done = run_here("patch", "demo", *files, "--position", "it", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == found.record()
    done = run_here("patch", "demo", *files, "--position", "it", "--csv")
    assert done.stdout.startswith("site,part,pairs,share,low,high\nencoder.input,(changed),5,")
    done = run_here("patch", "demo", *files, "--position", "it")
    assert "5 pairs of lines" in done.stdout
    tables = (found.shares, found.low, found.high)
    value, low, high = (write_fixed(table.column("it")[-1], 2) for table in tables)
    assert f"{value} [{low}, {high}]" in done.stdout
    for options, said in (
        (("--word", "elle"), "--word cannot be combined with --source"),
        (("--json", "--csv"), "--json cannot be combined with --csv"),
    ):
        done = run_here("patch", "demo", *files, *options)
        assert done.returncode == 2
        assert said in done.stderr
