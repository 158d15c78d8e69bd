"""``pellucid claim``: the list, the answers, their pictures, and what is refused."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pellucid.lessons.why import CLAIMS

Run = Callable[..., subprocess.CompletedProcess[str]]

TIMED = {"memory", "order", "length", "fixed-size", "cache", "parallel"}


def test_claim_without_a_claim_lists_all_with_questions(run_here: Run) -> None:
    done = run_here("claim")
    assert done.returncode == 0
    refused = run_here("claim", "--list")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "Give pellucid claim instead." in refused.stderr
    for claim in CLAIMS.values():
        assert re.search(rf"^{claim.name} +{re.escape(claim.question)}$", done.stdout, re.M)
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_claim_list_as_json_names_the_timed_claims(run_here: Run) -> None:
    claims = json.loads(run_here("claim", "--json").stdout)["claims"]
    assert [one["claim"] for one in claims] == list(CLAIMS)
    assert {one["claim"] for one in claims if one["is_timed"]} == TIMED


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", CLAIMS)
def test_claim_claim_gives_verdicts_tables_and_a_picture(
    run_here: Run, tmp_path: Path, name: str
) -> None:
    picture = tmp_path / "why.png"
    done = run_here("claim", name, "--size", "toy", "--json", "-o", str(picture))
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert (record["claim"], record["size"], record["seed"]) == (name, "toy", 1)
    assert bool(record["machine"]) == (name in TIMED) == CLAIMS[name].is_timed
    for finding in record["findings"]:
        assert finding["verdict"]["outcome"] in ("holds", "holds only if", "fails", "open")
        # A short run is never surer than the full one, and says why.
        assert finding["verdict"]["outcome"] != "open" or finding["verdict"]["condition"]
        assert finding["statement"]["says"]
    for table in record["tables"]:
        assert table["rows"]
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert f"The result is in {picture}" in done.stderr


@pytest.mark.parametrize("name", ["mask", "examples", "heads", "residual"])
def test_claim_without_times_gives_the_same_numbers_again(run_here: Run, name: str) -> None:
    arguments = ("claim", name, "--size", "toy", "--json", "--seed", "3")
    assert run_here(*arguments).stdout == run_here(*arguments).stdout


def test_claim_on_a_terminal_shows_statement_number_and_verdict_in_80_columns(
    run_here: Run,
) -> None:
    done = run_here("claim", "scale")
    assert done.returncode == 0
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert 'notes "Transformers", section 3.3' in done.stdout
    assert re.search(r"^  (holds|holds only if .*|fails)$", done.stdout, re.M)
    assert re.search(r"^ +512 ", done.stdout, re.M)
    assert re.search(r"Measured in \d+ s with seed 1", done.stderr)


def test_claim_seed_changes_the_numbers(run_here: Run) -> None:
    first, second = (
        json.loads(run_here("claim", "scale", "--size", "toy", "--json", "--seed", seed).stdout)
        for seed in ("1", "2")
    )
    assert first["tables"] != second["tables"]
    assert first["tables"][0]["columns"] == second["tables"][0]["columns"]


@pytest.mark.parametrize("ending", ["svg", "pdf"])
def test_claim_draws_the_same_bytes_again(run_here: Run, tmp_path: Path, ending: str) -> None:
    files = [tmp_path / f"{number}.{ending}" for number in range(2)]
    for file in files:
        run_here("claim", "scale", "--size", "toy", "-o", str(file))
    assert files[0].read_bytes() == files[1].read_bytes()
    if ending == "svg":
        assert "Gradient of the softmax" in files[0].read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("scael",), "Did you mean 'scale'?"),
        (("",), "Known are: cache,"),
        (("scale", "-o", "x.jpg"), "must end in .svg, .png, .pdf or .json"),
        (("scale", "-o", "missing/x.png"), "missing"),
        (("scale", "--size", "huge"), "must be quick or toy"),
        (("scale", "--seed", "-1"), "--seed"),
        (("scale", "--seed", "one"), "--seed"),
        (("scale", "--threads", "0"), "between 1 and 1000"),
        (("scale", "mask"), "mask"),
        (("scale", "-o", "kept/"), "Add --full, or name a file"),
    ],
)
def test_claim_of_a_wrong_argument_is_one_sentence_and_2(
    run_here: Run, arguments: tuple[str, ...], sentence: str
) -> None:
    done = run_here("claim", *arguments)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "options", [("--full",), ("--seed", "7"), ("-o", "kept/"), ("--threads", "2")]
)
def test_claim_without_a_claim_reports_options_without_effect(
    run_here: Run, options: tuple[str, ...]
) -> None:
    done = run_here("claim", *options)
    assert done.returncode == 0
    assert done.stderr == (f"warning: {options[0]} has no effect without a claim to measure.\n")
