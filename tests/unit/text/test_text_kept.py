"""What a translation keeps of its source: each loss is named, and nothing else."""

from __future__ import annotations

import pytest

from pellucid.check.lost_parts import count_kept_placeholders, not_kept, placeholders


@pytest.mark.parametrize(
    ("source", "target", "name"),
    [
        ("Delete %d rows", "Supprimer des lignes", "placeholders"),
        ("%1$s of %2$s", "%1$s de %1$s", "placeholders"),
        ("Hello {user}!", "Bonjour {utilisateur} !", "placeholders"),
        ("In ${HOME} now", "Dans {HOME} maintenant", "placeholders"),
        ("%(count)d files", "%(compte)d fichiers", "placeholders"),
        ("It is here", "Es ist %s hier", "placeholders"),
        ("A <i>new</i> word", "Un mot <i>nouveau", "tags"),
        ("Line<br/>break", "Saut de ligne", "tags"),
        ('<a href="x">here</a>', "<b>ici</b>", "tags"),
        ("See https://a.example/x.", "Voir https://a.example/y.", "addresses"),
        ("Write to me@a.example", "Écrivez à moi", "addresses"),
        ("&Save as", "Enregistrer sous", "accelerators"),
        ("_Print", "Imprimer", "accelerators"),
        ("E&xit", "Quitter", "accelerators"),
        ("Wait 20 minutes", "Attendez 200 minutes", "numbers"),
        ("In 1984 it rained", "Il pleuvait", "numbers"),
        ("Who is there?", "Qui est là", "ends"),
        ("Stop!", "Arrêtez.", "ends"),
        ("Name:", "Nom", "ends"),
        (" indented", "en retrait", "edges"),
        ("then ", "puis", "edges"),
        ("Cancel", "FIXME Annuler", "unfinished"),
        ("TODO: a text", "un texte", "unfinished"),
        ("Open the door", "Ouvrez la la porte", "doubled"),
    ],
)
def test_what_is_not_kept_is_named(source: str, target: str, name: str) -> None:
    assert not_kept(source, target) == [name]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("%s of %s", "%s de %s"),
        ("'%s' is missing", "« %s » manque"),
        ("Load {0} and {}", "Charger {} et {0}"),
        ("50% done", "50 % fait"),
        ("100%sure", "100%sûr"),
        ("1,234,567 people", "1 234 567 personnes"),
        ("١٢ books", "12 livres"),
        ("four cats", "4 chats"),
        ("AT&T and R&D", "AT et T, R et D"),
        ("Fish &amp; chips", "Poisson et frites"),
        ("snake_case_name", "nom"),
        ("&File", "文件(&F)"),
        ("Is it?", "それですか？"),
        ("Is it?", "Είναι;"),
        ('He asked: "Why?"', "Il demanda : « Pourquoi ? »"),
        ("You are wrong", "Vous vous trompez"),
        ("a < b and c > d", "a < b et c > d"),
        ("See https://a.example/x.", "https://a.example/x を見る"),
        ("", ""),
    ],
)
def test_correct_pairs_have_nothing_to_name(source: str, target: str) -> None:
    assert not_kept(source, target) == []


def test_placeholders_are_counted_as_often_as_they_are_there() -> None:
    assert placeholders("%s {n} %s %.250s") == {"%s": 2, "{n}": 1, "%.250s": 1}


def test_lines_that_lose_placeholders_are_numbered_from_one() -> None:
    lines = ["%s is", "nothing", "{a} and %d", "%s %s"]
    kept = count_kept_placeholders(lines, ["%s est", "rien", "%d et {a}", "%s"])
    assert (kept.lines, kept.kept, kept.lost) == (3, 2, (4,))
