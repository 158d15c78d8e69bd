"""Readers of parallel text: order kept, every mistake named with its file and line."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from pellucid.config import DataConfig
from pellucid.errors import ConfigurationError, DataError, InputFileNotFoundError
from pellucid.text.reading.bad_lines import BadLines
from pellucid.text.reading.row_sides import find_separator
from pellucid.text.reading.sentence_pairs import (
    SentencePair,
    check_text_files,
    read_pairs,
    resolve_folder,
)

GOOD = '{"source": "one", "target": "un"}'


def data(**settings: object) -> DataConfig:
    given = {
        "train": ["a.en", "a.fr"],
        "validation": ["a.en", "a.fr"],
        **settings,
    }
    return DataConfig.model_validate(given)


def mixed(*names: str) -> DataConfig:
    return data(train=names)


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
    config = data(train=[["a.en", "a.fr"], ["b.en", "b.fr"]])
    assert list(read_pairs(config, "train", tmp_path)) == [
        SentencePair("one", "un", f"{tmp_path / 'a.en'}:1"),
        SentencePair("two\u2028still two", "deux", f"{tmp_path / 'a.en'}:2"),
        SentencePair("", "trois", f"{tmp_path / 'b.en'}:1"),
        SentencePair("four", "quatre", f"{tmp_path / 'b.en'}:2"),
    ]


def test_read_pairs_validation_reads_its_own_files(tmp_path: Path) -> None:
    write(tmp_path / "v.tsv", "five\tcinq\n")
    config = data(validation="v.tsv")
    assert [pair.target for pair in read_pairs(config, "validation", tmp_path)] == ["cinq"]


@pytest.mark.parametrize(("name", "packed"), [("a.tsv", False), ("a.TSV.gz", True)])
def test_read_pairs_tsv_takes_two_columns(tmp_path: Path, name: str, packed: bool) -> None:
    write(tmp_path / name, "one\tun\n\ttrois\n", packed=packed)
    assert read(mixed(name), tmp_path) == [("one", "un"), ("", "trois")]


@pytest.mark.parametrize(("name", "packed"), [("a.jsonl", False), ("a.jsonl.gz", True)])
def test_read_pairs_json_lines_ignores_other_keys(tmp_path: Path, name: str, packed: bool) -> None:
    write(tmp_path / name, '{"source": "one", "target": "u\\tn", "id": [7]}\n', packed=packed)
    assert read(mixed(name), tmp_path) == [("one", "u\tn")]


@pytest.mark.parametrize("line", ["one", "one\tun\tuno", "\ntwo\tdeux"])
def test_read_pairs_tsv_wrong_columns_says_file_and_line(tmp_path: Path, line: str) -> None:
    write(tmp_path / "a.tsv", f"one\tun\n{line}\n")
    with pytest.raises(DataError, match=r"source, tab, target, but has [13] .*a\.tsv:2"):
        read(mixed("a.tsv"), tmp_path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "cannot be read"),
        (f"\n{GOOD}", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ("[1]", "but is a list"),
        ("null", "but is null"),
        ('{"source": "one"}', 'must have "target"'),
        ('{"source": 1, "target": "un"}', '"source" must be text, but is a number'),
        ('{"source": "a", "target": true}', '"target" must be text, but is true or false'),
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
    with pytest.raises(DataError, match=r"a\.fr is empty \(data\.train\)"):
        read(data(), tmp_path)
    with pytest.raises(DataError, match=r"a\.fr is empty \(data\.train\)"):
        check_text_files(data(), tmp_path)


def test_missing_file_names_key_and_path(tmp_path: Path) -> None:
    write(tmp_path / "a.en", "x\n")
    with pytest.raises(InputFileNotFoundError, match=r"data\.train .*a\.fr does not exist"):
        read(data(), tmp_path)
    with pytest.raises(InputFileNotFoundError, match=r"data\.train .*a\.fr does not exist"):
        check_text_files(data(), tmp_path)


def test_check_files_folder_in_place_of_a_file_is_a_data_error(tmp_path: Path) -> None:
    (tmp_path / "a.en").mkdir()
    with pytest.raises(DataError, match=r"readable, but .*a\.en is not"):
        check_text_files(data(), tmp_path)


def test_check_files_all_there_says_nothing(tmp_path: Path) -> None:
    write(tmp_path / "a.en", "x\n")
    write(tmp_path / "a.fr", "y\n", packed=True)
    check_text_files(data(), tmp_path)


def test_unknown_kind_is_a_configuration_error(tmp_path: Path) -> None:
    write(tmp_path / "a.xlsx", "x,y\n")
    for use in (
        lambda: read(mixed("a.xlsx"), tmp_path),
        lambda: check_text_files(mixed("a.xlsx"), tmp_path),
    ):
        with pytest.raises(ConfigurationError, match=r"\.tsv, \.csv.*'a\.xlsx' \(data\.train\)"):
            use()


@pytest.mark.parametrize("separator", [",", ";", "|", "\t"])
def test_csv_cells_may_be_quoted_and_have_line_breaks(tmp_path: Path, separator: str) -> None:
    rows = ["en", "cs"], [f'"a{separator} ""b"""', '"un\r\ndeux"'], ["c", "\u00e9"]
    write(tmp_path / "a.csv", "".join(f"{separator.join(row)}\r\n" for row in rows))
    config = mixed("a.csv").model_copy(update={"columns": ("en", "cs")})
    found = list(read_pairs(config, "train", tmp_path))
    assert [(pair.source, pair.target) for pair in found] == [
        (f'a{separator} "b"', "un deux"),
        ("c", "\u00e9"),
    ]
    assert [pair.where.rpartition(":")[2] for pair in found] == ["2", "4"]
    assert [pair.number for pair in found] == [1, 2]


