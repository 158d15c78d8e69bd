"""Settings of the tests that train."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pellucid.text import check


@pytest.fixture(autouse=True)
def _no_report(request: pytest.FixtureRequest) -> None:
    """Leave out reports; a test that needs one is marked with `report`."""
    if request.node.get_closest_marker("report") is None:
        request.getfixturevalue("no_report")


@pytest.fixture(autouse=True, scope="session")
def _one_identifier() -> Iterator[None]:
    """Keep the identifier of languages in memory, which takes a second to load for each run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "release_identifier", lambda: None)
        yield
