"""``pellucid train --check``: text and JSON, word links, and the pairs that a model doubts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from pellucid.corpora import iterate_split

Run = Callable[..., subprocess.CompletedProcess[str]]

RECIPE = """\
[data]
source_language = "en"
target_language = "fr"
train_source = "train.en"
train_target = "train.fr"
validation_source = "train.en"
validation_target = "train.fr"
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
    done = run_here("train", recipe, "--check", "--json")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["pairs"] == {"train": 60, "validation": 60}
    assert "in training" in {finding["kind"] for finding in record["findings"]}
    assert "worst" not in record


def test_check_with_a_model_lists_the_pairs_that_it_doubts(run_here: Run, recipe: str) -> None:
    done = run_here("train", recipe, "--check", "--model", "demo", "--worst", "5")
    assert done.returncode == 0, done.stderr
    assert "The 5 least likely of 60 training pairs, by demo" in done.stdout
    listed = {
        line.split("train.en:")[1].split()[0]
        for line in done.stdout.split("by demo")[1].splitlines()
        if "train.en:" in line
    }
    assert len(listed & {"11", "12", "13", "14", "15"}) >= 4
    done = run_here("train", recipe, "--check", "--model", "demo", "--json")
    worst = json.loads(done.stdout)["worst"]
    assert (worst["num_scored"], len(worst["pairs"])) == (60, 20)
    scores = [pair["score"] for pair in worst["pairs"]]
    assert scores == sorted(scores)


def test_check_reads_word_links(run_here: Run, recipe: str, tmp_path: Path) -> None:
    links = ["0-0"] * 60
    links[8] = "0-0 1:1"
    (tmp_path / "links").write_text("\n".join(links) + "\n")
    done = run_here("train", recipe, "--check", "--set", f"data.train_alignments={tmp_path}/links")
    assert "1 line of word links cannot be used (1 not a link)" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        (["--json"], "--json needs --check"),
        (["--model", "demo"], "--model needs --check"),
        (["--check", "--worst", "3"], "--worst needs --model"),
        (["--check", "--model", "demo", "--worst", "0"], "--worst must be at least 1"),
    ],
)
def test_options_without_effect_are_refused(
    run_here: Run, recipe: str, arguments: list[str], needed: str
) -> None:
    done = run_here("train", recipe, *arguments)
    assert done.returncode == 2
    assert needed in done.stderr
