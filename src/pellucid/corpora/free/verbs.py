"""Verbs of the free sentences in both languages: tense, negation, questions, object pronouns."""

from __future__ import annotations

from dataclasses import dataclass

from pellucid.corpora.free.subjects import Subject
from pellucid.corpora.free.words import AT_BE, HAVE, English, French, Tense
from pellucid.corpora.french import Word, agree
from pellucid.corpora.lexicon import Phrase
from pellucid.corpora.sentence import Entity, Pick, Sentence, read_template


@dataclass(frozen=True)
class Manner:
    """The tense of a verb, its negation, and the auxiliary of a question.

    Attributes:
        tense: the tense.
        negation: "", ``not``, or ``n't``.
        auxiliary: the index of the English auxiliary that the question has said, or None.
    """

    tense: Tense = "present"
    negation: str = ""
    auxiliary: int | None = None


@dataclass(frozen=True)
class Clitic:
    """An object pronoun: *it* and *le*; its gender and number for the participle.

    ``antecedent`` is what it stands for; ``is_direct`` is False for *lui*.
    """

    english: str
    french: str
    gender: str = "m"
    is_plural: bool = False
    is_direct: bool = True
    antecedent: Entity | None = None


CLITICS = (
    Clitic("me", "me"),
    Clitic("you", "te"),
    Clitic("him", "le"),
    Clitic("her", "la", "f"),
    Clitic("it", "le"),
    Clitic("us", "nous", "m", True),
    Clitic("them", "les", "m", True),
)
"""Object pronouns without an antecedent."""
INDIRECT = (
    Clitic("me", "me", is_direct=False),
    Clitic("me", "me", is_direct=False),
    Clitic("you", "te", is_direct=False),
    Clitic("him", "lui", is_direct=False),
    Clitic("her", "lui", is_direct=False),
    Clitic("us", "nous", is_direct=False),
    Clitic("them", "leur", is_direct=False),
)
"""Object pronouns of people to whom something is given or told."""

_BE_PRESENT = {0: "am", 2: "is"}


def be_form(subject: Subject, *, is_past: bool) -> str:
    """Choose the English form of *be*."""
    if is_past:
        return "was" if subject.person in (0, 2) else "were"
    return _BE_PRESENT.get(subject.person, "are")


def draw_manner(pick: Pick, subject: Subject | None = None, *, is_stative: bool = False) -> Manner:
    """Draw a tense and a negation."""
    tense: Tense = pick.one(("past", "past", "past", "present", "present"))
    if not is_stative and pick.chance(0.25):
        tense = pick.one(
            ("progressive", "progressive", "past progressive", "past progressive", "perfect")
        )
    negation = ""
    if pick.chance(0.2):
        negation = "n't" if pick.chance(0.25) else "not"
        if subject is not None and subject.person == 0 and tense == "progressive":
            negation = "not"
    return Manner(tense, negation)


def ask(sentence: Sentence, subject_person: int, manner: Manner, *, is_be: bool) -> Manner:
    """Say the auxiliary that begins a question, and *est-ce que* in French."""
    index = len(sentence.english)
    is_past = manner.tense.startswith("past")
    if is_be:
        like = Subject(subject_person, "m", None)
        sentence.english.append(be_form(like, is_past=is_past))
    else:
        word = "did" if is_past else "does" if subject_person == 2 else "do"
        sentence.english.append(word)
    sentence.french += [Word("est-ce", (index,)), Word("que", (index,))]
    return Manner(manner.tense, "", index)


