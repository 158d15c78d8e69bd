"""The engine's interface: token ids in, hypotheses out, all of it checked before C sees it."""

from __future__ import annotations

import _thread
import ctypes
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from pellucid.config import DecodingConfig, ModelConfig, Precision
from pellucid.errors import InputError
from pellucid.machine.turns import give_way, has_turns
from pellucid.native.layout import NO_MEMORY, Job, TurnFunction, address_of
from pellucid.native.loading import find_library
from pellucid.native.session import Encoded, Session, encode
from pellucid.native.weights import Weights, pack

STOPPING = {"safe": 0, "heuristic": 1, "never": 2}

MOST_ROWS = 64
"""Rows that a thread computes at once."""

FEWEST_ROWS = 12
"""Rows that make a product of matrices worth its while, however long their sentences are."""

CACHE_BYTES = 2**20
"""A core's share of the processor's cache."""

SHARED_BYTES = 3 * 2**20
"""Bytes of weights in a step with which threads share the products of a sentence."""

BYTES_OF_WEIGHT = {"float32": 4, "bfloat16": 2, "int8": 1}

SHORT_WORK = 200_000_000
"""Multiplications of a call without a way to interrupt it: it takes a tenth of a second at most."""


class Ended(NamedTuple):
    """A hypothesis: its tokens, their log-probabilities, and its score."""

    ids: tuple[int, ...]
    logs: tuple[float, ...]
    is_finished: bool
    score: float


@dataclass(frozen=True)
class LengthLimits:
    """What one translation may be: its greatest and least length, and how it begins."""

    max_length: int
    min_length: int = 0
    prefix_ids: tuple[int, ...] = ()


@dataclass(frozen=True)
class SearchOptions:
    """How to search: the options, the ids with a meaning, and those that no translation holds."""

    config: DecodingConfig
    start_id: int
    eos_id: int
    never: tuple[int, ...] = ()


