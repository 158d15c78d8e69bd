"""``pellucid check``: text and JSON, word links, and the pairs that a model doubts."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest
from of_subwords import SUBWORDS

from pellucid.corpora import iterate_split

Run = Callable[..., subprocess.CompletedProcess[str]]

RECIPE = """\
[data]
source_language = "en"
target_language = "fr"
train = ["train.en", "train.fr"]
validation = ["train.en", "train.fr"]
"""


@pytest.fixture
def recipe(tmp_path: Path) -> str:
    """A recipe whose 60 training pairs hold five with exchanged translations."""
    pairs = [(pair.source, pair.target) for pair in islice(iterate_split("train"), 60)]
    targets = [target for _, target in pairs]
    targets[10:15] = [*targets[11:15], targets[10]]
    (tmp_path / "train.en").write_text("".join(f"{source}\n" for source, _ in pairs))
    (tmp_path / "train.fr").write_text("".join(f"{target}\n" for target in targets))
    (tmp_path / "r.toml").write_text(RECIPE)
    return str(tmp_path / "r.toml")


def test_check_as_json_is_one_object(run_here: Run, recipe: str) -> None:
    done = run_here("check", recipe, "--json")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["pairs"] == {"train": 60, "validation": 60}
    assert "in training" in {finding["kind"] for finding in record["findings"]}
    assert "worst" not in record


def test_check_with_a_model_lists_the_pairs_that_it_doubts(run_here: Run, recipe: str) -> None:
    done = run_here("check", recipe, "--model", "demo", "--worst", "5")
    assert done.returncode == 0, done.stderr
    assert "The 5 least likely of 60 training pairs, by demo" in done.stdout
    listed = {
        line.split("train.en:")[1].split()[0]
        for line in done.stdout.split("by demo")[1].splitlines()
        if "train.en:" in line
    }
    assert len(listed & {"11", "12", "13", "14", "15"}) >= 4
    done = run_here("check", recipe, "--model", "demo", "--json")
    worst = json.loads(done.stdout)["worst"]
    assert (worst["num_scored"], len(worst["pairs"])) == (60, 20)
    scores = [pair["score"] for pair in worst["pairs"]]
    assert scores == sorted(scores)


def test_check_reads_word_links(run_here: Run, recipe: str, tmp_path: Path) -> None:
    links = ["0-0"] * 60
    links[8] = "0-0 1:1"
    (tmp_path / "links").write_text("\n".join(links) + "\n")
    done = run_here("check", recipe, "--set", f"data.train_alignments={tmp_path}/links")
    assert "1 line of word links cannot be used (1 not a link)" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        (["--worst", "3"], "--worst needs --model"),
        (["--model", "demo", "--worst", "0"], "--worst must be at least 1"),
    ],
)
def test_options_without_effect_are_refused(
    run_here: Run, recipe: str, arguments: list[str], needed: str
) -> None:
    done = run_here("check", recipe, *arguments)
    assert done.returncode == 2
    assert needed in done.stderr


MODEL_OF_FEW_WORDS = """
[model]
max_source_length = 7
max_target_length = 7
"""


def test_check_refuses_validation_text_that_is_all_too_long(run_here: Run, recipe: str) -> None:
    path = Path(recipe)
    long = "one two three four five six seven\n"
    (path.parent / "long").write_text(long * 3)
    (path.parent / "mixed").write_text(long + "short\n" * 2)
    for name in ("train.en", "train.fr"):  # such a model must be able to read them
        (path.parent / name).write_text("yes\n" * 60)
    text = path.read_text()
    text = text.replace('validation = ["train.en", "train.fr"]', 'validation = ["X", "X"]')
    for name, code, said in (
        ("long", 1, "error: all 3 validation pairs are longer than the model can read"),
        ("mixed", 0, "warning: 1 of 3 validation pairs are longer"),
    ):
        path.write_text(text.replace('"X"', f'"{name}"') + MODEL_OF_FEW_WORDS)
        done = run_here("check", recipe)
        assert (done.returncode, said in done.stdout) == (code, True), done.stdout
    path.write_text(text.replace('"X"', '"long"'))
    assert "longer than the model" not in run_here("check", recipe).stdout


@pytest.mark.parametrize(
    ("lines", "is_loud"),
    [("μία γάτα\n" * 60, True), ("😀 😀\n" * 60, True), ("the soup was salty\n" * 60, False)],
    ids=["another script", "emoji", "known text"],
)
def test_check_measures_text_with_the_vocabulary_of_the_model_to_start_from(
    lines: str, is_loud: bool, run_here: Run, recipe: str
) -> None:
    path = Path(recipe)
    for name in ("train.en", "train.fr"):
        (path.parent / name).write_text(lines)
    done = run_here("check", recipe, "--start", SUBWORDS, "--json")
    found = [
        finding
        for finding in json.loads(done.stdout)["findings"]
        if finding["kind"] == "outside the vocabulary"
    ]
    assert [finding["split"] for finding in found] == ["train", "validation"]
    assert all((finding["severity"] == "warning") is is_loud for finding in found)
    assert all(("start.new_tokens" in finding["sentence"]) is is_loud for finding in found)


def check_lines(run_here: Run, folder: Path, pairs: list[tuple[str, str]], *extra: str) -> str:
    """Check pairs as a recipe of a .tsv file; the first word of the result is the exit code."""
    (folder / "p.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
    (folder / "v.tsv").write_text("A cat sat here.\tUn chat ici.\n")
    (folder / "p.toml").write_text('[data]\ntrain = "p.tsv"\nvalidation = "v.tsv"\n')
    done = run_here("check", str(folder / "p.toml"), *extra)
    assert done.stderr == "", done.stderr
    return f"{done.returncode} {' '.join(done.stdout.split())}"


SENTENCES = [
    (f"the {a} sees {b} near a house", f"le {b[::-1]} voit {a[::-1]} ici")
    for a in ("dog", "cat", "bird", "horse", "child", "friend", "farmer", "doctor", "painter")
    for b in ("rain", "snow", "light", "smoke", "stars", "flowers", "windows", "bridges", "rivers")
]
DOCUMENTS = [(" ".join([source] * 40), target) for source, target in SENTENCES[:20]]


def test_check_of_text_that_is_all_too_long_fails_as_training_does(
    run_here: Run, tmp_path: Path
) -> None:
    said = check_lines(run_here, tmp_path, DOCUMENTS)
    assert said.startswith("1 "), said
    assert "error: all 20 training pairs (100 %) will be left out (source too long: 20" in said
    assert "data.max_pair_length is 256 tokens" in said
    done = run_here("train", str(tmp_path / "p.toml"), "-o", str(tmp_path / "run"))
    assert done.returncode == 2
    assert "source too long: 20" in done.stderr


def test_check_counts_pairs_that_training_drops_by_reason(run_here: Run, tmp_path: Path) -> None:
    # Scripts without spaces have few words and many tokens.
    letters = "".join(chr(0x4E00 + number * 7 % 300) for number in range(400))
    pairs = [*SENTENCES, *DOCUMENTS[:4], (letters, "court"), ("a", SENTENCES[0][1] * 3), ("b", "")]
    said = check_lines(run_here, tmp_path, pairs, "--set", "data.max_source_target_ratio=20")
    assert said.startswith("0 "), said
    assert "6 of 88 training pairs (6.82 %) will be left out (source too long: 5," in said
    # A blank side is a finding of its own, and counted once.
    assert "empty target" not in said
    assert "1 training pair (1.14 %): an empty side. They are left out." in said
    for reason in ("length ratio: 1", "data.max_source_target_ratio is 20"):
        assert reason in said
    assert " p.tsv:82 the dog" in said  # each place of a file of both sides is named once
    said = check_lines(run_here, tmp_path, SENTENCES)
    assert "left out" not in said
    assert "warning: 81 pairs are too few to learn a language from" in said


def test_check_of_text_for_which_no_vocabulary_can_be_learned_fails(
    run_here: Run, tmp_path: Path
) -> None:
    said = check_lines(run_here, tmp_path, SENTENCES, "--set", "tokenizer.vocabulary_size=80")
    assert said.startswith("1 "), said
    assert "byte_fallback=false, which needs" in said


@pytest.mark.parametrize(
    "tags", [("<news>",), ("<2fr>", "<2de>"), (">>fra<<", "__deu__"), ("[MED]", "2fr", "#law")]
)
def test_check_calls_tags_tags_and_names_the_setting_that_keeps_them_whole(
    run_here: Run, tmp_path: Path, tags: tuple[str, ...]
) -> None:
    pairs = [(f"{tags[i % len(tags)]} {a}", b) for i, (a, b) in enumerate(SENTENCES)]
    said = check_lines(run_here, tmp_path, pairs)
    assert said.startswith("0 "), said
    assert said.count("warning: ") == said.count("too few to learn a language from")
    assert "markup" not in said
    assert "note: tags: " in said
    for tag in tags:
        assert re.search(rf"{re.escape(tag)} \d+ %", said)
    assert "set tokenizer.symbols = [" in said
    listed = json.dumps(tags)
    said = check_lines(run_here, tmp_path, pairs, "--set", f"tokenizer.symbols={listed}")
    assert "note: tags: " in said
    assert "tokenizer.symbols" not in said


def test_check_prints_a_place_in_a_file_of_both_sides_once(
    run_here: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [
        f"The dog ate {number} soups.\tLe chien a mangé {number} soupes." for number in range(40)
    ]
    rows[11] = "The dog ate 11 soups.\tLe chien a mangé \ufffd soupes."
    Path("pairs.tsv").write_text("".join(f"{row}\n" for row in rows))
    languages = ("--source-language", "en", "--target-language", "fr")
    done = run_here("check", "pairs.tsv", *languages, "--model", "demo", "--worst", "2")
    assert done.stdout.count("pairs.tsv:") >= 2
    assert "pairs.tsv:" in done.stdout
    assert " | pairs.tsv" not in done.stdout
