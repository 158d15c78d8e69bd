"""Traces on disk: ``.npz``, ``.json`` and ``.safetensors`` hold the same names and numbers."""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import re
import shutil
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Self, cast

import numpy as np

from pellucid.arguments import refuse
from pellucid.config.parsing import read_json_text
from pellucid.errors import InputError, InputFileNotFoundError, fault_of_machine
from pellucid.files import (
    create_file,
    endings,
    is_device,
    open_to_write,
    write_text,
    writing,
)
from pellucid.inside.ask import HEAD_STAGES, MAP_STAGES, STAGES
from pellucid.inside.record.tensor_files import read_trace_tensors
from pellucid.inside.record.trace_data import TraceData

FORMAT = 1
TOKENS = ("source_tokens", "target_tokens", "predicted_tokens", "argmax_tokens")
IDS = ("source_ids", "target_ids", "predicted_ids", "heads")
LOGS = ("log_probabilities", "decode_log_probabilities")
RECORDS = ("checks", "model", "decoding")
NAMES = ("format", *TOKENS, *IDS, *LOGS, *RECORDS)
"""Everything in a file except the arrays of the model."""

DAMAGE = (
    KeyError,
    IndexError,
    ValueError,
    TypeError,
    EOFError,
    RuntimeError,
    MemoryError,
    OverflowError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
"""The errors that reading a damaged file may raise."""


def read_trace(source: str | Path | bytes) -> TraceData:
    """Read a trace back, equal to the one that was written.

    Args:
        source: a file, or the bytes of one, such as an answer of the service.

    Raises:
        InputFileNotFoundError: the file does not exist.
        InputError: the file is damaged, is not a trace, or is of a later version.
    """
    if not isinstance(source, str | bytes | bytearray | os.PathLike):
        refuse("source", "the name of a trace's file, or its bytes", source)
    open_it: Callable[[], Any]
    if isinstance(source, bytes | bytearray):
        name = "in these bytes"
        kind = _kind_of(source)
        open_it = partial(io.BytesIO, source)
    else:
        name = str(source)
        kind = Path(name_without_gz(Path(source))).suffix
        open_it = partial(Path(source).open, "rb")
    reader = _READERS.get(kind)
    if reader is None:
        raise InputError(
            f"A trace to read must be a {', '.join(_READERS)} or .json.gz file, but is named "
            f"{Path(name).name}. Name another file."
        )
    try:
        with open_it() as stream:
            return _to_trace(reader(cast(BinaryIO, stream), name))
    except FileNotFoundError:
        raise InputFileNotFoundError(
            f"The trace {name} does not exist. Name another file."
        ) from None
    except OSError as error:
        if fault_of_machine(error) is not None:
            raise
        raise InputError(f"The trace {name} cannot be read ({error}). Name another file.") from None
    except InputError:
        raise
    except DAMAGE as error:
        raise InputError(
            f"The trace {name} is damaged ({error}). Look again to make another."
        ) from None


def _kind_of(data: bytes | bytearray) -> str:
    """Tell the kind of a file by its first bytes."""
    if data[:2] == b"PK":
        return ".npz"
    # The eight bytes before are the length of the header.
    return ".safetensors" if data[8:9] == b"{" and data[:1] != b"{" else ".json"


def name_without_gz(path: Path) -> str:
    """Return a file's name in lower case, without the ``.gz`` that only text files may have."""
    # An ending in capitals is still that ending.
    name = path.name.lower()
    is_text = endings(path).kind in (".json", ".html")
    return name.removesuffix(".gz") if is_text else name


class NpzWriter:
    """Writes a ``.npz`` file array by array, so that memory holds one at a time.

    A context manager: the file appears at its end if `finish` was called, and otherwise stays as
    it was.

    Args:
        path: the file.

    Raises:
        OutputError: it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # A link keeps pointing where it does; the file behind it is replaced.
        self._target = Path(os.path.realpath(path))
        # Next to the target, so that taking its place is one step of the file system.
        self._part = self._target.with_name(f".{self._target.name}.part")
        if is_device(path):
            # A device cannot be replaced by a file, and an archive cannot be written to a pipe.
            self._part = Path(tempfile.mkdtemp()) / path.name
        self._is_finished = False
        with writing(path):
            self._stream = create_file(self._part)
            self._archive = zipfile.ZipFile(self._stream, "w", zipfile.ZIP_STORED)

    def keep(self, name: str, array: np.ndarray) -> None:
        """Write one array."""
        # A fixed date gives equal traces equal bytes.
        entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
        with writing(self._path), self._archive.open(entry, "w", force_zip64=True) as stream:
            np.lib.format.write_array(stream, np.asarray(array, order="C"), allow_pickle=False)

    def finish(self, last: Mapping[str, np.ndarray]) -> None:
        """Write the last arrays, and mark the file as whole."""
        for name, array in last.items():
            self.keep(name, array)
        self._is_finished = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_failure: object) -> None:
        try:
            with writing(self._path):
                with self._stream:
                    self._archive.close()
                if self._is_finished and is_device(self._path):
                    with self._part.open("rb") as part, open_to_write(self._path) as device:
                        shutil.copyfileobj(part, device)
                # An interrupted file never takes the place of a whole one.
                elif self._is_finished:
                    self._part.replace(self._target)
        finally:
            with suppress(OSError):
                self._part.unlink(missing_ok=True)
            if self._part.parent != self._target.parent:
                with suppress(OSError):
                    self._part.parent.rmdir()


def surroundings(trace: TraceData) -> dict[str, np.ndarray]:
    """Turn tokens into unicode arrays, ids and logs into numbers, records into JSON strings."""
    found: dict[str, np.ndarray] = {"format": np.array(FORMAT)}
    for name in TOKENS:
        found[name] = np.array(getattr(trace, name), dtype=np.str_)
    for name in IDS:
        found[name] = np.array(getattr(trace, name), dtype=np.int64)
    # An empty array stands for logs that a given target does not have.
    for name in LOGS:
        found[name] = np.array(getattr(trace, name) or (), dtype=np.float64)
    for name in RECORDS:
        found[name] = np.array(json.dumps(dict(getattr(trace, name)), ensure_ascii=False))
    return found


def write_npz(trace: TraceData, path: Path) -> None:
    """Write a trace as ``.npz``."""
    with NpzWriter(path) as writer:
        for name, array in trace.arrays.items():
            writer.keep(name, array)
        writer.finish(surroundings(trace))


def write_json(trace: TraceData, path: Path) -> None:
    """Write a trace as ``.json``."""
    write_text(path, trace_to_json(trace) + "\n", follows_link=True)


def trace_to_json(trace: TraceData) -> str:
    """Turn a trace into the JSON object that a file of it holds, on one line."""
    surroundings: dict[str, Any] = {"format": FORMAT}
    for name in (*TOKENS, *IDS, *LOGS):
        value = getattr(trace, name)
        surroundings[name] = None if value is None else list(value)
    for name in RECORDS:
        surroundings[name] = dict(getattr(trace, name))
    dtypes = {name: str(array.dtype) for name, array in trace.arrays.items()}
    surroundings["dtype"] = next(iter(dtypes.values()), "float32")
    head = json.dumps(surroundings, ensure_ascii=False, allow_nan=False)[:-1]
    parts = [head]
    for name, array in trace.arrays.items():
        values = array.tolist()
        if np.isneginf(array).any():
            values = _without_infinities(values)
        numbers = json.dumps(values, allow_nan=False)
        parts.append(f", {json.dumps(name)}: {numbers}")
    return "".join(parts) + "}"


def _without_infinities(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_infinities(one) for one in value]
    return "-inf" if value == -math.inf else value


def _check_format(version: Any, name: str) -> None:
    if version != FORMAT:
        raise InputError(
            f"The format of a trace must be {FORMAT}, but is {version} ({name}). Read it with the "
            "version of pellucid that wrote it, or look again."
        )


def _read_npz(stream: BinaryIO, name: str) -> dict[str, Any]:
    with np.load(stream, allow_pickle=False) as archive:
        _check_format(int(archive["format"]), name)
        values = {name: archive[name] for name in archive.files if name != "format"}
    for record in RECORDS:
        values[record] = read_json_text(str(values[record][()]))
    for record in (*TOKENS, *IDS, *LOGS):
        values[record] = values[record].tolist()
    values["decode_log_probabilities"] = values["decode_log_probabilities"] or None
    return values


def _read_json(stream: BinaryIO, name: str) -> dict[str, Any]:
    data = stream.read()
    is_gzip = data[:2] == b"\x1f\x8b"
    values = read_json_text((gzip.decompress(data) if is_gzip else data).decode("utf-8"))
    if not isinstance(values, dict):
        raise ValueError("it does not hold an object")
    _check_format(values.pop("format"), name)
    dtype = np.dtype({"float32": np.float32, "float64": np.float64}[values.pop("dtype")])
    for array in list(values):
        if array not in NAMES:
            values[array] = np.array(values[array], dtype=dtype)  # NumPy reads "-inf" as −∞.
    return values


_READERS: dict[str, Callable[[BinaryIO, str], dict[str, Any]]] = {
    ".npz": _read_npz,
    ".json": _read_json,
    ".safetensors": read_trace_tensors,
}


def _to_trace(values: Mapping[str, Any]) -> TraceData:
    arrays = {name: array for name, array in values.items() if name not in NAMES}
    for name, array in arrays.items():
        if array.dtype.kind != "f" or np.isnan(array).any():
            raise ValueError(f"{name} must hold only numbers")
    named: dict[str, Any] = {
        name: None if values[name] is None else tuple(values[name])
        for name in (*TOKENS, *IDS, *LOGS)
    }
    named |= {name: dict(values[name]) for name in RECORDS}
    trace = TraceData(arrays=arrays, **named)
    _check_records(trace)
    for name, array in arrays.items():
        if array.shape != _shape_of(trace, name, array):
            raise ValueError(f"{name} has the shape {array.shape}")
    return trace


def _check_records(trace: TraceData) -> None:
    """Make sure that tokens, ids and logs have the right lengths and types."""
    lengths = {"heads": len(trace.heads)}
    lengths |= dict.fromkeys(("source_ids", "source_tokens"), len(trace.source_ids))
    kinds = dict.fromkeys(IDS, int) | dict.fromkeys(TOKENS, str) | dict.fromkeys(LOGS, float)
    if not trace.decode_log_probabilities:
        del kinds["decode_log_probabilities"]
    for name, kind in kinds.items():
        values = getattr(trace, name)
        length = lengths.get(name, len(trace.target_ids))
        if len(values) != length or any(type(value) is not kind for value in values):
            raise ValueError(f"{name} must hold {length} of {kind.__name__}")


_NAME = re.compile(
    r"(encoder|decoder)\.(?:(\d+)\.(self|cross|feed_forward|recurrent)\.)?([a-z]+)", re.ASCII
)
_ONE_ROW = ("vector", "initial")
"""Stages of a recurrent model that have a single row, whatever the length of the sentence."""


def _shape_of(trace: TraceData, name: str, array: np.ndarray) -> tuple[int, ...]:
    """Return the shape that an array of this name must have; any width is allowed."""
    found = _NAME.fullmatch(name)
    if found is None or found[4] not in STAGES:
        raise ValueError(f"a trace has no array {name}")
    part, _, kind, stage = found.groups()
    rows = len(trace.query_tokens(part))
    keys = len(trace.key_tokens(part, kind or "self"))
    if stage in HEAD_STAGES and kind in ("self", "cross"):
        length = keys if stage in ("key", "value") else rows
        width = keys if stage in MAP_STAGES else array.shape[-1]
        return len(trace.heads), length, width
    return 1 if stage in _ONE_ROW else rows, array.shape[-1]
