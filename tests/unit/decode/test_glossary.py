"""A glossary: the terms that a source asks for, and errors in damaged files."""

from __future__ import annotations

import gzip
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.decode.constraints.glossary import Glossary
from pellucid.decode.constraints.glossary_files import load_glossary
from pellucid.decode.constraints.terms import check_terms
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


def found(glossary: Glossary, source: str) -> tuple[str, ...]:
    """List the target terms that a text asks for, with their capitals."""
    each = [term.candidates() for term in glossary.terms_for(source)]
    return tuple(next(filter(glossary.can_write, forms)) for forms in each)


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
    assert found(Glossary(TERMS), source) == tuple(expected)


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
    assert found(Glossary(LABELS), source) == tuple(expected)


def test_terms_for_exact_takes_no_other_capitals_than_at_the_beginning() -> None:
    glossary = Glossary(LABELS, match="exact")
    assert found(glossary, "Close Folder. FOLDER. Folder") == ("Répertoire",)


def test_terms_for_vocabulary_without_the_capital_keeps_the_glossary_s_form() -> None:
    glossary = Glossary(LABELS).for_languages(("en", "fr"), lambda term: not term.startswith("R"))
    assert found(glossary, "Folder. New folder") == ("répertoire", "Nouveau répertoire")


def find_naively(terms: list[str], source: str) -> list[str]:
    """Blot out the longest terms first, by comparing letters; for texts of plain words."""
    found = []
    for term in sorted(terms, key=lambda term: -len(re.findall(r"\w+|\W", term))):
        for match in re.finditer(rf"\b{re.escape(term)}\b", source):
            if "\0" not in source[match.start() : match.end()]:
                found.append((match.start(), term))
                source = source[: match.start()] + "\0" * len(term) + source[match.end() :]
    return [term for _, term in sorted(found)]


WORDS = st.sampled_from(["xa", "xb", "xab", "7", "xa xb", "xb-xa", "xa xb xa", "xab xb"])


@given(st.lists(WORDS, max_size=4, unique=True), st.lists(WORDS, max_size=9), st.booleans())
def test_terms_for_random_texts_gives_what_a_loop_gives(
    terms: list[str], words: list[str], has_commas: bool
) -> None:
    source = (", " if has_commas else " ").join(words)
    glossary = Glossary({term: term.upper() for term in terms})
    expected = [term.upper() for term in find_naively(terms, source)]
    assert list(found(glossary, source)) == expected


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
    assert found(load_glossary(path), "dans la maison.") == ("the house",)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("house", "source, tab, target, and optionally yes or no for capitals, but has one column"),
        ("house\tHaus\tyes\tx", "for capitals, but has 4 columns"),
        ("house\tHaus\tHeim", "yes, no or empty for capitals that count, but is 'Heim'"),
        ("house\tHaus||Heim", "The forms of a target term must hold text"),
        ("house\t*free*", "The forms of a target term must hold text"),
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


@pytest.mark.parametrize(
    ("rows", "separator"),
    [
        (["Source,Target,Case", "house,Haus|Hauses,", '"a, b",c,yes'], ","),
        (["source;target", "house;Haus|Hauses", '"a, b";c;YES'], ";"),
    ],
)
def test_load_glossary_reads_csv_with_a_header(
    write_lines: Callable[..., str], rows: list[str], separator: str
) -> None:
    glossary = load_glossary(write_lines("g.csv", *rows))
    assert glossary.terms == {"house": "Haus|Hauses", "a, b": "c"}
    assert glossary.case_sensitive == {"a, b"}
    path = write_lines("bad.csv", f'a{separator}"b', f"c{separator}d")
    with pytest.raises(DataError, match=rf"must be a row of CSV.*{re.escape(path)}:1"):
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
    assert found(glossary, "x a term17 b, a term19999 b a term3 c") == ("17", "19999")


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


# Forms


FORMS = Glossary(
    {
        "dog": "chien|*free*",
        "horse": "cheval",
        "car": "voiture|auto",
        "open file": "ouvrir",
        "file manager window": "gestionnaire",
        "Go": "Go",
        "go": "aller",
    },
    match="forms",
    languages=("en", "fr"),
    case_sensitive=["Go"],
)


@pytest.mark.parametrize(
    ("source", "translation", "outcomes"),
    [
        ("a dog", "un chien", ["hit"]),
        ("the dogs", "les chiens", ["form"]),  # any ending
        ("the horses", "les chevaux", ["form"]),  # the source has another form, too
        ("the horse", "les chevaux", ["miss"]),
        ("a car", "une auto", ["form"]),
        ("a car and a car", "une auto et une voiture", ["hit", "form"]),
        ("a car and a car", "une voiture", ["hit", "miss"]),  # each as often as it is wanted
        ("a car", "une autobahn", ["miss"]),
        ("Dogs eat", "Les chiens mangent", ["form"]),
        ("Dogs eat", "Chiens mangent", ["form"]),
        ("DOG", "CHIEN", ["hit"]),
        ("open file manager window", "gestionnaire", ["hit"]),  # the longest of those that overlap
        ("Go and go", "Go et aller", ["hit", "hit"]),
        ("GO", "ALLER", ["hit"]),
    ],
)
def test_check_terms_says_in_which_form_a_translation_has_them(
    source: str, translation: str, outcomes: list[str]
) -> None:
    used = check_terms(FORMS.terms_for(source), translation)
    assert [one.outcome for one in used] == outcomes
    assert all(one.reason for one in used if one.outcome == "miss")
    assert not any(one.reason for one in used if one.outcome != "miss")


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        ("Dog", "chien"),  # a label needs its capital
        ("DOG", "Chien"),
        ("the dog", "le Chien"),
        ("we use Go", "nous utilisons GO"),
    ],
)
def test_check_terms_reports_other_capitals(source: str, translation: str) -> None:
    (used,) = check_terms(FORMS.terms_for(source), translation)
    assert (used.outcome, used.reason) == ("form", "other capitals")


def test_candidates_are_allowed_forms_with_the_capitals_of_the_source() -> None:
    terms = FORMS.terms_for("Dogs, a car, horses")
    assert [term.candidates() for term in terms] == [
        ["Chien", "chien", "Chiens", "chiens"],
        ["voiture", "auto"],
        ["cheval", "chevals", "chevaux"],
    ]


def test_many_terms_and_texts_take_linear_time() -> None:
    # All begin alike, and in each text, which is what is slow if terms are tried one by one.
    def seconds(size: int) -> float:
        glossary = Glossary(
            {f"the term{number} a": f"le mot{number}|*free*" for number in range(size)},
            match="forms",
            languages=("en", "fr"),
        )
        started = time.process_time()
        text = " ".join(f"The term{number} a" for number in range(0, size, 50))
        written = " ".join(f"le mots{number}" for number in range(0, size, 50))
        used = check_terms(glossary.terms_for(text), written)
        assert len(used) == size // 50
        for number in range(size):
            (term,) = glossary.terms_for(f"so the term{number} a is the last of the terms")
            check_terms([term], f"donc le mot{number} est le dernier")
        return time.process_time() - started

    small = min(seconds(1_250) for _ in range(2))
    large = min(seconds(5_000) for _ in range(2))
    assert large < 4 * small * 2
