"""The everyday lists of the course: every entry is drawn, every name that a pattern uses exists."""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest

from pellucid.corpora.course.course_words import EVERYDAY, GRAMMAR, NEW_NOUNS, RULES, TABLES, pool
from pellucid.corpora.course.drawing import Slot
from pellucid.corpora.course.patterns import (
    EVERYDAY_NAMES,
    patterns_of,
    read_pattern,
    say_pattern,
    ways_of,
)
from pellucid.corpora.example import Style, make_example
from pellucid.corpora.french import join_french_words
from pellucid.corpora.sentence import Pick, Sentence


def say(pattern: str, seed: int = 0) -> tuple[str, str]:
    """Say one pattern."""
    sentence = Sentence("")
    say_pattern(sentence, Pick(random.Random(seed).random), read_pattern(pattern))
    said = make_example(sentence, join_french_words(sentence.french), Style(True, "."))
    return said.source, said.target


def used(name: str) -> set[str]:
    """List what the slots of one kind name, in all patterns and rules."""
    everything = [p for one in GRAMMAR for p in patterns_of(one)]
    everything += [p for one in RULES for p in ways_of(one)]
    slots = [part for pattern in everything for part in pattern.english if isinstance(part, Slot)]
    return {slot.name for slot in slots if slot.slot == name}


def test_each_name_that_a_pattern_uses_exists_and_each_rule_is_used() -> None:
    assert used("R") == RULES.keys()
    assert used("W") <= TABLES.keys()
    assert used("D") <= EVERYDAY.keys()
    assert all(pool(name) for name in used("N") - {"like"})


def test_each_noun_of_the_course_is_drawn_often_enough() -> None:
    pick = Pick(random.Random(2).random)
    words = Counter[str]()
    for _ in range(9000):
        sentence = Sentence("everyday words")
        say_pattern(sentence, pick, pick.one(patterns_of("everyday words")))
        words.update(re.findall(r"[\w-]+", " ".join(sentence.english)))
    rare = [n.english for n in NEW_NOUNS if words[n.english] + words[n.english_plural] < 3]
    assert not rare


@pytest.mark.parametrize("name", sorted(EVERYDAY_NAMES))
def test_no_slot_is_left_and_no_link_points_outside(name: str) -> None:
    pick = Pick(random.Random(name).random)
    for pattern in dict.fromkeys(patterns_of(name)):
        sentence = Sentence(name)
        say_pattern(sentence, pick, pattern)
        pieces = join_french_words(sentence.french)
        said = make_example(sentence, pieces, Style(True, "."))
        assert not re.search(r"[$^@~:_]", said.source + said.target), said
        num_pieces = len(said.target.split(" "))
        num_words = len(said.source.split(" "))
        assert all(i < num_words and j < num_pieces for i, j in said.alignment), said


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("I $D:get_up.near!@i = je:0 $1", ("I am going to get up.", "Je vais me lever.")),
        ("you $D:wash_part.past!@you $POSS hands = tu:0 $1 les:3 mains:3", None),
        ("$D:wait_for.order!@you here = $0 ici:1", ("Wait for here.", "Attends ici.")),
        ("she $D:go.future!@who = elle:0 $1", ("She will go.", "Elle ira.")),
        ("he $D:play.habit!@who = il:0 $1", ("He played.", "Il jouait.")),
        ("he $D:eat.just!@he = il:0 $1", ("He has just eaten.", "Il vient de manger.")),
        ("he $D:get_up.just@he = il:0 $1", ("He has just gotten up.", "Il vient de se lever.")),
        ("he $D:go.would!@he = il:0 $1", ("He would go.", "Il irait.")),
        ("he $D:go.coming!@he = il:0 $1", ("He goes.", "Il ira.")),
        ("he $D:go.pluperfect!@he = il:0 $1", ("He had gone.", "Il était allé.")),
        (
            "I want her to $D:go.subjunctive@she = je:0 veux:1 que:3 elle:2 $4",
            ("I want her to go.", "Je veux qu'elle aille."),
        ),
        ("after $D:go.having@she = après:0 $1", ("After going.", "Après être allée.")),
        ("while $D:eat.gerund@she = en:0 $1", ("While eating.", "En mangeant.")),
        ("he $D:drink.no_longer@he = il:0 $1", ("He no longer drinks.", "Il ne boit plus.")),
        ("he $D:go.past!@he/there = il:0 $1", ("He went there.", "Il y est allé.")),
        ("they $D:eat.past!@they/some = ils:0 $1", ("They ate some.", "Ils en ont mangé.")),
        ("he $D:like.perfect!@he that = il:0 $1 cela:2", ("He has liked that.", "Il a aimé cela.")),
        (
            "she $I.perfect!@she here = elle:0 $1 ici:2",
            ("She has been here.", "Elle a été ici."),
        ),
        ("she $I.since@she here = elle:0 $1 ici:2", ("She has been here.", "Elle est ici.")),
        ("he $D:know.since@he him = il:0 le:2 $1", ("He has known him.", "Il le connaît.")),
        ("nobody $D:eat.past!@nobody $N:kitchen=a = personne:0 ne:0 $1 $2", None),
    ],
)
def test_forms_of_a_verb(pattern: str, expected: tuple[str, str] | None) -> None:
    english, french = say(pattern)
    if expected is not None:
        assert (english, french) == expected
    elif "wash" in english:
        # The participle agrees with nothing: *tu t'es lavé les mains*.
        assert french == "Tu t'es lavé les mains."
    else:
        assert french.startswith("Personne n'a mangé de ")


