"""The page at ``/``: models that run in it, and models that it asks this server for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from pellucid.corpora.rival_forms import rival_ids
from pellucid.serve.compat.language_pairs import display_name, to_code
from pellucid.serve.models import Models, ServedModel
from pellucid.serve.operations import Need, Operation
from pellucid.serve.parts import Parts
from pellucid.text.language_tokens import near_names

if TYPE_CHECKING:
    from pellucid.bundle import Bundle

# Returns the lessons for the page of a model, or none and the reason in a sentence.
Lessons = Callable[["Bundle"], tuple[list[dict[str, Any]], str]]


def page_operations(parts: Parts, lessons: Lessons) -> list[Operation]:
    """Make ``/``, whose page is made when it is asked for the first time.

    Args:
        parts: of the server.
        lessons: the lessons of a model that runs in the page.
    """
    made: list[bytes] = []
    making = asyncio.Lock()
    has_keys = parts.settings.keys is not None

    async def page(_: Request) -> Response:
        """Show the page."""
        # Its lessons need PyTorch, which many servers never load.
        async with making:  # Once, however many ask at first.
            if not made:
                make = partial(make_service_page, parts.models, has_keys=has_keys, lessons=lessons)
                made.append(await parts.scheduler.call(make))
        headers = {
            "Cache-Control": "no-store",
            "Content-Security-Policy": "frame-ancestors 'none'",
            "X-Frame-Options": "DENY",
        }
        return Response(made[0], headers=headers, media_type="text/html; charset=utf-8")

    return [Operation("GET", "/", page, need=Need.NOTHING)]


def make_service_page(models: Models, *, has_keys: bool, lessons: Lessons) -> bytes:
    """Make the page of a server with all its models.

    Small models of whole words run in the page; it asks the server for the others. If the server
    has keys, it asks for all, because the page is open and would hand out the weights.

    Args:
        models: the models of the server.
        has_keys: True if requests need a key.
        lessons: the lessons of a model that runs in the page.
    """
    from pellucid.inside.show.model_page import carry_duel, carry_model
    from pellucid.page.filled_page import make_page

    carried = []
    services = []
    walks: list[dict[str, Any]] = []
    without = "There are no lessons in this page: they need a model that the page runs itself."
    for model in models:
        bundle = model.translator.bundle
        if has_keys or not _can_carry(model):
            services.append(_describe(model))
            continue
        carried.append(carry_model(bundle, model.name))
        if not walks:
            walks, without = lessons(bundle)
    page = make_page(
        "Pellucid",
        models=carried,
        services=services,
        lessons=walks,
        duel=carry_duel() if walks else None,
        without_lessons=without,
        without_script="<p>This page needs JavaScript. The API does not: see /openapi.json.</p>",
    )
    return page.encode()


def _can_carry(model: ServedModel) -> bool:
    from pellucid.inside.show.model_page import cannot_carry
    from pellucid.page.filled_page import MODEL_LIMIT

    # The page computes in float32, and must write what the server's other answers write.
    if model.translator.computes != "float32":
        return False
    bundle = model.translator.bundle
    # First by size only: the other checks make a copy in double precision.
    size = 4 * sum(weight.numel() for weight in bundle.model.parameters())
    return size <= MODEL_LIMIT and not cannot_carry(bundle)


def _languages(model: ServedModel) -> dict[str, Any]:
    """Describe the languages of a model: its pair, or all of them and the pair to begin with."""
    if not model.is_for_several:
        return {"languages": {"source": model.source, "target": model.target}}
    has_source = model.translator.tokenizer.reads_source_language
    codes = model.targets
    source = [*near_names(codes, "en"), *codes][0] if has_source else model.source
    others = [code for code in codes if code != source]
    target = [*near_names(others, "fr"), *others, source][0]
    names = {code: display_name(to_code(code)) for code in codes}
    return {
        "languages": {"source": source, "target": target},
        "choices": {"names": names, "has_source": has_source},
    }


def _describe(model: ServedModel) -> dict[str, Any]:
    from pellucid.bundle import shipped_name

    bundle = model.translator.bundle
    config = bundle.config.model
    layers = f"{config.num_encoder_layers} + {config.num_decoder_layers} layers"
    return {
        "name": model.name,
        "command": shipped_name(bundle.folder),
        **_languages(model),
        "model_hash": bundle.model_hash,
        "taught_head": bundle.taught_head,
        "about": f"{layers}, {config.num_heads} heads, computed by this server",
        "unit": "words" if bundle.config.tokenizer.kind == "words" else "pieces",
        "vocabulary_size": config.target_vocabulary_size,
        "rivals": rival_ids(tuple(bundle.tokenizer.vocabulary("target"))),
    }
