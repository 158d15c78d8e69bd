"""Verbs of the free sentences in both languages: tense, negation, questions, object pronouns."""

from __future__ import annotations

from dataclasses import dataclass

from pellucid.corpora.french import Gender, Word, agree
from pellucid.corpora.lexicon import Phrase
from pellucid.corpora.open.open_words import AT_BE, HAVE, English, French, Tense
from pellucid.corpora.open.subjects import Subject
from pellucid.corpora.sentence import Entity, Pick, Sentence, read_lexicon_words

_AFTER = {"never": "jamais", "no longer": "plus"}


@dataclass(frozen=True)
class Manner:
    """The tense of a verb, its negation, and the auxiliary of a question.

    Attributes:
        tense: the tense.
        negation: "", ``not``, ``n't``, ``never``, ``no longer``, ``no`` before the object, or
            ``asked`` where the auxiliary of the question has it: *don't you see?*
        auxiliary: the index of the English auxiliary that the question has said, or None.
        no: the French for *not*: *pas*, *pas encore*, *plus*.
    """

    tense: Tense = "present"
    negation: str = ""
    auxiliary: int | None = None
    no: str = "pas"

    @property
    def has_do(self) -> bool:
        """True if a form of *do* stands before the verb in a simple tense."""
        return self.negation in ("not", "n't") or self.auxiliary is not None

    @property
    def after(self) -> str:
        """The French after the finite verb: *pas*, *jamais*, *pas encore*."""
        return _AFTER.get(self.negation, self.no)


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


def standing_for(found: Entity) -> Clitic:
    """Make the object pronoun that stands for a thing."""
    return Clitic(
        "them" if found.is_plural else "it",
        "les" if found.is_plural else "la" if found.noun.gender == "f" else "le",
        found.noun.gender,
        found.is_plural,
        antecedent=found,
    )


_BE_PRESENT = {0: "am", 2: "is"}


def be_form(subject: Subject, *, is_past: bool) -> str:
    """Choose the English form of *be*."""
    if is_past:
        return "was" if subject.person in (0, 2) else "were"
    return _BE_PRESENT.get(subject.person, "are")


def draw_manner(pick: Pick, subject: Subject | None = None, *, is_stative: bool = False) -> Manner:
    """Draw a tense and a negation."""
    tense: Tense = pick.one(("past", "past", "past", "present", "present"))
    # *Is being hungry* is not said.
    if not is_stative and pick.chance(0.25):
        tense = pick.one(
            ("progressive", "progressive", "past progressive", "past progressive", "perfect")
        )
    negation = ""
    if pick.chance(0.2):
        negation = pick.of("not 9, n't 6, never")
        is_amnt = subject is not None and subject.person == 0
        # *I amn't* does not exist, and *was never eating* is hardly said.
        if tense.endswith("progressive") and (is_amnt or negation == "never"):
            negation = "not"
    return Manner(tense, negation)


def say_question_auxiliary(
    sentence: Sentence, subject_person: int, manner: Manner, *, is_be: bool
) -> Manner:
    """Say the auxiliary that begins a question, and *est-ce que* in French."""
    index = len(sentence.english)
    is_past = manner.tense.startswith("past")
    if is_be:
        like = Subject(subject_person, "m", None)
        sentence.english.append(be_form(like, is_past=is_past))
    else:
        word = "did" if is_past else "does" if subject_person == 2 else "do"
        sentence.english.append(word)
    # One English auxiliary asks with two French words.
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
        no = (manner.auxiliary,) if manner.negation == "asked" else ()
        return (manner.auxiliary,), no
    index = len(sentence.english)
    # One English word is both the auxiliary and the negation.
    if manner.negation == "n't" and word != "am":
        sentence.english.append(word + "n't")
        return (index,), (index,)
    sentence.english.append(word)
    if manner.negation:
        negation = manner.negation if manner.negation in _AFTER else "not"
        sentence.english += negation.split()
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
    receiver: Clitic | None = None,
    moved: Entity | None = None,
) -> None:
    """Say a verb: *did not eat it*, in French *ne l'a pas mangé*.

    Args:
        sentence: the sentence, whose last words are the subject.
        subject: the subject.
        english: the English forms.
        french: the French forms.
        manner: the tense and negation.
        particle: an English word after the verb.
        clitic: an object pronoun.
        receiver: a second one after *to*: *gave it to him*, in French *le lui a donné*.
        moved: the object, if it stands before the verb, as in *the pizza that he ate*.
    """
    tense = manner.tense
    auxiliary, negation, word = _begin(sentence, subject, english, manner, len(particle.split()))
    main: tuple[int, ...] = (len(sentence.english),)
    sentence.english.append(word)
    clitics = [] if clitic is None else [_say_clitic(sentence, clitic)]
    words = particle.split()
    # *Out* of *came out of* belongs to the verb, *of* to the preposition.
    own = words[:-1] if len(words) > 1 else words if particle == "on" else []
    main += tuple(len(sentence.english) + i for i in range(len(own)))
    sentence.english += words
    if receiver is not None:
        said = Word(receiver.french, (len(sentence.english), len(sentence.english) + 1))
        sentence.english += ["to", receiver.english]
        # *Me le*, but *le lui*.
        clitics.insert(len(clitics) if receiver.french in ("lui", "leur") else 0, said)
    if manner.auxiliary is not None:
        # The question's auxiliary is *est-ce que* already; it belongs to the French one too.
        auxiliary = (manner.auxiliary,) if tense != "present" else ()
    before = [*[Word("ne", negation) for _ in negation[:1]], *clitics]
    after = [Word(word, negation) for word in manner.after.split() if negation]
    agreeing: tuple[Gender, bool] = ("m", False)
    if french.with_etre:
        agreeing = (subject.gender, subject.is_plural)
    elif moved is not None:
        agreeing = (moved.noun.gender, moved.is_plural)
    # *Je l'ai vue*: the participle agrees with a direct object that stands before it.
    elif clitic is not None and clitic.is_direct:
        agreeing = ("f" if clitic.gender == "f" else "m", clitic.is_plural)
    _say_french(sentence, subject, french, tense, (main, auxiliary), (before, after), agreeing)


