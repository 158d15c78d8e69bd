"""Signals: a flag first, at once where nothing is lost, at once the second time."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from pellucid.train.interruption import Interruption


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


def test_first_signal_only_raises_a_flag_that_leave_acts_on() -> None:
    with Interruption() as interruption:
        interruption.leave()
        send(signal.SIGINT)
        assert interruption.signal == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            interruption.leave()


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_second_signal_acts_at_once_by_its_own_meaning(first: signal.Signals) -> None:
    with Interruption():
        send(first)
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)
        with pytest.raises(SystemExit) as caught:
            send(signal.SIGTERM)
    assert caught.value.code == 143


def test_at_once_ends_the_phase_and_later_signals_are_second_ones() -> None:
    with Interruption() as interruption:
        done = []
        with pytest.raises(SystemExit), interruption.at_once():
            send(signal.SIGTERM)
            done.append("after the signal")
        assert not done
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)


def test_at_once_after_a_signal_does_not_begin() -> None:
    with Interruption() as interruption:
        send(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt), interruption.at_once():
            pytest.fail("the phase must not begin")


def test_at_once_ends_with_the_phase() -> None:
    with Interruption() as interruption:
        with interruption.at_once():
            pass
        send(signal.SIGTERM)
        assert interruption.signal == signal.SIGTERM


class Untidy:
    def __del__(self) -> None:
        send(signal.SIGTERM)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_at_once_acts_where_python_drops_what_was_raised() -> None:
    with Interruption() as interruption, pytest.raises(SystemExit), interruption.at_once():
        thing = Untidy()
        del thing


def test_handlers_are_put_back_also_after_a_signal() -> None:
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    with Interruption():
        assert [signal.getsignal(number) for number in numbers] != before
        send(signal.SIGTERM)
    assert [signal.getsignal(number) for number in numbers] == before


def test_other_threads_may_train_without_signals() -> None:
    seen: list[int | None] = []

    def work() -> None:
        with Interruption() as interruption, interruption.at_once():
            seen.append(interruption.signal)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [None]
