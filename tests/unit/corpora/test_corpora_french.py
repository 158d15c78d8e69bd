"""French spelling: agreement, elision, contraction."""

from __future__ import annotations

from typing import Literal

import pytest

from pellucid.corpora.french import (
    Word,
    agree,
    begins_with_vowel,
    join_french_words,
    make_plural,
    make_prenominal,
    to_plural_verb,
)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("de le four", "du four"),
        ("de les fours", "des fours"),
        ("à le château", "au château"),
        ("à les musées", "aux musées"),
        ("de la maison", "de la maison"),
        ("de le homme", "de l'homme"),
        ("à le hôtel", "à l'hôtel"),
        ("à la école", "à l'école"),
        ("verre de eau", "verre d'eau"),
        ("de la harpe", "de la harpe"),
        ("la accordéon", "l'accordéon"),
        ("et la a mangée", "et l'a mangée"),
        ("et les a mangés", "et les a mangés"),
        ("que il était", "qu'il était"),
        ("que elle avait", "qu'elle avait"),
        ("je ai", "j'ai"),
        ("je vois", "je vois"),
        ("ne est pas", "n'est pas"),
        ("ils ne avaient plus de essence", "ils n'avaient plus d'essence"),
        ("de hauts plafonds", "de hauts plafonds"),
        ("la œuvre", "l'œuvre"),
    ],
)
def test_join_words_elides_and_contracts(words: str, expected: str) -> None:
    pieces = join_french_words([Word(word, (i,)) for i, word in enumerate(words.split())])
    assert " ".join(piece.text for piece in pieces) == expected


def test_join_words_of_joined_piece_keeps_links_and_roles_of_both() -> None:
    pieces = join_french_words([Word("et", (3,)), Word("la", (5,), (7,)), Word("a", (4,), (11,))])
    assert pieces[1].text == "l'a"
    assert sorted(pieces[1].links) == [4, 5]
    assert sorted(pieces[1].roles) == [7, 11]


@pytest.mark.parametrize(
    ("adjective", "forms"),
    [
        ("grand", "grand grande grands grandes"),
        ("rouge", "rouge rouge rouges rouges"),
        ("beau", "beau belle beaux belles"),
        ("vieux", "vieux vieille vieux vieilles"),
        ("blanc", "blanc blanche blancs blanches"),
        ("cher", "cher chère chers chères"),
        ("bon", "bon bonne bons bonnes"),
        ("délicieux", "délicieux délicieuse délicieux délicieuses"),
        ("français", "français française français françaises"),
        ("national", "national nationale nationaux nationales"),
        ("génial", "génial géniale géniaux géniales"),
        ("européen", "européen européenne européens européennes"),
        ("mis", "mis mise mis mises"),
        ("sorti", "sorti sortie sortis sorties"),
        ("bleu", "bleu bleue bleus bleues"),
        ("italien", "italien italienne italiens italiennes"),
    ],
)
def test_agree_gives_all_four_forms(adjective: str, forms: str) -> None:
    cells: list[tuple[Literal["m", "f"], bool]] = [
        ("m", False),
        ("f", False),
        ("m", True),
        ("f", True),
    ]
    found = [agree(adjective, gender, is_plural=is_plural) for gender, is_plural in cells]
    assert " ".join(found) == forms


@pytest.mark.parametrize(
    ("noun", "plural"),
    [
        ("cheval", "chevaux"),
        ("gâteau", "gâteaux"),
        ("oiseau", "oiseaux"),
        ("bus", "bus"),
        ("porte", "portes"),
    ],
)
def test_make_plural_follows_the_ending(noun: str, plural: str) -> None:
    assert make_plural(noun) == plural


@pytest.mark.parametrize(
    ("adjective", "following", "expected"),
    [
        ("vieux", "hôtel", "vieil"),
        ("beau", "oiseau", "bel"),
        ("nouveau", "accordéon", "nouvel"),
        ("vieux", "four", "vieux"),
        ("petit", "oiseau", "petit"),
    ],
)
def test_make_prenominal_before_vowel_takes_its_form(
    adjective: str, following: str, expected: str
) -> None:
    assert make_prenominal(adjective, "m", is_plural=False, following=following) == expected


def test_begins_with_vowel_of_h_knows_the_aspirated_ones() -> None:
    assert begins_with_vowel("homme")
    assert begins_with_vowel("Huile")
    assert not begins_with_vowel("harpe")
    assert not begins_with_vowel("Harpes")


@pytest.mark.parametrize(
    ("verb", "plural"),
    [("avait", "avaient"), ("était", "étaient"), ("a", "ont"), ("est", "sont")],
)
def test_to_plural_verb_gives_third_person_plural(verb: str, plural: str) -> None:
    assert to_plural_verb(verb) == plural