def _begin(
    sentence: Sentence, subject: Subject, english: English, manner: Manner, behind: int
) -> tuple[tuple[int, ...], tuple[int, ...], str]:
    """Say what stands before an English verb.

    Returns:
        The places of the auxiliary and of the negation, and the form of the verb.
    """
    tense = manner.tense
    if tense in ("perfect", "pluperfect"):
        has = "has" if subject.is_third else "have"
        form = has if tense == "perfect" else "had"
        return (*_say_auxiliary(sentence, form, manner), english.participle)
    if tense.endswith("progressive"):
        form = be_form(subject, is_past=tense.startswith("past"))
        return (*_say_auxiliary(sentence, form, manner), english.ing)
    if manner.has_do:
        do = "did" if tense == "past" else "does" if subject.is_third else "do"
        return (*_say_auxiliary(sentence, do, manner), english.base)
    negation = _say_never(sentence, manner, behind)
    word = english.past if tense == "past" else english.third if subject.is_third else english.base
    return (), negation, word


def _say_never(sentence: Sentence, manner: Manner, behind: int) -> tuple[int, ...]:
    """Say *never*, if it is the negation; return its place, or that of *no* after the verb."""
    if not manner.negation:
        return ()
    place = len(sentence.english)
    if manner.negation == "no":
        return (place + 1 + behind,)
    sentence.english += manner.negation.split()
    return (place,)


def _say_clitic(sentence: Sentence, clitic: Clitic) -> Word:
    """Say an object pronoun in English, and return its French word, which stands elsewhere."""
    if clitic.antecedent is not None:
        sentence.pronoun(clitic.english, clitic.french, clitic.antecedent)
        # The antecedent is noted by saying the pronoun; its French word goes before the verb.
        return sentence.french.pop()._replace(is_pronoun=True)
    sentence.english.append(clitic.english)
    return Word(clitic.french, (len(sentence.english) - 1,), is_pronoun=True)


def _say_french(
    sentence: Sentence,
    subject: Subject,
    french: French,
    tense: Tense,
    links: tuple[tuple[int, ...], tuple[int, ...]],
    around: tuple[list[Word], list[Word]],
    agreeing: tuple[Gender, bool],
) -> None:
    """Say the French words of a verb between *ne*, the object pronouns and *pas*."""
    main, auxiliary = links
    before, after = around
    sentence.french += before
    participle: list[Word] = []
    # The passé composé, but for verbs of a state.
    if tense == "pluperfect" or (tense in ("past", "perfect") and not french.lasts):
        helper = AT_BE if french.with_etre else HAVE
        person = subject.person
        form = helper.imperfect(person) if tense == "pluperfect" else helper.present[person]
        sentence.french.append(Word(form, auxiliary or main))
        gender, is_plural = agreeing
        participle = [Word(agree(french.participle, gender, is_plural=is_plural), main)]
    elif tense.startswith("past") or tense == "perfect":
        # *Had* lasts: *avait*, not *a eu*.
        sentence.french.append(Word(french.imperfect(subject.person), main + auxiliary))
    else:
        sentence.french.append(Word(french.present[subject.person], main + auxiliary))
    sentence.french += [*after, *participle]


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
        sentence.french.append(Word(manner.after, negation))
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
    template = read_lexicon_words(phrase.french)
    verb = next((_FRENCH_OF.get(word.text) for word in template if word.is_finite), None)
    # A predicate that is negative already takes no second negation.
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
        if manner.has_do:
            do = "did" if is_past else "does" if subject.is_third else "do"
            auxiliary, negation = _say_auxiliary(sentence, do, manner)
            word = english.base
        else:
            negation = _say_never(sentence, manner, 0)
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
            # The first English word may have become an auxiliary and a verb.
            at += main if link == 0 else (start + link,)
        if is_finite:
            form = verb.imperfect(subject.person) if is_past else verb.present[subject.person]
            if negation:
                sentence.french.append(Word("ne", negation))
            sentence.french.append(Word(form, at))
            if negation:
                sentence.french.append(Word(manner.after, negation))
            continue
        if agrees:
            text = agree(text, subject.gender, is_plural=subject.is_plural)
        sentence.french.append(Word(text, at))
    return True
