"""``pellucid translate`` on a folder: every known file, one report, and resuming."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from echoing import Echo, use_echo
from zip_documents import make_zip, read_zip

from pellucid.cli.lines.folder_files import list_folder

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def echo(monkeypatch: pytest.MonkeyPatch) -> Echo:
    return use_echo(monkeypatch)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with documents, a picture and a hidden file."""
    made = tmp_path / "en"
    (made / "sub").mkdir(parents=True)
    (made / "app.en.json").write_text('{"a": "a cat"}')
    (made / "notes.txt").write_text("a cat\na dog\n")
    (made / "sub" / "en.yml").write_text("en:\n  a: a cat\n")
    (made / "sub" / "letter.docx").write_bytes(make_zip("docx", "a cat"))
    (made / "sub" / "a.png").write_bytes(b"\x89PNG")
    (made / ".hidden.json").write_text('{"a": "a cat"}')
    return made


def names(folder: Path) -> list[str]:
    return sorted(str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file())


def test_each_known_file_is_translated_into_the_new_folder(
    run_here: Run, folder: Path, tmp_path: Path
) -> None:
    output = tmp_path / "fr"
    done = run_here("translate", "m", str(folder), "-o", str(output))
    assert done.returncode == 0
    assert done.stderr.endswith("note: 4 files translated; 1 skipped (not a document).\n")
    assert names(output) == ["app.fr.json", "notes.txt", "sub/fr.yml", "sub/letter.docx"]
    assert (output / "app.fr.json").read_text() == '{"a": "A CAT"}'
    assert (output / "notes.txt").read_text() == "A CAT\nA DOG\n"
    assert (output / "sub/fr.yml").read_text() == "fr:\n  a: A CAT\n"
    written = read_zip((output / "sub/letter.docx").read_bytes())
    assert written == read_zip(make_zip("docx", "A CAT"))
    again = run_here("translate", "m", "-i", str(folder), "-o", str(output), "--rest", "copy")
    assert again.returncode == 2
    assert "exists, and 3 more" in again.stderr
    more = ("--rest", "copy", "--overwrite")
    assert run_here("translate", "m", str(folder), "-o", str(output), *more).returncode == 0
    assert (output / "sub/a.png").read_bytes() == b"\x89PNG"


def test_interrupted_folder_resumes_with_one_report(
    run_here: Run, echo: Echo, folder: Path, tmp_path: Path
) -> None:
    output, report = tmp_path / "fr", tmp_path / "r.jsonl"
    (folder / "app.en.json").write_text('{"a": "%s of %S"}')
    (folder / "sub" / "z.json").write_text('{"a": "%s of %S"}')
    command = ("translate", "m", str(folder), "-o", str(output), "--report", str(report))
    echo.interrupt[4] = KeyboardInterrupt()
    assert run_here(*command).returncode == 130
    first = len(echo.calls)
    assert not report.exists()
    report.write_text("mine")
    assert "must be a new file" in run_here(*command).stderr
    report.unlink()
    assert "other settings" in run_here(*command, "--rest", "copy").stderr
    done = run_here(*command)
    assert done.returncode == 0
    assert len(echo.calls) < 2 * first + 4
    assert names(output) == [
        *("app.fr.json", "notes.txt", "sub/fr.yml", "sub/letter.docx", "sub/z.json")
    ]
    assert done.stderr.endswith("2 of 4 texts are in r.jsonl: 2 doubtful.\n")
    rows = [json.loads(line) for line in report.read_text().splitlines()]
    assert [one["file"] for one in rows] == ["app.en.json", "sub/z.json"]


def test_file_that_is_refused_costs_only_itself(
    run_here: Run, folder: Path, tmp_path: Path
) -> None:
    (folder / "bad.json").write_text("{")
    output = tmp_path / "fr"
    done = run_here("translate", "m", str(folder), "-o", str(output))
    assert done.returncode == 3
    assert "error: JSON must be well-formed" in done.stderr
    assert "4 files translated; 1 skipped (not a document); 1 refused" in done.stderr
    assert "bad.json" not in names(output)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "must be another folder. Name it with -o FOLDER"),
        (("-o", "SAME"), "must be another folder"),
        (("-o", "OUT", "--format", "json"), "--format cannot be combined with a folder"),
        (("-o", "OUT", "--json"), "--json cannot be combined with a folder"),
    ],
)
def test_what_cannot_be_done_with_a_folder_is_refused_in_a_sentence(
    options: tuple[str, ...], words: str, run_here: Run, folder: Path, tmp_path: Path
) -> None:
    output = tmp_path / "fr"
    own = [one.replace("SAME", str(folder)).replace("OUT", str(output)) for one in options]
    done = run_here("translate", "m", str(folder), *own)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert words in done.stderr
    assert not output.exists()


