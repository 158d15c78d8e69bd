"""A first signal sets a flag, or acts at once if nothing is lost; a second acts at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

import pytest

from pellucid.training.run.interruption import Interruption

NUMBERS = (signal.SIGINT, signal.SIGTERM)


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


def code_of(work: Callable[[Interruption, list[str]], None]) -> tuple[int | None, list[str]]:
    """Run work under an interruption; returns its exit code and the parts that were done."""
    done: list[str] = []
    try:
        with Interruption() as interruption:
            work(interruption, done)
    except KeyboardInterrupt:
        return 130, done
    except SystemExit as error:
        return int(error.code or 0), done
    return None, done


def test_no_signal_changes_nothing() -> None:
    def work(interruption: Interruption, done: list[str]) -> None:
        with interruption.abandonable():
            done.append("phase")
        interruption.exit_if_signaled()
        done.append("all")

    assert code_of(work) == (None, ["phase", "all"])


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_first_signal_only_raises_a_flag_that_leave_acts_on(
    number: signal.Signals, code: int
) -> None:
    def work(interruption: Interruption, done: list[str]) -> None:
        send(number)
        assert interruption.signal == number
        done.append("the step")
        interruption.exit_if_signaled()
        done.append("the next step")

    assert code_of(work) == (code, ["the step"])


def test_hangup_stays_ignored_where_it_is() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:

        def work(interruption: Interruption, done: list[str]) -> None:
            send(signal.SIGHUP)
            assert interruption.signal is None
            done.append("all")

        assert code_of(work) == (None, ["all"])
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_signal_that_nobody_acts_on_is_raised_at_the_end() -> None:
    def work(_: Interruption, done: list[str]) -> None:
        send(signal.SIGTERM)
        done.append("all")

    assert code_of(work) == (143, ["all"])


@pytest.mark.parametrize("first", NUMBERS)
@pytest.mark.parametrize(("second", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_second_signal_acts_at_once_by_its_own_meaning(
    first: signal.Signals, second: signal.Signals, code: int
) -> None:
    def work(_: Interruption, done: list[str]) -> None:
        send(first)
        done.append("after the first")
        send(second)
        done.append("after the second")

    assert code_of(work) == (code, ["after the first"])


def test_at_once_ends_the_phase_and_a_later_signal_is_the_second() -> None:
    def work(interruption: Interruption, done: list[str]) -> None:
        try:
            with interruption.abandonable():
                send(signal.SIGTERM)
                done.append("the rest of the phase")
        finally:
            done.append("saving")
            send(signal.SIGINT)
            done.append("saved")

    assert code_of(work) == (130, ["saving"])


def test_at_once_after_a_signal_does_not_begin() -> None:
    def work(interruption: Interruption, done: list[str]) -> None:
        send(signal.SIGINT)
        with interruption.abandonable():
            done.append("phase")

    assert code_of(work) == (130, [])


def test_at_once_ends_with_the_phase() -> None:
    def work(interruption: Interruption, done: list[str]) -> None:
        with interruption.abandonable():
            pass
        send(signal.SIGTERM)
        done.append("the step")

    assert code_of(work) == (143, ["the step"])


class Untidy:
    def __del__(self) -> None:
        send(signal.SIGTERM)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_at_once_acts_where_python_drops_what_was_raised() -> None:
    def work(interruption: Interruption, done: list[str]) -> None:
        with interruption.abandonable():
            Untidy()
            done.append("the end of the phase")
        done.append("what comes after")

    assert code_of(work) == (143, ["the end of the phase"])


def test_handlers_are_put_back_also_after_a_signal() -> None:
    before = [signal.getsignal(number) for number in NUMBERS]

    def work(_: Interruption, done: list[str]) -> None:
        assert [signal.getsignal(number) for number in NUMBERS] != before
        send(signal.SIGTERM)

    assert code_of(work) == (143, [])
    assert [signal.getsignal(number) for number in NUMBERS] == before


def test_other_threads_may_train_without_signals() -> None:
    codes = []

    def work(interruption: Interruption, done: list[str]) -> None:
        with interruption.abandonable():
            done.append("phase")

    thread = threading.Thread(target=lambda: codes.append(code_of(work)))
    thread.start()
    thread.join()
    assert codes == [(None, ["phase"])]