def test_what_a_verb_does_not_do_has_no_article() -> None:
    for seed in range(40):
        english, french = say("he $R:do.future@he = il:0 $1", seed)
        if re.search(r"won't|will not", english):
            found = re.search(r"pas (un|une|des) ", french)
            assert not found, (english, french)


@pytest.mark.parametrize(
    ("form", "french"),
    [
        ("not_thing_past", r"Il n'a rien \w+"),
        ("not_yet", "Il n'a pas encore "),
        ("not_now", "plus"),
    ],
)
def test_word_of_a_negation_stands_behind_the_finite_verb(form: str, french: str) -> None:
    assert re.search(french, say(f"he $D:eat.{form}@he = il:0 $1")[1])


def test_subject_that_is_drawn_is_not_negated_by_the_clause_before() -> None:
    pattern = "he $D:eat.not@he because $S:he would like $N:bought=a = il:0 $1 parce:2 que:2 $3 $6"
    assert all(" de " not in say(pattern, seed)[1] for seed in range(9))


def test_what_always_was_is_over_in_french() -> None:
    said = {say("she $D:live.already@she here = elle:0 $1 ici:2", seed)[1] for seed in range(20)}
    assert "Elle a toujours habité ici." in said
    assert not [french for french in said if "habitait" in french]


def test_later_subject_does_not_change_the_auxiliary_of_a_question() -> None:
    pattern = "$AUX:do $S:people know where $S:he $I! = est-ce:0 que:0 $1 ^savoir:2 où:3 $4 $5"
    for seed in range(20):
        english, french = say(pattern, seed)
        is_one = " sait " in french
        assert english.startswith("Does " if is_one else "Do "), (english, french)


@pytest.mark.parametrize(
    ("auxiliary", "french"),
    [
        ("haven't", "Est-ce qu'ils n'ont pas mangé ici."),
        ("won't", "Est-ce qu'ils ne mangeront pas ici."),
        ("don't", "Est-ce qu'ils ne mangent pas ici."),
    ],
)
def test_negated_question(auxiliary: str, french: str) -> None:
    pattern = f"$AUX:{auxiliary} $S:he $D:eat.asked here = est-ce:0 que:0 $1 $2 ici:3"
    said = dict(say(pattern, seed) for seed in range(60))
    english = next(one for one, target in said.items() if target == french)
    assert english.startswith(auxiliary.capitalize())


def test_infinitive_that_is_denied_takes_de() -> None:
    pattern = "try not to $D:eat.inf@you $N:bought=a = essaie:0 de:2 ne:1 pas:1 $3 $4"
    for seed in range(9):
        assert re.search(r"^Essaie de ne pas manger d(?:e |')", say(pattern, seed)[1])


def test_relative_clause_agrees_with_the_noun_before_it_not_with_the_first() -> None:
    pattern = (
        "$N:animal_pet=the eats the $N:fruit=plain that he $D:buy.past!@he/last = $0 $3 il:5 $6"
    )
    for seed in range(30):
        english, french = say(pattern, seed)
        if english.split()[4] in ("apple", "orange", "banana", "pear", "strawberry", "cherry"):
            assert french.endswith("achetée."), (english, french)


def test_one_o_clock_is_one_hour() -> None:
    hours = {say("at $R:hour = à:0 $1", seed) for seed in range(400)}
    assert ("At one o'clock.", "À une heure.") in hours
    assert not [french for _, french in hours if "une heures" in french]


def test_number_that_no_vocabulary_has_is_copied() -> None:
    said = [
        say("he $D:have.present!@he $NUM $N:counted_things=title+ = il:0 $1 $2 $3", seed)
        for seed in range(200)
    ]
    copied = [(e, f) for e, f in said if re.search(r"\d{6}", e)]
    assert copied
    assert all(e.split()[2] == f.split()[2] for e, f in copied)
    assert re.fullmatch(r"In \d{6}\.", say("in $NUM:year = en:0 $1")[0])
