"""One call of the engine: its arguments, the arrays for its results, and how it is interrupted."""

from __future__ import annotations

import _thread
import ctypes
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain
from typing import Any, Literal, NamedTuple

import numpy as np

from pellucid.config import DecodingConfig
from pellucid.errors import InputError
from pellucid.machine.turns import has_turns
from pellucid.native.structures import NO_MEMORY, JobStruct, TurnFunction, array_address

STOPPING = {"safe": 0, "heuristic": 1, "never": 2}


class Ended(NamedTuple):
    """A hypothesis: its tokens, their log-probabilities, and its score."""

    ids: tuple[int, ...]
    logs: tuple[float, ...]
    is_finished: bool
    score: float


@dataclass(frozen=True)
class LengthLimits:
    """What one translation may be: its greatest and least length, and how it begins.

    The first ``num_given`` tokens of the prefix cost nothing.
    """

    max_length: int
    min_length: int = 0
    prefix_ids: tuple[int, ...] = ()
    num_given: int = 0


@dataclass(frozen=True)
class SearchOptions:
    """How to search: the options, the ids with a meaning, and those that no translation holds."""

    config: DecodingConfig
    start_id: int
    eos_id: int
    never: tuple[int, ...] = ()


class Call:
    """One call of the engine: its arguments, and the arrays for its results."""

    def __init__(
        self,
        sources: Sequence[Sequence[int]],
        limits: Sequence[LengthLimits],
        search: SearchOptions,
    ) -> None:
        config = search.config
        count = len(sources)
        best = min(config.n_best, config.beam)
        self.longest_source = max(map(len, sources))
        self.longest_limit = max(limit.max_length for limit in limits)
        limit_R = [limit.max_length for limit in limits]
        starts_R = _starts([best * limit for limit in limit_R])
        # Of those that cost nothing all bits are turned round, so that they are negative.
        prefixes = [
            (*(~id_ for id_ in one.prefix_ids[: one.num_given]), *one.prefix_ids[one.num_given :])
            for one in limits
        ]
        # C expects them in rising order (search.h).
        never = sorted(set(search.never))
        self._limit_R = limit_R
        self._starts_R = starts_R
        self._scores = np.empty(count * best, np.float64)
        self._ids = np.empty(starts_R[-1], np.int32)
        self._logs = np.empty(starts_R[-1], np.float32)
        penalties = length_penalties(config.length_penalty, config.alpha, self.longest_limit)
        self._numbers, number_places = _gather(
            np.int64,
            source_starts=_starts(map(len, sources)),
            limits=limit_R,
            min_lengths=[limit.min_length for limit in limits],
            prefix_starts=_starts(map(len, prefixes)),
            result_starts=starts_R,
        )
        nothing = [0] * (count * best)
        self._integers, self._places = _gather(
            np.int32,
            stop=[0],
            counts=nothing[:count],
            lengths=nothing,
            finished=nothing,
            never=never,
            source_ids=list(chain.from_iterable(sources)),
            prefix_ids=list(chain.from_iterable(prefixes)),
        )
        arrays = (self._numbers, self._integers, penalties, self._scores, self._ids, self._logs)
        numbers, integers, penalty, score, ids, logs = map(array_address, arrays)
        # Addresses within the one array of each type: 8 bytes a number, 4 bytes an integer.
        of_numbers = {name: numbers + 8 * place for name, place in number_places.items()}
        of_integers = {name: integers + 4 * place for name, place in self._places.items()}
        self.job = JobStruct(
            num_requests=count,
            num_never=len(never),
            start_id=search.start_id,
            eos_id=search.eos_id,
            width=config.beam,
            num_best=best,
            stopping=STOPPING[config.stopping],
            temperature=config.temperature,
            top_p=config.top_p,
            epsilon=config.epsilon,
            # More than any vocabulary has, and it fits the field.
            top_k=min(config.top_k or 0, 2**31),
            longest_source=self.longest_source,
            longest_limit=self.longest_limit,
            penalties=penalty,
            scores=score,
            ids=ids,
            logs=logs,
            **of_numbers,
            **of_integers,
        )

    def give(self, vectors: np.ndarray) -> None:
        """Take the encoder's vectors of all source tokens, in their order, instead of computing."""
        # Kept, since C reads them.
        self._given = vectors
        self.job.given = array_address(vectors)

    def draw(self, uniforms: Sequence[np.ndarray]) -> None:
        """Draw tokens with these numbers instead of searching for the best."""
        for numbers, limit in zip(uniforms, self._limit_R, strict=True):
            if numbers.shape != (limit,) or not ((numbers >= 0) & (numbers < 1)).all():
                raise InputError(
                    f"A sample of at most {limit} tokens needs as many numbers in [0, 1), but got "
                    f"an array of the shape {numbers.shape}, or others."
                )
        self._uniforms = np.concatenate(uniforms).astype(np.float64, copy=False)
        self.job.uniforms = array_address(self._uniforms)

    def run(
        self, library: ctypes.CDLL, let_others_in: Callable[[], None], *, is_short: bool
    ) -> int:
        """Call the engine and return its status; an interruption ends it early.

        While the main thread of Python is in C it takes no signals. So a long call runs
        in another thread, for which the main one waits.

        Args:
            library: the engine.
            let_others_in: is called now and then, if the caller asked for turns; what it raises
                ends the call.
            is_short: True if the call takes a moment.
        """
        if has_turns():
            return self._run_in_turns(library, let_others_in)
        # Only the main thread takes signals; the others may stay in C as long as it takes.
        if is_short or threading.current_thread() is not threading.main_thread():
            return int(library.translate(ctypes.byref(self.job)))
        # What stays if the thread ends before C has returned.
        status = [NO_MEMORY]
        done = threading.Event()

        def work() -> None:
            try:
                status[0] = library.translate(ctypes.byref(self.job))
            finally:
                done.set()

        interruption: BaseException | None = None
        try:
            _thread.start_new_thread(work, ())
        except RuntimeError:  # The system has no more threads.
            work()
        except BaseException as error:
            interruption = error
            self._stop()
        while not done.is_set():  # C writes into arrays of this object, so it must end first.
            try:
                done.wait()
            except BaseException as error:
                interruption = error
                self._stop()
        if interruption is not None:
            raise interruption
        return status[0]

    def _run_in_turns(self, library: ctypes.CDLL, let_others_in: Callable[[], None]) -> int:
        stopped: list[BaseException] = []

        def turn() -> None:
            try:  # C cannot pass on what is raised here.
                let_others_in()
            except BaseException as error:
                stopped.append(error)
                self._stop()

        # The name keeps the function alive while C may call it.
        function = TurnFunction(turn)
        self.job.turn = ctypes.cast(function, ctypes.c_void_p).value
        status = int(library.translate(ctypes.byref(self.job)))
        if stopped:
            raise stopped[0]
        return status

    def _stop(self) -> None:
        """Let C end the search before its next step."""
        self._integers[self._places["stop"]] = 1

    def answers(self) -> list[tuple[Ended, ...] | Literal["overflowed"]]:
        """Read the results."""
        count = len(self._limit_R)
        best = len(self._scores) // len(self._limit_R)
        counts_R, lengths, finished = (
            self._integers[at : at + size].tolist()
            for at, size in (
                (self._places["counts"], count),
                (self._places["lengths"], count * best),
                (self._places["finished"], count * best),
            )
        )
        scores = self._scores.tolist()
        found: list[tuple[Ended, ...] | Literal["overflowed"]] = []
        for row, (number, limit) in enumerate(zip(counts_R, self._limit_R, strict=True)):
            ended = []
            for rank in range(number):
                place = row * best + rank
                start = self._starts_R[row] + rank * limit
                end = start + lengths[place]
                ids = self._ids[start:end].tolist()
                logs = self._logs[start:end].tolist()
                ended.append(Ended(tuple(ids), tuple(logs), bool(finished[place]), scores[place]))
            # C writes -1 hypotheses if logits were not finite (search.h).
            found.append("overflowed" if number < 0 else tuple(ended))
        return found


