"""Texts translated as LibreTranslate's clients ask for them, with a glossary if they give one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pellucid.serve.answers.given_glossaries import fit_to_model
from pellucid.serve.answers.responses import Problem
from pellucid.serve.compat.language_pairs import LanguagePair
from pellucid.serve.compat.uploads import Format
from pellucid.serve.documents import translate_documents
from pellucid.serve.parts import Parts
from pellucid.serve.queue.tasks import Text, Translate
from pellucid.translate.constraints import constraints_of

if TYPE_CHECKING:
    from pellucid.decode.constraints.glossary import Glossary
    from pellucid.decode.constraints.terms import UsedTerm
    from pellucid.translate.results import Translation


class TranslatedText(NamedTuple):
    """The translation of a text, other translations of it, and its terms of a glossary."""

    text: str
    others: Sequence[str] = ()
    terms: Sequence[UsedTerm] = ()


@dataclass(frozen=True)
class Asked:
    """Choices of a request for all of its texts.

    Attributes:
        form: of the texts; ``html`` gets no alternatives, since these have no tags.
        count: the most alternatives of each text.
        glossary: the terms that translations should have.
    """

    form: Format
    count: int = 0
    glossary: Glossary | None = None


async def translate_in(
    parts: Parts, direction: LanguagePair, texts: Sequence[str], asked: Asked
) -> list[TranslatedText]:
    """Translate texts, and give other translations of each.

    The first translations are those without alternatives, which a beam finds in addition.

    Args:
        parts: of the server.
        direction: the model and its target.
        texts: the texts.
        asked: the form of the texts, the alternatives and the terms.

    Raises:
        Problem: 400, a text cannot be translated, or the glossary has other languages.
    """
    glossary = await fit_given(parts, asked.glossary, direction)
    if asked.form == "html":
        task = task_of(direction, {}, align=("auto", None, None), is_plain=glossary is None)
        documents = await translate_documents(parts, task, texts, glossary=glossary)
        return [TranslatedText(one.text, terms=one.terms) for one in documents]
    task = task_of(direction, {}, is_plain=glossary is None)
    given = with_terms(texts, glossary)
    first = await parts.translate(task, given)
    if not asked.count:
        return [TranslatedText(_text_of(one), terms=one.terms) for one in first]
    # One more than asked for, since the first translation may be among them.
    width = asked.count + 1
    wide = task_of(direction, {"beam": width, "n_best": width}, is_plain=glossary is None)
    found = []
    for best, other in zip(first, await parts.translate(wide, given), strict=True):
        text = _text_of(best)
        distinct = dict.fromkeys(one.text for one in other.hypotheses)
        distinct.pop(text, None)
        found.append(TranslatedText(text, list(distinct)[: asked.count], best.terms))
    return found


async def fit_given(
    parts: Parts, glossary: Glossary | None, direction: LanguagePair
) -> Glossary | None:
    """Fit a glossary to a model, in turns with what is computed.

    Raises:
        Problem: 400, it has no terms of the model's languages.
    """
    if glossary is None:
        return None
    return await parts.aside(partial(fit_to_model, glossary, direction.model, direction.to))


def with_terms(texts: Sequence[str], glossary: Glossary | None) -> list[Text]:
    """Make the tasks of texts, each with its constraints."""
    each = (constraints_of(one, "", (), (), (), glossary) for one in texts)
    return [*map(Text, texts, each)]


def task_of(
    direction: LanguagePair,
    options: dict[str, Any],
    align: tuple[Any, ...] | None = None,
    *,
    is_plain: bool = True,
) -> Translate:
    """Say how texts are translated.

    Args:
        direction: the model and its target.
        options: of decoding.
        align: as for `Translate`.
        is_plain: False with a glossary.
    """
    chosen = direction.model.decide(options, is_plain=is_plain)
    # Clients show a word that the model does not know rather than <unk>.
    treatment: tuple[tuple[str, Any], ...] = (("unknown", "source-word"),)
    if direction.to is not None:
        treatment += (("to", direction.to),)
    return Translate(direction.model, chosen, treatment, align)


def _text_of(translation: Translation) -> str:
    if translation.error is not None:
        raise Problem(400, f"Cannot translate text: {translation.error}")
    return translation.text
