"""Tables as people write them: stray quotes, headers in any language, links, many bad rows."""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path

import pytest

from pellucid.config import DataConfig, Recipe, apply_overrides
from pellucid.errors import DataError, PellucidError, speaking_to
from pellucid.text.reading import row_sides
from pellucid.text.reading.bad_lines import BadLines
from pellucid.text.reading.sentence_pairs import read_pairs
from pellucid.training.start.table import recipe_for, run_name

PAIRS = [(f"The cat number {n} sleeps.", f"Die Katze {n} schläft.") for n in range(40)]


def read(path: Path, on_bad_line: str = "stop") -> tuple[list[tuple[str, str]], BadLines]:
    data = DataConfig(train=(path.name,), split=1, on_bad_line=on_bad_line)  # type: ignore[arg-type]
    bad = BadLines()
    whole = data.model_copy(update={"split": None})
    pairs = read_pairs(whole, "train", path.parent, bad=bad)
    return [(pair.source, pair.target) for pair in pairs], bad


def csv_of(rows: list[tuple[str, str]], path: Path) -> Path:
    path.write_text("".join(f"{source},{target}\n" for source, target in rows))
    return path


@pytest.mark.parametrize("last", [12, None])
def test_stray_quotation_mark_loses_its_own_rows_and_is_named(
    tmp_path: Path, last: int | None
) -> None:
    rows = list(PAIRS)
    rows[5] = (rows[5][0], f'"{rows[5][1]}')
    if last:
        rows[last] = (rows[last][0], f'{rows[last][1]}"')
    path = csv_of(rows, tmp_path / "a.csv")
    with pytest.raises(DataError, match=r"quote its cells in pairs, but .*a\.csv:6"):
        read(path)
    found, bad = read(path, "skip")
    lost = [pair for pair in PAIRS if pair not in found]
    assert lost == [PAIRS[5], *([PAIRS[last]] if last else [])]
    assert bad.first[0].number == 6
    # The one with the mark at its end is a row, since a mark within a cell is a character.
    assert bad.count == 1


def test_cells_of_many_lines_stay_whole(tmp_path: Path) -> None:
    letter = "Dear Anna,\nthank you, and all the best,\nthe cat, who sleeps,\nsleeps\nBerta"
    poem = "\n".join(f"line {n} of it, which is long" for n in range(300))
    path = tmp_path / "a.csv"
    rows = [("en", "de"), (letter, "Liebe Anna"), (poem, "Zeile"), ("one", "eins")]
    path.write_text("".join(f'"{source}","{target}"\n' for source, target in rows))
    found, bad = read(path)
    assert [target for _, target in found] == ["de", "Liebe Anna", "Zeile", "eins"]
    assert found[1][0] == letter.replace("\n", " ")
    assert bad.count == 0


@pytest.mark.parametrize("side", [0, 1])
def test_cell_whose_lines_look_like_rows_stays_whole(tmp_path: Path, side: int) -> None:
    table = "name,age\nAnn,31\nBen,7\nCleo,52\nDora,4"
    path = tmp_path / "a.csv"
    row = [f'"{table}"', "eine Tabelle"]
    row = row if side == 0 else row[::-1]
    path.write_text("one,eins\n" + ",".join(row) + "\ntwo,zwei\n")
    found, bad = read(path)
    assert [pair[0] for pair in found][::2] == ["one", "two"]
    assert found[1][side] == table.replace("\n", " ")
    assert bad.count == 0


def test_cell_that_is_too_long_is_one_bad_line_wherever_it_stands(tmp_path: Path) -> None:
    for place in (3, 35):
        rows = list(PAIRS)
        rows[place] = ("long " * 40_000, "lang")
        path = csv_of(rows, tmp_path / "a.csv")
        with pytest.raises(DataError, match=r"at most 131,072 characters, .*a\.csv:\d+"):
            read(path)
        found, bad = read(path, "skip")
        assert found == [*PAIRS[:place], *PAIRS[place + 1 :]]
        assert (bad.count, bad.first[0].number) == (1, place + 1)


def test_rows_that_cannot_be_quoted_take_linear_time(tmp_path: Path) -> None:
    seconds = []
    for number in (4_000, 8_000, 16_000):
        path = tmp_path / f"{number}.csv"
        # Outside of quotes each line opens a cell, inside it closes and opens one.
        path.write_text('a,b","c\n' * number)
        began = time.process_time()
        with pytest.raises(DataError):
            read(path)
        seconds.append(time.process_time() - began)
    assert seconds[2] < 8 * max(seconds[0], 0.05)


def test_separator_of_a_refused_table_is_looked_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    find_separator = row_sides.find_separator
    monkeypatch.setattr(
        row_sides, "find_separator", lambda path: calls.append(path) or find_separator(path)
    )
    path = tmp_path / "a.csv"
    path.write_text("".join(f"{n},a {n},b {n},c\n" for n in range(500)))
    with pytest.raises(DataError, match="500 lines cannot be used"):
        read(path)
    assert len(calls) == 1


