"""The terminal room: counts, paragraphs, tables, progress."""

from __future__ import annotations

import math

import pytest
from rich.text import Text

from pellucid.terminal import progress
from pellucid.terminal.grid import decimals_of, write_fixed
from pellucid.terminal.printing import Printer
from pellucid.terminal.progress import ProgressLine, describe_progress, show_progress
from pellucid.terminal.text import count_of, lay_out, percent, wrap


@pytest.mark.parametrize(
    ("number", "many", "expected"),
    [(1, None, "1 line"), (0, None, "0 lines"), (4000, None, "4,000 lines"), (2, "x", "2 x")],
)
def test_count_of_things_has_the_noun_of_one_only_for_one(
    number: int, many: str | None, expected: str
) -> None:
    assert count_of(number, "line", many) == expected


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0, "0.00 %"),
        (1, "100 %"),
        (0.5, "50 %"),
        (0.0412, "4.12 %"),
        (0.994, "99 %"),
        (0.99961, "99.96 %"),
        (0.9999999, "99.99999 %"),
        (0.000004, "0.0004 %"),
    ],
)
def test_percent_of_a_share_that_is_not_whole_is_neither_0_nor_100(
    share: float, expected: str
) -> None:
    assert percent(share) == expected


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (1e-9, "under 0.01 %"),
        (0.99999, "over 99.99 %"),
        (0.9993, "99.9 %"),
        (0.5, "50 %"),
        (1, "100 %"),
    ],
)
def test_percent_with_few_digits_says_what_a_share_is_under_or_over(
    share: float, expected: str
) -> None:
    assert percent(share, most=2) == expected


def test_wrapped_paragraph_fits_its_width_and_its_margins() -> None:
    text = "The pizza came out of the oven and it tasted good"
    lines = wrap(text, 23, first="- ", later="  ")
    assert all(len(line) <= 23 for line in lines)
    assert [line[:2] for line in lines] == ["- ", *["  "] * (len(lines) - 1)]
    assert " ".join(line[2:] for line in lines) == text
    assert wrap(text, 23, most=2)[-1].endswith(" …")
    assert wrap("") == []


def test_wrapped_paragraph_breaks_words_only_if_allowed() -> None:
    assert wrap("seven-letter", 7) == ["seven-letter"]
    assert wrap("seven-letter", 7, breaks_words=True) == ["seven-", "letter"]


def test_table_stands_in_columns_that_count_cells_of_the_terminal() -> None:
    rows = [("name", "count"), ("图", "5"), ("mean", "13")]
    assert list(lay_out(rows, [False, True])) == ["name  count", "图        5", "mean     13"]


def test_printer_wraps_styled_text_and_leaves_lines_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "29")
    printer = Printer(widest=31)
    printer.paragraph(Text("one two three four five six seven"), first="  ", later="    ")
    printer.line("x" * 37)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("  one")
    assert lines[1].startswith("    ")
    assert all(len(line) <= 29 for line in lines[:-1])
    assert lines[-1] == "x" * 37


@pytest.mark.parametrize(
    ("done", "total", "words"),
    [(1, None, "1 line"), (0, 1, "0 of 1 line"), (1, 2, "1 of 2 lines")],
)
def test_progress_counts_one_line_as_one(done: int, total: int | None, words: str) -> None:
    assert describe_progress(done, total=total, before=done, seconds=1.0) == words


def test_progress_without_a_terminal_is_sentences_for_a_log(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN", 1e9)
    logged: list[str] = []
    with show_progress(is_wanted=True, total=7, log=logged.append) as update:
        for done in (3, 7):
            update(done)
    assert len(logged) == 1
    assert logged[0].startswith("7 of 7 lines")
    with show_progress(is_wanted=False, total=7, log=logged.append) as update:
        update(7)
    with ProgressLine() as line:
        line.show("measuring")
    assert len(logged) == 1
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("values", "written"),
    [
        ([17, 5, 0], ["17", "5", "0"]),
        ([1234.5, 0.25, -3.0], ["1234", "0", "−3"]),
        ([1.0, 0.0, 0.128], ["1.000", "0.000", "0.128"]),
        ([12.5, 1e-3, math.nan], ["12.500", "0.001", "nan"]),
        ([2e-5, -1e-6, 0.0], ["0.000020", "−0.000001", "0.000000"]),
        ([-math.inf, 3.5], ["−∞", "3.500"]),
        ([math.nan], ["nan"]),
    ],
)
def test_numbers_of_a_column_have_one_form(values: list[float], written: list[str]) -> None:
    digits = decimals_of(values, 3)
    assert [write_fixed(value, digits) for value in values] == written
