"""Small texts: single odd lines are pointed at, clean ones give nothing."""

from __future__ import annotations

import pytest

from pellucid.check.odd_pairs import find_doubtful
from pellucid.config import DataConfig
from pellucid.corpora import make_split

DATA = DataConfig(
    train=("t.tsv",), validation=("v.tsv",), source_language="en", target_language="fr"
)
CLEAN = [
    ("Cannot open the file", "Impossible d'ouvrir le fichier"),
    ("Wait ten seconds", "Attendez dix secondes"),
    ("Are you sure?", "Vous êtes sûr ?"),
    ("Close window", "Fermer la fenêtre"),
    ("Print the page", "Imprimer la page"),
    ("OK", "Bien"),
    ("Details", "Informations supplémentaires"),
]


def kinds(pairs: list[tuple[str, str]], known: tuple[int, ...] = (), **changes: object) -> list:  # type: ignore[type-arg]
    data = DATA.model_copy(update=changes)
    return [(hit.kind, hit.indices) for hit in find_doubtful(dict(enumerate(pairs)), data, known)]


@pytest.mark.parametrize(
    ("pair", "kind"),
    [
        (("Le dossier est vide", "The folder is empty"), "maybe swapped"),
        (("Elle ne peut pas venir ce soir", "She cannot come this evening"), "maybe swapped"),
        (("The file is open", "Die Datei ist offen"), "maybe target language"),
        (("El archivo no se puede abrir ahora", "Impossible de l'ouvrir"), "maybe source language"),
        (("No files were found in the folder", "Aucun"), "maybe ratio"),
        (("No", "Aucun fichier n'a été trouvé dans ce dossier"), "maybe ratio"),
    ],
)
def test_one_odd_line_among_few_is_pointed_at(pair: tuple[str, str], kind: str) -> None:
    assert kinds([*CLEAN, pair]) == [(kind, (len(CLEAN),))]
    assert kinds([*CLEAN, pair], known=(len(CLEAN),)) == []


@pytest.mark.parametrize(
    "pair",
    [
        ("The file is open", "The File is open"),  # a copy has its own finding
        ("Berlin", "Berlin 2024"),
        ("%s: %d", "%s : %d"),
        ("", "Rien"),
        ("Die Hard", "Piège de cristal"),  # too short to tell
    ],
)
def test_lines_that_say_too_little_are_left_alone(pair: tuple[str, str]) -> None:
    assert kinds([*CLEAN, pair]) == []


def test_languages_that_are_not_declared_are_not_compared() -> None:
    pairs = [*CLEAN, ("Le dossier est vide", "The folder is empty")]
    assert kinds(pairs, source_language="", target_language="xx-unknown") == []


def test_the_built_in_corpus_has_nothing_doubtful() -> None:
    examples = make_split("validation", count=180)
    assert kinds([(one.source, one.target) for one in examples]) == []
