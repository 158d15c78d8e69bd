"""``pellucid translate`` on documents: the same file out, marks, a report, and resuming."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polib
import pytest
from echoing import Echo, use_echo
from zip_documents import PARAGRAPH, WORD, make_zip, read_zip

from pellucid.cli.lines import translation_job
from pellucid.cli.lines.notices import Notices
from pellucid.translate.results import Notes, Translation

Run = Callable[..., subprocess.CompletedProcess[str]]
WriteLines = Callable[..., str]

TMX_OF_OTHERS = (
    '<tmx><body><tu><tuv xml:lang="de"><seg>a</seg></tuv><tuv xml:lang="it"><seg>b</seg></tuv></tu>'
    "</body></tmx>"
)
PO = 'msgid "a cat"\nmsgstr ""\n\n#, c-format\nmsgid "%s of %S"\nmsgstr ""\n'


@pytest.fixture(autouse=True)
def echo(monkeypatch: pytest.MonkeyPatch) -> Echo:
    return use_echo(monkeypatch)


def test_document_is_written_as_it_was_read_with_its_texts_translated(
    run_here: Run, write_lines: WriteLines
) -> None:
    path = write_lines("in.md", "# A cat", "", "```", "code", "```", "Some text.")
    done = run_here("translate", "m", "-i", path)
    assert (done.returncode, done.stdout) == (0, "# A CAT\n\n```\ncode\n```\nSOME TEXT.\n")
    assert done.stderr == ""


def test_option_for_texts_with_translations_is_useless_without_them(
    run_here: Run, write_lines: WriteLines
) -> None:
    done = run_here("translate", "m", "-i", write_lines("in.md", "A cat."), "--all")
    assert (done.returncode, done.stdout) == (0, "A CAT.\n")
    assert "warning: --all has no effect on markdown" in done.stderr
    table = write_lines("in.csv", "en,fr", "A cat.,x")
    done = run_here("translate", "m", "-i", table, "--column", "en", "--into", "fr", "--all")
    assert (done.returncode, done.stdout, done.stderr) == (0, "en,fr\nA cat.,A CAT.\n", "")


def test_catalog_is_marked_as_asked_and_says_so(run_here: Run, tmp_path: Path) -> None:
    source, output, report = (tmp_path / name for name in ("a.po", "b.po", "r.jsonl"))
    source.write_text(PO)
    command = ("translate", "m", "-i", str(source), "-o", str(output), "--overwrite")
    done = run_here(*command, "--report", str(report))
    assert done.returncode == 0
    assert output.read_text() == (
        '#, fuzzy\nmsgid "a cat"\nmsgstr "A CAT"\n\n'
        '#, fuzzy, c-format\nmsgid "%s of %S"\nmsgstr "%s %S OF"\n'
    )
    assert "2 texts are marked for review" in done.stderr
    assert "1 of 2 texts is in " in done.stderr
    (row,) = [json.loads(line) for line in report.read_text().splitlines()]
    assert (row["line"], row["key"]) == (5, "%s of %S")
    assert "placeholders were lost" in row["reason"]
    assert run_here(*command, "--mark", "unsure").returncode == 0
    assert output.read_text().count("fuzzy") == 1
    assert run_here(*command, "--mark", "none").returncode == 0
    assert "fuzzy" not in output.read_text()


def test_catalog_with_line_ends_of_an_old_mac_is_marked_too(run_here: Run, tmp_path: Path) -> None:
    source, output = (tmp_path / name for name in ("a.po", "b.po"))
    source.write_bytes(PO.replace("\n", "\r").encode())
    done = run_here("translate", "m", "-i", str(source), "-o", str(output))
    assert "2 texts are marked for review" in done.stderr
    assert output.read_bytes().count(b"fuzzy") == 2


def test_interrupted_document_resumes_with_its_report(
    run_here: Run, echo: Echo, tmp_path: Path
) -> None:
    source, output, report = (tmp_path / name for name in ("a.po", "b.po", "r.jsonl"))
    entries = [f'msgid "t{k}"\nmsgstr ""\n\nmsgid "%s u{k}"\nmsgstr ""\n\n' for k in range(12)]
    # The header of a template is filled in, but no text to translate.
    header = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=CHARSET\\n"\n\n'
    source.write_text(f"{header}{''.join(entries)}# end\n")
    command = ("translate", "m", "-i", str(source), "-o", str(output), "--report", str(report))
    whole = tmp_path / "whole.po"
    assert run_here("translate", "m", "-i", str(source), "-o", str(whole)).returncode == 0
    for call in (3, 5):
        echo.calls.clear()
        echo.interrupt[call] = KeyboardInterrupt()
        assert run_here(*command).returncode == 130
    assert "--mark" in run_here(*command, "--mark", "none").stderr
    assert "--report" in run_here(*command[:-1], str(tmp_path / "other.jsonl")).stderr
    changed = source.read_text().replace("t0", "changed")
    source.write_text(changed)
    assert "have changed" in run_here(*command).stderr
    source.write_text(changed.replace("changed", "t0"))
    done = run_here(*command)
    assert (done.returncode, "12 of 24 texts are in " in done.stderr) == (0, True)
    assert output.read_text() == whole.read_text()
    rows = [json.loads(line)["key"] for line in report.read_text().splitlines()]
    assert rows == [f"%s u{k}" for k in range(12)]
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize(
    ("name", "text", "options", "words"),
    [
        ("a.po", 'msgid "a\n', (), "a.po:1)"),
        ("a.json", '{"a": 1, "a": 2}', (), "'a' stands twice"),
        ("a.csv", "a,b\n", ("--column", "c"), "Name one of these with --column"),
        ("a.xlf", "<xliff><file source-language='de'/></xliff>", (), "must be en, but is de"),
        ("a.docx", "x", (), "must be a whole zip archive"),
        ("a.pdf", "%PDF-1.7", (), "a.pdf is a PDF, which has no paragraphs to write"),
        ("a.doc", "x", (), "a.doc is an old Word file, which cannot be read. Save it as .docx."),
        ("a.ts", "<?xml version='1.0'?>\n<svg></svg>", (), "must be of Qt, with the root TS"),
        ("a.svgz", "<?xml version='1.0'?>\n<svg></svg>", (), "is XML by its first line"),
        ("a.po", PO, ("--report", "OUT"), "and another one than the output"),
        ("a.po", PO, ("--report", "-"), "The report must be a file"),
        ("a.md", "x", ("--json",), "cannot be combined with --json"),
        ("a.md", "x", ("--format", "word"), "--format must be one of"),
    ],
)
def test_bad_document_is_refused_before_any_work(
    name: str,
    text: str,
    options: tuple[str, ...],
    words: str,
    run_here: Run,
    echo: Echo,
    tmp_path: Path,
) -> None:
    path, output = tmp_path / name, tmp_path / "out"
    path.write_text(text)
    own = [one.replace("OUT", str(output)) for one in options]
    done = run_here("translate", "m", "-i", str(path), "-o", str(output), *own)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert not echo.calls
    assert [one.name for one in tmp_path.iterdir()] == [name]


def test_office_file_is_written_whole_and_resumes(
    run_here: Run, echo: Echo, tmp_path: Path
) -> None:
    source, output, report = (tmp_path / name for name in ("a.docx", "b.docx", "r.jsonl"))
    inner = "".join(PARAGRAPH.replace("§", f"text {k}") for k in range(24))
    parts = {"word/document.xml": WORD.format(inner), "word/media/a.png": "PNG"}
    source.write_bytes(make_zip("docx", parts=parts))
    command = ("translate", "m", "-i", str(source), "-o", str(output), "--report", str(report))
    echo.interrupt[1] = KeyboardInterrupt()
    assert run_here(*command).returncode == 130
    assert not output.exists()
    done = run_here(*command)
    assert done.returncode == 0
    found = read_zip(output.read_bytes())
    assert found["word/document.xml"].decode() == WORD.format(inner.replace("text", "TEXT"))
    assert found["word/media/a.png"] == b"PNG"
    assert {one.name for one in tmp_path.iterdir()} == {"a.docx", "b.docx", "r.jsonl"}
    done = run_here(*command, "--overwrite", "--mark", "all")
    assert "--mark has no effect on docx" in done.stderr


@pytest.mark.parametrize("begin", ["\ufeff".encode("utf-16-le"), "\ufeff".encode("utf-16-be")])
def test_strings_in_utf_16_stay_so(run_here: Run, tmp_path: Path, begin: bytes) -> None:
    codec = "utf-16-le" if begin == b"\xff\xfe" else "utf-16-be"
    source, output = tmp_path / "a.strings", tmp_path / "b.strings"
    source.write_bytes(begin + '"é" = "a cat";\n'.encode(codec))
    assert run_here("translate", "m", "-i", str(source), "-o", str(output)).returncode == 0
    assert output.read_bytes() == begin + '"é" = "A CAT";\n'.encode(codec)
    source.write_bytes(begin + b"a")
    done = run_here("translate", "m", "-i", str(source), "-o", str(tmp_path / "c.strings"))
    assert (done.returncode, "A text in UTF-16 must be whole" in done.stderr) == (2, True)


def test_document_that_is_not_utf8_names_its_line(run_here: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'{"a":\n "caf\xe9"}')
    done = run_here("translate", "m", "-i", str(path))
    assert done.returncode == 2
    assert f"0xe9 ({path}:2)" in done.stderr
    path.write_bytes('{"a":\n "x"}'.encode("utf-16"))
    assert "iconv -f UTF-16" in run_here("translate", "m", "-i", str(path)).stderr


def test_text_that_cannot_be_translated_stays_and_is_counted(
    run_here: Run, write_lines: WriteLines
) -> None:
    path = write_lines("in.json", '{"a": "a cat",', ' "b": "!x y"}')
    done = run_here("translate", "m", "-i", path)
    assert (done.returncode, done.stdout) == (3, '{"a": "A CAT",\n "b": "!x y"}\n')
    assert "line 2: It must not shout." in done.stderr


def test_standard_input_is_a_document_if_its_format_is_named(run_here: Run) -> None:
    done = run_here("translate", "m", "--format", "json", stdin='{"a": "a cat"}')
    assert (done.returncode, done.stdout) == (0, '{"a": "A CAT"}')


def test_column_of_a_table_goes_into_another_one(run_here: Run, write_lines: WriteLines) -> None:
    path = write_lines("in.csv", "en,fr", "a cat,", "a dog,chien")
    done = run_here("translate", "m", "-i", path, "--column", "en", "--into", "fr")
    assert done.stdout == "en,fr\na cat,A CAT\na dog,chien\n"
    done = run_here("translate", "m", "-i", path, "--column", "en", "--into", "fr", "--all")
    assert done.stdout == "en,fr\na cat,A CAT\na dog,A DOG\n"


MEMORY = (
    "A red house & 3 cats in a garden\tUne maison rouge et 3 chats dans un jardin\n"
    "Hello %s\tBonjour %s\n"
    "A blue <b>door</b>\tUne porte bleue\n"
    "Good %s\tBon\n"
)


def test_memory_gives_equal_texts_and_suggests_similar_ones(
    run_here: Run, echo: Echo, tmp_path: Path
) -> None:
    memory, source, output, report = (
        tmp_path / name for name in ("m.tsv", "a.po", "b.po", "r.jsonl")
    )
    memory.write_text(MEMORY)
    texts = (
        "Hello %s",
        "A red house & 3 cats in the garden",
        "A red house & 4 cats in the garden",
        "Good %s",
        "Hello %s\\nHello you",
    )
    source.write_text("\n".join(f'msgid "{one}"\nmsgstr ""\n' for one in texts))
    command = ("translate", "m", "-i", str(source), "-o", str(output), "--memory", str(memory))
    done = run_here(*command, "--report", str(report), "--mark", "unsure")
    assert done.returncode == 0
    found = [one.msgstr for one in polib.pofile(str(output))]
    assert found[:3] == [
        "Bonjour %s",
        "A RED HOUSE & 3 CATS IN THE GARDEN",
        "A RED HOUSE & 4 CATS IN THE GARDEN",
    ]
    assert found[3].startswith("GOOD")
    assert found[4] == "Bonjour %s\nHELLO YOU"
    assert "Hello %s" not in [text for call in echo.calls for text in call["texts"]]
    assert (
        "4 of 5 texts are in r.jsonl: 1 doubtful, 1 from the memory, 2 with a similar text in "
        "the memory."
    ) in done.stderr
    assert "2 of 5 texts are marked for review; fuzzy messages are not used until" in done.stderr
    rows = [json.loads(line) for line in report.read_text().splitlines()]
    assert [row["reason"] for row in rows[:3]] == [
        "taken from the memory",
        "the memory has a similar text (89 %)",
        "the memory has a similar text (78 %)",
    ]
    assert rows[2]["memory"] == {
        "similarity": 0.7778,
        "source": "A red house & 3 cats in a garden",
        "translation": "Une maison rouge et 3 chats dans un jardin",
        "difference": "A red house & [-3-]{+4+} cats in [-a-]{+the+} garden",
    }
    assert [one.fuzzy for one in polib.pofile(str(output))] == [True, False, False, True, False]
    done = run_here(*command, "--overwrite")
    assert "The memory has 1 of 5 texts, and similar ones for 3." in done.stderr
    assert "warning: 1 of 5 texts is doubtful. --report FILE lists them." in done.stderr


@pytest.mark.parametrize(("count", "said"), [(1, "message was left as it"), (2, "messages were")])
def test_messages_that_were_fuzzy_are_said_to_stay(
    count: int, said: str, run_here: Run, tmp_path: Path
) -> None:
    source = tmp_path / "a.po"
    output = tmp_path / "b.po"
    fuzzy = "".join(f'#, fuzzy\nmsgid "a {k}"\nmsgstr "b"\n\n' for k in range(count))
    source.write_text(f'{fuzzy}msgid "c"\nmsgstr "d"\n\nmsgid "a cat"\nmsgstr ""\n')
    command = ("translate", "m", "-i", str(source), "-o", str(output), "--overwrite")
    done = run_here(*command)
    assert output.read_text().startswith(fuzzy)
    assert f"note: {count} fuzzy {said}" in done.stderr
    done = run_here(*command, "--all")
    assert "left as" not in done.stderr
    assert 'msgstr "A 0"' in output.read_text()


def test_memory_of_other_formats_gives_the_same(run_here: Run, tmp_path: Path) -> None:
    source = tmp_path / "in.md"
    source.write_text("# A **cat**\n\nA dog\n")
    tmx = tmp_path / "m.tmx"
    tmx.write_text(
        '<tmx><body><tu><tuv xml:lang="en"><seg>A cat</seg></tuv><tuv xml:lang="fr"><seg>Un chat'
        "</seg></tuv></tu></body></tmx>"
    )
    catalog = tmp_path / "m.po"
    catalog.write_text('msgid "A cat"\nmsgstr "Un chat"\n')
    for memory in (tmx, catalog):
        done = run_here("translate", "m", "-i", str(source), "--memory", str(memory))
        assert (done.returncode, done.stdout) == (0, "# Un **chat**\n\nA DOG\n")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("m.tmx", TMX_OF_OTHERS, "must have texts in en and fr, but its languages are de, it"),
        ("m.tmx", "<tmx>", "XML must be well-formed"),
        ("m.po", 'msgid "a"\nmsgstr ""\n', "must have translated texts, but"),
        ("m.docx", "", "must end in .tsv"),
    ],
)
def test_wrong_memory_is_one_sentence_before_any_work(
    name: str, text: str, words: str, run_here: Run, echo: Echo, tmp_path: Path
) -> None:
    (tmp_path / "in.md").write_text("A cat")
    (tmp_path / name).write_text(text)
    command = ("translate", "m", "-i", str(tmp_path / "in.md"), "--memory", str(tmp_path / name))
    done = run_here(*command, "-o", str(tmp_path / "out.md"))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert words in done.stderr
    assert not echo.calls
    assert not list(tmp_path.glob("out*"))


def test_memory_without_rapidfuzz_says_how_to_install_it(
    run_here: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in.md").write_text("A cat")
    monkeypatch.setitem(sys.modules, "rapidfuzz.distance.Levenshtein", None)
    command = ("translate", "m", "-i", str(tmp_path / "in.md"), "--memory", "m.tmx")
    done = run_here(*command)
    assert done.returncode == 2
    assert "pip install 'pellucid[memory]'" in done.stderr


def test_options_for_documents_have_no_effect_on_lines_and_say_so(
    run_here: Run, write_lines: WriteLines
) -> None:
    done = run_here("translate", "m", "-i", write_lines("in.txt", "a"), "--memory", "m.tmx")
    assert (done.returncode, done.stdout) == (0, "A\n")
    assert "--memory has no effect on lines" in done.stderr


def test_resuming_with_another_memory_is_refused(run_here: Run, echo: Echo, tmp_path: Path) -> None:
    source, memory, output = (tmp_path / name for name in ("a.json", "m.tsv", "b.json"))
    source.write_text(json.dumps({f"k{number}": f"text {number}" for number in range(20)}))
    memory.write_text("text 1\ttexte 1\n")
    command = ("translate", "m", "-i", str(source), "-o", str(output), "--memory", str(memory))
    echo.interrupt[1] = KeyboardInterrupt()
    assert run_here(*command).returncode == 130
    memory.write_text("text 1\ttexte un\n")
    assert "--memory" in run_here(*command).stderr
    memory.write_text("text 1\ttexte 1\n")
    done = run_here(*command)
    assert (done.returncode, "texte 1" in output.read_text()) == (0, True)


def test_table_that_changes_while_it_is_translated_is_refused(
    run_here: Run, echo: Echo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "a.csv"
    source.write_text("text\na cat\na dog\n")
    translate = echo.translate

    def change(texts: list[str], **options: object) -> object:
        source.write_text("text\na cat\na cow and more\n")
        return translate(texts, **options)

    monkeypatch.setattr(echo, "translate", change)
    monkeypatch.setattr(translation_job, "MAX_LINES", 1)
    done = run_here("translate", "m", "-i", str(source), "-o", str(tmp_path / "b.csv"))
    assert done.returncode == 2
    assert "must not change while it is translated" in done.stderr


def test_placeholders_are_no_unknown_text_and_a_line_with_two_texts_counts_once(
    run_here: Run, echo: Echo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answer = echo.translate

    def translate(texts: Sequence[str], **options: Any) -> list[Translation]:
        notes = {one: Notes(unknown={"%": 1}, unknown_tokens=0.2) for one in texts if "%" in one}
        notes |= {one: Notes(unknown={"☃": 1}, unknown_tokens=0.4) for one in texts if "☃" in one}
        found = answer(texts, **options)
        return [replace(one, notes=notes.get(one.source, one.notes)) for one in found]

    monkeypatch.setattr(echo, "translate", translate)
    source = tmp_path / "a.po"
    source.write_text('#, c-format\nmsgid "%s cats"\nmsgstr ""\n')
    said = run_here("translate", "m", "-i", str(source), "-o", str(tmp_path / "b.po")).stderr
    assert "never seen" not in said
    assert "outside" not in said
    plural = 'msgid "☃ cat"\nmsgid_plural "☃ cats"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    source.write_text(plural)
    command = ("translate", "m", "-i", str(source), "-o", str(tmp_path / "c.po"))
    said = run_here(*command).stderr
    assert "Line 1 has characters that the model has never seen" in said


def test_word_that_the_model_does_not_know_stays_and_is_reported(
    run_here: Run, echo: Echo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answer = echo.translate
    notes = Notes(unknown_words=("zyx", "%"))

    def translate(texts: Sequence[str], **options: Any) -> list[Translation]:
        return [replace(one, notes=notes) for one in answer(texts, **options)]

    monkeypatch.setattr(echo, "translate", translate)
    monkeypatch.setattr(Notices, "about_words", lambda *_: ())  # It needs a vocabulary.
    source, report = tmp_path / "a.json", tmp_path / "r.jsonl"
    source.write_text(json.dumps({"a": "a zyx", "b": "zyx %d", "c": "cat %d"}))
    command = ("translate", "m", "-i", str(source), "-o", str(tmp_path / "b.json"))
    assert run_here(*command, "--report", str(report)).returncode == 0
    assert {one["unknown"] for one in echo.calls} == {"source-word"}
    rows = [json.loads(line) for line in report.read_text().splitlines()]
    reasons = {row["key"]: row["reason"] for row in rows}
    assert reasons["a"] == "unknown to the model: zyx"
