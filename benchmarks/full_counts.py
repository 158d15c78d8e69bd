"""Checks of which the tests run a sample, at full count.

python benchmarks/full_counts.py

- the built-in corpus: of its tests, 995 of 1,000 sentences have only words that stand in 3 or more
  of the 120,000 sentences for training, as many as a vocabulary asks for (the test reads 15,000);
- properties that hold for random cases: 2,000 cases of each (the tests draw 30, with --full 100).

`exactness.py`, `kills.py`, `pipe.py` and `trace_parity.py` do the same for search, for resuming
training and translating, and for traces.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def check_corpus() -> None:
    """Run the check in the tests' own module, so that there is one account of what is right."""
    path = ROOT / "tests" / "property" / "test_corpora.py"
    spec = importlib.util.spec_from_file_location("corpus_checks", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.check_words_of_tests(None, at_least=3, share=0.995)


def main() -> None:
    """Check and print; the exit code is not 0 if a random case fails."""
    start = time.perf_counter()
    check_corpus()
    print(f"corpus: the words of its tests are known ({time.perf_counter() - start:.0f} s)")
    profile = ("--full", "--hypothesis-profile", "full count", "--timeout", "3600")
    sys.exit(pytest.main(["-q", "-m", "hypothesis", *profile, str(ROOT / "tests")]))


if __name__ == "__main__":
    main()
