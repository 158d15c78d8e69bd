"""``pellucid attend`` page by page, and as a quiz."""

from __future__ import annotations

import html
import json
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len

from pellucid.by_hand.examples.by_name import EXAMPLES
from pellucid.by_hand.pages import pages_of
from pellucid.cli.commands.attend import NAMES

Run = Callable[..., subprocess.CompletedProcess[str]]
COMPARED = "Compared with the text"


@pytest.fixture(autouse=True)
def ordinary_width(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pellucid.cli.attend.show.has_reader", lambda: True)


def blocks_of(output: str) -> list[str]:
    """Cut an output before each page."""
    return re.split(r"(?m)^(?=Page \d+ of \d+: )", output)[1:]


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", NAMES)
def test_every_page_can_be_asked_for_and_fits_the_terminal(run_here: Run, name: str) -> None:
    whole = blocks_of(run_here("attend", name).stdout)
    assert whole == blocks_of(run_here("attend", name, "--page", "all").stdout)
    assert len(whole) == len(pages_of(EXAMPLES[name]()))
    for number, block in enumerate(whole, start=1):
        lines = block.rstrip().splitlines()
        assert len(lines) <= 52
        assert max(map(cell_len, lines)) <= 80
        assert block.startswith(f"Page {number} of {len(whole)}: ")
    for number in (1, len(whole)):
        done = run_here("attend", name, "--page", str(number))
        assert (done.returncode, done.stderr) == (0, "")
        (block,) = blocks_of(done.stdout)
        next_page = f"Next: pellucid attend {name} --page 2 of {len(whole)}."
        assert (next_page in " ".join(block.split())) is (number == 1)


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", NAMES)
def test_corrections_come_after_the_steps_of_a_page(run_here: Run, name: str) -> None:
    blocks = blocks_of(run_here("attend", name).stdout)
    compared = [block for block in blocks if COMPARED in block]
    for block in blocks:
        before, _, after = block.partition(COMPARED)
        assert "differs (" not in before
        assert not re.search(r"^  printed .* \(", before, re.MULTILINE)
        assert not re.search(r"^(scores|weights|context) ", after, re.MULTILINE)
    assert compared or name in ("heads", "gradient", "padding", "recurrent-step")


def test_page_with_row_and_json_holds_only_that_page(run_here: Run) -> None:
    row = run_here("attend", "encoder-layer", "--row", "1", "--page", "1").stdout
    assert len(blocks_of(row)) == 1
    assert "is: q0 = 0·1 + 1·0 + 0·1 + 1·0 = 0" in row
    record = json.loads(run_here("attend", "encoder-layer", "--page", "3", "--json").stdout)
    (part,) = record["parts"]
    page = pages_of(EXAMPLES["encoder-layer"]())[2].part
    assert part["title"] == page.title
    assert [step["name"] for step in part["steps"]] == [step.name for step in page.steps]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--page", "99"], r"The page must be from 1 to \d+, but is 99 \(--page, pizza\)"),
        (["--page", "0"], "but is 0"),
        (["--page", "-1"], "a number from 1 or the word all, but is '-1'"),
        (["--page", "two"], "a number from 1 or the word all, but is 'two'"),
        (["--quiz"], "--quiz must have a terminal"),
        (["--row", "9"], r"Choose one of: 0 Pizza, 1 is, 2 awesome, 3 <EOS>\."),
    ],
)
def test_wrong_page_row_or_quiz_gives_one_sentence(
    run_here: Run, arguments: list[str], expected: str
) -> None:
    done = run_here("attend", "pizza", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert re.search(expected, done.stderr), done.stderr


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("\n\nq\n", [1, 2, 3]),
        ("5\nb\n\nq\n", [1, 5, 4, 5]),
        ("b\nquit\n", [1, 1]),
        ("99\nx\n2\n", [1, 2]),
        ("", [1]),
    ],
)
def test_pages_in_a_terminal_turn_as_typed(run_here: Run, typed: str, shown: list[int]) -> None:
    done = run_here("attend", "pizza", stdin=typed)
    assert (done.returncode, done.stderr) == (0, "")
    found = [int(n) for n in re.findall(r"(?m)^Page (\d+) of \d+: ", done.stdout)]
    assert found == shown
    assert ("There are pages 1 to" in done.stdout) is ("99" in typed)


