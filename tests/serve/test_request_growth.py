"""Every part of a request is read in time that grows as its size does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

import pytest
from growing import find_growing
from starlette.requests import Request

from pellucid.documents.markup.reading import visible_text
from pellucid.errors import DataError, PellucidError, word_options
from pellucid.serve.answers.request_bodies import make_schemas
from pellucid.serve.answers.responses import Problem, from_error
from pellucid.serve.compat.language_pairs import Detector, to_code
from pellucid.serve.compat.schemas import read_fields
from pellucid.serve.connection.gate import Gate
from pellucid.serve.operations import Need, Operation, _read_body
from pellucid.serve.queue.prometheus import Metrics
from pellucid.serve.queue.scheduler import Scheduler
from pellucid.serve.queue.tasks import estimate_tokens
from pellucid.serve.settings import Limits, Settings

NUM_MOTIFS = 5
SIZE = 10_000
SIGNS = (
    *(
        "a",
        " ",
        "\t",
        "\r\n",
        "\n",
        "é",
        "猫",
        "1",
        ".",
        ",",
        ";",
        ":",
        "=",
        "&",
        "%",
        "+",
        "-",
        "_",
    ),
    *(
        "/",
        "\\",
        "'",
        '"',
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "<",
        ">",
        "@",
        "?",
        "#",
        "*",
        "q=",
        "a=1&",
    ),
    *(
        "%41",
        "%F0",
        "--X",
        "\r\n--X",
        "\r\n--X\r\n",
        'name="',
        "; a=b",
        ',"a":',
        '{"a":1},',
        '"a",',
    ),
    *(
        "\\u00e9",
        "\\ud800",
        "\\n",
        "1e",
        "null,",
        "true",
        "text/*;q=0.5,",
        "Bearer ",
        "gzip, ",
        "zh-",
    ),
)
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
PARTS = "multipart/form-data; boundary=X"
HEAD = '--X\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}'
FILE = '--X\r\nContent-Disposition: form-data; name="f"; filename="{}"\r\nA: {}\r\n\r\n'
SCHEMAS = make_schemas(Limits())

Scope = dict[str, Any]


def _scope(path: str = "/", query: str = "", **headers: str) -> Scope:
    pairs = {"host": "localhost", **{name.replace("_", "-"): one for name, one in headers.items()}}
    return {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode("utf-8", "replace"),
        "query_string": query.encode("utf-8", "replace"),
        "headers": [(k.encode(), v.encode("utf-8", "replace")) for k, v in pairs.items()],
        "client": ("127.0.0.1", 1),
    }


def _request(body: str, media_type: str, query: str = "") -> Request:
    content = body.encode("utf-8", "replace")

    async def receive() -> Scope:
        return {"type": "http.request", "body": content, "more_body": False}

    return Request(_scope("/", query, content_type=media_type), receive)


def _fields(media_type: str) -> Callable[[str], None]:
    return lambda text: asyncio.run(_quiet(read_fields(_request(text, media_type), Settings())))


def _body(name: str) -> Callable[[str], None]:
    kind = getattr(SCHEMAS, name)
    return lambda text: asyncio.run(_quiet(_read_body(_request(text, JSON), kind)))


async def _quiet(work: Any) -> None:
    with suppress(Problem, PellucidError):
        await work


@cache
def _gate() -> Gate:
    async def answer(_: Request) -> Any:
        raise Problem(404, "Nothing.")

    limits = Limits()
    metrics = Metrics()
    routes = [Operation("GET", "/{name}", answer, need=Need.NOTHING)]
    settings = Settings(trusted_proxies=("127.0.0.1",), allowed_origins=("https://a.example",))
    return Gate(routes, settings, Scheduler(limits, metrics), metrics)


def _through_gate(make: Callable[[str], Scope]) -> Callable[[str], None]:
    async def receive() -> Scope:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(_: object) -> None:
        pass

    return lambda text: asyncio.run(_gate()(make(text), receive, send))


def _header(name: str) -> Callable[[str], None]:
    return _through_gate(lambda text: _scope("/", **{name: text}))


READERS: Mapping[str, tuple[Callable[[str], object], tuple[str, ...]]] = {
    "path": (_through_gate(lambda text: _scope(f"/{text}")), ("{}", "a/{}")),
    **{
        f"header {name}": (_header(name), frames)
        for name, frames in {
            "accept": ("{}", "text/html,{}"),
            "accept_language": ("{}", "en,{}"),
            "authorization": ("{}", "Bearer {}", "Bearer{}a"),
            "content_type": ("{}", "application/{}json"),
            "cookie": ("{}", "a={}"),
            "host": ("{}", "localhost:{}", "[{}]"),
            "origin": ("{}", "http://{}", "http://a:{}"),
            "x_forwarded_host": ("{}", "a,{}"),
            "x_forwarded_prefix": ("{}", "/a{}/"),
            "x_forwarded_proto": ("{}", "http,{}"),
            "x_request_id": ("{}",),
        }.items()
    },
    "query": (
        lambda text: asyncio.run(_quiet(read_fields(_request("", JSON, text), Settings()))),
        ("{}", "q={}&source=en"),
    ),
    "media type of a form": (
        lambda text: asyncio.run(
            _quiet(read_fields(_request("a=b", f"{FORM};{text}"), Settings()))
        ),
        ("{}", 'boundary="{}', "a={};b"),
    ),
    "JSON": (_fields(JSON), ("{}", '{"q": "{}"}', '{"{}": 1}', '{"q": [{}]}', '{"q": {{}}}')),
    "form": (_fields(FORM), ("{}", "q={}&source=en", "{}=a")),
    "multipart": (_fields(PARTS), ("{}", HEAD, HEAD + "\r\n--X--{}", FILE)),
    **{
        f"body of {name}": (
            _body(name),
            ("{}", '{"{}": 1}', '{"text": "{}"}', '{"texts": [{}]}', '{"changes": ["{}"]}'),
        )
        for name in ("translate", "score", "align", "look", "change")
    },
    "glossary": (_body("translate"), ('{"texts": "a", "glossary": [{}]}', '{"glossary": [{{}}]}')),
    "language": (to_code, ("{}", "zh-{}")),
    "detection": (
        lambda text: Detector(("en", "fr")).detect(text[:20_000]),
        ("{}", "A cat {} eats."),
    ),
    "visible text": (visible_text, ("{}", "<p>a {} b", "<p title='{}'>")),
    "estimate": (estimate_tokens, ("{}",)),
    "sentence": (
        lambda text: from_error(DataError(f"A text must be so, but is {text!r} (/a/b:1).")),
        ("{}", "'{}", "/a{}b"),
    ),
    "options in a sentence": (word_options, ("{}", "--to A{}b", "--to '{}", "a={}b")),
}
"""What reads a part of a request, and frames for repeated signs."""


@pytest.mark.parametrize("name", READERS)
def test_parts_of_requests_are_read_in_time_by_their_size(name: str) -> None:
    read, frames = READERS[name]
    assert not find_growing(read, frames, SIGNS, motifs=NUM_MOTIFS, size=SIZE, seed=name)
