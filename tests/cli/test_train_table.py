"""Training from text without a recipe."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from pellucid.config import DataConfig, parse_toml
from pellucid.corpora import iterate_split
from pellucid.errors import PellucidError
from pellucid.text.reading import sentence_pairs
from pellucid.text.reading.held_out import HeldOut, hash_text
from pellucid.text.reading.sentence_pairs import read_pairs
from pellucid.training.start.prepare import read_test
from pellucid.training.start.table import is_text, recipe_for, run_name

Run = Callable[..., subprocess.CompletedProcess[str]]

PAIRS = [(e.source, e.target) for e in islice(iterate_split("train"), 300)]


def table(path: Path, *, separator: str = "\t", header: tuple[str, ...] = ()) -> str:
    """Write pairs as a table, in quotes if the cells could hold the separator."""
    quote = '"' if path.suffix == ".csv" else ""
    rows = [*([header] if header else []), *PAIRS]
    path.write_text(
        "".join(separator.join(f"{quote}{c}{quote}" for c in row) + "\n" for row in rows)
    )
    return str(path)


def objects(path: Path, form: Callable[[str, str], Any]) -> str:
    path.write_text("".join(json.dumps(form(*pair)) + "\n" for pair in PAIRS))
    return str(path)


def make(kind: str, folder: Path) -> list[str]:
    """Write the pairs in a form that `pellucid train` takes."""
    if kind == "two files":
        for side, name in enumerate(("t.en", "t.fr")):
            (folder / name).write_text("".join(f"{pair[side]}\n" for pair in PAIRS))
        return [str(folder / "t.en"), str(folder / "t.fr")]
    if kind == "folder":
        (folder / "set").mkdir()
        objects(folder / "set/train.jsonl", lambda en, fr: {"translation": {"en": en, "fr": fr}})
        objects(folder / "set/dev.jsonl", lambda en, fr: {"translation": {"en": en, "fr": fr}})
        return [str(folder / "set")]
    forms: dict[str, Callable[[], str]] = {
        "tsv": lambda: table(folder / "t.tsv"),
        "tsv with header": lambda: table(folder / "t.tsv", header=("en", "fr")),
        "csv with names": lambda: table(
            folder / "t.csv", separator=";", header=("English", "French")
        ),
        "json": lambda: objects(folder / "t.jsonl", lambda en, fr: {"fr": fr, "en": en}),
    }
    return [forms[kind]()]


@pytest.mark.parametrize(
    "kind", ["tsv", "tsv with header", "csv with names", "json", "two files", "folder"]
)
@pytest.mark.parametrize("named", [(None, None), ("en", "fr")])
def test_every_form_of_text_gives_the_same_pairs(
    tmp_path: Path, kind: str, named: tuple[str | None, str | None]
) -> None:
    names = make(kind, tmp_path)
    assert is_text(names)
    assert run_name(names) == ("set" if kind == "folder" else "t")
    if kind == "json" and not any(named):
        named = ("en", None)
    values = recipe_for(names, tmp_path / "runs", named)
    from pellucid.config import Recipe

    data = Recipe.model_validate(values).data
    assert (data.source_language, data.target_language) == ("en", "fr")
    splits = [
        [(p.source, p.target) for p in read_pairs(data, split, tmp_path)]
        for split in ("train", "validation")
    ]
    if kind == "folder":
        assert splits == [PAIRS, PAIRS]
    else:
        assert data.split == 1000
        assert set(splits[0]) | set(splits[1]) <= set(PAIRS)
        assert 0 < len(splits[1]) < len(splits[0])


@pytest.mark.parametrize(
    ("text", "name", "languages", "sentence"),
    [
        ("a house\nthe car\n", "t.tsv", ("en", "fr"), "has one column. Name two text files"),
        ("a house,une maison\n", "t.tsv", ("en", "fr"), "stand between commas, rename it to .csv"),
        ("a house;une maison\n", "t.tsv", ("en", "fr"), "stand between semicolons"),
        ("", "t.tsv", ("en", "fr"), "is empty"),
        ("a\tb\n" * 9, "t.tsv", (None, None), "source language could not be told from 9 pairs"),
        ('{"de": "a", "fr": "b"}\n', "t.jsonl", ("en", "fr"), "it has de, fr"),
        ('{"de": 1}\n', "t.jsonl", ("de", "fr"), "but it has de"),
        ("".join(f"{b}\t{a}\n" for a, b in PAIRS), "t.tsv", ("en", "fr"), "other way round"),
        ("a\tb\tc\n" * 9, "t.tsv", ("en", "fr"), "3 columns"),
    ],
)
def test_text_that_cannot_be_used_gives_one_sentence_that_says_what_to_do(
    tmp_path: Path, text: str, name: str, languages: tuple[str, str], sentence: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(PellucidError) as refused:
        recipe_for([str(tmp_path / name)], tmp_path / "runs", languages)
    assert sentence in str(refused.value)
    assert str(refused.value).endswith(".")


def test_table_trains_resumes_and_is_scored_on_its_own_test_text(
    run_here: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = make("csv with names", tmp_path)
    steps = ("--set", "training.max_steps=3", "--set", "model.size=tiny", "-o", "r/mine")
    done = run_here(
        "train",
        *names,
        *steps,
        "--set",
        "training.log_every=2",
        "--set",
        "training.validation_samples=0",
    )
    assert done.returncode == 0, done.stderr
    assert "The recipe is in r/mine.toml." in done.stderr
    recipe = parse_toml((tmp_path / "r/mine.toml").read_bytes(), "mine.toml")
    assert recipe["data"]["columns"] == ["English", "French"]
    lines = (tmp_path / "r/mine/metrics.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert [record["step"] for record in records if record["kind"] == "train"] == [2]
    assert not (tmp_path / "r/mine/samples.jsonl").exists()
    first = "English → French, from columns English and French. The languages were recognized"
    assert first in done.stderr
    assert "Data       English → French, from columns English and French" in done.stderr
    assert "Next: " in done.stderr
    files = [path for path in (tmp_path / "r/mine").rglob("*") if path.is_file()]
    before = {path: path.read_bytes() for path in files}
    again = run_here(
        "train",
        "r/mine.toml",
        *steps,
        "--set",
        "training.log_every=2",
        "--set",
        "training.validation_samples=0",
    )
    assert again.returncode == 0, again.stderr
    assert "This run is finished (3 steps): nothing of it was changed." in again.stderr
    assert {path: path.read_bytes() for path in before} == before
    assert len([path for path in (tmp_path / "r/mine").rglob("*") if path.is_file()]) == len(files)
    scored = run_here("evaluate", "r/mine", "--json")
    assert scored.returncode == 0, scored.stderr
    assert "pairs of the test text of its recipe" in scored.stderr
    assert set(json.loads(scored.stdout)) >= {"bleu", "chrf", "ter"}
    rows = Path(names[0]).read_text().splitlines(keepends=True)
    Path(names[0]).write_text("".join(rows[:4] + rows[5:]))
    moved = run_here("evaluate", "r/mine", "--json")
    assert (moved.returncode, moved.stdout) == (2, "")
    assert "The text must be what this run started with" in moved.stderr
    assert "name a test text: --source FILE --reference FILE." in moved.stderr
    other = run_here("train", *make("tsv", tmp_path), *steps)
    assert other.returncode == 2
    assert "r/mine.toml must be the recipe for this text" in other.stderr


def test_training_from_a_model_sets_aside_what_the_model_did_not_learn(
    run_here: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (name,) = make("tsv", tmp_path)
    steps = ("--set", "training.max_steps=3", "--set", "training.validation_samples=0")
    layers = ("model.num_encoder_layers=1", "model.num_decoder_layers=1")
    sizes = ("model.d_model=16", "model.d_ff=32", "model.num_heads=2", *layers)
    small = [word for one in sizes for word in ("--set", one)]
    first = run_here("train", name, *steps, *small, "-o", "r/a")
    assert first.returncode == 0, first.stderr
    record = json.loads((tmp_path / "r/a/bundle/manifest.json").read_text())["data"]["set_aside"]
    assert set(record) == {"validation", "test", "targets"}
    assert "set_aside: hashes" in run_here("inspect", "r/a").stdout
    # Cleaned: other hashes are now the largest ones.
    rows = Path(name).read_text().splitlines(keepends=True)
    (tmp_path / "clean.tsv").write_text("".join(row for n, row in enumerate(rows) if n % 5 < 3))
    second = run_here("train", "clean.tsv", *steps, "--start", "r/a", "-o", "r/b")
    assert second.returncode == 0, second.stderr
    learned = parse_toml((tmp_path / "r/a/recipe.toml").read_bytes(), "a")["data"]
    known = {p.source for p in read_pairs(DataConfig(**learned), "train", tmp_path)}
    shutil.rmtree(tmp_path / "r/a")
    pairs, num_doubtful = read_test(tmp_path / "r/b")
    assert len(pairs) > 9
    assert not known & {pair.source for pair in pairs}
    assert num_doubtful == 0
    assert run_here("evaluate", "r/b", "--json").returncode == 0
    # Text of which the model set too little aside is said to be known to it.
    own = parse_toml((tmp_path / "r/b/recipe.toml").read_bytes(), "b")["data"]
    assert own["set_aside_as"] == str(tmp_path / "r/a/bundle")
    few = HeldOut({hash_text(PAIRS[0][0]): "validation"}, frozenset())
    manifest = tmp_path / "r/b/untrained/manifest.json"
    manifest.write_text(json.dumps({"data": {"set_aside": few.to_record()}}))
    sentence_pairs._set_aside.cache_clear()
    said = run_here("evaluate", "r/b", "--json").stderr
    assert "of these may be text that the model it started from has learned" in said
    # A run without a model is refused before anything is said of scores.
    shutil.rmtree(tmp_path / "r/b/bundle")
    refused = run_here("evaluate", "r/b")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "Scored on" not in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "RECIPE|TABLE is missing. See: pellucid train --help"),
        (("multi30k-en-fr", "--source-language", "en"), "but multi30k-en-fr is a recipe"),
        (("a.tsv", "--minutes", "0"), "--minutes"),
        (("a.en", "b.fr", "c.de"), "3 were named"),
        (("a.en", "b.fr"), "a.en must be text to train on, but does not exist. Check the name"),
    ],
)
def test_impossible_requests_give_a_sentence_and_2(
    run_here: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run_here("train", *arguments)
    assert done.returncode == 2
    assert sentence in " ".join(done.stderr.split())
    assert not (tmp_path / "runs").exists()