def _say_auxiliary(
    sentence: Sentence, word: str, manner: Manner
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Say an auxiliary with its negation.

    Returns:
        The English indices of the auxiliary, and of the negation.
    """
    if manner.auxiliary is not None:
        return (manner.auxiliary,), ()
    index = len(sentence.english)
    if manner.negation == "n't" and word != "am":
        sentence.english.append(word + "n't")
        return (index,), (index,)
    sentence.english.append(word)
    if manner.negation:
        sentence.english.append("not")
        return (index,), (index + 1,)
    return (index,), ()


def say_verb(
    sentence: Sentence,
    subject: Subject,
    english: English,
    french: French,
    manner: Manner,
    *,
    particle: str = "",
    clitic: Clitic | None = None,
) -> None:
    """Say a verb: *did not eat it*, in French *ne l'a pas mangé*."""
    tense = manner.tense
    auxiliary: tuple[int, ...] = ()
    negation: tuple[int, ...] = ()
    if tense == "perfect":
        form = "has" if subject.is_third else "have"
        auxiliary, negation = _say_auxiliary(sentence, form, manner)
        word = english.participle
    elif tense.endswith("progressive"):
        form = be_form(subject, is_past=tense.startswith("past"))
        auxiliary, negation = _say_auxiliary(sentence, form, manner)
        word = english.ing
    elif manner.negation or manner.auxiliary is not None:
        do = "did" if tense == "past" else "does" if subject.is_third else "do"
        auxiliary, negation = _say_auxiliary(sentence, do, manner)
        word = english.base
    else:
        word = (
            english.past if tense == "past" else english.third if subject.is_third else english.base
        )
    main: tuple[int, ...] = (len(sentence.english),)
    sentence.english.append(word)
    clitic_links: tuple[int, ...] = ()
    role: tuple[int, ...] = ()
    if clitic is not None:
        clitic_links = (len(sentence.english),)
        if clitic.antecedent is not None:
            place = len(sentence.french)
            sentence.pronoun(clitic.english, clitic.french, clitic.antecedent)
            role = sentence.french.pop(place).roles
        else:
            sentence.english.append(clitic.english)
    words = particle.split()
    # *Out* of *came out of* belongs to the verb, *of* to the preposition.
    own = words[:-1] if len(words) > 1 else words if particle == "on" else []
    main += tuple(len(sentence.english) + i for i in range(len(own)))
    sentence.english += words
    if manner.auxiliary is not None:
        # The question's auxiliary is *est-ce que* already; it belongs to the French one too.
        auxiliary = (manner.auxiliary,) if tense != "present" else ()
    _say_french(
        sentence, subject, french, tense, main, auxiliary, negation, clitic, clitic_links, role
    )


def _say_french(
    sentence: Sentence,
    subject: Subject,
    french: French,
    tense: Tense,
    main: tuple[int, ...],
    auxiliary: tuple[int, ...],
    negation: tuple[int, ...],
    clitic: Clitic | None,
    clitic_links: tuple[int, ...],
    role: tuple[int, ...],
) -> None:
    """Say the French words of a verb, with *ne*, the object pronoun and *pas* in their places."""
    words: list[Word] = []
    if negation:
        words.append(Word("ne", negation))
    if clitic is not None:
        words.append(Word(clitic.french, clitic_links, role))
    participle: Word | None = None
    if tense in ("past", "perfect") and french is not HAVE:
        helper = AT_BE if french.with_etre else HAVE
        words.append(Word(helper.present[subject.person], auxiliary or main))
        form = french.participle
        if french.with_etre:
            form = agree(form, subject.gender, is_plural=subject.is_plural)
        elif clitic is not None and clitic.is_direct:
            gender = "f" if clitic.gender == "f" else "m"
            form = agree(form, gender, is_plural=clitic.is_plural)
        participle = Word(form, main)
    elif tense.startswith("past") or tense == "perfect":
        # *Had* lasts: *avait*, not *a eu*.
        words.append(Word(french.imperfect(subject.person), main + auxiliary))
    else:
        words.append(Word(french.present[subject.person], main + auxiliary))
    if negation:
        words.append(Word("pas", negation))
    if participle is not None:
        words.append(participle)
    sentence.french += words


def say_be(sentence: Sentence, subject: Subject, manner: Manner, french: French = AT_BE) -> int:
    """Say *is*, *was*, *is not*; the French is another verb for *is hungry*.

    Returns:
        The English index of the form of *be*.
    """
    is_past = manner.tense.startswith("past")
    auxiliary, negation = _say_auxiliary(sentence, be_form(subject, is_past=is_past), manner)
    form = french.imperfect(subject.person) if is_past else french.present[subject.person]
    if negation:
        sentence.french.append(Word("ne", negation))
    sentence.french.append(Word(form, auxiliary))
    if negation:
        sentence.french.append(Word("pas", negation))
    return auxiliary[0]


_FRENCH_OF = {
    "avait": HAVE,
    "était": AT_BE,
    "sonnait": French(("sonne", "sonnes", "sonne", "sonnons", "sonnent"), "sonné", "sonn"),
    "fermait": French(("ferme", "fermes", "ferme", "fermons", "ferment"), "fermé", "ferm"),
}
_ENGLISH_OF = {
    "had": English("have", "has", "had", "having", "had"),
    "tasted": English("taste", "tastes", "tasted", "tasting", "tasted"),
    "sounded": English("sound", "sounds", "sounded", "sounding", "sounded"),
    "closed": English("close", "closes", "closed", "closing", "closed"),
}


def say_state(sentence: Sentence, subject: Subject, phrase: Phrase, manner: Manner) -> bool:
    """Say a predicate of the lexicon in any tense and person: *is hungry*, *tastes good*.

    Returns:
        False if it has no such form; the sentence stays as it was then.
    """
    first, _, rest = phrase.english.partition(" ")
    template = read_template(phrase.french)
    verb = next((_FRENCH_OF.get(word.text) for word in template if word.is_finite), None)
    is_fixed = template[0].text == "ne"
    if verb is None or (manner.negation and (is_fixed or first == "had")):
        return False
    is_past = manner.tense.startswith("past")
    negation: tuple[int, ...] = ()
    if first == "was":
        auxiliary, negation = _say_auxiliary(sentence, be_form(subject, is_past=is_past), manner)
        main = auxiliary
    else:
        english = _ENGLISH_OF[first]
        auxiliary = ()
        if manner.negation or manner.auxiliary is not None:
            do = "did" if is_past else "does" if subject.is_third else "do"
            auxiliary, negation = _say_auxiliary(sentence, do, manner)
            word = english.base
        else:
            word = english.past if is_past else english.third if subject.is_third else english.base
        main = (len(sentence.english), *auxiliary)
        sentence.english.append(word)
    start = len(sentence.english) - 1
    sentence.english += rest.split()
    if subject.noun is not None:
        sentence.combine("predicate", phrase.english, subject.noun)
    for text, links, agrees, is_finite in template:
        at: tuple[int, ...] = ()
        for link in links:
            at += main if link == 0 else (start + link,)
        if is_finite:
            form = verb.imperfect(subject.person) if is_past else verb.present[subject.person]
            if negation:
                sentence.french.append(Word("ne", negation))
            sentence.french.append(Word(form, at))
            if negation:
                sentence.french.append(Word("pas", negation))
            continue
        if agrees:
            text = agree(text, subject.gender, is_plural=subject.is_plural)
        sentence.french.append(Word(text, at))
    return True
