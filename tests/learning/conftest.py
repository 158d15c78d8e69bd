"""Settings of the tests that train."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _no_report(request: pytest.FixtureRequest) -> None:
    """Leave out reports; a test that needs one is marked with `report`."""
    if request.node.get_closest_marker("report") is None:
        request.getfixturevalue("no_report")
