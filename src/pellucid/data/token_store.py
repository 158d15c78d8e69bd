"""The token store: a corpus as ids on disk, memory-mapped.

A folder of five files:

- ``source.tokens``, ``target.tokens``: all ids one after the other, little-endian, ``uint16`` for
  vocabularies of up to 65,535 entries, ``uint32`` above;
- ``source.offsets``, ``target.offsets``: ``uint64``, the start of each sequence, and the end of the
  last one;
- ``store.json``: format, counts, types, fingerprint, and the number of pairs left out, by reason.

It is written in one pass in bounded memory under another name, flushed to disk and then renamed, so
that an interrupted build leaves nothing that looks finished.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Literal, Self, final

import numpy as np
from numpy.typing import NDArray
from pydantic import NonNegativeInt, PositiveInt, ValidationError

from pellucid.config import Strict
from pellucid.errors import DataError, InputFileNotFoundError, OutputError
from pellucid.files import new_folder, read_bytes, write_text

_DESCRIPTION = "store.json"
_TOKENS_PER_WRITE = 1 << 16

Gathered = tuple[NDArray[np.int64], NDArray[np.int64]]
"""The ids of several sequences one after the other, and how many each has."""


@final
class _Side(Strict):
    """One side of the corpus, as ``store.json`` describes it."""

    dtype: Literal["uint16", "uint32"]
    num_tokens: PositiveInt
    vocabulary_size: PositiveInt


@final
class _Description(Strict):
    """The content of ``store.json``."""

    format: Literal[1]
    num_pairs: PositiveInt
    source: _Side
    target: _Side
    fingerprint: str
    dropped: dict[str, NonNegativeInt]


@final
class TokenStore:
    """A corpus of (source, target) pairs as token ids; made by `build_store`.

    Only the lengths and offsets are in memory; tokens are read from disk when they are used.
    """

    def __init__(self, description: _Description, source: _Tokens, target: _Tokens) -> None:
        self._description = description
        self._source = source
        self._target = target

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open a store and check that it is complete.

        Args:
            folder: the folder that `build_store` made.

        Raises:
            InputFileNotFoundError: the folder holds no store.
            DataError: files are missing, or disagree with ``store.json``.
        """
        description = _read_description(folder)
        sides = {
            name: _Tokens.open(folder, name, side, num_pairs=description.num_pairs)
            for name, side in (("source", description.source), ("target", description.target))
        }
        return cls(description, sides["source"], sides["target"])

    def __len__(self) -> int:
        """The number of pairs."""
        return self._description.num_pairs

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the tokens and the offsets of both sides, in hexadecimal."""
        return self._description.fingerprint

    @property
    def dropped(self) -> dict[str, int]:
        """The number of pairs left out when the store was built, by reason."""
        return dict(self._description.dropped)

    @property
    def source_lengths(self) -> NDArray[np.int32]:
        """The tokens of each source, with the end token."""
        return self._source.lengths

    @property
    def target_lengths(self) -> NDArray[np.int32]:
        """The tokens of each target, with the end token."""
        return self._target.lengths

    def source(self, index: int) -> NDArray[np.unsignedinteger]:
        """Read one source's ids; the array is read-only."""
        return self._source.sequence(index)

    def target(self, index: int) -> NDArray[np.unsignedinteger]:
        """Read one target's ids; the array is read-only."""
        return self._target.sequence(index)

    def gather_sources(self, indices: NDArray[np.int64]) -> Gathered:
        """Read several sources: their ids one after the other, and how many each has."""
        return self._source.gather(indices)

    def gather_targets(self, indices: NDArray[np.int64]) -> Gathered:
        """Read several targets: their ids one after the other, and how many each has."""
        return self._target.gather(indices)