@pytest.mark.parametrize("text", ['a,"b\n', 'a,"b"c\n'])
def test_csv_with_open_quotes_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    write(tmp_path / "a.csv", f"x,y\n{text}")
    with pytest.raises(DataError, match=r"quote its cells in pairs.*a\.csv:2\)"):
        read(mixed("a.csv"), tmp_path)


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
        InputFileNotFoundError, match=r'Set SOME_CORPUS to .*settings=\{"data\.folder": DIR\}\.$'
    ):
        list(read_pairs(data(folder="$SOME_CORPUS/sub"), "train", Path()))


def write_table(folder: Path, rows: Sequence[str]) -> DataConfig:
    write(folder / "t.tsv", "".join(f"{row}\n" for row in rows))
    return mixed("t.tsv")


def test_bad_lines_are_counted_and_the_first_ten_listed_with_their_kind(tmp_path: Path) -> None:
    rows = ["one\tun", "two", "", "three\ttrois\t3", *["alone"] * 11, *["four\tquatre"] * 20]
    with pytest.raises(DataError) as raised:
        read(write_table(tmp_path, rows), tmp_path)
    said = str(raised.value)
    assert said.startswith("14 lines cannot be used: ")
    assert "t.tsv:2 (1 column), 3 (empty), 4 (3 columns), 5 (1 column)" in said
    assert "11 (1 column) and 4 more." in said
    assert 'data.on_bad_line = "skip"' in said


def test_good_lines_before_a_bad_one_are_read_and_those_after_it_are_not(tmp_path: Path) -> None:
    config = write_table(tmp_path, ["one\tun", "two", "three\ttrois"])
    pairs = read_pairs(config, "train", tmp_path)
    assert next(pairs).source == "one"
    with pytest.raises(DataError):
        next(pairs)


