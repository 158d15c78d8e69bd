"""The steps of the engine: a search in Python gives tokens and gets logits, where C left them."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pellucid.errors import InputError
from pellucid.machine.turns import give_way
from pellucid.native.structures import NO_MEMORY, WRONG, Encoding, array_address, flatten
from pellucid.native.weights import Packed

WORK_OF_A_THREAD = 4_000_000
"""Multiplications from which another thread pays off: to start one takes some 20 microseconds."""


@dataclass(frozen=True)
class Encoded:
    """Sentences whose keys and values of all decoder layers are computed.

    Attributes:
        packed: the model.
        lengths: tokens of each.
        memories: the keys and values of all sentences.
        offsets: the place of each sentence's first, and the end of the last.
    """

    packed: Packed
    lengths: tuple[int, ...]
    memories: np.ndarray
    offsets: np.ndarray


def encode(
    packed: Packed,
    library: ctypes.CDLL,
    sources: Sequence[Sequence[int]],
    threads: int,
    given: np.ndarray | None = None,
) -> Encoded:
    """Encode sentences of checked ids, or take the vectors that are given for all their tokens.

    Raises:
        MemoryError: there is too little memory.
    """
    lengths = tuple(map(len, sources))
    model = ctypes.byref(packed.model)
    # Without this type ctypes would cut results to 32 bits.
    library.size_of_memory.restype = ctypes.c_int64
    sizes = [library.size_of_memory(model, ctypes.c_int64(length)) for length in lengths]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    memories = np.empty(offsets[-1], np.float32)
    ids, starts = flatten(sources)
    encoding = Encoding(
        model=ctypes.addressof(packed.model),
        count=len(sources),
        threads=_useful_threads(packed, len(ids), min(threads, len(sources))),
        ids=array_address(ids),
        given=None if given is None else array_address(given),
        starts=array_address(starts),
        memories=array_address(memories),
        offsets=array_address(offsets),
    )
    _check(library.encode_sentences(ctypes.byref(encoding)))
    return Encoded(packed, lengths, memories, offsets)


class Session:
    """Slots for sentences with ``width`` hypotheses each, which a search fills, reads and empties.

    Args:
        packed: the model.
        library: the engine.
        sentences: the number of slots.
        width: hypotheses of each sentence.
    """

    def __init__(self, packed: Packed, library: ctypes.CDLL, *, sentences: int, width: int) -> None:
        self._packed = packed
        self._library = library
        self._width = width
        library.open_session.restype = ctypes.c_void_p
        opened = library.open_session(
            ctypes.byref(packed.model), ctypes.c_int64(sentences), ctypes.c_int64(width)
        )
        if opened is None:
            raise MemoryError
        self._session = ctypes.c_void_p(opened)
        # C's memory goes with this object, whatever becomes of the search.
        self._close = weakref.finalize(self, library.close_session, self._session)
        self._length_B = np.zeros(sentences, np.int64)
        self._source_length_B = np.zeros(sentences, np.int64)
        self._is_filled_B = np.zeros(sentences, bool)
        self._is_whole_BW = np.zeros((sentences, width), bool)  # Every step computed its part.
        size = packed.config.target_vocabulary_size
        # One table for all steps: C writes into it, rules change it there, and nothing is copied.
        self._logits_AV = np.empty((sentences * width, size), np.float32)

    def insert(self, slots: Sequence[int], encoded: Encoded, chosen: Sequence[int]) -> None:
        """Start some of the encoded sentences in slots, whose sentences are replaced.

        Raises:
            InputError: another model encoded them.
            MemoryError: there is too little memory.
        """
        if encoded.packed is not self._packed:
            raise InputError("Sentences must be encoded by the model of the session.")
        for slot, index in zip(slots, chosen, strict=True):
            start, end = encoded.offsets[index : index + 2]
            memory = encoded.memories[start:end]
            _check(
                self._library.fill_slot(
                    self._session,
                    ctypes.c_int64(range(len(self._length_B))[slot]),
                    ctypes.c_void_p(array_address(memory)),
                    ctypes.c_int64(encoded.lengths[index]),
                )
            )
            self._length_B[slot] = 0
            self._source_length_B[slot] = encoded.lengths[index]
            self._is_filled_B[slot] = True
            self._is_whole_BW[slot] = True

    def retire(self, slots: Sequence[int]) -> None:
        """Empty slots, so that nothing is computed for them."""
        for slot in slots:
            # Indexing a range refuses slots that do not exist, before C would.
            place = ctypes.c_int64(range(len(self._length_B))[slot])
            self._library.empty_slot(self._session, place)
            self._is_filled_B[slot] = False

    def keep(self, slots: Sequence[int]) -> None:
        """Keep only these slots, which are given in rising order."""
        kept_B = np.array(slots, np.int64)
        if not (np.diff(kept_B, prepend=-1, append=len(self._length_B)) > 0).all():
            raise InputError(f"Slots must be given once each in rising order, but are {slots}.")
        pointer = ctypes.c_void_p(array_address(kept_B))
        self._library.keep_slots(self._session, pointer, ctypes.c_int64(len(kept_B)))
        self._length_B = self._length_B[kept_B]
        self._source_length_B = self._source_length_B[kept_B]
        self._is_filled_B = self._is_filled_B[kept_B]
        self._is_whole_BW = self._is_whole_BW[kept_B]
        self._logits_AV = self._logits_AV[: len(kept_B) * self._width]

    def reorder(self, parents_BW: np.ndarray) -> None:
        """Let every hypothesis continue another one of its sentence: its place among them.

        Raises:
            InputError: a place is beyond the last.
        """
        parents_BW = np.ascontiguousarray(parents_BW, np.int64)
        if parents_BW.shape != (len(self._length_B), self._width):
            raise InputError(f"Parents must fill the slots, but have the shape {parents_BW.shape}.")
        pointer = ctypes.c_void_p(array_address(parents_BW))
        _check(self._library.reorder_slots(self._session, pointer))
        # C refuses wrong parents, but looks at none of an empty slot: those may be anything.
        is_whole_BW = np.take_along_axis(self._is_whole_BW, parents_BW % self._width, axis=1)
        self._is_whole_BW = np.where(self._is_filled_B[:, None], is_whole_BW, False)

    def step(
        self, newest_A: np.ndarray, is_needed_A: np.ndarray | None = None, *, threads: int
    ) -> np.ndarray:
        """Read a token of every row, slot by slot.

        Args:
            newest_A: the tokens; those of rows that are not needed are not looked at.
            is_needed_A: False for rows that nothing continues; None if all in filled slots matter.
            threads: the most threads to use.

        Returns:
            ``logits_AV``, which may be written into, and change with the next step. Rows that are
            not needed or in empty slots have zeros.

        Raises:
            InputError: a token is not in the vocabulary, a sentence is longer than the model
                allows, or an earlier step left out what a row continues.
            MemoryError: there is too little memory.
        """
        self._step(newest_A, is_needed_A, threads, self._logits_AV, None)
        return self._logits_AV

    def attend(
        self, newest_A: np.ndarray, is_needed_A: np.ndarray | None = None, *, threads: int
    ) -> np.ndarray:
        """Read a token of every row as `step` does, for the weights of cross-attention.

        Arguments and errors are those of `step`.

        Returns:
            ``weights_ANHS``: of every row in every layer and head, 0 behind the end of its source
            and in rows that are not needed. No logits are computed.
        """
        config = self._packed.config
        longest = int(self._source_length_B.max(initial=1, where=self._is_filled_B))
        # Zeros, because C writes needed rows only, and those up to the end of their source.
        weights_ANHS = np.zeros(
            (len(self._logits_AV), config.num_decoder_layers, config.num_heads, longest),
            np.float32,
        )
        self._step(newest_A, is_needed_A, threads, None, weights_ANHS)
        return weights_ANHS

    def _step(
        self,
        newest_A: np.ndarray,
        is_needed_A: np.ndarray | None,
        threads: int,
        logits_AV: np.ndarray | None,
        weights_ANHS: np.ndarray | None,
    ) -> None:
        """Read a token of every row, and write what there is an array for."""
        give_way()
        newest_A = np.ascontiguousarray(newest_A, np.int64)
        if is_needed_A is not None:
            is_needed_A = np.ascontiguousarray(is_needed_A, bool)
        for one in (newest_A, is_needed_A):
            if one is not None and one.shape != (len(self._logits_AV),):
                raise InputError(f"Tokens must fill the rows, but have the shape {one.shape}.")
        needed_BW = np.repeat(self._is_filled_B[:, None], self._width, axis=1)
        if is_needed_A is not None:
            needed_BW &= is_needed_A.reshape(needed_BW.shape)
        if (needed_BW & ~self._is_whole_BW).any():
            raise InputError(
                "A step continues a row that an earlier step left out. Mark a row as needed as "
                "long as anything continues it."
            )
        longest = int(self._length_B.max(initial=0, where=self._is_filled_B)) + 1
        config = self._packed.config
        # Positions that are computed have no end; `need_positions` makes more of them.
        if config.positions == "learned" and longest > config.max_target_length:
            raise InputError(
                f"A translation must have at most {config.max_target_length} tokens, for which "
                "this model learned positions, but one is longer."
            )
        self._packed.need_positions(0, longest)
        rows = int(self._is_filled_B.sum()) * self._width
        _check(
            self._library.step_session(
                self._session,
                ctypes.c_void_p(array_address(newest_A)),
                _pointer(is_needed_A),
                _pointer(logits_AV),
                _pointer(weights_ANHS),
                ctypes.c_int64(0 if weights_ANHS is None else weights_ANHS.shape[-1]),
                ctypes.c_int64(_useful_threads(self._packed, rows, threads)),
            )
        )
        self._length_B += 1
        self._is_whole_BW &= needed_BW


def _useful_threads(packed: Packed, rows: int, threads: int) -> int:
    """Limit threads to those that get enough work."""
    return max(1, min(threads, rows * packed.num_weights // WORK_OF_A_THREAD))


def _pointer(array: np.ndarray | None) -> ctypes.c_void_p | None:
    """Point at an array's numbers, or at nothing."""
    return None if array is None else ctypes.c_void_p(array_address(array))


def _check(status: int) -> None:
    if status == NO_MEMORY:
        raise MemoryError
    if status == WRONG:
        raise InputError("A token or a parent that a step was given does not exist.")
