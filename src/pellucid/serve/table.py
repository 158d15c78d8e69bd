"""The routes: a function for each, the body that it takes, and its description.

FastAPI writes the description. It does not stand between a request and its function: finding the
route again, reading the body into Python values, and seven layers of middleware took two thirds of
the time that a short request costs.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ValidationError

from pellucid.errors import shorten
from pellucid.serve.problems import Problem
from pellucid.serve.responses import Reply

if TYPE_CHECKING:
    from pellucid.serve.exchange import Asked

Answer = Callable[..., Awaitable[Reply]]

_JSON = re.compile(r"application/([\w.-]+\+)?json", re.IGNORECASE)


@dataclass(frozen=True)
class Route:
    """A route.

    Attributes:
        answer: the function.
        takes: its only argument: the request, a part of its path, or its body; or nothing.
        body: the class of its body, if it takes one.
        about: its description, as FastAPI wants it.
    """

    answer: Answer
    takes: Literal["", "asked", "name", "body"]
    body: type[BaseModel] | None
    about: dict[str, Any]

    async def __call__(self, asked: Asked) -> Reply:
        """Answer a request.

        Raises:
            Problem: 422, its body is not what the route takes.
        """
        if self.takes == "body":
            assert self.body is not None
            return await self.answer(_read_body(asked, self.body))
        if self.takes == "asked":
            return await self.answer(asked)
        if self.takes == "name":
            return await self.answer(asked.path.rpartition("/")[2])
        return await self.answer()


class Table:
    """All routes of a server.

    Args:
        title: of the description.
        version: of the program.
        description: of the whole.
    """

    def __init__(self, title: str, version: str, description: str) -> None:
        self._facts: dict[str, Any] = {
            "title": title,
            "version": version,
            "description": description,
        }
        self.routes: dict[tuple[str, str], Route] = {}

    def get(self, path: str, **about: Any) -> Callable[[Answer], Answer]:
        """Add a route for GET; arguments as for FastAPI's decorator."""
        return self._add("GET", path, None, about)

    def post(
        self, path: str, *, body: type[BaseModel] | None = None, **about: Any
    ) -> Callable[[Answer], Answer]:
        """Add a route for POST.

        Args:
            path: of the route.
            body: the class of its body; None if it reads the body itself.
            about: as for FastAPI's decorator.
        """
        return self._add("POST", path, body, about)

    def _add(
        self, method: str, path: str, body: type[BaseModel] | None, about: dict[str, Any]
    ) -> Callable[[Answer], Answer]:
        def decorate(answer: Answer) -> Answer:
            takes: Any = next(iter(inspect.signature(answer).parameters), "")
            self.routes[method, path] = Route(answer, takes, body, about)
            return answer

        return decorate

    def describe(self) -> dict[str, Any]:
        """Describe all routes in the form of OpenAPI."""
        from fastapi import FastAPI
        from starlette.responses import Response

        app = FastAPI(**self._facts)
        for (method, path), route in self.routes.items():
            about = dict(route.about)
            if "response_model" not in about:
                about |= {"response_model": None, "response_class": Response}
            app.add_api_route(path, _outline(route), methods=[method], **about)
        return app.openapi()


def _outline(route: Route) -> Callable[..., Any]:
    """Make a function that FastAPI describes like the route's."""

    async def with_body(body: Any) -> None: ...

    async def with_name(name: str) -> None: ...

    async def without() -> None: ...

    made: Callable[..., Any] = without
    if route.takes == "body":
        made = with_body
        made.__annotations__["body"] = route.body
    elif route.takes == "name":
        made = with_name
    made.__name__, made.__doc__ = route.answer.__name__, route.answer.__doc__
    return made


def _read_body(asked: Asked, kind: type[BaseModel]) -> BaseModel:
    """Read a body in JSON.

    Args:
        asked: the request.
        kind: the class of the body.

    Raises:
        Problem: 422, it is something else.
    """
    if not asked.body:
        raise Problem(422, "The body is missing. Add it.")
    media_type = (asked.header(b"content-type") or "").partition(";")[0].strip()
    if not _JSON.fullmatch(media_type):
        raise Problem(
            422, "The body must be JSON, but is called something else. Send it with the header "
            "Content-Type: application/json.",
        )  # fmt: skip
    try:
        return kind.model_validate_json(asked.body)
    except ValidationError as error:
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
