"""``pellucid translate`` and ``train`` given documents instead of lines."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pellucid.config import DataConfig, parse_toml, validate
from pellucid.text.reading.bad_lines import BadLines
from pellucid.text.reading.row_sides import kind_of_document
from pellucid.text.reading.sentence_pairs import read_pairs

Run = Callable[..., subprocess.CompletedProcess[str]]

PO = 'msgid "The soup is good."\nmsgstr ""\n'


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("fr.po", "a gettext catalog"),
        ("a/in.XLF", "a file of translation units"),
        ("in.tmx", "a file of translation units"),
        ("in.srt", "subtitles"),
        ("in.html", "a page with markup"),
        ("in.csv", "a table"),
        ("README.md", "text with markup"),
        ("talk.vtt.gz", "subtitles"),
        ("report.docx", "a document with a layout"),
        ("strings.resx", "a file of an interface's texts"),
        ("in.txt", None),
        ("train.en.gz", None),
        ("train.ts", None),
        ("lines", None),
        ("html", None),
        (".md", None),
        ("page.html.txt", None),
        ("-", None),
    ],
)
def test_kind_of_document_is_told_by_the_ending(name: str, kind: str | None) -> None:
    assert kind_of_document(name) == kind


@pytest.mark.parametrize("name", ["in.toml", "in.rst.gz", "in.dotx"])
def test_document_is_refused_before_the_model_is_loaded(
    run_here: Run, write_lines: Callable[..., str], name: str
) -> None:
    path = write_lines(name, PO)
    done = run_here("translate", "no-such-model", "-i", path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert (
        f"must be lines of text, JSON Lines or a document that can be read (see --format), but "
        f"{path} is {kind_of_document(name)}" in done.stderr
    )
    assert "--format lines" in done.stderr


def test_document_without_a_reader_is_refused_with_a_way_out(
    run_here: Run, write_lines: Callable[..., str]
) -> None:
    for name, advice in (("in.pdf", "convert it to .docx or .odt"), ("in.doc", "Save it as .docx")):
        done = run_here("translate", "no-such-model", "-i", write_lines(name, PO))
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert advice in done.stderr


def test_document_is_translated_line_by_line_on_request(
    run_here: Run, write_lines: Callable[..., str]
) -> None:
    path = write_lines("in.md", "The soup is good.", "", "The soup is good.")
    done = run_here("translate", "demo", "-i", path, "--format", "lines")
    assert (done.returncode, done.stderr) == (0, "")
    first, empty, last = done.stdout.splitlines()
    assert first == last != empty == ""


def test_training_on_a_document_says_what_it_is(tmp_path: Path, run_here: Run) -> None:
    (tmp_path / "in.srt").write_text("1\n")
    recipe = tmp_path / "r.toml"
    recipe.write_text('[data]\ntrain = "in.srt"\nvalidation = "in.srt"\n')
    done = run_here("check", str(recipe))
    assert done.returncode == 2
    assert "'in.srt' (data.validation). It is subtitles" in done.stderr
    assert "Rename it" not in done.stderr


CATALOG = """msgid ""
msgstr "Plural-Forms: nplurals=2; plural=n>1;\\n"

#, fuzzy
msgid "a draft"
msgstr "un brouillon"

msgid "%d dog"
msgid_plural "%d dogs"
msgstr[0] "%d chien"
msgstr[1] "%d chiens"

msgid "one\\ntwo <b>&words</b>"
msgstr "un\\ndeux <b>&mots</b>"

msgid "three\\nlines\\nhere"
msgstr "trois\\nlignes"

msgid "%s"
msgstr "%s"

msgid "empty"
msgstr ""

#~ msgid "old"
#~ msgstr "vieux"
"""
TRANSLATED = {
    "%d dog": "%d chien",
    "%d dogs": "%d chiens",
    "one": "un",
    "two words": "deux mots",
    "three lines here": "trois lignes",
}
XLIFF = """<xliff version="1.2"><file source-language="en" target-language="fr"><body>
<trans-unit id="1"><source>A <g id="1">big</g> dog &amp; %s</source><target>Un <g id="1">gros</g>
 chien &amp; %s</target></trans-unit>
