"""The routes of the service: Starlette's, with who may use them and what they take and give.

The OpenAPI description is written from the same declarations, by pydantic.
"""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from pellucid.errors import InputError
from pellucid.serve.answers.bodies import ProblemAnswer
from pellucid.serve.answers.faults import refuse_body, refuse_input
from pellucid.serve.answers.responses import PROBLEMS, Problem
from pellucid.serve.queue.large_bodies import check_keys, in_turn
from pellucid.wording.value_rules import show_value

# Refusals of every route.
DOOR = (400, 403, 405, 408, 413, 421, 431)

# Faults of a body up to which the first one is named.
MOST_FAULTS = 1000

# Refusals of a route that computes.
WORK = (429, 500, 503, 504)

# The key of a request's scope that holds the address under which its client sees the server.
BASE = "pellucid.base"

_MEDIA = re.compile(r"application/([\w.-]+\+)?json", re.IGNORECASE)
_JSON = "application/json"


class Need(enum.Enum):
    """The key that a route needs, if the server has keys."""

    NOTHING = "nothing"
    KEY = "a key in the Authorization header"
    KEY_IN_BODY = "a key in the header or in the body"


class Operation(Route):
    """A method of a path.

    Args:
        method: the method.
        path: the path.
        answer: the function that answers: of its body, if ``body`` is given, or of the request.
        need: who may use it.
        is_work: True if it computes, so that it is refused while the server is full.
        body: the class of its body in JSON; None if it reads the body itself.
        has_accept: True if the function that answers also takes the header Accept.
        gives: the type of its answer in JSON, or the description of another answer.
        also: the schemas of its answers in other media types.
        refusals: status codes that it may also answer with.
        tag: its group in the description; empty if it is not described.
        form: the description of a body that it reads itself.
        name: its name in the description, for the functions of generated clients; that of the
            function unless given.
    """

    def __init__(
        self,
        method: Literal["GET", "POST"],
        path: str,
        answer: Callable[..., Awaitable[Response]],
        *,
        need: Need,
        is_work: bool = False,
        body: type[BaseModel] | None = None,
        has_accept: bool = False,
        gives: Any = MappingProxyType({}),
        also: Mapping[str, Any] = MappingProxyType({}),
        refusals: Sequence[int] = (),
        tag: str = "",
        form: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(path, answer, methods=[method], name=name)
        self._answer = answer
        self.method = method
        self.need = need
        self.is_work = is_work
        self.body = body
        self._has_accept = has_accept
        self.gives = gives
        self.also = also
        self.refusals = refusals
        self.tag = tag
        self.form = form
        self.meaning = inspect.getdoc(answer) or ""
        # As generated clients name their functions: listModels.
        first, *others = self.name.split("_")
        self.id = first + "".join(map(str.capitalize, others))

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that the door has let in."""
        request = Request(scope, receive, send)
        if self.body is None:
            response = await self._answer(request)
        else:
            given: tuple[Any, ...] = (await _read_body(request, self.body),)
            if self._has_accept:
                given += (request.headers.get("accept", ""),)
            try:
                response = await self._answer(*given)
            except InputError as error:
                raise refuse_input(error, [*self.body.model_fields]) from None
        await response(scope, receive, send)


def describe(
    operations: Sequence[Operation],
    info: Mapping[str, str],
    *,
    has_keys: bool,
    keys_in_query: bool,
) -> dict[str, Any]:
    """Describe routes in the form of OpenAPI.

    Args:
        operations: the routes.
        info: title, version and description of the whole.
        has_keys: True if requests need a key.
        keys_in_query: True if a query may hold one.
    """
    shown = [one for one in operations if one.tag]
    inputs = [(one.id, "validation", TypeAdapter(one.body)) for one in shown if one.body]
    outputs = [
        (one.id, "serialization", TypeAdapter(one.gives))
        for one in shown
        if not isinstance(one.gives, Mapping)
    ]
    problem = ("problem", "serialization", TypeAdapter(ProblemAnswer))
    schemas, definitions = TypeAdapter.json_schemas(
        [*inputs, *outputs, problem],  # type: ignore[list-item]
        ref_template="#/components/schemas/{model}",
    )
    contents = {key: {_JSON: {"schema": schema}} for key, schema in schemas.items()}
    schemes: dict[str, Any] = {}
    if has_keys:
        schemes["bearer"] = {"type": "http", "scheme": "bearer"}
    if has_keys and keys_in_query:
        schemes["apiKey"] = {"type": "apiKey", "in": "query", "name": "api_key"}
    paths: dict[str, dict[str, Any]] = {}
    for one in shown:
        described = _describe_one(one, contents)
        described["security"] = _security(one.need, schemes)
        paths.setdefault(one.path, {})[one.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": info,
        "paths": paths,
        "components": {"schemas": definitions["$defs"], "securitySchemes": schemes},
    }


def _security(need: Need, schemes: Mapping[str, Any]) -> list[dict[str, list[str]]]:
    """Say what opens a route: one of the entries, and an empty one for a key in the body."""
    if need is Need.NOTHING or not schemes:
        return []
    if need is Need.KEY:
        return [{"bearer": []}]
    opened: list[dict[str, list[str]]] = [{name: []} for name in schemes]
    return [*opened, {}]


def _describe_one(one: Operation, contents: Mapping[Any, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "tags": [one.tag],
        "summary": one.meaning.partition("\n\n")[0].replace("\n", " ").removesuffix("."),
        "description": one.meaning,
        "operationId": one.id,
    }
    names = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in one.param_convertors
    ]
    if names:
        found["parameters"] = names
    if one.form is not None:
        found["requestBody"] = {"content": one.form, "required": True}
    elif one.body is not None:
        found["requestBody"] = {"content": contents[one.id, "validation"], "required": True}
    result: dict[str, Any] = {"description": "The answer."}
    if isinstance(one.gives, Mapping):
        result |= one.gives
    else:
        other = {media: {"schema": schema} for media, schema in one.also.items()}
        result["content"] = {**contents[one.id, "serialization"], **other}
    problem = contents["problem", "serialization"]
    refusals = {
        str(status): {"description": PROBLEMS[status][1], "content": problem}
        for status in sorted(one.refusals)
    }
    return {**found, "responses": {"200": result, **refusals}}


async def _read_body(request: Request, kind: Any) -> Any:
    """Read a body in JSON.

    Args:
        request: the request.
        kind: the class of the body, of `make_schemas`.

    Raises:
        Problem: 413, 415 or 422, it is something else.
    """
    content = await request.body()
    if not content:
        raise Problem(422, "The body is missing. Add it.", code="missing")
    media_type = request.headers.get("content-type", "").partition(";")[0].strip()
    if not _MEDIA.fullmatch(media_type):
        raise Problem(
            415,
            f"The body must be JSON, but is called {show_value(media_type or 'nothing')}. Send it "
            "with the header Content-Type: application/json.",
        )
    try:
        async with in_turn(len(content)):
            check_keys(content, kind.limits)
            return kind.model_validate_json(content)
    except ValidationError as error:
        # To list a hundred thousand unknown fields takes longer than to find them.
        if error.error_count() > MOST_FAULTS:
            raise Problem(
                422,
                f"The body has {error.error_count():,} faults. See /openapi.json for its fields.",
            ) from None
        raise refuse_body(error.errors(include_url=False), [*kind.model_fields]) from None


# Each makes a route of LibreTranslate: for facts, for holders of a key, and for work.
libre_fact = partial(Operation, "GET", need=Need.NOTHING, refusals=DOOR, tag="LibreTranslate")
libre_keyed = partial(Operation, "POST", need=Need.KEY_IN_BODY, refusals=DOOR, tag="LibreTranslate")
libre_work = partial(libre_keyed, is_work=True, refusals=(*DOOR, *WORK))
