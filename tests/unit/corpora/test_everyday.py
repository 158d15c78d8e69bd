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
