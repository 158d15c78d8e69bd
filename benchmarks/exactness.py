"""The proofs of search at full count: safe stopping on 1,000 random models, and narrow beams.

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
    """The tests' own module, so that there is one account of what is right."""
    spec = importlib.util.spec_from_file_location("search_checks", TESTS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Check and print; a difference is an AssertionError with the model's seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=1000)
    arguments = parser.parse_args()
    checks = load_checks()
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
