"""The study of *it*: its pairs, and its batches against the public functions for one pair."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pellucid
from pellucid.bundle import Bundle
from pellucid.corpora import make_split
from pellucid.corpora.lexicon import NOUNS
from pellucid.inside import Pair, patch
from pellucid.inside.pair import make_pair

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).parents[3] / "docs" / "study"))

import make_study
from gender.conditions import all_conditions
from gender.directions import collect, steered
from gender.pairs import is_minimal, record_of
from gender.subject import Subject
from gender.summary import rank_correlation

ROOT = Path(__file__).parents[3]
NUM_PAIRS = 7


@pytest.fixture(scope="module")
def pairs() -> list[list[dict[str, Any]]]:
    drawn = make_split("pronoun", count=400)
    found = [one for one in zip(drawn[::2], drawn[1::2], strict=True) if is_minimal(*one)]
    return [[record_of(sentence) for sentence in one] for one in found[:NUM_PAIRS]]


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    bundle = pellucid.load("demo", precision="float32").bundle
    assert bundle is not None
    return bundle


@pytest.fixture(scope="module")
def subject(bundle: Bundle, pairs: list[list[dict[str, Any]]]) -> Subject:
    return Subject(bundle, pairs)


@pytest.fixture(scope="module")
def measured(subject: Subject) -> dict[str, np.ndarray]:
    wanted = {
        "as it is",
        "choice 1 pronoun",
        "choice 2 predicate",
        "patch encoder.0.self.3",
        "cut encoder.1.self.1",
        "line all pronoun > antecedent",
        "row reads no pronoun",
    }
    found = {name: run() for name, run in all_conditions(subject) if name in wanted}
    assert found.keys() == wanted
    return found


def sentences(bundle: Bundle, pairs: list[list[dict[str, Any]]], number: int) -> tuple[Pair, Pair]:
    """Return the donor and the recipient of a run."""
    made = [make_pair(bundle, one["source"], one["target"]) for one in pairs[number]]
    return (made[1], made[0]) if number % 2 == 0 else (made[0], made[1])


def margin(subject: Subject, number: int, pair: Pair, probe: str | None = None) -> float:
    run = subject.runs[number]
    own, other = run.answers
    logits_V = pair.logits(probe=probe)[len(run.read) - 1]
    return float(logits_V[own] - logits_V[other])


def test_minimal_pairs_differ_in_predicate_only(pairs: list[list[dict[str, Any]]]) -> None:
    assert len(pairs) == NUM_PAIRS
    for a, b in pairs:
        start = a["pronoun"] + 1
        assert a["source"].split()[:start] == b["source"].split()[:start]
        assert a["source"].split()[start:] != b["source"].split()[start:]
        assert len(a["source"].split()) == len(b["source"].split())
        ours, theirs = (one["target"].split()[one["target_pronoun"]] for one in (a, b))
        assert {ours, theirs} in ({"il", "elle"}, {"ils", "elles"})


def test_donors_of_gender_swap_both_nouns_only(bundle: Bundle, subject: Subject) -> None:
    swapped = [run for run in subject.runs if run.donors["gender"] != run.source]
    assert swapped
    for run in swapped:
        ours, theirs = (
            bundle.tokenizer.source_tokens(ids) for ids in (run.source, run.donors["gender"])
        )
        changed = [at for at in range(len(ours)) if ours[at] != theirs[at]]
        assert changed == sorted(run.roles["antecedent"] + run.roles["rival"])
        for at in changed:
            before, after = (
                next(n for n in NOUNS.values() if word in (n.english, n.english_plural))
                for word in (ours[at], theirs[at])
            )
            assert (before.kind, before.gender != after.gender) == (after.kind, True)


@pytest.mark.parametrize(
    ("name", "sites", "role"),
    [
        ("choice 1 pronoun", "encoder.0.feed_forward.norm", "pronoun"),
        ("choice 2 predicate", "encoder.1.feed_forward.norm", "predicate"),
        ("patch encoder.0.self.3", "encoder.0.self.3.context", None),
    ],
)
def test_patches_of_batches_equal_those_of_single_pairs(
    bundle: Bundle,
    pairs: list[list[dict[str, Any]]],
    subject: Subject,
    measured: dict[str, np.ndarray],
    name: str,
    sites: str,
    role: str | None,
) -> None:
    base = measured["as it is"]
    shares = (base - measured[name]) / (base - subject.donor_margins("choice"))
    checked = 0
    for number, run in enumerate(subject.runs):
        donor, recipient = sentences(bundle, pairs, number)
        places = None if role is None else run.roles[role]
        # `patch` takes one position at a time; only its last column has all together.
        if places is not None and len(places) > 1:
            continue
        found = patch(donor, recipient, sites, places, row=len(run.read) - 1)
        assert shares[number] == pytest.approx(found.matrix[0, -1], abs=2e-3)
        checked += 1
    assert checked


def test_cuts_of_batches_equal_those_of_single_pairs(
    bundle: Bundle,
    pairs: list[list[dict[str, Any]]],
    subject: Subject,
    measured: dict[str, np.ndarray],
) -> None:
    for number, run in enumerate(subject.runs):
        _, recipient = sentences(bundle, pairs, number)
        (pronoun,), (noun,) = run.roles["pronoun"], run.roles["antecedent"]
        row = len(run.read) - 1
        changes = {
            "as it is": None,
            "cut encoder.1.self.1": "cut encoder.1.self.1",
            "line all pronoun > antecedent": f"cut encoder.*.self.*:{pronoun}>{noun}",
            "row reads no pronoun": f"cut decoder.*.cross.*:{row}>{pronoun}",
        }
        for name, change in changes.items():
            expected = margin(subject, number, recipient, change)
            assert measured[name][number] == pytest.approx(expected, abs=2e-3), name


def test_steering_turns_what_noise_does_not(subject: Subject) -> None:
    place = f"encoder.{subject.config.num_encoder_layers - 1}.feed_forward.norm pronoun"
    runs = dict(steered(subject, collect(subject)))
    lost = {name: subject.margins() - runs[f"{name} {place}"]() for name in ("steer", "noise")}
    assert lost["steer"].mean() > 2 * abs(lost["noise"].mean())


def test_rank_correlation_follows_the_order_only() -> None:
    assert rank_correlation([1, 2, 3, 5], [1, 10, 100, 1000]) == 1
    assert rank_correlation([1, 2, 3], [3, 2, 1]) == -1


def test_figures_of_the_study_take_fewer_than_30_lines_each() -> None:
    tree = ast.parse((ROOT / "docs" / "study" / "make_study.py").read_text("utf-8"))
    functions = [one for one in tree.body if isinstance(one, ast.FunctionDef)]
    lengths = {one.name: (one.end_lineno or 0) - one.lineno + 1 for one in functions}
    drawn = {draw.__name__ for draw in make_study.FIGURES}
    assert len(drawn) > 5
    assert drawn <= lengths.keys()
    assert max(lengths.values()) < 30


def test_page_of_the_study_has_the_tables_and_figures_of_its_results(tmp_path: Path) -> None:
    folder = ROOT / "docs" / "study"
    found = make_study.read_results(make_study.RESULTS)
    page = (folder / "README.md").read_text("utf-8")
    assert make_study.renew_tables(page, found) == page, "run `python docs/study/make_study.py`"
    make_study.draw_all(found, tmp_path)
    for picture in tmp_path.iterdir():
        assert f"({picture.name})" in page
        assert (folder / picture.name).is_file()


def test_results_of_the_study_have_five_seeds_of_six_variants() -> None:
    models = json.loads(make_study.RESULTS.read_text("utf-8"))["models"]
    for variant in make_study.SIX:
        assert sorted(one["seed"] for one in models if one["variant"] == variant) == [1, 2, 3, 4, 5]
    assert {one["num_pairs"] for one in models} == {2000}