def test_folder_without_a_document_is_refused(run_here: Run, tmp_path: Path) -> None:
    (tmp_path / "en").mkdir()
    (tmp_path / "en" / "a.png").write_bytes(b"x")
    done = run_here("translate", "m", str(tmp_path / "en"), "-o", str(tmp_path / "fr"))
    assert done.returncode == 2
    assert "must hold a document that can be read" in done.stderr
    assert not (tmp_path / "fr").exists()


@pytest.mark.parametrize(
    ("source", "there"),
    [
        ("app.en.json", "app.fr.json"),
        ("en.json", "fr.json"),
        ("README.en.md", "README.fr.md"),
        ("messages.properties", "messages_fr.properties"),
    ],
)
def test_translation_next_to_its_source_is_left_out(
    source: str, there: str, run_here: Run, tmp_path: Path
) -> None:
    folder, output = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    texts = {"json": '{"a": "%s"}', "properties": "a = %s\n", "md": "%s\n"}
    text = texts[source.rpartition(".")[2]]
    (folder / source).write_text(text % "a cat")
    (folder / there).write_text(text % "un chat")
    done = run_here("translate", "m", str(folder), "-o", str(output))
    assert (done.returncode, len(names(output))) == (0, 1)
    assert "1 file translated; 1 already in fr." in done.stderr
    assert "A CAT" in (output / names(output)[0]).read_text()


def test_sources_of_one_name_are_refused_before_anything_is_written(
    run_here: Run, tmp_path: Path
) -> None:
    folder, output = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    (folder / "a.po").write_text("")
    (folder / "a.pot").write_text("")
    done = run_here("translate", "m", str(folder), "-o", str(output))
    assert done.returncode == 2
    assert f"{folder / 'a.po'} and {folder / 'a.pot'} would both become" in done.stderr
    assert not output.exists()


def test_text_that_is_not_utf8_is_refused_by_name(
    run_here: Run, folder: Path, tmp_path: Path
) -> None:
    (folder / "bad.txt").write_bytes(b"a cat\n\xff\n")
    output = tmp_path / "fr"
    done = run_here("translate", "m", str(folder), "-o", str(output))
    assert done.returncode == 3
    assert f"({folder / 'bad.txt'}:2)" in done.stderr
    assert "4 files translated" in done.stderr
    assert "1 refused" in done.stderr
    assert "bad.txt" not in names(output)


def test_key_that_no_file_has_is_refused(run_here: Run, folder: Path, tmp_path: Path) -> None:
    (folder / "other.json").write_text('{"b": "a dog"}')
    output = tmp_path / "fr"
    command = ("translate", "m", str(folder), "-o", str(output))
    for option in ("--keys", "--skip-keys"):
        done = run_here(*command, option, "nosuch")
        assert done.returncode == 2
        assert f"{option} must be a pattern of keys of a file in {folder}" in done.stderr
        assert not output.exists()
    assert run_here(*command, "--keys", "b").returncode == 0
    assert (output / "other.json").read_text() == '{"b": "A DOG"}'
    assert (output / "app.fr.json").read_text() == '{"a": "a cat"}'


def test_mended_file_is_all_that_the_same_command_does(
    run_here: Run, echo: Echo, folder: Path, tmp_path: Path
) -> None:
    (folder / "bad.json").write_text("{")
    (folder / "sub" / "z.json").write_text('{"a": "%s of %S"}')
    (folder / "sub" / "z.txt").write_text("!a cat\n")
    output, report = tmp_path / "fr", tmp_path / "r.jsonl"
    command = ("translate", "m", str(folder), "-o", str(output), "--report", str(report))
    done = run_here(*command)
    assert done.returncode == 3
    assert "1 refused. Fix the files and run the same command again" in done.stderr
    first = report.read_text()
    (folder / "bad.json").write_text('{"a": "a dog"}')
    echo.calls.clear()
    done = run_here(*command)
    # One line of a file that was made before has no translation.
    assert (done.returncode, len(echo.calls)) == (3, 1)
    assert "7 files translated (6 of them before)" in done.stderr
    assert (output / "bad.json").read_text() == '{"a": "A DOG"}'
    assert report.read_text() == first
    assert "sub/z.json" in first
    assert not [one for one in names(output) if "/." in f"/{one}"]


