"""TOML and JSON of strangers: deep nesting and long numbers are refused in a sentence."""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pellucid.bundle import read_json_object
from pellucid.config import apply_overrides, parse_toml
from pellucid.config.parsing import MOST_NESTED, ExcessError, read_json_text, read_toml_text
from pellucid.errors import BundleError, ConfigurationError

Run = Callable[..., subprocess.CompletedProcess[str]]

DEEP = "[" * 2000 + "]" * 2000
LONG = "9" * 5000


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@pytest.mark.parametrize("value", ["[1, 2.5, true, null]", '{"a": {"b": [[]]}}', "3", '"[[["'])
def test_json_within_bounds_is_read_as_ever(value: str) -> None:
    assert read_json_text(value) == read_json_text(value.encode()) == json.loads(value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (DEEP, "nested more than 100 deep"),
        (nested(MOST_NESTED + 1), "nested more than 100 deep"),
        ('{"a":' * 300 + "1" + "}" * 300, "nested more than 100 deep"),
        (f'{{"a": [{LONG}]}}', "an integer of more than 1,024 bits"),
    ],
)
def test_json_out_of_bounds_is_refused(text: str, reason: str) -> None:
    for given in (text, text.encode()):
        with pytest.raises(ExcessError, match=reason):
            read_json_text(given)


def test_json_at_the_bound_is_read() -> None:
    value: Any = read_json_text(nested(MOST_NESTED))
    for _ in range(MOST_NESTED - 1):
        (value,) = value
    assert value == []
    wide = "[" + "[]," * 5000 + "[]]"
    assert len(read_json_text(wide)) == 5001


@pytest.mark.parametrize("text", ["{", b"\xff\xfe\x00", "[1,]"])
def test_what_is_not_json_stays_a_value_error_with_the_parser_s_reason(text: str | bytes) -> None:
    with pytest.raises((json.JSONDecodeError, UnicodeDecodeError)):
        read_json_text(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"x = {DEEP}", "nested more than 100 deep"),
        ("x = " + "{a = " * 120 + "1" + "}" * 120, "nested more than 100 deep"),
        (".".join("a" * 150) + " = 1", "nested more than 100 deep"),
        (f"[{'.'.join('a' * 150)}]", "nested more than 100 deep"),
        (f"x = {LONG}", "more than 1,024 bits"),
        (f"x = [{{y = 0x{'f' * 3600}}}]", "more than 1,024 bits"),
        (f"x = {2**1024}", "more than 1,024 bits"),
    ],
)
def test_toml_out_of_bounds_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ExcessError, match=reason):
        read_toml_text(text)
    with pytest.raises(ConfigurationError, match=rf"it .*{reason} \(r\.toml\)"):
        parse_toml(text.encode(), "r.toml")


def test_toml_within_bounds_is_read_as_ever() -> None:
    text = f"x = {2**1024 - 1}\ny = -9\n[a.b]\nc = [[1.5, true], ['t']]\nd = 2024-01-01\n"
    assert read_toml_text(text) == tomllib.loads(text)
    with pytest.raises(tomllib.TOMLDecodeError, match="Invalid value"):
        read_toml_text("x = ")


@pytest.mark.parametrize("value", [LONG, DEEP, "0x" + "f" * 3600])
def test_override_out_of_bounds_is_refused_in_a_short_sentence(value: str) -> None:
    with pytest.raises(ConfigurationError, match=r"decoding\.seed must be a setting") as caught:
        apply_overrides({}, [f"decoding.seed={value}"])
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("text", [DEEP, f'{{"a": {LONG}}}'])
def test_file_of_a_bundle_out_of_bounds_is_damaged(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(BundleError, match=r"it (is nested|holds an integer)"):
        read_json_object(path)


@pytest.mark.parametrize("text", [f"x = {DEEP}", f"x = {LONG}", f"x = 0x{'f' * 3600}"])
@pytest.mark.parametrize("command", [("train",), ("attend",), ("check",)])
def test_recipe_or_matrices_out_of_bounds_give_one_sentence_and_2(
    run_here: Run, tmp_path: Path, text: str, command: tuple[str, ...]
) -> None:
    path = tmp_path / "r.toml"
    path.write_text(text + "\n")
    done = run_here(command[0], str(path), *command[1:])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert len(done.stderr) < 300
    assert "r.toml" in done.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ("--set", "decoding.max_length_ratio=1e308"),
            "max_length_ratio must be at most 1000000",
        ),
        (
            ("--set", "decoding.min_length_ratio=1e7"),
            "min_length_ratio must be at most 1000000",
        ),
    ],
)
def test_ratio_beyond_any_use_is_refused(
    run_here: Run, words: tuple[str, ...], expected: str
) -> None:
    done = run_here("translate", "demo", *words, stdin="A cat.\n")
    assert (done.returncode, done.stdout) == (2, "")
    assert expected in done.stderr


def test_length_limit_beyond_any_use_costs_nothing(run_here: Run) -> None:
    plain = run_here("translate", "demo", stdin="A cat.\n")
    for words in (
        ("--set", f"decoding.max_length={10**30}"),
        ("--set", f"decoding.max_length_offset={10**12}"),
    ):
        done = run_here("translate", "demo", *words, "--beam", "2", stdin="A cat.\n")
        assert (done.returncode, done.stdout) == (0, plain.stdout)


def test_random_heads_end_when_no_more_differ(run_here: Run) -> None:
    words = ("look", "demo", "A cat.", "--change", "cut decoder.1.cross.0", "--random")
    done = run_here(*words, "100000")
    assert done.returncode == 0
    assert "--random 100,000 asks for more other heads than there are" in done.stderr
    refused = run_here(*words, "100001")
    assert refused.returncode == 2
    assert "--random must be from 1 to 100,000, but is 100001." in refused.stderr
