"""Readers of parallel text: order kept, every mistake named with its file and line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from pellucid.config import DataConfig
from pellucid.errors import ConfigurationError, DataError, InputFileNotFoundError
from pellucid.text import Pair, check_files, read_pairs, resolve_folder


def data(**settings: object) -> DataConfig:
    given = {
        "train_source": "a.en",
        "train_target": "a.fr",
        "validation_source": "a.en",
        "validation_target": "a.fr",
        **settings,
    }
    return DataConfig.model_validate(given)


def mixed(*names: str) -> DataConfig:
    return data(train_source=(), train_target=(), train=names)


def read(config: DataConfig, folder: Path) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in read_pairs(config, "train", folder)]


def write(path: Path, text: str | bytes, *, packed: bool = False) -> None:
    raw = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(raw) if packed else raw)


@pytest.mark.parametrize("packed", [False, True])
def test_read_pairs_parallel_files_one_after_the_other(tmp_path: Path, packed: bool) -> None:
    write(tmp_path / "a.en", "one\ntwo\u2028still two\n", packed=packed)
    write(tmp_path / "a.fr", "un\r\ndeux\r\n", packed=packed)
    write(tmp_path / "b.en", "\nfour", packed=packed)
    write(tmp_path / "b.fr", "trois\nquatre", packed=packed)
    config = data(train_source=("a.en", "b.en"), train_target=("a.fr", "b.fr"))
    assert list(read_pairs(config, "train", tmp_path)) == [
        Pair("one", "un", f"{tmp_path / 'a.en'}:1"),
        Pair("two\u2028still two", "deux", f"{tmp_path / 'a.en'}:2"),
        Pair("", "trois", f"{tmp_path / 'b.en'}:1"),
        Pair("four", "quatre", f"{tmp_path / 'b.en'}:2"),
    ]


def test_read_pairs_validation_reads_its_own_files(tmp_path: Path) -> None:
    write(tmp_path / "v.tsv", "five\tcinq\n")
    config = data(validation_source=(), validation_target=(), validation="v.tsv")
    assert [pair.target for pair in read_pairs(config, "validation", tmp_path)] == ["cinq"]


@pytest.mark.parametrize(("name", "packed"), [("a.tsv", False), ("a.TSV.gz", True)])
def test_read_pairs_tsv_takes_two_columns(tmp_path: Path, name: str, packed: bool) -> None:
    write(tmp_path / name, "one\tun\n\ttrois\n", packed=packed)
    assert read(mixed(name), tmp_path) == [("one", "un"), ("", "trois")]


@pytest.mark.parametrize(("name", "packed"), [("a.jsonl", False), ("a.jsonl.gz", True)])
def test_read_pairs_json_lines_ignores_other_keys(tmp_path: Path, name: str, packed: bool) -> None:
    write(tmp_path / name, '{"source": "one", "target": "u\\tn", "id": [7]}\n', packed=packed)
    assert read(mixed(name), tmp_path) == [("one", "u\tn")]


@pytest.mark.parametrize("line", ["one", "one\tun\tuno", ""])
def test_read_pairs_tsv_wrong_columns_says_file_and_line(tmp_path: Path, line: str) -> None:
    write(tmp_path / "a.tsv", f"one\tun\n{line}\n")
    with pytest.raises(DataError, match=r"source, tab, target, but has [13] .*a\.tsv:2"):
        read(mixed("a.tsv"), tmp_path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "cannot be read"),
        ("", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ("[1]", "but is a list"),
        ("null", "but is null"),
        ('{"source": "one"}', 'must have "target"'),
        ('{"source": 1, "target": "un"}', '"source" must be text, but is a number'),
        ('{"source": "a", "target": true}', '"target" must be text, but is true or false'),
        ('{"source": "a\\nb", "target": "un"}', '"source" must be one line'),
        ('{"source": "a\\ud800", "target": "un"}', "character 2 is half of a surrogate pair"),
    ],
)
def test_read_pairs_json_mistake_says_file_and_line(
    tmp_path: Path, line: str, message: str
) -> None:
    good = json.dumps({"source": "one", "target": "un"})
    write(tmp_path / "a.jsonl", f"{good}\n{line}\n")
    with pytest.raises(DataError, match=rf"{message}.*a\.jsonl:2"):
        read(mixed("a.jsonl"), tmp_path)


@pytest.mark.parametrize(("num_sources", "num_targets"), [(3, 7), (7, 3), (1, 2)])
def test_read_pairs_different_lengths_names_both_counts(
    tmp_path: Path, num_sources: int, num_targets: int
) -> None:
    write(tmp_path / "a.en", "x\n" * num_sources)
    write(tmp_path / "a.fr", "y\n" * num_targets)
    pattern = rf"a\.en has {num_sources} and .*a\.fr has {num_targets}\. "
    with pytest.raises(DataError, match=pattern):
        read(data(), tmp_path)


def test_read_pairs_invalid_utf8_says_file_and_line(tmp_path: Path) -> None:
    write(tmp_path / "a.en", b"x\n\xe9t\xe9\n")
    write(tmp_path / "a.fr", "y\nz\n")
    with pytest.raises(DataError, match=r"must be UTF-8.*a\.en:2"):
        read(data(), tmp_path)


def test_read_pairs_cut_gzip_is_a_data_error(tmp_path: Path) -> None:
    noise = "".join(f"{number * 7919 % 10007}\n" for number in range(5000))
    (tmp_path / "a.en").write_bytes(gzip.compress(noise.encode())[:-500])
    write(tmp_path / "a.fr", noise)
    with pytest.raises(DataError, match=r"a\.en is damaged"):
        read(data(), tmp_path)


@pytest.mark.parametrize("packed", [False, True])
def test_empty_file_is_a_data_error(tmp_path: Path, packed: bool) -> None:
    write(tmp_path / "a.en", "x\n")
    write(tmp_path / "a.fr", "", packed=packed)
    with pytest.raises(DataError, match=r"a\.fr is empty \(data\.train_target\)"):
        read(data(), tmp_path)
    with pytest.raises(DataError, match=r"a\.fr is empty \(data\.train_target\)"):
        check_files(data(), tmp_path)


def test_missing_file_names_key_and_path(tmp_path: Path) -> None:
    write(tmp_path / "a.en", "x\n")
    with pytest.raises(InputFileNotFoundError, match=r"data\.train_target .*a\.fr does not exist"):
        read(data(), tmp_path)
    with pytest.raises(InputFileNotFoundError, match=r"data\.train_target .*a\.fr does not exist"):
        check_files(data(), tmp_path)


def test_check_files_folder_in_place_of_a_file_is_a_data_error(tmp_path: Path) -> None:
    (tmp_path / "a.en").mkdir()
    with pytest.raises(DataError, match=r"readable, but .*a\.en is not"):
        check_files(data(), tmp_path)


def test_check_files_all_there_says_nothing(tmp_path: Path) -> None:
    write(tmp_path / "a.en", "x\n")
    write(tmp_path / "a.fr", "y\n", packed=True)
    check_files(data(), tmp_path)


def test_unknown_kind_is_a_configuration_error(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "x,y\n")
    for use in (
        lambda: read(mixed("a.csv"), tmp_path),
        lambda: check_files(mixed("a.csv"), tmp_path),
    ):
        with pytest.raises(ConfigurationError, match=r"\.tsv or \.jsonl.*'a\.csv' \(data\.train\)"):
            use()


def test_resolve_folder_empty_is_the_recipes_own(tmp_path: Path) -> None:
    assert resolve_folder("", tmp_path) == tmp_path
    assert resolve_folder("texts", tmp_path) == tmp_path / "texts"
    assert resolve_folder("/texts", tmp_path) == Path("/texts")


def test_resolve_folder_environment_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_CORPUS", str(tmp_path))
    assert resolve_folder("$SOME_CORPUS", Path("elsewhere")) == tmp_path
    assert resolve_folder("$SOME_CORPUS/en/fr", Path("elsewhere")) == tmp_path / "en" / "fr"


@pytest.mark.parametrize("folder", ["$", "$/en"])
def test_resolve_folder_without_a_name_says_what_to_do(folder: str) -> None:
    with pytest.raises(InputFileNotFoundError, match=r"after its \$, but is .* Write \$NAME"):
        resolve_folder(folder, Path())


@pytest.mark.parametrize("value", [None, ""])
def test_resolve_folder_unset_variable_says_what_to_do(
    value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SOME_CORPUS", raising=False)
    if value is not None:
        monkeypatch.setenv("SOME_CORPUS", value)
    with pytest.raises(
        InputFileNotFoundError, match=r"Set SOME_CORPUS to .*--set data\.folder=DIR"
    ):
        list(read_pairs(data(folder="$SOME_CORPUS/sub"), "train", Path()))