def test_skipped_lines_leave_the_numbers_of_the_others(tmp_path: Path) -> None:
    config = write_table(tmp_path, ["one\tun", "two", "three\ttrois"])
    bad = BadLines()
    config = config.model_copy(update={"on_bad_line": "skip"})
    pairs = list(read_pairs(config, "train", tmp_path, bad=bad))
    assert [pair.where.rpartition(":")[2] for pair in pairs] == ["1", "3"]
    assert [pair.number for pair in pairs] == [1, 3]
    assert (bad.count, dict(bad.kinds)) == (1, {"1 column": 1})
    assert bad.listed() == f"{tmp_path / 't.tsv'}:2 (1 column)"


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ('{"source": "a", "target": null}', '"target" is null'),
        ('{"source": "a"}', 'no "target"'),
        ('["a", "b"]', "a list"),
        ("source,target", "not JSON"),
        ('{"source": "\\ud83d", "target": "x"}', "half a surrogate pair"),
    ],
)
def test_skipped_json_lines_have_a_kind(tmp_path: Path, line: str, kind: str) -> None:
    good = json.dumps({"source": "one", "target": "un"})
    write(tmp_path / "a.jsonl", f"{line}\n{good}\n")
    config, bad = mixed("a.jsonl").model_copy(update={"on_bad_line": "skip"}), BadLines()
    assert len(list(read_pairs(config, "train", tmp_path, bad=bad))) == 1
    assert dict(bad.kinds) == {kind: 1}


def test_line_breaks_in_json_lines_are_spaces_of_one_pair(tmp_path: Path) -> None:
    values = [("One.\nTwo.", "Un.\r\n\r\nDeux.\n"), (" a\tb ", "c"), ("\nx", "\n")]
    lines = [json.dumps({"source": source, "target": target}) for source, target in values]
    write(tmp_path / "a.jsonl", "\n".join(lines))
    pairs = list(read_pairs(mixed("a.jsonl"), "train", tmp_path))
    assert [(pair.source, pair.target, pair.has_breaks) for pair in pairs] == [
        ("One. Two.", "Un. Deux.", True),
        (" a\tb ", "c", False),
        ("x", "", True),
    ]
    assert [pair.number for pair in pairs] == [1, 2, 3]


@pytest.mark.parametrize(
    ("name", "line"), [("a.tsv", "a\tb"), ("a.jsonl", '{"source": "a", "target": "b"}')]
)
@pytest.mark.parametrize("end", ["\n", "\n\n", "\n\r\n\n"])
def test_empty_lines_at_the_end_of_a_file_do_not_count(
    tmp_path: Path, name: str, line: str, end: str
) -> None:
    write(tmp_path / name, line + end)
    assert read(mixed(name), tmp_path) == [("a", "b")]
    write(tmp_path / name, f"{line}\n\n{line}{end}")
    with pytest.raises(DataError, match=rf"{name}:2"):
        read(mixed(name), tmp_path)


def test_line_that_is_too_long_is_a_bad_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pellucid.text.reading.lines.LONGEST_LINE", 31)
    write(tmp_path / "a.tsv", f"a\tb\n{'x' * 97}\ty\nc\td\n")
    bad = BadLines()
    config = mixed("a.tsv").model_copy(update={"on_bad_line": "skip"})
    assert [pair.source for pair in read_pairs(config, "train", tmp_path, bad=bad)] == ["a", "c"]
    assert dict(bad.kinds) == {"too long": 1}
    with pytest.raises(DataError, match=r"at most 31 bytes, but has 99 .*a\.tsv:2"):
        read(mixed("a.tsv"), tmp_path)


