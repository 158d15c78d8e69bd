"""``pellucid attend``: the output that a student sees, and messages about bad files."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len

from pellucid.by_hand.examples.by_name import EXAMPLES
from pellucid.cli.commands.attend import NAMES

Run = Callable[..., subprocess.CompletedProcess[str]]
WriteLines = Callable[..., str]

STAGES = ("scores", "scaled", "exponentials", "weights", "context")


@pytest.fixture(autouse=True)
def ordinary_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")


def is_one_sentence(stderr: str) -> bool:
    return stderr.startswith("error: ") and stderr.count("\n") == 1 and stderr.endswith("\n")


def test_names_of_the_command_are_the_examples() -> None:
    assert tuple(EXAMPLES) == NAMES
    assert not any("." in name for name in NAMES)


@pytest.mark.sample(width=40)
@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("name", NAMES)
def test_attend_example_shows_every_stage_within_the_width(
    run_here: Run, monkeypatch: pytest.MonkeyPatch, name: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    done = run_here("attend", name)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    # Additive attention multiplies no query by a key, so there is nothing to scale.
    for stage in set(STAGES) - ({"scaled"} if name == "recurrent-step" else set()):
        assert any(line.startswith(stage) for line in lines), stage
    assert max(map(cell_len, lines)) <= width
    assert "\x1b" not in done.stdout
    assert f"attend {name} --row N" in " ".join(lines).replace("  ", " ")


def test_attend_in_a_process_of_its_own_writes_utf8(run_cli: Run) -> None:
    done = run_cli("attend", "help-me", env={"LC_ALL": "C", "PYTHONUTF8": "0"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "“help me!”" in done.stdout
    assert re.search(r"help +0\.622459 +0\.377541", done.stdout)


def test_attend_points_of_a_column_stand_below_each_other(run_here: Run) -> None:
    lines = run_here("attend", "not-on-your-life").stdout.splitlines()
    start = lines.index("weights  exponentials ÷ their sum") + 3
    points = [[m.start() for m in re.finditer(r"\.", line)] for line in lines[start : start + 6]]
    assert all(row == points[-1][: len(row)] for row in points)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["toy-four"], ["0.999089", "0.000911", "3.817574"]),
        (["pizza"], ["0.001386  0.001480  0.997134", "off by    −1.977986", "6.423737  5.509945"]),
        (["not-on-your-life"], ["0.037836", "√d_k = 6.55, 9.09", "which no softmax gives"]),
        (["not-on-your-life", "--d-key", "50"], ["√50 = 7.071068", "computed with d_k = 50"]),
        (["room-number"], ["201.266956", "201.5", "Smith, S530, room 200"]),
        (["show-me-the-money"], ["0.841471", "(sin 2° = 0.034899)", "average: 0.379"]),
        (["lets-go"], ["in 49.7 % of them"]),
    ],
)
def test_attend_example_says_its_numbers_and_causes(
    run_here: Run, arguments: list[str], expected: list[str]
) -> None:
    text = " ".join(run_here("attend", *arguments).stdout.split())
    for piece in expected:
        assert " ".join(piece.split()) in text


def test_attend_colors_weights_only_where_there_may_be_color(
    run_here: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = run_here("attend", "help-me").stdout
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLORTERM", "truecolor")
    colored = run_here("attend", "help-me").stdout
    assert re.search(r"\x1b\[38;2;[\d;]+48;2;[\d;]+m0\.622459", colored)
    assert re.sub(r"\x1b\[[\d;]*m", "", colored) == without
    monkeypatch.setenv("NO_COLOR", "1")
    assert "8;2;" not in run_here("attend", "help-me").stdout


@pytest.mark.parametrize("name", NAMES)
def test_attend_plain_has_no_columns_to_listen_through(
    run_here: Run, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PELLUCID_PLAIN", "1")
    done = run_here("attend", name)
    assert done.returncode == 0
    assert not re.search(r"\x1b|−|   ", done.stdout)


def test_attend_plain_says_infinity_and_differences_in_words(
    run_here: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PELLUCID_PLAIN", "1")
    text = run_here("attend", "not-on-your-life").stdout
    assert "masked, not: <start> 0.4; not 2.6875; on minus infinity;" in text
    assert "differs by up to 0.037836, because no d_k fits" in text


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", NAMES)
def test_attend_json_is_one_object_with_every_step(run_here: Run, name: str) -> None:
    (line,) = run_here("attend", name, "--json").stdout.splitlines()
    record = json.loads(line)
    assert set(record) == {"name", "title", "text", "note", "parts"}
    worked = EXAMPLES[name]()
    assert [part["title"] for part in record["parts"]] == [part.title for part in worked.parts]
    for part, known in zip(record["parts"], worked.parts, strict=True):
        for step, other in zip(part["steps"], known.steps, strict=True):
            assert step["name"] == other.name
            for table, values in zip(step["tables"], other.tables, strict=True):
                numbers = [[float(value) for value in row] for row in table["values"]]
                assert numbers == values.values_LX.tolist()


def test_attend_json_writes_infinity_as_text(run_here: Run) -> None:
    assert '"-inf"' in run_here("attend", "not-on-your-life", "--json").stdout


def test_attend_row_writes_out_each_product(run_here: Run) -> None:
    text = run_here("attend", "toy-four", "--row", "0").stdout
    assert "word 2 · word 1 = 5·4 + 1·0 + 0·0 + 4·5 = 40" in text
    assert "word 1: 40 ÷ 2 = 20" in text
    assert "word 3: exp(13 − 20) = exp(−7) = 0.000912" in text
    assert "word 2: −∞, may not be attended to" in text


def test_attend_option_without_effect_is_told(run_here: Run) -> None:
    done = run_here("attend", "help-me", "--d-key", "16")
    assert done.returncode == 0
    assert done.stderr.startswith("warning: --d-key has no effect")
    assert done.stderr.count("\n") == 1


def test_attend_own_toml_shows_names_of_any_width_and_hides_nothing(
    run_here: Run, monkeypatch: pytest.MonkeyPatch, write_lines: WriteLines
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    own = write_lines(
        "own.toml",
        'tokens = ["日本語", "a\\u001b[31mred", "an-extraordinarily-long-word"]',
        "x = [[1, 2], [3, 4e12], [5, 1e-9]]",
    )
    done = run_here("attend", own)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert "\\x1b[31mred" in done.stdout
    assert "日本語" in done.stdout
    tables = [line for line in done.stdout.splitlines() if line.startswith("  ")]
    assert max(map(cell_len, tables)) <= 40


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.toml", "", "must be x, or query, key and value"),
        ("a.toml", "x = [[1, 2], [3]]", "a.toml:1, x[1]"),
        ("a.toml", "# note\nx = [[1, 2],\n [3, 'four']]", "'four' (FOLDER/a.toml:2, x[1][1])"),
        ("a.toml", "x = [[1, nan]]", "is nan (FOLDER/a.toml:1, x[0][1])"),
        ("a.toml", "x = [[1, true]]", "x[0][1]"),
        ("a.toml", "x = [[1e60]]", "at most 1e+50 in size"),
        ("a.toml", "x = [1, 2]", "must be a list, but is 1 (FOLDER/a.toml:1, x[0])"),
        ("a.toml", "x = []", "x must be rows of numbers"),
        ("a.toml", "x = [[]]", "empty (FOLDER/a.toml:1, x[0])"),
        ("a.toml", "x = 5", "x must be rows of numbers such as [[1, 2], [3, 4]], but is 5"),
        ("a.toml", "x = [[1]]\nw_qurey = [[1]]", "Did you mean 'w_query'?"),
        ("a.toml", "x = [[1]]\n[w_query]\n", "a.toml:2, w_query"),
        ("a.toml", "x = [[1, 2]]\nw_value = [[1]]", "one row for each of the 2 columns"),
        ("a.toml", "x = [[1, 2]]\nw_query = [[1], [2]]", "have 1 and 2 columns"),
        (
            "a.toml",
            "x = [[1]]\nkey = [[1]]",
            "x cannot be combined with key (FOLDER/a.toml:2",
        ),
        ("a.toml", "w_key = [[1]]", "w_key must come with x, but x is missing"),
        ("a.toml", "query = [[1]]\nvalue = [[1]]", "but key is missing"),
        ("a.toml", "query = [[1]]\nkey = [[1, 2]]\nvalue = [[1]]", "have 1 and 2 columns"),
        ("a.toml", "query = [[1]]\nkey = [[1]]\nvalue = [[1], [2]]", "2 values and 1 keys"),
        ("a.toml", "x = [[1]]\ntokens = ['a', 'b']", "each of the 1 queries"),
        ("a.toml", "x = [[1]]\ntokens = 'a'", "list of texts"),
        ("a.toml", "x = [[1]]\nmask = 'casual'", 'mask must be "causal"'),
        ("a.toml", "x = [[1]]\nmask = [[true, false]]", "1 rows of 1 true or false"),
        (
            "a.toml",
            "query=[[1],[2]]\nkey=[[1]]\nvalue=[[1]]\nmask='causal'",
            "1 keys and 2 queries",
        ),
        ("a.toml", "x = [[1]]\nscale = 0", "a positive number"),
        ("a.toml", "x = [[1]]\nscale = 'no'", "is 'no'"),
        ("a.toml", "x = [[1]]\n\ny = [[1\n", "must be TOML"),
        ("a.toml", "x = [[1]]\nx = [[2]]", "a.toml:2"),
        ("a.csv", "", "has no numbers"),
        ("a.csv", "a,b\n", "has no numbers"),
        ("a.csv", "1,2\n3\n", "a.csv:2"),
        ("a.csv", "1,2\n3,four\n", "is 'four' (FOLDER/a.csv:2, field 2)"),
        ("a.csv", "1,2\n3,\n", "is '' (FOLDER/a.csv:2, field 2)"),
        ("a.csv", "Pizza,1,2\n", "field 1"),
        ("a.csv", "1,2\n3,nan\n", "is nan (FOLDER/a.csv:2, x[1][1])"),
        ("a.csv", "1,2\n3,1_0\n", "is '1_0'"),
        ("a.csv", "a,b\n1,2\n", "each of the 1 queries, but tokens has 2 (FOLDER/a.csv:1"),
        ("a.csv", '1,"2\n', "must be CSV"),
        ("a.csv", "\n".join(["1"] * 100) + "\n", "but there are 100 × 100"),
    ],
)
def test_attend_bad_file_gives_one_sentence_with_the_place(
    run_here: Run, tmp_path: Path, name: str, text: str, expected: str
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    done = run_here("attend", str(path))
    assert (done.returncode, done.stdout) == (2, "")
    assert is_one_sentence(done.stderr), done.stderr
    assert expected.replace("FOLDER", str(tmp_path)) in done.stderr
    assert str(path) in done.stderr


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.toml", 'tokens = ["a", "é"]\nx = [[1, 2],\n[3, 5]]\n'), ("a.csv", "a,é\n1,2\n3,5\n")],
)
def test_attend_packed_file_is_its_text(
    run_here: Run, tmp_path: Path, name: str, text: str
) -> None:
    plain, packed = tmp_path / name, tmp_path / f"{name}.gz"
    plain.write_text(text, encoding="utf-8")
    packed.write_bytes(gzip.compress(text.encode("utf-8-sig")))
    expected = run_here("attend", str(plain), "--json")
    found = run_here("attend", str(packed), "--json")
    assert (expected.returncode, found.returncode, found.stderr) == (0, 0, "")
    assert found.stdout == expected.stdout.replace(str(plain), str(packed))
    packed.write_bytes(packed.read_bytes()[:-9])
    damaged = run_here("attend", str(packed))
    assert damaged.returncode == 2
    assert is_one_sentence(damaged.stderr)
    assert "is damaged" in damaged.stderr


@pytest.mark.parametrize("name", ["a.toml", "a.csv"])
def test_attend_file_that_is_not_text_gives_one_sentence(
    run_here: Run, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_bytes(b"\xff\xfe\x00x")
    done = run_here("attend", str(tmp_path / name))
    assert done.returncode == 2
    assert is_one_sentence(done.stderr)
    assert "UTF-8" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["piza"], "Did you mean 'pizza'?"),
        (["own.json"], "or a .toml or .csv file"),
        (["no-such-file.toml"], "no-such-file.toml"),
        (["no-such-file.csv"], "no-such-file.csv"),
        (["pizza", "--row", "4"], "from 0 to 3, but is 4 (--row, pizza)"),
        (["not-on-your-life", "--d-key", "0"], "--d-key"),
        (["pizza", "--row", "first"], "--row"),
    ],
)
def test_attend_wrong_words_give_one_sentence_and_2(
    run_here: Run, arguments: list[str], expected: str
) -> None:
    done = run_here("attend", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert is_one_sentence(done.stderr), done.stderr
    assert expected in done.stderr
