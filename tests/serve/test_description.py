"""The description of the routes, as generated clients and people read it."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from served import ROUTES, Live

from pellucid.serve.models import Models
from pellucid.serve.operations import Need
from pellucid.serve.settings import Keys, Settings, hash_key

LOCKED = Settings(keys=Keys([hash_key("k")]))


def operations_of(server: Live) -> dict[tuple[str, str], Any]:
    paths = server.get("/openapi.json").json()["paths"]
    return {
        (method.upper(), path): one
        for path, methods in paths.items()
        for method, one in methods.items()
    }


def test_operations_have_names_for_functions(live: Live) -> None:
    names = [one["operationId"] for one in operations_of(live).values()]
    assert sorted(names) == sorted(
        (
            *("translate", "score", "align", "look", "change", "listModels"),
            *("livez", "readyz", "metrics", "libreTranslate", "libreDetect", "libreSuggest"),
            *("libreTranslateFile", "libreDownloadFile", "libreLanguages", "libreSettings"),
            "libreHealth",
        )
    )


@pytest.mark.parametrize("keys_in_query", [False, True])
def test_keys_are_asked_for_by_route(models: Models, keys_in_query: bool) -> None:
    with Live(models, replace(LOCKED, keys_in_query=keys_in_query)) as server:
        document = server.get("/openapi.json").json()
        schemes = document["components"]["securitySchemes"]
        assert schemes["bearer"] == {"type": "http", "scheme": "bearer"}
        assert ("apiKey" in schemes) == keys_in_query
        for route, one in operations_of(server).items():
            wanted: list[Any] = [{"bearer": []}]
            if ROUTES[route] is Need.NOTHING:
                wanted = []
            elif ROUTES[route] is Need.KEY_IN_BODY:
                wanted += [{"apiKey": []}, {}] if keys_in_query else [{}]
            assert one["security"] == wanted, route


def test_server_is_where_its_client_sees_it(live: Live, models: Models) -> None:
    assert live.get("/openapi.json").json()["servers"] == [{"url": live.url}]
    with Live(models, Settings(path_prefix="/mt")) as server:
        found = server.get("/openapi.json").json()["servers"]
        assert found == [{"url": f"{server.url}/mt"}]


def test_every_operation_is_summed_up_in_a_plain_sentence(live: Live) -> None:
    operations = operations_of(live)
    summaries = [one["summary"] for one in operations.values()]
    assert len({*summaries}) == len(summaries) > 10
    for route, one in operations.items():
        summary = one["summary"]
        # A name of a function, such as libreTranslate, is no sentence.
        words = re.findall(r"[A-Z]?[a-z]+", one["operationId"])
        assert summary.lower().split() != [*map(str.lower, words)], route
        assert len(summary.split()) >= 3, route
        assert summary[0].isupper(), route
        assert not re.search("[_.]$|\\n", summary), route
        assert re.match(r"[A-Z][a-z]+ (a|the|if|counts|one|texts|all|what|inside)\b", summary), (
            route
        )
        assert one["description"].replace("\n", " ").startswith(f"{summary}."), route


def test_translations_are_described_as_json_and_as_events(live: Live) -> None:
    content = operations_of(live)["POST", "/v1/translate"]["responses"]["200"]["content"]
    assert set(content) == {"application/json", "text/event-stream"}


class Page(HTMLParser):
    """What a page shows and loads."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "img", "link", "iframe") or "src" in given:
            self.loaded.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += f"{data} "


def test_docs_page_has_every_route_and_field_and_loads_nothing(live: Live) -> None:
    answer = live.get("/docs")
    assert answer.status_code == 200
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    page = Page()
    page.feed(answer.text)
    assert not page.loaded
    document = live.get("/openapi.json").json()
    for path in document["paths"]:
        assert path in page.text
    for name, schema in document["components"]["schemas"].items():
        if name.endswith("Request"):
            assert all(re.search(rf"\b{field}\b", page.text) for field in schema["properties"])
    assert "at most 16" in page.text
    assert "at least 1 entry, at most 256 entries" in page.text
    assert "at least 1 character, at most 80 characters" in page.text
    assert not re.search(r"\b1 (entries|characters)", page.text)