def _starts(sizes: Iterable[int]) -> list[int]:
    """Find where each of some stretches starts, and where the last ends."""
    return [0, *accumulate(sizes)]


def _gather(dtype: Any, **lists: Sequence[int]) -> tuple[np.ndarray, dict[str, int]]:
    """Put lists of numbers into one array; return it, and the place where each list starts.

    A call has many short lists: one array for all of a type takes a fraction of the time.
    """
    array = np.array(list(chain.from_iterable(lists.values())), dtype)
    return array, dict(zip(lists, _starts(map(len, lists.values())), strict=False))


@lru_cache(maxsize=64)
def length_penalties(kind: str, alpha: float, longest: int) -> np.ndarray:
    r"""Compute the divisors of log-probabilities, so that short hypotheses do not always win.

    The score of a hypothesis of length Y, ``</s>`` included, is $s(Y) = \log P / lp(Y)$.
    ``gnmt``: $lp(Y) = ((5 + Y) / 6)^α$; ``average``: $lp(Y) = Y^α$; ``none``: 1. None of them
    falls with the length, and log-probabilities only fall as tokens are added. So no continuation
    of a hypothesis can score better than its log-probability so far at its maximum length, and
    stopping by that bound is safe.

    Returns:
        ``float64`` for the lengths from 0 to the longest, with 24 significant bits; it must not be
        written into.

    Source:
        Wu et al. 2016, "Google's Neural Machine Translation System", equation 14, without the
        coverage penalty.
    """
    length_T = np.arange(longest + 1, dtype=np.float64)
    if kind == "none":
        length_T = np.ones_like(length_T)
    elif kind == "gnmt":
        length_T = (5 + length_T) / 6
    else:
        length_T = np.maximum(length_T, 1)  # no division by 0 in an empty slot
    with np.errstate(over="ignore"):  # Divided by infinity, a score is 0.
        penalties_T: np.ndarray = length_T**alpha
    # Processors differ in the last digit of a power. With 24 bits of it all have the same score.
    fraction_T, power_T = np.frexp(penalties_T)
    rounded_T: np.ndarray = np.ldexp(np.rint(np.ldexp(fraction_T, 24)), power_T - 24)
    return rounded_T
