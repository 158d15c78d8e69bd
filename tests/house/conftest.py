"""The script that measures the house, for the tests that hold it to its figures."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def sizes() -> ModuleType:
    """The script that counts statements and tokens."""
    spec = importlib.util.spec_from_file_location("sizes", Path(__file__).parent / "sizes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look up their module by its name.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