@pytest.mark.parametrize("number", [0, 1])
def test_source_that_changed_after_an_interruption_is_named(
    number: int, run_here: Run, echo: Echo, folder: Path, tmp_path: Path
) -> None:
    (folder / "a.txt").write_text("a cat\n")
    (folder / "b.txt").write_text("a cat\n" * 4100)
    output = tmp_path / "fr"
    command = ("translate", "m", str(folder), "-o", str(output), "--threads", "1")
    echo.interrupt[3] = KeyboardInterrupt()
    assert run_here(*command).returncode == 130
    source = folder / ("a.txt", "b.txt")[number]
    source.write_text("a dog\n")
    assert ["a.txt", "b.txt.part"][number] in names(output)
    done = run_here(*command)
    assert done.returncode == 2
    assert f"{source} has changed since it was begun. Add --overwrite" in done.stderr
    assert run_here(*command, "--overwrite").returncode == 0
    assert (output / source.name).read_text() == "A DOG\n"


def test_file_and_folder_that_cannot_be_read_or_written_cost_only_themselves(
    run_here: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "gone.json").symlink_to(tmp_path / "nowhere.json")
    (folder / "closed").mkdir()
    (folder / "closed" / "a.json").write_text('{"a": "a cat"}')
    output = tmp_path / "fr"
    output.mkdir()
    (output / "sub").write_text("a file where a folder should be")
    scan = os.scandir

    def refuse(path: str) -> Iterator[os.DirEntry[str]]:
        if str(path).endswith("closed"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scan(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refuse)
        done = run_here("translate", "m", str(folder), "-o", str(output))
    assert done.returncode == 3
    assert f"{folder / 'closed'} is not: Permission denied" in done.stderr
    assert f"The file {folder / 'gone.json'} does not exist" in done.stderr
    assert f"{output / 'sub' / 'fr.yml'} is not" in done.stderr
    assert "2 files translated" in done.stderr
    assert "3 refused; 1 folder unreadable" in done.stderr
    assert (output / "app.fr.json").read_text() == '{"a": "A CAT"}'


def test_argument_that_is_no_folder_is_explained(
    run_here: Run, folder: Path, tmp_path: Path
) -> None:
    output = str(tmp_path / "out")
    done = run_here("translate", "m", "nope", "-o", output)
    assert done.returncode == 2
    assert "is given 'nope', which is neither a file nor a folder" in done.stderr
    done = run_here("translate", "m", "a long sentence " * 99)
    assert (done.returncode, "Write echo" in done.stderr) == (2, True)
    file = folder / "app.en.json"
    done = run_here("translate", "m", str(file), "-o", output)
    assert done.returncode == 2
    assert f"Write pellucid translate MODEL -i {file}." in done.stderr


def test_sentences_about_a_file_of_a_folder_name_it(
    run_here: Run, folder: Path, tmp_path: Path
) -> None:
    (folder / "sub" / "bad.json").write_text("{")
    (folder / "sub" / "p.json").write_text('{"a": "%s of %S"}')
    (folder / "sub" / "p.txt").write_text("!a cat\n")
    done = run_here("translate", "m", str(folder), "-o", str(tmp_path / "fr"))
    assert done.returncode == 3
    assert "warning: sub/p.json: 1 of 1 text is doubtful. --report FILE lists them." in done.stderr
    assert "error: sub/p.txt: line 1: " in done.stderr
    *lines, said, last = done.stderr.splitlines()
    assert any("sub/bad.json" in one for one in lines)
    assert all("sub/" in one for one in lines), lines
    assert said.startswith("note: 6 files translated; 1 skipped (not a document); 1 refused. Fix")
    assert last == "warning: 1 of 4 texts is doubtful. --report FILE lists them."


@pytest.mark.parametrize(
    ("own", "others"),
    [
        ("en/app.json", ["de/app.json", "pt-BR/app.json"]),
        ("values/strings.xml", ["values-de/strings.xml", "values-pt-rBR/strings.xml"]),
        ("en.lproj/a.strings", ["de.lproj/a.strings"]),
        ("en.json", ["de.json", "zh-Hans.json"]),
        ("README.md", ["README.de.md"]),
    ],
)
def test_other_languages_in_the_folder_are_left_out_and_named(
    own: str, others: list[str], run_here: Run, tmp_path: Path
) -> None:
    folder, output = tmp_path / "locales", tmp_path / "out"
    texts = {
        "json": '{"a": "a cat"}',
        "xml": '<resources><string name="a">a cat</string></resources>',
        "strings": '"a" = "a cat";\n',
        "md": "a cat\n",
    }
    # A name that only looks like a language has nothing of the source's next to it.
    for name in (own, *others, "is.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(texts[name.rpartition(".")[2]])
    done = run_here("translate", "m", str(folder), "-o", str(output))
    assert done.returncode == 0
    assert len(names(output)) == 2
    left_out = " and ".join(sorted(one.partition("/")[0] for one in others))
    assert f"; {left_out} left out (other languages)." in done.stderr


@pytest.mark.parametrize(
    ("sources", "made"),
    [
        (["en/app.po", "de/app.po"], ["fr/app.po"]),
        (["en-US/LC_MESSAGES/app.po"], ["fr/LC_MESSAGES/app.po"]),
        (["locale/en_US/app.po"], ["locale/fr/app.po"]),
        (["en.lproj/a.strings"], ["fr.lproj/a.strings"]),
        (["en/app.po", "en-GB/app.po"], ["en-GB/app.po", "fr/app.po"]),
        (["en-US/app.po", "en-GB/app.po"], ["en-GB/app.po", "en-US/app.po"]),
        (["enough/app.po", "dev/en/a/app.po"], ["dev/fr/a/app.po", "enough/app.po"]),
    ],
)
def test_folder_of_the_old_language_becomes_that_of_the_new_one(
    sources: list[str], made: list[str], run_here: Run, echo: Echo, tmp_path: Path
) -> None:
    folder = tmp_path / "site"
    output = tmp_path / "out"
    texts = {"po": 'msgid "a cat"\nmsgstr ""\n', "strings": '"a" = "a cat";\n'}
    for name in sources:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(texts[name.rpartition(".")[2]])
    command = ("translate", "m", str(folder), "-o", str(output))
    echo.interrupt[0] = KeyboardInterrupt()
    assert run_here(*command).returncode == 130
    assert run_here(*command).returncode == 0
    assert names(output) == made


def test_renamed_folder_keeps_the_form_of_its_name(tmp_path: Path) -> None:
    for form in ("en_US", "en-US"):
        folder = tmp_path / form.lower()
        (folder / form).mkdir(parents=True)
        (folder / form / "a.json").write_text("{}")
        found = list_folder(folder, tmp_path / "out", ("en", "fr-CA"), "skip")
        assert [one.target.parent.name for one in found.files] == [f"fr{form[2]}CA"]


@pytest.mark.parametrize("content", ["", " \n\n"])
@pytest.mark.parametrize("name", ["a.po", "a.json", "a.docx", "a.xliff", "a.csv", "a.yml"])
def test_empty_document_is_copied_and_said(
    name: str, content: str, run_here: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    source = folder / name
    source.write_text(content)
    output = tmp_path / name
    done = run_here("translate", "m", "-i", str(source), "-o", str(output))
    assert (done.returncode, output.read_text()) == (0, content)
    assert done.stderr == f"note: {source} is empty: there is nothing to translate.\n"
    output = tmp_path / "out"
    done = run_here("translate", "m", str(folder), "-o", str(output))
    assert (done.returncode, names(output)) == (0, [name])
    assert f"note: {name} is empty: there is nothing to translate.\n" in done.stderr


def test_empty_file_of_a_folder_is_named_once_and_keeps_its_options(
    run_here: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "site"
    (folder / "en").mkdir(parents=True)
    for name in ("a.json", "b.txt"):
        (folder / "en" / name).write_text("")
    (folder / "c.json").write_text('{"title": "A red house."}')
    output = str(tmp_path / "out")
    done = run_here("translate", "m", str(folder), "-o", output, "--keys", "title")
    said = done.stderr.splitlines()
    assert said[:2] == [
        f"note: {name} is empty: there is nothing to translate."
        for name in ("en/a.json", "en/b.txt")
    ]
    assert "--keys" not in done.stderr


def test_empty_lines_are_said(run_here: Run, tmp_path: Path) -> None:
    source = tmp_path / "a.txt"
    source.write_text("")
    done = run_here("translate", "m", "-i", str(source), "-o", str(tmp_path / "b.txt"))
    assert done.returncode == 0
    assert done.stderr == f"note: {source} is empty: there is nothing to translate.\n"
