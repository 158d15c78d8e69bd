"""The routes of the service: Starlette's, with who may use them and what they take and give.

The OpenAPI description is written from the same declarations, by pydantic.
"""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from pellucid.errors import shorten
from pellucid.serve.answers.bodies import ProblemAnswer
from pellucid.serve.answers.responses import PROBLEMS, Problem
from pellucid.serve.queue.large_bodies import in_turn

# Refusals of every route.
DOOR = (400, 403, 408, 413, 421, 431)

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
        gives: the type of its answer in JSON, or the description of another answer.
        refusals: status codes that it may also answer with.
        tag: its group in the description; empty if it is not described.
        form: the description of a body that it reads itself.
    """

    def __init__(
        self,
        method: Literal["GET", "POST"],
        path: str,
        answer: Callable[[Any], Awaitable[Response]],
        *,
        need: Need,
        is_work: bool = False,
        body: type[BaseModel] | None = None,
        gives: Any = MappingProxyType({}),
        refusals: Sequence[int] = (),
        tag: str = "",
        form: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(path, answer, methods=[method])
        self._answer = answer
        self.method = method
        self.need = need
        self.is_work = is_work
        self.body = body
        self.gives = gives
        self.refusals = refusals
        self.tag = tag
        self.form = form
        self.meaning = inspect.getdoc(answer) or ""
        self.id = re.sub(r"\W", "_", f"{answer.__name__}{path}") + f"_{method.lower()}"

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that the door has let in."""
        request = Request(scope, receive, send)
        given = request if self.body is None else await _read_body(request, self.body)
        response = await self._answer(given)
        await response(scope, receive, send)


def describe(
    operations: Sequence[Operation], info: Mapping[str, str], *, has_keys: bool
) -> dict[str, Any]:
    """Describe routes in the form of OpenAPI.

    Args:
        operations: the routes.
        info: title, version and description of the whole.
        has_keys: True if requests need a key.
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
    paths: dict[str, dict[str, Any]] = {}
    for one in shown:
        paths.setdefault(one.path, {})[one.method.lower()] = _describe_one(one, contents)
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": info,
        "paths": paths,
        "components": {"schemas": definitions["$defs"]},
    }
    if has_keys:
        document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"key": []}]
    return document


def _describe_one(one: Operation, contents: Mapping[Any, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "tags": [one.tag],
        "summary": one.name.replace("_", " ").title(),
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
    result = {"description": "Successful Response"}
    if isinstance(one.gives, Mapping):
        result |= one.gives
    else:
        result["content"] = contents[one.id, "serialization"]
    problem = contents["problem", "serialization"]
    refusals = {
        str(status): {"description": PROBLEMS[status], "content": problem}
        for status in sorted(one.refusals)
    }
    return {**found, "responses": {"200": result, **refusals}}


async def _read_body(request: Request, kind: type[BaseModel]) -> BaseModel:
    """Read a body in JSON.

    Args:
        request: the request.
        kind: the class of the body.

    Raises:
        Problem: 422, it is something else.
    """
    content = await request.body()
    if not content:
        raise Problem(422, "The body is missing. Add it.")
    media_type = request.headers.get("content-type", "").partition(";")[0].strip()
    if not _MEDIA.fullmatch(media_type):
        raise Problem(
            422,
            "The body must be JSON, but is called something else. Send it with the header "
            "Content-Type: application/json.",
        )
    try:
        async with in_turn(len(content)):
            return kind.model_validate_json(content)
    except ValidationError as error:
        # To list a hundred thousand unknown fields takes longer than to find them.
        if error.error_count() > MOST_FAULTS:
            raise Problem(
                422,
                f"The body has {error.error_count():,} faults. See /openapi.json for its fields.",
            ) from None
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        raise Problem(422, _sentence(faults)) from None


def _sentence(faults: Sequence[Any]) -> str:
    """Say what is wrong with a body in one sentence, without repeating the text."""
    first = faults[0]
    place = ".".join(map(str, first["loc"])) or "The body"
    kind = first["type"]
    if kind == "json_invalid":
        return "The body must be JSON in UTF-8, but is not. Check its syntax and its encoding."
    if kind == "missing":
        return f"{shorten(place)} is missing. Add it."
    if kind == "extra_forbidden":
        return f"{shorten(place)[:200]} is unknown. See /openapi.json for the fields."
    rule = re.sub(r"^(Value error, |\w+ should )", "", str(first["msg"]))
    rule = re.sub(r" after validation, not \d+$", "", rule)
    return shorten(f"{place[:200]} should {rule[:1].lower()}{rule[1:]}. Change it.")
