"""A server with the packaged model that the tests of the service share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from served import Live

from pellucid.serve.models import Models, load_models


@pytest.fixture(scope="session")
def models() -> Models:
    """The packaged model."""
    return load_models({"demo": "demo"})


@pytest.fixture(scope="session")
def live(models: Models) -> Iterator[Live]:
    """A server on this machine, without keys."""
    with Live(models) as server:
        yield server
