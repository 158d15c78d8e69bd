"""Translation for LibreTranslate's clients: between any pair of languages, plain or with markup."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from pellucid.serve.compat.languages import Route
from pellucid.serve.markup.translating import translate_markup
from pellucid.serve.parts import Parts
from pellucid.serve.problems import Problem
from pellucid.serve.tasks import Text, Translate

if TYPE_CHECKING:
    from pellucid.translate.results import Translation

Format = Literal["text", "html"]


async def translate_all(
    parts: Parts, route: Route | None, texts: Sequence[str], form: Format
) -> list[str]:
    """Translate texts.

    Args:
        parts: of the server.
        route: the model and its target; None leaves the texts as they are.
        texts: the texts.
        form: ``html`` keeps their tags.

    Raises:
        Problem: 400, a text cannot be translated.
    """
    if route is None:
        return list(texts)
    if form == "html":
        task = _task(route, {}, align=("auto", None, None))
        return await translate_markup(parts, task, texts)
    return [_text_of(one) for one in await _compute(parts, _task(route, {}), texts)]


async def translate_with_others(
    parts: Parts, route: Route | None, texts: Sequence[str], form: Format, count: int
) -> tuple[list[str], list[list[str]]]:
    """Translate texts, and give other translations of each.

    The first translations are those without alternatives, which a beam finds in addition.

    Args:
        parts: of the server.
        route: as for `translate_all`.
        texts: the texts.
        form: alternatives of ``html`` have no tags, so there are none.
        count: the most alternatives of each text.
    """
    first = await translate_all(parts, route, texts, form)
    if route is None or form == "html":
        return first, [[] for _ in texts]
    wide = {"beam": count + 1, "n_best": count + 1}
    others = await _compute(parts, _task(route, wide), texts)
    found = []
    for best, other in zip(first, others, strict=True):
        distinct = dict.fromkeys(one.text for one in other.hypotheses)
        distinct.pop(best, None)
        found.append(list(distinct)[:count])
    return first, found


def _task(route: Route, options: dict[str, Any], align: tuple[Any, ...] | None = None) -> Translate:
    chosen = route.model.decide(options, is_plain=True)
    treatment = (("to", route.to),) if route.to is not None else ()
    return Translate(route.model, chosen, treatment, align)


async def _compute(parts: Parts, task: Translate, texts: Sequence[str]) -> list[Translation]:
    from pellucid.decode.constraints.request import Constraints

    found = await parts.scheduler.compute(task, [Text(text, Constraints()) for text in texts])
    parts.metrics.texts.labels(task.model.name, "translate").inc(len(found))
    return found


def _text_of(translation: Translation) -> str:
    if translation.error is not None:
        raise Problem(400, f"Cannot translate text: {translation.error}")
    return translation.text
