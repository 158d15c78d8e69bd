"""The sentences at the end of a translation: what was unusual about its lines."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pellucid.decode.constraints.terms import CAPITALS
from pellucid.terminal.text import count_of, percent

if TYPE_CHECKING:
    from pellucid.decode.constraints.terms import UsedTerm
    from pellucid.translate.results import Notes, Translation
    from pellucid.translate.translator import Translator

# The end of a sentence about lines that a recurrent model without attention may not hold.
EXCEEDS_VECTOR = (
    "more tokens than any source that this model learned to put into its one vector of fixed "
    "length: words may be lost. A model with attention reads longer lines."
)

_MOST_SHOWN = 10
_MOST_CHARACTERS = 5
_MOST_WORDS = 10
_MOST_TERMS = 5
# The share of tokens outside the vocabulary from which translations can hardly be right.
_LOUD = 0.05

_FLAGS = {
    "repeats": "repeating themselves",
    "long": "far longer than any translation that the model learned from",
    "unfinished": "without an end",
    "stuck": "attending to one word all the time",
    "empty": "empty",
    "invented": "words for a line without letters",
    "unsure": "the model is not confident",
    "reordered": "placeholders such as %s in another order, in which programs fill them in",
    "partial": "perhaps without some words of the line",
}


# Verbs for one line and for several, and the rest of a sentence about them.
_SENTENCES = {
    "parts": (
        ("was", "were"),
        "split into sentences, because the model learned from shorter lines; --split none "
        "translates lines whole.",
    ),
    "is_whole": (
        ("has", "have"),
        "more sentences than the lines that the model learned from, but a prefix, required "
        "phrases, alternatives or a length keep them whole: sentences may be missing. Split them "
        "yourself.",
    ),
    "is_long": (
        ("is", "are"),
        "far longer than the lines that the model learned from, and cannot be split at sentence "
        "ends: read the {ends}.",
    ),
    "vector": (("has", "have"), EXCEEDS_VECTOR),
    "retried": (("was", "were"), "better in a second search (--retry)."),
}


class CountedLines:
    """Counts lines, and names the first ten.

    Attributes:
        count: how many there are.
    """

    def __init__(self) -> None:
        self.count = 0
        self._first: list[int] = []
        self._last = -1

    def add(self, number: int) -> bool:
        """Count a line, numbered from 0; False if it is counted already."""
        if number == self._last:  # A line of a document may hold several texts.
            return False
        self._last = number
        self.count += 1
        if self.count <= _MOST_SHOWN:
            self._first.append(number + 1)
        return True

    def __str__(self) -> str:
        """List the first ones: ``1, 4, 9, …``."""
        numbers = ", ".join(map(str, self._first))
        return f"{numbers}, …" if self.count > _MOST_SHOWN else numbers

    def have(self, one: str = "has", many: str = "have") -> str:
        """Begin a sentence: ``3 lines (1, 4, 9) have``."""
        if self.count == 1:
            return f"Line {self} {one}"
        return f"{self.count:,} lines ({self}) {many}"


class TermCounts:
    """Counts the terms of a glossary in the lines, and in their translations.

    Args:
        noun: what is counted: a line, or a text of a document.
        see: the option or file that tells why a term should be checked.
    """

    def __init__(self, noun: str = "line", see: str = "--json says why") -> None:
        self._noun = noun
        self._see = see
        self._num_lines = 0
        self._num_with_terms = 0
        self._num_terms = 0
        self._lines: defaultdict[str, CountedLines] = defaultdict(CountedLines)
        self._forms: Counter[str] = Counter()
        self._missing: Counter[str] = Counter()

    def add(self, number: int, terms: Sequence[UsedTerm]) -> None:
        """Count one line, numbered from 0, by what became of its terms."""
        self._num_lines += 1
        self._num_terms += len(terms)
        self._num_with_terms += bool(terms)
        for one in terms:
            if one.outcome == "miss":
                self._lines["lacking"].add(number)
                self._missing[f"{one.name} ({one.reason})"] += 1
                continue
            if one.outcome == "form":
                self._forms[_name_form(one)] += 1
            if one.reason:
                self._lines["capitals" if one.reason == CAPITALS else "unlikely"].add(number)

    def facts(self) -> Iterator[str]:
        """Yield how many terms there were, and in which forms; nothing without a glossary."""
        if not self._num_lines:
            return
        terms = count_of(self._num_terms, "term was", "terms were")
        lines = count_of(self._num_lines, self._noun)
        yield f"Glossary: {terms} found in {self._num_with_terms:,} of {lines}."
        if self._forms:
            yield f"Glossary terms in another form: {_list_counted(self._forms)}."

    def sentences(self) -> Iterator[str]:
        """Yield what may be wrong with the terms."""
        if (lacking := self._lines["lacking"]).count:
            lines = count_of(lacking.count, "line lacks", "lines lack")
            listed = _list_counted(self._missing)
            yield f"Glossary term not found in the translation: {lines} one ({lacking}): {listed}."
        for kind, rest in _DOUBTS.items():
            if (doubtful := self._lines[kind]).count:
                is_one = doubtful.count == 1
                has = doubtful.have("has a glossary term", "have glossary terms")
                yield f"{has} {rest[not is_one]}. Check {_pronoun(doubtful.count)} ({self._see})."


_DOUBTS = {
    "capitals": ("with other capitals", "with other capitals"),
    "unlikely": (
        "that makes the translation far less likely",
        "that make their translations far less likely",
    ),
}
"""What is doubtful about the terms in one line, and in several."""


def _pronoun(count: int) -> str:
    return "it" if count == 1 else "them"


def _name_form(term: UsedTerm) -> str:
    """Say in which form a term stands: ``old → vieille (allowed form of ancien)``."""
    is_same = term.written.casefold() == term.target.casefold()
    said = [] if is_same else [f"allowed form of {term.target}"]
    said += [CAPITALS] if term.reason == CAPITALS else []
    return f"{term.source} → {term.written}" + (f" ({', '.join(said)})" if said else "")


def _list_counted(counts: Counter[str]) -> str:
    """List the most frequent ones: ``a, twice; b; and 2 more``."""
    times = {1: "", 2: ", twice"}
    shown = [
        f"{name}{times.get(count, f', {count:,} times')}"
        for name, count in counts.most_common(_MOST_TERMS)
    ]
    if len(counts) > _MOST_TERMS:
        shown.append(f"and {len(counts) - _MOST_TERMS:,} more")
    return "; ".join(shown)


class Notices:
    """Counts what is unusual about lines and their translations.

    Args:
        noun: as for `TermCounts`.
        see: the same.

    Attributes:
        by_model: of a chain, what is unusual to each model, by its name.
    """

    def __init__(self, noun: str = "line", see: str = "--json says why") -> None:
        self.by_model: dict[str, Notices] = {}
        from pellucid.text.language_tokens import CodeFaults

        self._terms = TermCounts(noun, see)
        self._codes = CodeFaults()
        self._lines: defaultdict[str, CountedLines] = defaultdict(CountedLines)
        self._characters: dict[str, Counter[str]] = {"changed": Counter(), "unknown": Counter()}
        self._outside = 0.0
        self._words: dict[str, None] = {}
        self._unlinked: dict[str, None] = {}

    def add(self, number: int, notes: Notes) -> None:
        """Count one line.

        Args:
            number: its number, from 0.
            notes: what is unusual about it.
        """
        self._characters["changed"].update(notes.replaced)
        self._characters["changed"].update(notes.dropped)
        self._characters["unknown"].update(notes.unknown)
        words = words_to_name(notes)
        self._words.update(dict.fromkeys(words))
        self._unlinked.update(dict.fromkeys(notes.unlinked_words))
        self._codes.add(number, notes.language_code)
        if notes.unknown_tokens and self._lines["outside"].add(number):
            self._outside += notes.unknown_tokens
        found: dict[str, object] = {
            "changed": notes.replaced or notes.dropped,
            "unknown": notes.unknown,
            "words": notes.unknown_words,
            "named": words,
            "parts": notes.parts > 1,
            "is_whole": notes.is_whole,
            "is_long": notes.is_long,
            "vector": notes.exceeds_vector,
            "retried": notes.retried,
            "flagged": notes.flags,
            **dict.fromkeys(notes.flags, True),
        }
        for name, is_found in found.items():
            if is_found:
                self._lines[name].add(number)

    def add_all(self, number: int, translation: Translation) -> None:
        """Count one line with its translation, for each model that it went through."""
        for step in translation.through:
            self.by_model.setdefault(step.model, Notices()).add(number, step.notes)
        if not translation.through:
            self.add(number, translation.notes)

    def add_terms(self, number: int, terms: Sequence[UsedTerm]) -> None:
        """Count the terms of a glossary in one line, numbered from 0, and in its translation."""
        self._terms.add(number, terms)

    def facts(self) -> Iterator[str]:
        """Yield sentences about nothing that is wrong: what became of a glossary."""
        yield from self._terms.facts()

    def sentences(self, num_lines: int) -> Iterator[str]:
        """Yield one sentence for each kind of note.

        Args:
            num_lines: the number of lines that were translated.
        """
        yield from self._about_characters()
        outside = self._lines["outside"]
        # Words outside a vocabulary of whole words are named at the end, by `about_words`.
        if outside.count > self._lines["words"].count:
            sentence = (
                f"{outside.have()} text outside the model's vocabulary, which it reads as unknown "
                f"tokens or single bytes: {percent(self._outside / outside.count)} of "
                f"{'its' if outside.count == 1 else 'their'} tokens."
            )
            if self._outside / max(1, num_lines) >= _LOUD:
                sentence += (
                    " Translations of such lines can hardly be right: train on text like it."
                )
            yield sentence
        is_one = self._lines["is_long"].count == 1
        ends = "end of its translation" if is_one else "ends of their translations"
        for name, (verbs, rest) in _SENTENCES.items():
            if self._lines[name].count:
                yield f"{self._lines[name].have(*verbs)} {rest.format(ends=ends)}"
        yield from self._about_flags()
        yield from self._terms.sentences()

    def about_codes(self, translator: Translator) -> Iterator[str]:
        """Yield a sentence about language codes, if a line has none of the model's."""
        if not self._codes.is_empty:
            yield self._codes.sentence(translator.tokenizer, "--to LANGUAGE")

    def about_words(self, translator: Translator) -> Iterator[str]:
        """Yield a sentence that names the words outside a vocabulary of whole words."""
        if self._words:
            yield _about_words(self._lines["named"].have(), list(self._words), translator)

    def _about_characters(self) -> Iterator[str]:
        if self._lines["changed"].count:
            yield (
                f"{self._lines['changed'].have()} spaces, marks or invisible characters that the "
                f"model has not learned ({self._list('changed')}). They were replaced by known "
                "ones or left out; --no-clean keeps them."
            )
        if self._lines["unknown"].count:
            yield (
                f"{self._lines['unknown'].have()} characters that the model has never seen: "
                f"{self._list('unknown')}. Check how they are translated."
            )

    def _about_flags(self) -> Iterator[str]:
        num_flagged = self._lines["flagged"].count
        if not num_flagged:
            return
        kinds = []
        for name, words in _FLAGS.items():
            found = self._lines[name]
            if found.count:
                lines = "line" if found.count == 1 else "lines"
                # The list says how many there are, or the sentence has said it.
                is_said = found.count in (num_flagged, *range(_MOST_SHOWN + 1))
                number = "" if is_said else f": {found.count:,}"
                kinds.append(f"{words}{number} ({lines} {found})")
        if self._unlinked:  # "partial" is the last kind.
            names = ", ".join(f'"{word}"' for word in [*self._unlinked][:_MOST_WORDS])
            kinds[-1] += f", which nothing is linked to: {names}"
        can_help = num_flagged > self._lines["retried"].count and any(
            self._lines[name].count for name in ("repeats", "long", "unfinished", "stuck", "empty")
        )
        advice = ", or let --retry search again" if can_help else ""
        looks = count_of(num_flagged, "translation looks", "translations look")
        yield f"{looks} wrong. Read {_pronoun(num_flagged)}{advice}: {'; '.join(kinds)}."

    def _list(self, kind: str) -> str:
        from pellucid.text.cleaning import character_name

        found = self._characters[kind].most_common()
        shown = [character_name(character) for character, _ in found[:_MOST_CHARACTERS]]
        if kind == "unknown":
            # Between quotes, since a colon or a comma would look like one of the sentence.
            shown = [re.sub(r"\A(?!U\+)(\S+) (U\+\w+)\Z", r"“\1” (\2)", one) for one in shown]
        if len(found) > _MOST_CHARACTERS:
            shown.append(f"and {len(found) - _MOST_CHARACTERS} more")
        return ", ".join(shown)


def words_to_name(notes: Notes) -> tuple[str, ...]:
    """List the words that a model does not know, but not those named as unknown characters."""
    return tuple(one for one in notes.unknown_words if one not in notes.unknown)


def say_words(number: int, words: Sequence[str], translator: Translator) -> str:
    """Word the note on the unknown words of one line, numbered from 0."""
    return _about_words(f"Line {number + 1} has", words, translator)


def _about_words(begin: str, words: Sequence[str], translator: Translator) -> str:
    from pellucid.text.outside import say_unknown_words

    said = say_unknown_words(words, translator.tokenizer, most=_MOST_WORDS)
    return f"{begin} words that the model does not know and reads as <unk>: {said}."