class NativeEngine:
    """One model in the engine's form.

    Args:
        config: the model's.
        weights: float32 arrays by the names of a bundle; they are copied, except embeddings.
        precision: of the products.

    Attributes:
        obstacle: why the engine cannot translate with this model, or None.
        instructions: the set of instructions in use.
    """

    def __init__(
        self, config: ModelConfig, weights: Weights, precision: Precision = "float32"
    ) -> None:
        self.config = config
        self.precision = precision
        self.obstacle: str | None = None
        self.instructions = "none"
        library = find_library()
        if isinstance(library, str):
            self.obstacle = library
            return
        packed = pack(config, weights, precision, library)
        if isinstance(packed, str):
            self.obstacle = packed
            return
        self._library, self._packed = library, packed
        self._is_computing = threading.Lock()
        self.instructions = Path(library._name).stem

    def translate(
        self,
        sources: Sequence[Sequence[int]],
        limits: Sequence[LengthLimits],
        search: SearchOptions,
        *,
        sentences: int,
        threads: int,
        uniforms: Sequence[np.ndarray] = (),
    ) -> list[tuple[Ended, ...] | Literal["overflowed"]]:
        """Search for translations, or draw them; the answers are in the order of the sources.

        Calls from several threads take turns in C, each with all of its threads; one that gives
        way lets others in.

        Args:
            sources: token ids, ``</s>`` included.
            limits: one for each source.
            search: how.
            sentences: the most to compute at once in each thread.
            threads: the most threads to use: each for other sentences, or to share the products
                of one.
            uniforms: to draw samples: for each source as many float64 numbers in [0, 1) as its
                translation may have tokens.

        Returns:
            The best hypotheses of each source, or ``"overflowed"`` if logits were not finite.

        Raises:
            InputError: an id is not in the vocabulary, or a length is out of range.
            MemoryError: there is too little memory.
            StoppedError: no caller waits for it.
        """
        if not sources:
            return []
        self._check(sources, limits, search)
        # The longest first, so that no long sentence is left for the end.
        order = sorted(range(len(sources)), key=lambda index: -len(sources[index]))
        call = _Call([sources[i] for i in order], [limits[i] for i in order], search)
        if search.config.sample:
            call.draw([uniforms[i] for i in order])
        most = min(sentences, MOST_ROWS // search.config.beam, self._fitting(sources, search))
        call.job.slots = max(1, min(most, len(sources)))
        call.job.threads = max(1, threads)
        with self._is_computing:
            self._packed.need_positions(call.longest_source, call.longest_limit)
            call.job.model = ctypes.addressof(self._packed.model)
            call.job.shares_products = (
                len(sources) < threads
                and self._step_bytes() >= SHARED_BYTES
                and has_free_cores(threads)
            )
            work = sum(limit.max_length for limit in limits) * search.config.beam
            is_short = work * self._packed.num_weights < SHORT_WORK
            status = call.run(self._library, self._let_others_in, is_short=is_short)
        if status == NO_MEMORY:
            raise MemoryError
        answers = dict(zip(order, call.answers(), strict=True))
        return [answers[index] for index in range(len(sources))]

    def _let_others_in(self) -> None:
        self._is_computing.release()
        try:
            give_way()
        finally:
            self._is_computing.acquire()

    def _fitting(self, sources: Sequence[Sequence[int]], search: SearchOptions) -> int:
        """Count the sentences whose keys and values stay in a core's share of the cache.

        More at once would wait for memory. But every step also reads the decoder's weights once for
        all sentences, so their keys and values may take as much as those.
        """
        config, beam = self.config, search.config.beam
        length = sum(map(len, sources)) / len(sources)
        position = 4 * config.num_decoder_layers * config.num_heads
        position *= config.d_key + config.d_value
        # A translation is taken to be as long as its source.
        fitting = max(CACHE_BYTES, self._step_bytes()) / (length * (1 + beam) * position)
        return max(int(fitting), -(-FEWEST_ROWS // beam))

    def _step_bytes(self) -> int:
        """Count the bytes of the weights that a step reads."""
        config = self.config
        attention = 3 * config.num_heads * (config.d_key + config.d_value)
        layer = config.d_model * (attention + 2 * config.d_ff)
        output = config.d_model * config.target_vocabulary_size
        weights = config.num_decoder_layers * layer + output
        return weights * BYTES_OF_WEIGHT[self.precision]

    def encode(self, sources: Sequence[Sequence[int]], *, threads: int) -> Encoded:
        """Encode sentences for a session.

        Raises:
            InputError: an id is not in the vocabulary, or a source is too long or empty.
            MemoryError: there is too little memory.
        """
        self._check_sources(sources)
        self._packed.need_positions(max(map(len, sources)), 0)
        return encode(self._packed, self._library, sources, threads)

    def open_session(self, *, sentences: int, width: int) -> Session:
        """Make slots for sentences with ``width`` hypotheses each, for a search in Python."""
        return Session(self._packed, self._library, sentences=sentences, width=width)

    def _check(
        self,
        sources: Sequence[Sequence[int]],
        limits: Sequence[LengthLimits],
        search: SearchOptions,
    ) -> None:
        if len(limits) != len(sources):
            raise InputError(
                f"There must be limits for each of {len(sources)} sources, but there are "
                f"{len(limits)}."
            )
        config = self.config
        size, longest = config.target_vocabulary_size, config.max_target_length
        _check_ids("target", search.never, size)
        _check_ids("target", (search.start_id, search.eos_id), size)
        self._check_sources(sources)
        for limit in limits:
            _check_ids("target", limit.prefix_ids, size)
            if not 0 < limit.max_length <= longest:
                raise InputError(
                    f"A maximum length must be from 1 to {longest} tokens, but one is "
                    f"{limit.max_length}."
                )

    def _check_sources(self, sources: Sequence[Sequence[int]]) -> None:
        longest = self.config.max_source_length
        for source in sources:
            _check_ids("source", source, self.config.source_vocabulary_size)
            if not 0 < len(source) <= longest:
                raise InputError(
                    f"A source must have from 1 to {longest} tokens, but one has {len(source)}."
                )


def has_free_cores(threads: int) -> bool:
    """Tell whether so many threads find a core each, by what runs at this moment (Linux).

    Threads that share products wait for each other. Next to other programs that costs more time
    than a second thread saves.
    """
    try:
        with Path("/proc/loadavg").open() as file:
            num_running = int(file.read().split()[3].split("/")[0])
    except (OSError, ValueError, IndexError):
        return True
    return num_running - 1 + threads <= (os.cpu_count() or 1)  # this thread is one that runs


def _check_ids(side: str, ids: Sequence[int], size: int) -> None:
    if len(ids) and not 0 <= min(ids) <= max(ids) < size:
        wrong = next(one for one in ids if not 0 <= one < size)
        raise InputError(
            f"The ids of a {side} must be from 0 to {size - 1}, but one is {wrong}. Take them "
            "from this model's vocabulary."
        )


class _Call:
    """One call of the engine: its arguments, and the arrays for its results."""

    def __init__(
        self,
        sources: Sequence[Sequence[int]],
        limits: Sequence[LengthLimits],
        search: SearchOptions,
    ) -> None:
        config = search.config
        count, best = len(sources), min(config.n_best, config.beam)
        self.longest_source = max(map(len, sources))
        self.longest_limit = max(limit.max_length for limit in limits)
        limit_R = [limit.max_length for limit in limits]
        starts_R = _starts([best * limit for limit in limit_R])
        prefixes = [limit.prefix_ids for limit in limits]
        never = sorted(set(search.never))
        self._limit_R, self._starts_R = limit_R, starts_R
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
        numbers, integers, penalty, score, ids, logs = map(address_of, arrays)
        of_numbers = {name: numbers + 8 * place for name, place in number_places.items()}
        of_integers = {name: integers + 4 * place for name, place in self._places.items()}
        self.job = Job(
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
            top_k=min(config.top_k, 2**31),
            longest_source=self.longest_source,
            longest_limit=self.longest_limit,
            penalties=penalty,
            scores=score,
            ids=ids,
            logs=logs,
            **of_numbers,
            **of_integers,
        )

    def draw(self, uniforms: Sequence[np.ndarray]) -> None:
        """Draw tokens with these numbers instead of searching for the best."""
        for numbers, limit in zip(uniforms, self._limit_R, strict=True):
            if numbers.shape != (limit,) or not ((numbers >= 0) & (numbers < 1)).all():
                raise InputError(
                    f"A sample of at most {limit} tokens needs as many numbers in [0, 1), but got "
                    f"an array of the shape {numbers.shape}, or others."
                )
        self._uniforms = np.concatenate(uniforms).astype(np.float64, copy=False)
        self.job.uniforms = address_of(self._uniforms)

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
        if is_short or threading.current_thread() is not threading.main_thread():
            return int(library.translate(ctypes.byref(self.job)))
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
        count, best = len(self._limit_R), len(self._scores) // len(self._limit_R)
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
                ids, logs = self._ids[start:end].tolist(), self._logs[start:end].tolist()
                ended.append(Ended(tuple(ids), tuple(logs), bool(finished[place]), scores[place]))
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
        ``float64`` for the lengths from 0 to the longest; it must not be written into.

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
    return penalties_T