def build_store(
    folder: Path,
    pairs: Iterable[tuple[Sequence[int], Sequence[int]]],
    *,
    source_vocabulary_size: int,
    target_vocabulary_size: int,
    dropped: Mapping[str, int] | None = None,
) -> TokenStore:
    """Write a corpus to disk in one pass, in bounded memory.

    Args:
        folder: the store's folder; must not exist yet, or be empty.
        pairs: source ids and target ids; read once, one by one.
        source_vocabulary_size: one more than the largest possible source id.
        target_vocabulary_size: the same for targets.
        dropped: the number of pairs left out, by reason. It is read after the last pair, so the
            iterator of pairs may count into it.

    Returns:
        The store, opened.

    Raises:
        DataError: ``pairs`` is empty, one has an empty side, or an id is not in the vocabulary.
        OutputError: the disk is full, or the folder cannot be written or is not empty.
    """
    with new_folder(folder) as part:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise OutputError(
                f"The folder of a new token store must be empty, but {folder} is not. "
                "Delete it or choose another."
            )
        with ExitStack() as stack:
            source = _Writer(part, "source", source_vocabulary_size, stack)
            target = _Writer(part, "target", target_vocabulary_size, stack)
            for source_ids, target_ids in pairs:
                source.append(source_ids)
                target.append(target_ids)
            source.finish()
            target.finish()
        if source.num_sequences == 0:
            raise DataError(
                "Training must have at least one pair, but the files are empty or all were left out"
                f"{_list_dropped(dropped)}. Check the files and data.max_pair_length."
            )
        # Written last: a folder without it is no store.
        description = _Description(
            format=1,
            num_pairs=source.num_sequences,
            source=source.describe(),
            target=target.describe(),
            fingerprint=hashlib.sha256(source.digest() + target.digest()).hexdigest(),
            dropped=dict(dropped or {}),
        )
        write_text(part / _DESCRIPTION, description.model_dump_json(indent=2) + "\n")
    return TokenStore.open(folder)


@final
class _Tokens:
    """One side of an open store."""

    def __init__(self, tokens: NDArray[np.unsignedinteger], offsets: NDArray[np.int64]) -> None:
        self._tokens = tokens
        self._offsets = offsets
        self.lengths: NDArray[np.int32] = np.diff(offsets).astype(np.int32)
        # Handed out without a copy, so it must not be written into.
        self.lengths.flags.writeable = False

    @classmethod
    def open(cls, folder: Path, name: str, side: _Side, *, num_pairs: int) -> Self:
        """Map one side's files, after checking their sizes and offsets."""
        # Files move between machines, so the order of their bytes is fixed.
        dtype = np.dtype(side.dtype).newbyteorder("<")
        tokens = _map(folder / f"{name}.tokens", dtype, side.num_tokens)
        path = folder / f"{name}.offsets"
        # Signed, because NumPy makes float64 of uint64 with int64.
        offsets = _map(path, np.dtype("<u8"), num_pairs + 1).astype(np.int64)
        is_rising = bool(np.all(offsets[1:] > offsets[:-1]))
        if offsets[0] != 0 or offsets[-1] != side.num_tokens or not is_rising:
            raise DataError(
                f"The offsets of a token store must rise from 0 to {side.num_tokens}, but those "
                f"in {path} do not. Delete {folder} and build it again."
            )
        return cls(tokens, offsets)

    def sequence(self, index: int) -> NDArray[np.unsignedinteger]:
        """Return one sequence's ids, without a copy."""
        # A negative index would give another pair without a word.
        if not 0 <= index < len(self.lengths):
            raise IndexError(f"pair {index} of {len(self.lengths)}")
        return self._tokens[self._offsets[index] : self._offsets[index + 1]]

    def gather(self, indices: NDArray[np.int64]) -> Gathered:
        """Read several sequences: their ids one after the other, and how many each has."""
        lengths = self.lengths[indices].astype(np.int64)
        # Token j of the result is token j + shift of the file, where the shift is constant within a
        # sequence.
        shifts = self._offsets[indices] - (np.cumsum(lengths) - lengths)
        places = np.arange(lengths.sum()) + np.repeat(shifts, lengths)
        return self._tokens[places].astype(np.int64), lengths


