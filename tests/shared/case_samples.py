"""A sample of each proof by default, and the whole of it with `--full`.

A proof of many cases marks those that always run; the others wait, and the summary counts them:

    @pytest.mark.sample(precision="int8")             # the cases with this value
    @pytest.mark.sample(options=(OPTIONS[0], OPTIONS[3]))
    @pytest.mark.sample(5)                            # five cases, with many values of each kind
    @pytest.mark.sample(0)                            # nothing: the test waits as a whole

A test with a loop asks the fixture `some` which of its values to take. A sample holds the cases
that differ most, so that it still runs every branch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, TypeVar

import pytest
from hypothesis import settings

T = TypeVar("T")
Some = Callable[[Sequence[T], int], Sequence[T]]

COUNTS = pytest.StashKey[tuple[int, int]]()
"""The number of cases that wait, and of all cases."""
SHORTENED = pytest.StashKey[set[str]]()
"""Tests whose loop runs over a part of its values."""

# The time limit is for a test as a whole: a busy machine may be slow at one example.
settings.register_profile("sample", deadline=None, max_examples=30)
settings.register_profile("full", deadline=None, max_examples=100)
settings.register_profile("full count", deadline=None, max_examples=2000)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--full`."""
    parser.addoption(
        "--full",
        action="store_true",
        default=bool(os.environ.get("CI")),
        help="run every case of every proof, not a sample of them; CI=1 implies it",
    )


@pytest.hookimpl(tryfirst=True)  # before Hypothesis loads the profile that a command names
def pytest_configure(config: pytest.Config) -> None:
    """Explain the marker, and choose how many random examples a property is tried with."""
    config.addinivalue_line(
        "markers", "sample(count or NAME=values): cases that run without --full"
    )
    config.stash[SHORTENED] = set()
    if any("::" in argument for argument in config.args):
        config.option.full = True  # A test that is named runs all of its cases.
    settings.load_profile("full" if config.getoption("full") else "sample")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Start three workers for two cores: a worker waits for other processes much of its time."""
    cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    return cores + cores // 2


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    """Leave out the cases that wait for `--full`."""
    if config.getoption("full"):
        return (yield)
    waiting = set(find_waiting(items))
    yield  # Now -k and -m choose. Cases that were not asked for are not counted.
    left_out = [item for item in items if item in waiting]
    config.stash[COUNTS] = (len(left_out), len(items))
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in waiting]


def find_waiting(items: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield the cases that the marker of their test does not keep."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sample") is not None:
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, cases in tests.items():
        kept = set(keep(name, cases))
        yield from (case for case in cases if case not in kept)


def keep(name: str, cases: Sequence[pytest.Item]) -> Sequence[pytest.Item]:
    """Choose the cases of a test that always run."""
    marker = cases[0].get_closest_marker("sample")
    assert marker is not None
    if marker.args:
        (count,) = marker.args
        if count < 0:
            raise pytest.UsageError(f"{name}: the count of a sample must be 0 or more: {count}")
        return choose(cases, count)
    kept = [case for case in cases if has_values(case, marker.kwargs)]
    if not kept:
        raise pytest.UsageError(f"{name}: no case has the values of its sample: {marker.kwargs}")
    return kept


def choose(cases: Sequence[pytest.Item], count: int) -> Sequence[pytest.Item]:
    """Choose cases evenly, but first those that bring a value which no other has brought."""
    even = spread(cases, count)
    waiting = [*even, *(case for case in cases if case not in even)]
    seen: set[tuple[str, int]] = set()
    kept: list[pytest.Item] = []
    while waiting and len(kept) < count:
        best = max(waiting, key=lambda case: len(values_of(case) - seen))
        seen |= values_of(best)
        waiting.remove(best)
        kept.append(best)
    return kept


def values_of(case: pytest.Item) -> set[tuple[str, int]]:
    """List the parameters of a case, each with the place of its value."""
    callspec = getattr(case, "callspec", None)
    return set(callspec.indices.items()) if callspec is not None else set()


def has_values(case: pytest.Item, wanted: dict[str, Any]) -> bool:
    """Look whether each parameter that is named has its value, or one of a tuple of them."""
    given = case.callspec.params  # type: ignore[attr-defined]
    return all(
        given.get(name) in (values if isinstance(values, tuple) else (values,))
        for name, values in wanted.items()
    )


def spread(values: Sequence[T], count: int) -> Sequence[T]:
    """Choose values evenly, the first and the last among them."""
    if count >= len(values):
        return values
    gaps = max(count - 1, 1)
    return [values[place * (len(values) - 1) // gaps] for place in range(count)]


@pytest.fixture
def some(request: pytest.FixtureRequest) -> Some[Any]:
    """Choose some values of a loop, evenly, or all of them with `--full`."""

    def choose(values: Sequence[T], count: int) -> Sequence[T]:
        if request.config.getoption("full"):
            return values
        request.config.stash[SHORTENED].add(request.node.nodeid)
        return spread(values, count)

    return choose


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand what a worker left out to the process that writes the summary."""
    stash = session.config.stash
    if hasattr(session.config, "workeroutput"):
        found = {"counts": stash.get(COUNTS, (0, 0)), "shortened": sorted(stash[SHORTENED])}
        session.config.workeroutput["sample"] = found


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take what a worker left out. Each one collects all cases, and runs some of them."""
    found = getattr(node, "workeroutput", {}).get("sample")
    if found is not None:  # The worker did not die.
        node.config.stash[COUNTS] = tuple(found["counts"])
        node.config.stash[SHORTENED].update(found["shortened"])


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Report what was left out."""
    stash = terminalreporter.config.stash
    num_waiting, num_cases = stash.get(COUNTS, (0, 0))
    num_shortened = len(stash[SHORTENED])
    if num_waiting:
        terminalreporter.write_line(f"{num_waiting:,} of {num_cases:,} cases wait for --full.")
    if num_shortened:
        terminalreporter.write_line(f"{num_shortened:,} more ran a part of their loop.")
