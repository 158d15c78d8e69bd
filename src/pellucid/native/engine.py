"""The engine's interface: token ids in, hypotheses out, all of it checked before C sees it."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from pellucid.config import ModelConfig, Precision
from pellucid.errors import InputError
from pellucid.machine.turns import give_way
from pellucid.native.call import Call, Ended, LengthLimits, SearchOptions
from pellucid.native.loading import find_library
from pellucid.native.session import Encoded, Session, encode
from pellucid.native.structures import NO_MEMORY
from pellucid.native.weights import Weights, pack

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
        self._library = library
        self._packed = packed
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
        given: np.ndarray | None = None,
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
            given: the encoder's vectors of all source tokens, one after another, if something else
                computed them.
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
        call = Call([sources[i] for i in order], [limits[i] for i in order], search)
        if given is not None:
            ends = np.cumsum(list(map(len, sources)))
            parts = np.split(self._checked(given, sources), ends[:-1])
            call.give(np.concatenate([parts[i] for i in order]))
        if search.config.sample:
            call.draw([uniforms[i] for i in order])
        most = min(sentences, MOST_ROWS // search.config.beam, self._fitting(sources, search))
        # A beam wider than `MOST_ROWS` still needs a slot.
        call.job.slots = max(1, min(most, len(sources)))
        call.job.threads = max(1, threads)
        with self._is_computing:
            self._packed.need_positions(call.longest_source, call.longest_limit)
            call.job.model = ctypes.addressof(self._packed.model)
            # Elsewhere it costs more than it saves: docs/decisions/0019, "share products".
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
        config = self.config
        beam = search.config.beam
        length = sum(map(len, sources)) / len(sources)
        kept = config.num_heads * (config.d_key + config.d_value)
        if config.decoder == "ssru":
            kept = config.d_model
        position = 4 * config.num_decoder_layers * kept
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

    def encode(
        self,
        sources: Sequence[Sequence[int]],
        given: np.ndarray | None = None,
        *,
        threads: int,
    ) -> Encoded:
        """Encode sentences for a session, or take the vectors of their tokens that are given.

        Raises:
            InputError: an id is not in the vocabulary, or a source is too long or empty.
            MemoryError: there is too little memory.
        """
        self._check_sources(sources)
        self._packed.need_positions(max(map(len, sources)), 0)
        given = None if given is None else self._checked(given, sources)
        return encode(self._packed, self._library, sources, threads, given)

    def _checked(self, given: np.ndarray, sources: Sequence[Sequence[int]]) -> np.ndarray:
        """Make sure that C finds as many vectors as it reads."""
        wanted = (sum(map(len, sources)), self.config.d_model)
        if given.shape != wanted:
            raise InputError(
                f"The vectors of the sources must have the shape {wanted}, but have {given.shape}."
            )
        return np.ascontiguousarray(given, np.float32)

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
        size = config.target_vocabulary_size
        longest = config.max_target_length
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
            # The fourth field counts threads, running and all: 2/517.
            num_running = int(file.read().split()[3].split("/")[0])
    except (OSError, ValueError, IndexError):
        # Without that file nothing is known, so it counts as an idle machine.
        return True
    return num_running - 1 + threads <= (os.cpu_count() or 1)  # this thread is one that runs


def _check_ids(side: str, ids: Sequence[int], size: int) -> None:
    # Nearly always all ids are right, and min and max read them without a loop in Python.
    if len(ids) and not 0 <= min(ids) <= max(ids) < size:
        wrong = next(one for one in ids if not 0 <= one < size)
        raise InputError(
            f"The ids of a {side} must be from 0 to {size - 1}, but one is {wrong}. Take them "
            "from this model's vocabulary."
        )
