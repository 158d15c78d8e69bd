"""Requests that are made from the schema get answers that the schema describes, and no 5xx."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from served import ROUTES, Live

EXAMPLES = settings.default.max_examples // 2
CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)
HIDDEN = {("GET", path) for path in ("/", "/openapi.json", "/spec", "/docs")}
OPERATIONS = sorted(set(ROUTES) - HIDDEN)


@pytest.fixture(scope="module")
def schema(live: Live) -> schemathesis.BaseSchema:
    """The description of the server, as it gives it itself."""
    document = live.get("/openapi.json").json()
    loaded = schemathesis.openapi.from_dict(document)
    loaded.config.base_url = live.url
    return loaded


def test_schema_describes_every_route_with_an_example(live: Live) -> None:
    document = live.get("/openapi.json").json()
    found = {
        (method.upper(), path): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    assert sorted(found) == OPERATIONS
    for (method, path), operation in found.items():
        assert operation.get("description"), path
        if method == "POST":
            assert "example" in str(operation["requestBody"]) or any(
                "examples" in field
                for name, body in document["components"]["schemas"].items()
                if name in str(operation["requestBody"])
                for field in body["properties"].values()
            ), path


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_schema_requests_get_described_answers(
    schema: schemathesis.BaseSchema, method: str, path: str
) -> None:
    operation = schema[path][method]
    answered: list[int] = []
    modes = [GenerationMode.POSITIVE, *([GenerationMode.NEGATIVE] if method == "POST" else [])]
    made = [operation.as_strategy(generation_mode=mode) for mode in modes]

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(case=st.one_of(made))
    def check(case: schemathesis.Case) -> None:
        answered.append(case.call_and_validate(checks=list(CHECKS)).status_code)

    check()
    assert answered, "no request was made"
    assert max(answered) < 500
