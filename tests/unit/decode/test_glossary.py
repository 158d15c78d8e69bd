"""A glossary: the terms that a source asks for, and errors in damaged files."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.decode.constraints.glossary import Glossary, load_glossary
from pellucid.errors import DataError, InputFileNotFoundError

TERMS = {
    "house": "Haus",
    "house by the lake": "Haus am See",
    "lake": "See",
    "by the sea": "am Meer",
    "Bill": "Wilhelm",
    "bill": "Rechnung",
    "well-known": "bekannt",
    "C++": "C++",
    "été": "Sommer",
    "猫": "Katze",
    "NATO": "NATO",
    "eBay": "eBay",
}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("the house is here", ["Haus"]),
        ("a house, a house and a lake", ["Haus", "Haus", "See"]),
        ("the house by the lake", ["Haus am See"]),
        ("the house  by\tthe\u00a0lake", ["Haus am See"]),
        ("the house by the sea", ["Haus", "am Meer"]),
        ("houses and lakes, warehouse", []),
        ("House of Mr House is old", ["Haus"]),  # the second is a name
        ("It is late. House!", ["Haus"]),
        ("“House” he said", ["Haus"]),
        ("We know Mr House", []),
        ("a HOUSE and a Lake", []),
        ("Bill pays the bill", ["Wilhelm", "Rechnung"]),
        ("the Bill pays", ["Wilhelm"]),
        ("a well-known house", ["bekannt", "Haus"]),
        ("well known", []),
        ("C++, not C+", ["C++"]),
        ("l'e\u0301te\u0301", ["Sommer"]),
        ("黒猫がいる", ["Katze"]),
        ("Nato nato NATO", ["NATO"]),
        ("house-boat", ["Haus"]),
        ("EBay sells", []),
        ("", []),
        ("   ", []),
    ],
)
def test_terms_for_finds_whole_words(source: str, expected: list[str]) -> None:
    assert Glossary(TERMS).terms_for(source) == tuple(expected)


LABELS = {
    "folder": "répertoire",
    "new folder": "nouveau répertoire",
    "us": "nous",
    "é": "è",
    "File": "dossier",
    "Window": "fenêtre",
    "window": "Fenster",
}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("Folder", ["Répertoire"]),  # a sentence begins with it
        ("Open. Folder: %s", ["Répertoire"]),
        ("_Folder name:", ["Répertoire"]),  # keys of menus
        ("&Folder", ["Répertoire"]),
        ("the _folder, folder_2, 'folder' and &folder", ["répertoire"] * 4),
        ("Close Folder...", ["répertoire"]),  # a title
        ("the New Folder is empty", ["nouveau répertoire"]),  # several words
        ("New folder", ["Nouveau répertoire"]),
        ("NEW FOLDER", ["NOUVEAU RÉPERTOIRE"]),
        ("OPEN THE FOLDER!", ["RÉPERTOIRE"]),
        ("É", ["È"]),  # one letter is no word of capitals
        ("File", ["dossier"]),  # as the glossary has it
        ("Window", ["fenêtre"]),
        ("WINDOW", ["FENSTER"]),
        ("window", ["Fenster"]),
        ("folder2 folders subfolder 2folder folderé", []),
        ("He works for the US.", []),
        ("ask Mr Folder", []),
        ("FILE", []),  # a term with capitals is found as it is
    ],
)
def test_terms_for_keeps_the_capitals_of_the_source(source: str, expected: list[str]) -> None:
    assert Glossary(LABELS).terms_for(source) == tuple(expected)


def test_terms_for_exact_takes_no_other_capitals_than_at_the_beginning() -> None:
    glossary = Glossary(LABELS, match="exact")
    assert glossary.terms_for("Close Folder. FOLDER. Folder") == ("Répertoire",)


def test_terms_for_vocabulary_without_the_capital_keeps_the_glossary_s_form() -> None:
    glossary = Glossary(LABELS).for_language("en", lambda term: not term.startswith("R"))
    assert glossary.terms_for("Folder. New folder") == ("répertoire", "Nouveau répertoire")


def find_naively(terms: list[str], source: str) -> list[str]:
    """Longest first at each place, by comparing letters; for texts of plain words."""
    found, place = [], 0
    while place < len(source):
        is_edge = place == 0 or not (source[place - 1].isalnum() and source[place].isalnum())
        for term in sorted(terms, key=len, reverse=True):
            after = source[place + len(term) :][:1]
            if is_edge and source.startswith(term, place) and not after.isalnum():
                found.append(term)
                place += len(term)
                break
        else:
            place += 1
    return found


WORDS = st.sampled_from(["xa", "xb", "xab", "7", "xa xb", "xb-xa", "xa xb xa", "xab xb"])


@given(st.lists(WORDS, max_size=4, unique=True), st.lists(WORDS, max_size=9), st.booleans())
def test_terms_for_random_texts_gives_what_a_loop_gives(
    terms: list[str], words: list[str], has_commas: bool
) -> None:
    source = (", " if has_commas else " ").join(words)
    glossary = Glossary({term: term.upper() for term in terms})
    expected = [term.upper() for term in find_naively(terms, source)]
    assert list(glossary.terms_for(source)) == expected


def test_load_glossary_reads_terms(write_lines: Callable[..., str]) -> None:
    path = write_lines(
        "g.tsv",
        "\ufeff# a comment",
        "",
        " house \tHaus ",
        "  ",
        "by  the lake\tam See",
        "house\tHaus",
    )
    assert load_glossary(path).terms == {"house": "Haus", "by the lake": "am See"}


def test_load_glossary_reads_gzip(tmp_path: Path) -> None:
    path = tmp_path / "g.tsv.gz"
    path.write_bytes(gzip.compress(b"la maison\tthe house\n"))
    assert load_glossary(path).terms_for("dans la maison.") == ("the house",)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("house", "source term, tab, target term, but has 0 tabs"),
        ("house\tHaus\tHeim", "source term, tab, target term, but has 2 tabs"),
        ("\tHaus", "the source term is empty"),
        ("house\t ", "the target term is empty"),
        ("tree\tStrauch", "'tree' has 'Strauch' and also 'Baum' in line 1"),
    ],
)
def test_load_glossary_wrong_line_is_named(
    write_lines: Callable[..., str], line: str, message: str
) -> None:
    path = write_lines("g.tsv", "tree\tBaum", "# more", line)
    with pytest.raises(DataError, match=f"{re.escape(message)}.*{re.escape(path)}:3"):
        load_glossary(path)


def test_load_glossary_other_encoding_is_named(tmp_path: Path) -> None:
    path = tmp_path / "g.tsv"
    path.write_bytes("tree\tBaum\nété\tSommer\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"g\.tsv:2"):
        load_glossary(path)


def test_load_glossary_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputFileNotFoundError, match=r"nothing\.tsv"):
        load_glossary(tmp_path / "nothing.tsv")


def test_glossary_large_one_is_looked_up_by_its_first_words() -> None:
    glossary = Glossary({f"a term{number} b": str(number) for number in range(20_000)})
    assert glossary.terms_for("x a term17 b, a term19999 b a term3 c") == ("17", "19999")


def test_several_glossaries_are_joined(write_lines: Callable[..., str]) -> None:
    one = write_lines("1.tsv", "soup\tpotage", "# other", "pizza\tpizza")
    other = write_lines("2.tsv", "oven\tfour", "soup\tpotage")
    terms = load_glossary(one, other).terms
    assert terms == {"soup": "potage", "pizza": "pizza", "oven": "four"}
    assert load_glossary(one, one).terms == load_glossary(one).terms


def test_glossaries_that_contradict_each_other_are_refused_with_both_places(
    write_lines: Callable[..., str],
) -> None:
    one = write_lines("1.tsv", "oven\tfour", "soup\tpotage")
    other = write_lines("2.tsv", "soup\tsoupe")
    message = f"'soupe' and also 'potage' in {one}:2 ({other}:1)"
    with pytest.raises(DataError, match=re.escape(message)):
        load_glossary(one, other)