@pytest.mark.usefixtures("terminal")
def test_pages_in_a_terminal_end_with_the_hint_after_the_last(run_here: Run) -> None:
    done = run_here("attend", "help-me", stdin="\n" * 50)
    text = re.sub(r"\nPage \d+ of \d+ \(enter.*?\) ", "", done.stdout)
    assert text == run_here("attend", "help-me", "--page", "all").stdout


@pytest.mark.usefixtures("terminal")
def test_page_all_and_json_never_wait_in_a_terminal(run_here: Run) -> None:
    assert "enter: next" not in run_here("attend", "pizza", "--page", "all").stdout
    assert "enter: next" not in run_here("attend", "pizza", "--page", "2").stdout
    assert json.loads(run_here("attend", "pizza", "--json").stdout)


@pytest.mark.usefixtures("terminal")
def test_quiz_asks_before_it_shows_and_counts(run_here: Run) -> None:
    typed = "3\nno idea\n1,00\n\n7/2\nq\n"
    done = run_here("attend", "encoder-layer", "--row", "0", "--quiz", stdin=typed)
    assert (done.returncode, done.stderr) == (0, "")
    text = done.stdout
    assert "Pizza: q0 = 1·1 + 0·0 + 2·1 + 0·0 = ? " in text
    assert "Right: 3.\n" in text
    assert "Write a number such as 0.38" in text
    assert "Not quite: it is 0." in text
    assert text.index("+ 2·1 + 0·0 = ?") < text.index("Right: 3.")
    assert "+ 2·1 + 0·0 = 3" not in text
    assert "It is 0." in text
    assert text.rstrip().endswith("Score: 1 of 4 right, 1 shown without an answer.")


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("is_plain", ["0", "1"])
def test_quiz_of_a_page_asks_one_number_a_step(
    run_here: Run, is_plain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PELLUCID_PLAIN", is_plain)
    page = ["attend", "not-on-your-life", "--page", "4", "--quiz"]
    skipped = run_here(*page, stdin="\n" * 20)
    asked = skipped.stdout.count("= ? ")
    assert asked >= 2
    assert f"Score: 0 of {asked} right, {asked} shown" in skipped.stdout
    answers = re.findall(r"It is (.+?)\.\n", skipped.stdout)
    done = run_here(*page, stdin="\n".join(answers) + "\n")
    assert f"Score: {asked} of {asked} right." in done.stdout


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("typed", ["", "q\n", "\x00\n" * 3])
def test_quiz_that_ends_at_once_ends_quietly(run_here: Run, typed: str) -> None:
    done = run_here("attend", "pizza", "--quiz", stdin=typed)
    assert (done.returncode, done.stderr) == (0, "")
    assert "No question was answered." in done.stdout


@pytest.mark.usefixtures("terminal")
def test_quiz_and_pages_end_quietly_at_control_c(
    run_here: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> str:
        raise KeyboardInterrupt

    for arguments in (["--quiz"], []):
        with monkeypatch.context() as patch:
            patch.setattr("pellucid.cli.attend.quiz.read_line", interrupt)
            done = run_here("attend", "pizza", *arguments)
        assert (done.returncode, done.stderr) == (0, "")


def test_options_of_the_terminal_are_refused_without_it(run_here: Run) -> None:
    for form in ("--json", "-o x.html"):
        done = run_here("attend", "pizza", "--quiz", *form.split())
        assert done.returncode == 2
        assert f"--quiz cannot be combined with {form.split()[0]}" in done.stderr


def test_projections_are_written_out_in_every_example_with_vectors(run_here: Run) -> None:
    expected = {
        "toy-four": "word 2: q0 = 0·0 + 0·0 + 2·2 + 1·1 = 5",
        "pizza": "Pizza: q0 = 0.1·0.78 + 2.13·0.9 = 1.995",
        "not-on-your-life": "not: q1 = 0·7.7 + 1·21.5",
        "help-me": "help: q0 = 1·1 + 0·(−1) + 1·0 + 0·0 = 1",
        "lets-go": "Let's: q0 = 0.9·",
        "positions": "bank 1: q0 = 0.841471·(−15.83988) +",
        "heads": "show: q0 = 1·4 + 0·0 + 0·0 + 0·0 = 4",
        "encoder-layer": "awesome: k0 = 1·0 + 1·1 + 0·0 + 2·1 = 3",
        "show-me-the-money": "<start>: q0 = ",
    }
    for name, line in expected.items():
        text = " ".join(run_here("attend", name, "--row", "1").stdout.split())
        whole = " ".join(run_here("attend", name).stdout.split())
        assert line in text or line in whole, name


def test_own_file_has_pages_and_rows(run_here: Run, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        'tokens = ["a", "b"]\nx = [[1, 2], [3, 4]]\nheads = 2\npositions = true\nnorm = true\n'
        "[feed_forward]\ninner = [[1, 0, 1], [0, 1, 1]]\nouter = [[1, 0], [0, 1], [1, 1]]\n",
        encoding="utf-8",
    )
    done = run_here("attend", str(own))
    assert (done.returncode, done.stderr) == (0, "")
    for title in ("Positions", "Head 1 of 2", "Add and norm", "Feed-forward network"):
        assert title in done.stdout
    row = run_here("attend", str(own), "--row", "1").stdout
    assert "b: x0 = 3 + 0.841471 = 3.841471" in row
    assert "b: σ² = " in row


def numbers_by_page(text: str) -> list[Counter[str]]:
    """Count the numbers of each page of an example."""
    return [Counter(re.findall(r"[−-]?\d[\d.]*|−?∞", block)) for block in blocks_of(text)]


def text_of(page: str) -> str:
    """Read a page as a person does, a line for each row and paragraph."""
    body = page.partition("<main>")[2].partition('<p class="note">')[0]
    lines = re.sub(r"</(tr|p|li|h\d|caption|pre)>", "\n", body)
    return html.unescape(re.sub(r"<[^>]+>", " ", lines)).replace("  Page", "Page")


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", NAMES)
def test_html_has_the_numbers_of_the_terminal_page_by_page(
    run_here: Run, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    # A terminal cuts long names, which a page does not.
    monkeypatch.setattr("pellucid.cli.attend.rendering._WIDEST_NAME", 99)
    path = tmp_path / "example.html"
    done = run_here("attend", name, "-o", str(path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    page = path.read_text(encoding="utf-8")
    assert not re.search(r"https?:|<script|<link|@import|url\(", page)
    text = re.sub(r"(?m)^\s+", "", text_of(page))
    # The terminal adds a hint after its last page.
    shown = run_here("attend", name).stdout.partition("\nNumber by number:")[0]
    assert numbers_by_page(text) == numbers_by_page(shown)


def test_html_of_a_page_or_a_row_holds_only_that(run_here: Run, tmp_path: Path) -> None:
    path = tmp_path / "example.html"
    run_here("attend", "pizza", "-o", str(path), "--page", "4")
    assert re.findall(r"<h2>Page (\d+) of", path.read_text(encoding="utf-8")) == ["4"]
    run_here("attend", "pizza", "-o", str(path), "--overwrite", "--row", "1")
    row = path.read_text(encoding="utf-8")
    assert run_here("attend", "pizza", "--row", "1").stdout.splitlines()[0] in row
    assert "Page 1 of" in row


def test_html_escapes_names_and_json_is_the_same_in_a_file(run_here: Run, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('title = "<b>"\ntokens = ["<i>", "a&b"]\nx = [[1, 0], [0, 1]]\n', "utf-8")
    path = tmp_path / "own.html"
    data = tmp_path / "own.json"
    done = run_here("attend", str(own), "-o", str(path), "-o", str(data), "--json")
    assert (done.returncode, done.stdout) == (0, data.read_text(encoding="utf-8"))
    assert "exists" in run_here("attend", str(own), "-o", str(path)).stderr
    page = path.read_text(encoding="utf-8")
    assert "<title>&lt;b&gt;</title>" in page
    assert "<i>" not in page
    assert '<th scope="row">a&amp;b</th>' in page
    assert 'style="background: #' in page, "weights are colored"
    done = run_here("attend", "pizza", "-o", str(tmp_path / "none" / "x.html"))
    assert done.returncode == 2
    assert "folder must exist" in done.stderr