@pytest.mark.parametrize(
    "header",
    [
        ("English", "Deutsch"), ("Englisch", "Deutsch"), ("anglais", "allemand"), ("eng", "deu"),
        ("en-US", "de-DE"), ("Source text", "Target text"),
        ("id", "English", "Deutsch", "annotator"), ("id", "en-US", "de-DE"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("named", [(None, None), ("en", "de")])
def test_header_is_known_however_it_names_the_languages(
    tmp_path: Path, header: tuple[str, ...], named: tuple[str | None, str | None]
) -> None:
    if header[0] == "Source text" and not named[0]:
        named = ("en", None)
    place = 1 if header[0] == "id" else 0
    rows = [[*["x"] * place, *pair, *["y"] * (len(header) - 2 - place)] for pair in PAIRS]
    path = tmp_path / "a.tsv"
    path.write_text("".join("\t".join(row) + "\n" for row in [header, *rows]))
    values = recipe_for([str(path)], tmp_path, named)
    data = Recipe.model_validate(values).data.model_copy(update={"split": None})
    assert (data.source_language, data.target_language) == ("en", "de")
    found = [(pair.source, pair.target) for pair in read_pairs(data, "train", tmp_path)]
    assert found == PAIRS


@pytest.mark.parametrize(
    ("header", "named"),
    [("id\tEnglisch\tDeutsch", ["Englisch", "Deutsch"]), ("id\tkey\tGerman", ["key", "German"])],
)
def test_advice_takes_no_column_of_numbers(tmp_path: Path, header: str, named: list[str]) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(f"{header}\n" + "".join(f"{n}\ta\tb\n" for n in range(9)))
    with pytest.raises(PellucidError) as refused:
        read(path)
    assert f'settings={{"data.columns": {json.dumps(named)}}}' in str(refused.value)
    with speaking_to("command"):
        assert f"--set 'data.columns={json.dumps(named)}'" in str(refused.value)


def test_stray_quotation_mark_does_not_change_the_separator(tmp_path: Path) -> None:
    pairs = [(f"Yes, {source}", f"Ja, {target}") for source, target in PAIRS]
    path = tmp_path / "a.csv"
    lines = [f"{source};{target}\n" for source, target in pairs]
    lines[3] = 'Well;"Nun\n'
    path.write_text("".join(lines))
    found, bad = read(path, "skip")
    assert found == [*pairs[:3], *pairs[4:]]
    assert bad.count == 1


def test_advice_to_name_columns_can_be_typed(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("id\tEnglish\tDeutsch\n" + "".join(f"{n}\ta\tb\n" for n in range(9)))
    with pytest.raises(PellucidError) as refused:
        recipe_for([str(path)], tmp_path, ("fr", "it"))
    in_python = str(refused.value).split(" such as ")[1]
    assert in_python.startswith('settings={"data.columns": ["English", "Deutsch"]} ')
    with speaking_to("command"):
        words = shlex.split(str(refused.value).split(" such as ")[1])
    assert words[:2] == ["--set", 'data.columns=["English", "Deutsch"]']
    values = recipe_for([str(path)], tmp_path, ("en", "de"), [words[1]])
    assert apply_overrides(values, [words[1]])["data"]["columns"] == ["English", "Deutsch"]
    assert "(the first line has 'id', 'English', 'Deutsch')" in str(refused.value)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_links_of_a_download_cache_are_read_under_their_own_names(
    tmp_path: Path, kind: str
) -> None:
    (tmp_path / "hub/blobs").mkdir(parents=True)
    (tmp_path / "hub/snapshots/1").mkdir(parents=True)
    (tmp_path / "hub/blobs/3f2a9c").write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS))
    link = tmp_path / "hub/snapshots/1/train.tsv"
    link.symlink_to("../../blobs/3f2a9c")
    name = str(link if kind == "file" else link.parent)
    assert run_name([name]) == ("train" if kind == "file" else "1")
    values = recipe_for([name], tmp_path, ("en", "de"))
    assert values["data"]["train"] == ["train.tsv"]
    data = Recipe.model_validate(values).data.model_copy(update={"split": None})
    assert len(list(read_pairs(data, "train", tmp_path))) == 40


def test_run_is_called_as_its_file() -> None:
    assert run_name(["Übersetzung.tsv"]) == "Übersetzung"
    assert run_name(["a/B.TSV.GZ"]) == "B"


def test_text_to_validate_on_takes_the_place_of_a_split(tmp_path: Path) -> None:
    for name in ("a.tsv", "v.tsv"):
        (tmp_path / name).write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS))
    change = "data.validation=v.tsv"
    values = recipe_for([str(tmp_path / "a.tsv")], tmp_path, ("en", "de"), [change])
    data = Recipe.model_validate(values).data
    assert data.validation == ("v.tsv",)
    assert not data.split