<trans-unit id="2"><source>A cat</source><target state="new">Chat</target></trans-unit>
<trans-unit id="3"><source>A cow</source></trans-unit>
</body></file></xliff>"""
TMX = """<tmx version="1.4"><header/><body><tu>
<tuv xml:lang="en-GB"><seg>A <bpt i="1">&lt;b></bpt>pig<ept i="1">&lt;/b></ept>\ton {x}</seg></tuv>
<tuv xml:lang="fr"><seg>Un porc sur {x}</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>Only English</seg></tuv></tu></body></tmx>"""


def write_documents(folder: Path) -> list[str]:
    """Write a PO, an XLIFF and a TMX file."""
    paths = []
    for name, text in (("a.po", CATALOG), ("b.xlf", XLIFF), ("c.tmx", TMX)):
        (folder / name).write_text(text)
        paths.append(str(folder / name))
    return paths


LANGUAGES = ("--source-language", "en", "--target-language", "fr")


def test_extract_writes_pairs_without_tags_and_counts_what_it_leaves_out(
    tmp_path: Path, run_here: Run
) -> None:
    output = tmp_path / "pairs.tsv"
    done = run_here("extract", *write_documents(tmp_path), "-o", str(output), *LANGUAGES)
    assert (done.returncode, done.stdout) == (0, "")
    rows = dict(line.split("\t") for line in output.read_text().splitlines())
    assert rows == {
        **TRANSLATED,
        "A big dog & %s": "Un gros chien & %s",
        "A pig on {x}": "Un porc sur {x}",
    }
    assert (
        "7 pairs were written. 7 entries were left out (untranslated: 3, fuzzy: 2, "
        "without words: 1, obsolete: 1)." in done.stderr
    )
    assert "exists" in run_here("extract", str(tmp_path / "a.po"), "-o", str(output)).stderr
    for header in ("en\tfr", "source\ttarget"):
        (tmp_path / "a.tsv").write_text(f"{header}\na dog\tun chien\n")
        done = run_here("extract", str(tmp_path / "a.tsv"), *LANGUAGES)
        assert done.stdout == "a dog\tun chien\n"


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("c.tmx", (), "must be named, but are not; its own are en-GB, fr, en"),
        ("c.tmx", ("--source-language", "de", *LANGUAGES[2:]), "in de and fr, but its languages"),
        ("b.xlf", ("--source-language", "de"), "(source-language) must be de, but is en"),
        ("none.po", (), "none.po does not exist"),
        ("d.docx", (), "must end in .tsv, .csv, .jsonl, .po"),
        ("e.po", (), "must hold at least one pair, but hold none. 1 entry was left out"),
        ("f.tmx", LANGUAGES, "mismatched tag (f.tmx:2)"),
        ("g.po", (), "0xe9 (g.po:2)"),
    ],
)
def test_extract_of_a_wrong_file_is_one_sentence(
    name: str,
    options: tuple[str, ...],
    words: str,
    tmp_path: Path,
    run_here: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_documents(tmp_path)
    (tmp_path / "e.po").write_text('msgid "a b"\nmsgstr ""\n')
    (tmp_path / "f.tmx").write_text("<tmx>\n<body></tmx>")
    (tmp_path / "g.po").write_bytes(b'msgid "a b"\nmsgstr "\xe9"\n')
    monkeypatch.chdir(tmp_path)
    done = run_here("extract", name, "-o", "out.tsv", *options)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert words in done.stderr
    assert not (tmp_path / "out.tsv").exists()


def test_training_reads_documents_and_counts_what_it_leaves_out(
    tmp_path: Path, run_here: Run
) -> None:
    write_documents(tmp_path)
    recipe = tmp_path / "r.toml"
    recipe.write_text(
        '[data]\ntrain = ["a.po", "c.tmx"]\nvalidation = "b.xlf"\n'
        'source_language = "en"\ntarget_language = "fr"\n'
    )
    data = validate(DataConfig, parse_toml(recipe.read_bytes(), "r")["data"], "r")
    bad = BadLines()
    pairs = {one.source: one.target for one in read_pairs(data, "train", tmp_path, bad=bad)}
    assert pairs == {**TRANSLATED, "A pig on {x}": "Un porc sur {x}"}
    assert (bad.count, bad.entries.total()) == (0, 5)
    done = run_here("check", str(recipe))
    assert done.returncode in (0, 2)
    said = "of the documents of the training text, 5 entries were left out"
    assert said in " ".join(done.stdout.split())


def test_training_on_a_memory_alone_makes_its_recipe(tmp_path: Path, run_here: Run) -> None:
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>The {word} house is here.</seg></tuv>'
        f'<tuv xml:lang="fr"><seg>La maison {word} est ici.</seg></tuv></tu>'
        for word in map("x{}".format, range(60))
    )
    path = tmp_path / "memory.tmx"
    path.write_text(f"<tmx><body>{units}</body></tmx>")
    done = run_here("check", str(path), *LANGUAGES)
    assert "48 training, 6 validation and 6 test pairs" in done.stdout
    done = run_here("check", str(path))
    assert "must be named, but are not; its own are en, fr" in done.stderr
