"""``pellucid recipe``: what training would do; and ``--set``, checked before it is written."""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Callable
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from pellucid.config import Recipe
from pellucid.corpora import iterate_split
from pellucid.serve.server_config import ServerConfig
from pellucid.training.start.found_recipe import shipped_recipes

Run = Callable[..., subprocess.CompletedProcess[str]]

LANGUAGES = ("--source-language", "en", "--target-language", "fr")


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    pairs = islice(iterate_split("train"), 60)
    Path("pairs.tsv").write_text("".join(f"{one.source}\t{one.target}\n" for one in pairs))
    return "pairs.tsv"


def test_recipe_lists_what_is_shipped_but_not_how_packaged_models_were_made(run_here: Run) -> None:
    done = run_here("recipe")
    listed = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert listed == shipped_recipes()
    assert {"tiny-en-fr", "tiny-en-fr-recurrent", "multi30k-en-de"} <= set(listed)
    assert not any(name.startswith(("packaged", "demo")) for name in listed)


def test_recipe_writes_what_training_would_use_and_why(run_here: Run, table: str) -> None:
    done = run_here("recipe", table, *LANGUAGES, "--set", "training.max_steps=70")
    assert done.returncode == 0, done.stderr
    recipe = tomllib.loads(done.stdout)
    assert recipe["training"]["max_steps"] == 70
    assert "# training.learning_rate = " in done.stdout
    assert "# training.max_steps = " not in done.stdout  # It was given, and not chosen.
    assert recipe["decoding"]["beam"] == 1  # Every default is spelled out.
    Path("again.toml").write_text(done.stdout)
    assert tomllib.loads(run_here("recipe", "again.toml").stdout) == recipe
    assert sorted(path.name for path in Path().iterdir()) == ["again.toml", "pairs.tsv"]


def test_recipe_whose_text_is_missing_says_what_is_left_out(
    run_here: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run_here("recipe", "tiny-en-fr", "--set", "training.seed=7")
    assert done.returncode == 0
    assert tomllib.loads(done.stdout)["training"]["seed"] == 7
    assert done.stderr.startswith("note: What depends on the text is not chosen, since it cannot")


@pytest.mark.parametrize("name", ["iwslt14-de-en", "wmt14-en-de-base", "opus-100"])
def test_recipe_of_a_published_corpus_trains_on_files_of_its_form(
    run_here: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    text = (files("pellucid") / "recipes" / f"{name}.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)["data"]
    for part, count in (("train", 240), ("validation", 11), ("test", 7)):
        pairs = [*islice(iterate_split(part), count)]
        for place, side in zip(data[part], ("source", "target"), strict=True):
            path = tmp_path / "corpus" / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{getattr(one, side)}\n" for one in pairs))
    monkeypatch.chdir(tmp_path)
    missing = run_here("train", name)
    assert (missing.returncode, list(Path().glob("runs"))) == (2, [])
    assert f"The environment variable {data['folder'][1:]} of data.folder must be set" in (
        missing.stderr
    )
    monkeypatch.setenv(data["folder"][1:], str(tmp_path / "corpus"))
    small = ("model.size=tiny", "model.d_model=8", "model.num_heads=2", "model.d_ff=16")
    short = ("tokenizer.vocabulary_size=400", "training.max_steps=2", "training.validate_every=2")
    # The stand-in is English and French.
    spoken = ("data.source_language=en", "data.target_language=fr")
    changes = [part for one in (*small, *short, *spoken) for part in ("--set", one)]
    done = run_here("train", name, "-o", "run", "--threads", "1", *changes)
    assert done.returncode == 0, done.stderr
    assert "note: What depends on the text" not in done.stderr
    translated = run_here("evaluate", "run", "--beam", "1")
    assert translated.returncode == 0, translated.stderr


def test_every_key_of_a_recipe_can_be_described(run_here: Run) -> None:
    shown = run_here("recipe", "--key", "training.patience").stdout
    assert shown.startswith("training.patience\n    ")
    assert 'type: "none" or integer, more than 0' in shown
    assert 'default: "none"' in shown
    assert '"base"' in run_here("recipe", "--key", "model.size").stdout
    norm = run_here("recipe", "--key", "model.norm").stdout
    assert 'type: "post" or "pre" or "none"' in norm
    for section, field in (Recipe.model_fields | ServerConfig.model_fields).items():
        kind: Any = field.annotation
        done = run_here("recipe", "--key", section)
        assert done.returncode == 0, done.stderr
        listed = {line for line in done.stdout.splitlines() if not line.startswith(" ")}
        known = {*kind.model_fields} - {*kind.written_by_programs}
        assert listed == {f"{section}.{name}" for name in known}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--key", "trainin.patience"], "'trainin' is unknown (--key). Did you mean 'training'?"),
        (["--key", "training.patients"], "Did you mean 'patience'?"),
        (["--key", "training", "--json-schema"], "--key cannot be combined with --json-schema"),
        (["pairs.tsv", "--json-schema"], "--json-schema cannot be combined with RECIPE"),
        (["nothing"], "A recipe must be a file or the name of a shipped recipe, but is 'nothing'"),
        (["tiny-en-fr", "a.en"], "A recipe must be given without text"),
    ],
)
def test_recipe_refuses_what_it_cannot_show(run_here: Run, arguments: list[str], said: str) -> None:
    done = run_here("recipe", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_json_schema_knows_every_section(run_here: Run) -> None:
    schema = json.loads(run_here("recipe", "--json-schema").stdout)
    assert set(schema["properties"]) == set(Recipe.model_fields)


@pytest.mark.parametrize("command", ["train", "check", "recipe"])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("training.max_step=3", "'training.max_step' is unknown (--set). Did you mean 'max_steps'"),
        ("trainin.max_steps=3", "'trainin' is unknown (--set). Did you mean 'training'?"),
        ("training.max_steps=x", "training.max_steps must be a whole number, but is 'x' (--set)"),
        ("data.split=-1", "data.split must be"),
        ("max_steps=3", "A setting must be written SECTION.KEY=VALUE"),
    ],
)
def test_bad_change_is_blamed_on_set_before_anything_is_written(
    run_here: Run, table: str, command: str, change: str, said: str
) -> None:
    done = run_here(command, table, *LANGUAGES, "--set", change)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "(--set)" in done.stderr
    assert [path.name for path in Path().iterdir()] == ["pairs.tsv"]
