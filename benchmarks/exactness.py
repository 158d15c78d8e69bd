"""The proofs of search at full count: wide beams with all settings, random models.

python benchmarks/exactness.py [--models 1000]

The tests run a sample of the same checks.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from pathlib import Path
from types import ModuleType

TESTS = Path(__file__).parent.parent / "tests" / "property" / "test_search_exactness.py"


def load_checks() -> ModuleType:
    """Load the tests' own module, so that the criterion stands in one place."""
    spec = importlib.util.spec_from_file_location("search_checks", TESTS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Check and print; a difference raises AssertionError with the model's seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=1000)
    arguments = parser.parse_args()
    checks = load_checks()
    start = time.perf_counter()
    for options in checks.PENALTIES:
        for stopping in checks.STOPPING:
            checks.check_wide_beam(options, stopping)
        for name in checks.CONSTRAINTS:
            checks.check_constrained_beam(name, options)
    print(f"wide beams: equal to counting ({time.perf_counter() - start:.0f} s)")
    start = time.perf_counter()
    earlier = checks.check_safe_stopping(range(arguments.models))
    print(
        f"safe stopping: {arguments.models} random models, no winner changed; "
        f"{earlier} searches stopped earlier ({time.perf_counter() - start:.0f} s)"
    )
    start = time.perf_counter()
    checked = checks.check_narrow_beams(range(arguments.models // 10))
    print(
        f"narrow beams: {checked} searches equal to the naive one "
        f"({time.perf_counter() - start:.0f} s)"
    )


if __name__ == "__main__":
    main()