@final
class _Writer:
    """Appends one side's sequences to its two files, in bounded memory."""

    def __init__(self, folder: Path, name: str, vocabulary_size: int, stack: ExitStack) -> None:
        self.num_sequences = 0
        self._name = name
        self._vocabulary_size = vocabulary_size
        self._dtype: Literal["uint16", "uint32"] = (
            "uint16" if vocabulary_size <= np.iinfo(np.uint16).max else "uint32"
        )
        self._tokens_file = stack.enter_context((folder / f"{name}.tokens").open("wb"))
        self._offsets_file = stack.enter_context((folder / f"{name}.offsets").open("wb"))
        self._num_tokens = 0
        self._ids: list[int] = []
        self._ends: list[int] = [0]
        self._tokens_hash = hashlib.sha256()
        self._offsets_hash = hashlib.sha256()

    def append(self, ids: Sequence[int]) -> None:
        """Add one sequence."""
        if len(ids) == 0:
            raise DataError(
                f"Every {self._name} must have at least one token, but that of pair "
                f"{self.num_sequences} (from 0) has none. Leave out empty lines."
            )
        self._ids.extend(ids)
        self._num_tokens += len(ids)
        self._ends.append(self._num_tokens)
        self.num_sequences += 1
        if len(self._ids) >= _TOKENS_PER_WRITE:
            self._write()

    def finish(self) -> None:
        """Write the rest, and wait until it is on the disk."""
        self._write()
        for stream in (self._tokens_file, self._offsets_file):
            stream.flush()
            # A rename may reach the disk before the data, and half a store would look finished.
            os.fsync(stream.fileno())

    def describe(self) -> _Side:
        """Describe this side for ``store.json``."""
        return _Side(
            dtype=self._dtype,
            num_tokens=self._num_tokens,
            vocabulary_size=self._vocabulary_size,
        )

    def digest(self) -> bytes:
        """Hash the tokens and the offsets; the result does not depend on the size of the writes."""
        return self._tokens_hash.digest() + self._offsets_hash.digest()

    def _write(self) -> None:
        """Write the buffers to the files and clear them."""
        ids = np.array(self._ids, dtype=np.int64)
        # Here and not in `append`, so that NumPy looks at a whole buffer at once.
        if ids.size and (ids.min() < 0 or ids.max() >= self._vocabulary_size):
            wrong = ids.min() if ids.min() < 0 else ids.max()
            raise DataError(
                f"Every {self._name} id must be in 0 to {self._vocabulary_size - 1}, but one is "
                f"{wrong}. Use the tokenizer whose vocabulary was given."
            )
        tokens = ids.astype(np.dtype(self._dtype).newbyteorder("<")).tobytes()
        offsets = np.array(self._ends, dtype="<u8").tobytes()
        self._tokens_hash.update(tokens)
        self._offsets_hash.update(offsets)
        self._tokens_file.write(tokens)
        self._offsets_file.write(offsets)
        self._ids.clear()
        self._ends.clear()


def _read_description(folder: Path) -> _Description:
    """Read and check ``store.json``."""
    path = folder / _DESCRIPTION
    if not path.exists():
        raise InputFileNotFoundError(
            f"A token store must have its {_DESCRIPTION}, but {path} does not exist. "
            "Check the name, or build the store."
        )
    try:
        return _Description.model_validate_json(read_bytes(path))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(place) for place in first["loc"]) or "the whole file"
        raise DataError(
            f"The description of a token store must have this version's format, but {path} does "
            f"not ({field}: {first['msg']}). Delete {folder} and build it again."
        ) from error


def _map(
    path: Path, dtype: np.dtype[np.unsignedinteger], count: int
) -> NDArray[np.unsignedinteger]:
    """Memory-map an array of known size, read-only."""
    try:
        size = path.stat().st_size
        if size != count * dtype.itemsize:
            raise DataError(
                f"A token store's file must have the size that {_DESCRIPTION} gives, "
                f"{count * dtype.itemsize} bytes, but {path} has {size}. "
                f"Delete {path.parent} and build it again."
            )
        # As a plain array: each slice of a memmap would be one again, which takes longer.
        return np.memmap(path, dtype=dtype, mode="r", shape=(count,)).view(np.ndarray)
    except OSError as error:
        raise DataError(
            f"A token store's file must be readable, but {path} is not: "
            f"{error.strerror or error}. Delete {path.parent} and build it again."
        ) from error


def _list_dropped(dropped: Mapping[str, int] | None) -> str:
    """List the number of dropped pairs by reason, for a message."""
    if not dropped:
        return ""
    return " (" + ", ".join(f"{reason}: {count}" for reason, count in dropped.items()) + ")"
