"""``pellucid translate`` on documents: keys to translate, and the report as lines and as a page."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from echoing import Echo, use_echo

Run = Callable[..., subprocess.CompletedProcess[str]]

TREE = '{"id": "a", "menu": {"title": "b", "list": [{"label": "c", "id": "d"}]}, "note": "e"}'


@pytest.fixture(autouse=True)
def echo(monkeypatch: pytest.MonkeyPatch) -> Echo:
    return use_echo(monkeypatch)


@pytest.mark.parametrize(
    ("options", "translated"),
    [
        ((), "abcde"),
        (("--keys", "menu.*"), "bcd"),
        (("--keys", "menu"), "bcd"),
        (("--keys", "menu.list"), "cd"),
        (("--keys", "*.title", "--keys", "note"), "be"),
        (("--keys", "label"), "c"),
        (("--skip-keys", "id"), "bce"),
        (("--keys", "menu", "--skip-keys", "id"), "bc"),
        (("--skip-keys", "menu.*"), "ae"),
        (("--keys", "l*"), "cd"),
    ],
)
def test_only_texts_of_the_chosen_keys_are_translated(
    run_here: Run, tmp_path: Path, options: tuple[str, ...], translated: str
) -> None:
    path = tmp_path / "a.json"
    path.write_text(TREE)
    done = run_here("translate", "m", "-i", str(path), *options)
    wanted = TREE
    for letter in translated:
        wanted = wanted.replace(f': "{letter}"', f': "{letter.upper()}"')
    assert (done.returncode, done.stdout) == (0, wanted)


@pytest.mark.parametrize(
    ("name", "document", "wanted"),
    [
        ("a.properties", "menu.a = x\nother = y\n", "menu.a = X\nother = y\n"),
        ("a.yaml", "menu:\n  a: x\nother: y\n", "menu:\n  a: X\nother: y\n"),
        ("a.arb", '{"menu": "x", "other": "y"}', '{"menu": "X", "other": "y"}'),
    ],
)
def test_keys_are_chosen_in_each_format_that_has_them(
    run_here: Run, tmp_path: Path, name: str, document: str, wanted: str
) -> None:
    (tmp_path / name).write_text(document)
    done = run_here("translate", "m", "-i", str(tmp_path / name), "--keys", "menu")
    assert (done.returncode, done.stdout) == (0, wanted)


def test_pattern_that_no_key_has_is_refused_before_any_work(run_here: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(TREE)
    for option in ("--keys", "--skip-keys"):
        output = tmp_path / "b.json"
        done = run_here("translate", "m", "-i", str(path), "-o", str(output), option, "titel")
        assert done.returncode == 2
        assert f"{option} must be a pattern of keys" in done.stderr
        assert not output.exists()


def test_keys_of_other_formats_have_no_effect_and_say_so(run_here: Run, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("a\n")
    done = run_here("translate", "m", "-i", str(tmp_path / "a.md"), "--keys", "a")
    assert (done.returncode, done.stdout) == (0, "A\n")
    assert "--keys has no effect on markdown" in done.stderr
    (tmp_path / "a.txt").write_text("a\n")
    done = run_here("translate", "m", "-i", str(tmp_path / "a.txt"), "--skip-keys", "a")
    assert "--skip-keys has no effect on lines" in done.stderr


XLIFF = (
    '<xliff version="1.2"><file source-language="en" target-language="fr"><body>'
    '<trans-unit id="k"><source>!a cat</source><note>On a &lt;b></note></trans-unit>'
    "</body></file></xliff>"
)


@pytest.mark.parametrize(
    ("name", "document", "comment"),
    [
        ("a.po", '#. On a <b>\n#. button\nmsgid "!a cat"\nmsgstr ""\n', "On a <b>\nbutton"),
        ("a.xlf", XLIFF, "On a <b>"),
        ("a.arb", '{"k": "!a cat", "@k": {"description": "On a <b>"}}', "On a <b>"),
        ("a.properties", "# lost\n\n# On a <b>\n! button\nk = !a cat\n", "On a <b>\nbutton"),
        ("a.json", '{"k": "!a cat"}', None),
    ],
)
def test_report_has_source_translation_and_comment(
    run_here: Run, tmp_path: Path, name: str, document: str, comment: str | None
) -> None:
    (tmp_path / name).write_text(document)
    report = tmp_path / "r.jsonl"
    options = ("-i", str(tmp_path / name), "-o", str(tmp_path / "out"), "--report", str(report))
    run_here("translate", "m", *options)
    (record,) = map(json.loads, report.read_text().splitlines())
    assert record["source"] == record["translation"] == "!a cat"
    assert record.get("comment") == comment


class _Texts(HTMLParser):
    """Collects the elements of a page, and the text of those with a class."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self._into: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        name = dict(attrs).get("class")
        self._into = self.texts.setdefault(name, []) if name else None

    def handle_data(self, data: str) -> None:
        if self._into is not None:
            self._into.append(data)
            self._into = None


def test_report_is_a_page_to_work_through(run_here: Run, tmp_path: Path) -> None:
    texts = ["!<script>alert(1)</script> cat", "a dog", "!two & two"]
    (tmp_path / "a.json").write_text(json.dumps(texts))
    report = tmp_path / "r.html"
    options = ("-i", str(tmp_path / "a.json"), "-o", str(tmp_path / "b.json"))
    done = run_here("translate", "m", *options, "--report", str(report))
    assert done.returncode == 3
    assert [one.name for one in tmp_path.iterdir() if one.suffix == ".part"] == []
    page = _Texts()
    page.feed(report.read_text())
    assert page.names.count("article") == 2
    assert page.names.count("script") == 1
    assert page.texts["source"] == [texts[0], texts[2]]
    assert page.names.count("button") == 6
    assert "http" not in report.read_text()
    # An existing report is not replaced.
    assert run_here("translate", "m", *options, "--report", str(report)).returncode == 2


def test_keys_and_the_page_hold_for_a_folder(run_here: Run, tmp_path: Path) -> None:
    folder = tmp_path / "en"
    folder.mkdir()
    (folder / "a.json").write_text('{"id": "x", "menu": "!y"}')
    (folder / "b.json").write_text('{"menu": "z"}')
    (folder / "c.md").write_text("a\n")
    report = tmp_path / "r.html"
    options = ("-o", str(tmp_path / "fr"), "--skip-keys", "id", "--report", str(report))
    done = run_here("translate", "m", str(folder), *options)
    assert done.returncode == 3
    assert (tmp_path / "fr" / "a.json").read_text() == '{"id": "x", "menu": "!y"}'
    assert (tmp_path / "fr" / "b.json").read_text() == '{"menu": "Z"}'
    assert (tmp_path / "fr" / "c.md").read_text() == "A\n"
    assert report.read_text().count("<article ") == 1
    assert "a.json, line 1" in report.read_text()
