"""Forms of words that a glossary's terms are found in, and words that only look like them."""

from __future__ import annotations

import pytest

from pellucid.decode.constraints.glossary import Glossary
from pellucid.text.word_forms import base_forms, inflections, is_inflection

FOUND = {
    # Korean: particles that fit the sound before them
    "ko 서버": (["서버를", "서버가", "서버에서", "서버로", "서버와", "서버들이", "서버의"], "auto"),
    "ko 책상": (["책상은", "책상이", "책상을", "책상으로", "책상과", "책상에도"], "auto"),
    "ko 서울": (["서울로", "서울은", "서울까지"], "auto"),
    "ko API": (["API는", "API를", "API의"], "auto"),
    "ko 물": (["물은", "물을"], "forms"),
    # Arabic: the article and what stands before it, then other attached words
    "ar كتاب": (["الكتاب", "والكتاب", "بالكتاب", "للكتاب", "فالكتاب"], "auto"),
    "ar الخادم": (["والخادم", "بالخادم", "للخادم"], "auto"),
    "ar مدرسة": (["مدرسته", "ومدرستي", "لمدرستها"], "forms"),
    # Plurals
    "en server": (["servers"], "forms"),
    "en box": (["boxes"], "forms"),
    "en city": (["cities"], "forms"),
    "en-GB house": (["houses"], "forms"),
    "fr serveur": (["serveurs"], "forms"),
    "fr journal": (["journaux"], "forms"),
    "fr réseau": (["réseaux"], "forms"),
    "fr jeu": (["jeux"], "forms"),
    "de Rechner": (["Rechners", "Rechnern"], "forms"),
    "de Haus": (["Häuser", "Häusern", "Hauses"], "forms"),
    "de Frau": (["Frauen"], "forms"),
    "de Baum": (["Bäume", "Bäumen"], "forms"),
}

NOT_FOUND = [
    ("ko", "나", "나이", "forms"),  # age is not "I" with a particle for consonants
    ("ko", "물", "물은", "auto"),  # one syllable is too little to be sure of
    ("ko", "서버", "서버은", "forms"),
    ("ko", "서버", "서버리스", "forms"),
    ("ko", "책상", "책상는", "forms"),
    ("ar", "حر", "بحر", "forms"),  # the sea is not "with" and "free"
    ("ar", "كتاب", "وكتاب", "auto"),
    ("ar", "كتاب", "مكتاب", "forms"),
    ("fa", "کتاب", "الکتاب", "forms"),
    ("en", "new", "news", "forms"),
    ("en", "thi", "this", "forms"),
    ("en", "glas", "glass", "forms"),
    ("en", "stat", "status", "forms"),
    ("en", "server", "servers", "auto"),
    ("en", "server", "serverless", "forms"),
    ("fr", "cour", "cours", "forms"),
    ("fr", "fil", "fils", "forms"),
    ("de", "Bau", "Bauern", "forms"),
    ("de", "geh", "gehen", "forms"),
    ("", "server", "servers", "forms"),
]


def targets(glossary: Glossary, source: str) -> tuple[str, ...]:
    """List the target terms that a text asks for, with their capitals."""
    return tuple(term.candidates()[0] for term in glossary.terms_for(source))


@pytest.mark.parametrize("name", FOUND)
def test_forms_of_a_term_are_found(name: str) -> None:
    language, term = name.split()
    words, match = FOUND[name]
    glossary = Glossary({term: "term"}, match=match, languages=(language, ""))  # type: ignore[arg-type]
    for word in words:
        assert targets(glossary, f"x {word} y") == ("term",), word
    exact = Glossary({term: "term"}, match="exact", languages=(language, ""))
    assert not any(targets(exact, f"x {word} y") for word in words)
    assert targets(exact, f"x {term} y") == ("term",)


@pytest.mark.parametrize(("language", "term", "word", "match"), NOT_FOUND)
def test_other_words_are_not_found(language: str, term: str, word: str, match: str) -> None:
    glossary = Glossary({term: "term"}, match=match, languages=(language, ""))  # type: ignore[arg-type]
    assert targets(glossary, f"x {word} y") == ()


def test_a_word_is_a_form_of_itself_first() -> None:
    for word, language in (("servers", "en"), ("서버는", "ko"), ("الكتاب", "ar"), ("x", "")):
        assert base_forms(word, language, "forms")[0] == word
    assert base_forms("", "en", "forms") == ("",)


def test_a_term_as_it_is_comes_before_a_form_and_longer_terms_before_shorter_ones() -> None:
    terms = {"server": "serveur", "servers": "serveurs", "mail server": "serveur de courrier"}
    glossary = Glossary(terms, match="forms", languages=("en", ""))
    assert targets(glossary, "two servers") == ("serveurs",)
    assert targets(glossary, "two mail servers and a server") == ("serveur de courrier", "serveur")
    assert targets(glossary, "Servers, mails servers") == ("Serveurs", "serveur de courrier")


def test_every_word_of_a_term_may_have_another_form() -> None:
    glossary = Glossary({"serveur virtuel": "virtual server"}, match="forms", languages=("fr", ""))
    assert targets(glossary, "les serveurs virtuels sont là") == ("virtual server",)
    assert targets(glossary, "les serveurs") == ()
    assert targets(glossary, "serveur virtuelle") == ()
    assert targets(glossary, "serveurs") == ()


def test_a_glossary_without_a_language_finds_particles_but_no_plurals() -> None:
    glossary = Glossary({"서버": "server", "server": "serveur"})
    assert targets(glossary, "서버는 servers") == ("server",)
    english = Glossary(glossary.terms, match="forms").for_languages(("en", ""))
    assert targets(english, "서버는 servers") == ("server", "serveur")


@pytest.mark.parametrize(
    ("language", "word", "forms"),
    [
        ("en", "city", {"cities"}),
        ("en", "old box", {"old boxes"}),
        ("fr", "cheval", {"chevaux"}),
        ("fr", "chat noir", {"chats noirs"}),
        ("de", "Frau", {"Frauen"}),
        ("es", "perro", set()),
    ],
)
def test_inflections_have_the_plural(language: str, word: str, forms: set[str]) -> None:
    assert forms <= set(inflections(word, language))


@pytest.mark.parametrize(
    ("language", "term", "other", "expected"),
    [
        ("fr", "cheval", "chevaux", True),
        ("fr", "cheval", "cheveux", False),
        ("fr", "chien", "chienne", True),
        ("fr", "chat", "chaise", False),
        ("de", "Buch", "Bücher", True),
        ("es", "perro", "perras", True),
        ("ru", "собака", "собаки", True),
        ("", "mer", "merci", False),
        ("", "server", "serverless", False),
    ],
)
def test_is_inflection_takes_other_endings(
    language: str, term: str, other: str, expected: bool
) -> None:
    assert is_inflection(other, term, language) == expected