@pytest.mark.parametrize("name", ["a.tsv", "a.jsonl.gz"])
def test_pipe_is_refused_at_once(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    for use in (
        lambda: check_text_files(mixed(name), tmp_path),
        lambda: read(mixed(name), tmp_path),
    ):
        with pytest.raises(DataError, match=rf"read more than once, but .*{name} is a pipe"):
            use()


def test_pair_with_a_side_that_is_not_utf_8_is_skipped_in_both_files(tmp_path: Path) -> None:
    write(tmp_path / "a.en", b"one\n\xe9t\xe9\nthree\n")
    write(tmp_path / "a.fr", b"un\ndeux\ntrois\n")
    bad = BadLines()
    pairs = read_pairs(data(on_bad_line="skip"), "train", tmp_path, bad=bad)
    assert [pair.target for pair in pairs] == ["un", "trois"]
    assert dict(bad.kinds) == {"not UTF-8": 1}


def test_file_in_another_encoding_is_to_be_converted(tmp_path: Path) -> None:
    write(tmp_path / "a.en", b"one\ntwo\nthree\n")
    write(tmp_path / "a.fr", "\xe9t\xe9\ndeux\nl\xe0\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"a.fr:1, 3 .not UTF-8.*iconv -f WINDOWS-1252"):
        read(data(), tmp_path)


@pytest.mark.parametrize("columns", [[2, 4], ["en", "fr"], ["en", 4], [2, "fr"]])
def test_columns_are_taken_by_name_or_number(tmp_path: Path, columns: list[object]) -> None:
    rows = ["id\ten\tscore\tfr", "7\tone\t0.5\tun", "8\ttwo\t0.5\tdeux"]
    config = write_table(tmp_path, rows).model_copy(
        update={
            "columns": tuple(columns),
            "source_language": "en",
            "target_language": "fr",
        }
    )
    assert read(config, tmp_path) == [("one", "un"), ("two", "deux")]
    first = next(read_pairs(config, "train", tmp_path))
    assert (first.where.rpartition(":")[2], first.number) == ("2", 1)


def test_columns_by_number_of_a_table_without_header_use_its_first_line(tmp_path: Path) -> None:
    config = write_table(tmp_path, ["7\tone\tun", "8\ttwo\tdeux"])
    config = config.model_copy(update={"columns": (3, 2)})
    assert read(config, tmp_path) == [("un", "one"), ("deux", "two")]


def test_header_of_more_than_two_columns_is_recognized(tmp_path: Path) -> None:
    rows = ["TARGET\tquality\tSource", "un\t1\tone", "deux\t2\ttwo"]
    assert read(write_table(tmp_path, rows), tmp_path) == [("one", "un"), ("two", "deux")]


def test_two_columns_stay_as_they_are_whatever_the_first_line_says(tmp_path: Path) -> None:
    config = write_table(tmp_path, ["source\ttarget", "one\tun"])
    assert read(config, tmp_path) == [("source", "target"), ("one", "un")]
    named = config.model_copy(update={"columns": ("source", "target")})
    assert read(named, tmp_path) == [("one", "un")]


def test_columns_that_the_first_line_lacks_are_refused_with_those_it_has(tmp_path: Path) -> None:
    config = write_table(tmp_path, ["id\ten\tfr", "7\tone\tun"])
    with pytest.raises(ConfigurationError, match=r"'de' is not among 'id', 'en', 'fr' .*t\.tsv:1"):
        read(config.model_copy(update={"columns": ("en", "de")}), tmp_path)


def test_one_column_is_refused() -> None:
    with pytest.raises(ValueError, match=r"columns must name two columns.*but names 1"):
        data(columns="en")


def test_lines_of_a_table_need_as_many_columns_as_the_first(tmp_path: Path) -> None:
    config = write_table(tmp_path, ["7\tone\tun", "8\ttwo\t\tdeux", "9\tthree\ttrois"])
    config = config.model_copy(update={"columns": (2, 3)})
    with pytest.raises(DataError, match=r"must have 3 columns, as the first has, but has 4 .*:2"):
        read(config, tmp_path)


@pytest.mark.parametrize(
    ("value", "columns"),
    [
        ({"translation": {"en": "one", "fr": "un"}}, ()),
        ({"en": "one", "fr": "un", "de": "eins"}, ()),
        ({"id": 3, "translation": {"fr": "un", "en": "one"}}, ("translation.en", "translation.fr")),
        ({"data": {"text.en": "one", "text.fr": "un"}}, ("data.text.en", "data.text.fr")),
        ({"source": "one", "target": "un", "en": "other"}, ()),
        ({"premise": "one", "hypothesis": "un"}, ("premise", "hypothesis")),
    ],
)
def test_json_lines_have_keys_for_languages_or_named_ones(
    tmp_path: Path, value: object, columns: tuple[str, ...]
) -> None:
    write(tmp_path / "a.jsonl", json.dumps(value) + "\n")
    config = mixed("a.jsonl").model_copy(
        update={"source_language": "en", "target_language": "fr", "columns": columns}
    )
    assert read(config, tmp_path) == [("one", "un")]


def test_nested_json_without_languages_says_which_keys_it_has(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", json.dumps({"translation": {"en": "one", "fr": "un"}}) + "\n")
    with pytest.raises(DataError, match=r"data\.target_language to two of 'en', 'fr'"):
        read(mixed("a.jsonl"), tmp_path)


def test_numbers_are_no_keys_of_json(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", '{"source": "one", "target": "un"}\n')
    config = mixed("a.jsonl").model_copy(update={"columns": (1, 2)})
    with pytest.raises(ConfigurationError, match="must be keys for JSON"):
        read(config, tmp_path)


@pytest.mark.parametrize(
    ("kind", "cut", "whole"),
    [
        ("bpe", "a nu@@ mber of la@@ st@@", "a number of last"),
        ("sentencepiece", "\u2581a \u2581num ber \u2581of \u2581", "a number of"),
        ("wordpiece", "a num ##b ##er # of ##", "a number # of ##"),
        ("joiner", "a num \uffedb\uffed er of \uffed.", "a number of."),
    ],
)
def test_text_cut_before_is_joined_as_it_is_read(
    tmp_path: Path, kind: str, cut: str, whole: str
) -> None:
    config = write_table(tmp_path, [f"{cut}\t{cut}"]).model_copy(update={"cut_by": kind})
    assert read(config, tmp_path) == [(whole, whole)]


def test_a_file_of_one_json_list_is_refused_with_the_command_that_helps(tmp_path: Path) -> None:
    write(tmp_path / "a.json", "[]\n")
    with pytest.raises(ConfigurationError, match=r"jq -c"):
        read(mixed("a.json"), tmp_path)


@pytest.mark.parametrize("name", ["t.parquet", "T.PARQUET", "t.arrow"])
def test_columns_of_a_data_set_are_read_and_a_cut_file_is_refused(
    tmp_path: Path, name: str
) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / name
    rows = [{"translation": {"en": f"a{i}", "cs": f"b\n{i}"}} for i in range(2503)]
    table = pyarrow.Table.from_pylist(rows)
    if name.lower().endswith("parquet"):
        parquet.write_table(table, path)
    else:
        with pyarrow.ipc.new_stream(pyarrow.OSFile(str(path), "wb"), table.schema) as stream:
            stream.write_table(table)
    data = DataConfig(train=(name,), split=100, source_language="en", target_language="cs")
    pairs = list(read_pairs(data.model_copy(update={"split": None}), "train", tmp_path))
    assert [(p.source, p.target) for p in pairs] == [(f"a{i}", f"b {i}") for i in range(2503)]
    assert pairs[1700].where == f"{path}:1701"
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(DataError, match=f"must be whole, but .*{name}"):
        list(read_pairs(data, "train", tmp_path))


def test_skipping_is_not_advised_if_most_lines_are_bad(tmp_path: Path) -> None:
    with pytest.raises(DataError) as raised:
        read(write_table(tmp_path, ["one\tun", "two", "three"]), tmp_path)
    assert "2 lines cannot be used" in str(raised.value)
    assert "on_bad_line" not in str(raised.value)


@pytest.mark.parametrize(
    ("lines", "separator"),
    [
        (["Yes, it is, Anna.;Oui.", "The dog ate.;Il a mangé, oui.", "No.;Non."], ";"),
        (["Hello, Anna;Salut Anna", "Well, no;Bon non"], ";"),
        (['"Yes, it; is",Oui', "No,Non", '"So, so","Comme ci, comme ça"'], ","),
        (["id,en,fr", "1,Yes; yes,Oui", "2,No,Non"], ","),
        (["Yes|Oui", "No, no|Non, non"], "|"),
    ],
)
def test_separator_of_a_csv_gives_most_lines_as_many_columns(
    tmp_path: Path, lines: list[str], separator: str
) -> None:
    write(tmp_path / "t.csv", "".join(f"{line}\n" for line in lines))
    assert find_separator(tmp_path / "t.csv") == separator


def test_bad_line_of_a_csv_names_the_separator(tmp_path: Path) -> None:
    write(tmp_path / "t.csv", "Yes, Anna;Oui\nNo;Non\nSo;so;la\n")
    with pytest.raises(DataError, match="source, semicolon, target, but has 3 columns"):
        read(mixed("t.csv"), tmp_path)
