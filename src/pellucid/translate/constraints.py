"""The constraints of a text, from phrases and a glossary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pellucid.arguments import check_kind, check_phrases, check_text, refuse
from pellucid.decode.constraints.request import Constraints, LineConstraints, glossary_in
from pellucid.decode.constraints.terms import UsedTerm, check_terms
from pellucid.errors import not_together
from pellucid.languages.codes import find_language
from pellucid.text.word_forms import Match

if TYPE_CHECKING:
    from pellucid.decode.constraints.glossary import Glossary
    from pellucid.text.tokenizers.tokenizer import Tokenizer
    from pellucid.translate.results import ModelLanguages

GivenGlossary = str | Path | Sequence[str | Path] | Mapping[str, str]
"""A file of terms or several, or the terms themselves."""

UNCONSTRAINED = Constraints()


def as_list(constraints: LineConstraints) -> Constraints | Sequence[LineConstraints]:
    """Return the constraints of one text as those of a list of one."""
    return constraints if constraints is UNCONSTRAINED else [constraints]


@dataclass(frozen=True)
class Phrases:
    """What translations may and must contain, as a call or a command names it.

    Attributes:
        prefix: the beginning of every translation.
        forbid: phrases that no translation may contain.
        require: phrases that every translation must contain.
        glossary: terms of the source, with those that the translation must then contain.
        constraints: what a program gives in the place of all these; None if it does not.
    """

    prefix: str
    forbid: tuple[str, ...]
    require: tuple[str, ...]
    glossary: Glossary | None
    constraints: Constraints | Sequence[LineConstraints] | None

    @classmethod
    def read(
        cls,
        prefix: str,
        forbid: str | Sequence[str],
        require: str | Sequence[str],
        glossary: GivenGlossary | None,
        constraints: Constraints | Sequence[LineConstraints],
        match: Match = "auto",
    ) -> Phrases:
        """Check the arguments of a call.

        Raises:
            InputError: one has the wrong type, a phrase is empty, or there are phrases and
                constraints.
            DataError: the glossary cannot be read.
        """
        check_kind("glossary_match", match, Match)
        if match != "auto" and glossary is None:
            refuse("glossary_match", "given with a glossary", match, "Give one, or leave it out.")
        given = {"prefix": prefix, "forbid": forbid, "require": require, "glossary": glossary}
        if constraints is not UNCONSTRAINED:
            for name, value in given.items():
                if value:
                    raise not_together(name, "constraints")
            _check_constraints(constraints)
        return cls(
            check_text("prefix", prefix),
            check_phrases("forbid", forbid),
            check_phrases("require", require),
            None if glossary is None else _read_glossary(glossary, match),
            None if constraints is UNCONSTRAINED else constraints,
        )

    def for_texts(self, texts: Sequence[str]) -> Constraints | Sequence[LineConstraints]:
        """Make the constraints of some texts."""
        if self.constraints is not None:
            return self.constraints
        # Nearly always: one object for all.
        if not any("\n" in text for text in texts):
            return Constraints(self.prefix, self.forbid, self.require, self.glossary)
        return [
            constraints_of(text, self.prefix, self.forbid, self.require, (), self.glossary)
            for text in texts
        ]


def _check_constraints(given: object) -> None:
    """Refuse what are neither constraints nor lists of them."""
    if isinstance(given, Sequence) and not isinstance(given, str):
        for one in given:
            _check_constraints(one)
    elif not isinstance(given, Constraints):
        refuse("constraints", "Constraints, or a list of them", given)


def _read_glossary(given: GivenGlossary, match: Match) -> Glossary:
    from pellucid.decode.constraints.glossary import Glossary, forms_of
    from pellucid.decode.constraints.glossary_files import load_glossary

    if isinstance(given, Mapping):
        for term, translated in given.items():
            for one in (term, translated):
                if not check_text("A term of glossary", one).strip():
                    refuse("A term of glossary", "words", one, "Leave it out.")
            if not (forms := forms_of(translated)) or not all(forms):
                refuse("A term of glossary", "forms with | between them", translated)
        return Glossary(given, match=match)
    paths = [given] if isinstance(given, str | Path) else given
    if not isinstance(paths, Sequence) or not all(isinstance(one, str | Path) for one in paths):
        refuse("glossary", "a file, several files, or a dict of terms", given)
    return load_glossary(*paths, match=match)


def fit_glossary(
    glossary: Glossary, tokenizer: Tokenizer, languages: ModelLanguages, to: str | None = None
) -> Glossary:
    """Fit a glossary to a model.

    Args:
        glossary: the terms.
        tokenizer: of the model, which cannot write every letter.
        languages: of the model, whose forms of words are found.
        to: the languages of a call, as `direction` joins them.

    Raises:
        DataError: the glossary is a term base without these languages.
    """
    source, _, target = (to or "").rpartition(":")
    # A person may write French for fr.
    source = find_language(source) or source
    target = find_language(target) or target

    def can_write(term: str) -> bool:
        return tokenizer.config.unk_id not in tokenizer.encode_target(term)

    known = (source or languages.source, target or languages.target)
    return glossary.for_languages(known, can_write)


def constraints_of(
    text: str,
    prefix: str,
    forbidden: tuple[str, ...],
    required: Sequence[str],
    own: Sequence[str] = (),
    glossary: Glossary | None = None,
) -> LineConstraints:
    """Build the constraints of one text.

    If several places require the same phrase, the one that requires it most often counts.

    Args:
        text: of one line or several.
        prefix: the beginning of its translation.
        forbidden: phrases that no translation may contain.
        required: phrases that each translation must contain.
        own: phrases that this text's translation must contain.
        glossary: terms of the source, with those that the translation should then contain.
    """
    # `|` takes the larger count of each phrase. A sum would require it once for each place.
    wanted = tuple((Counter(required) | Counter(own)).elements())
    lines = text.split("\n")
    # Required phrases need a text of one line: with more, `Preparer` refuses the text.
    if len(lines) == 1 or wanted:
        return Constraints(prefix, forbidden, wanted, glossary)
    # A blank line is not translated, so the prefix goes to the first line with text.
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    return [
        Constraints(prefix if number == first else "", forbidden, (), glossary)
        for number in range(len(lines))
    ]


def require_terms(constraints: LineConstraints, text: str) -> LineConstraints:
    """Require a glossary's preferred forms, for models that read another text or search once.

    Args:
        constraints: of the text.
        text: that has the terms, of one line or several.
    """
    if not isinstance(constraints, Constraints):
        lines = text.split("\n")
        found = map(require_terms, constraints, lines)
        return [one for one in found if isinstance(one, Constraints)]
    if constraints.glossary is None:
        return constraints
    glossary = constraints.glossary
    each = (one.candidates() for one in glossary.terms_for(text))
    first = (next(filter(glossary.can_write, forms), "") for forms in each)
    terms = Counter(filter(None, first))
    wanted = Counter(constraints.required) | terms
    return replace(constraints, required=tuple(wanted.elements()), glossary=None)


def used_terms(constraints: LineConstraints, text: str, translation: str) -> tuple[UsedTerm, ...]:
    """Look for a glossary's terms in a translation that was made to have them.

    Args:
        constraints: of the text, before `require_terms`.
        text: that has the terms.
        translation: of the text.
    """
    glossary = glossary_in(constraints)
    return () if glossary is None else check_terms(glossary.terms_for(text), translation)
