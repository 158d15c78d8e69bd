"""Traces as safetensors: a header in JSON that holds the records, then the numbers.

The service answers ``/v1/look`` with the same bytes, so that a file, an answer and a trace in
Python are read by one function.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pellucid.config.parsing import finite_values, read_json_text
from pellucid.errors import InputError
from pellucid.files import write_bytes
from pellucid.inside.record.trace_data import TraceData

KIND = "pellucid-trace-1"
"""The mark of such a file in its metadata."""

RECORDS = (
    *("source_tokens", "source_ids", "target_tokens", "target_ids"),
    *("predicted_tokens", "predicted_ids", "log_probabilities", "argmax_tokens"),
    *("decode_log_probabilities", "heads", "checks", "model", "decoding"),
)
"""The records of a trace, in the order in which they are written."""

_DTYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F64": np.dtype("<f8")}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


def tensor_chunks(
    records: Mapping[str, Any], arrays: Iterable[tuple[str, np.ndarray]]
) -> Iterator[bytes]:
    """Write a trace as safetensors, array by array.

    Args:
        records: go into the header, as a JSON text under ``__metadata__.trace``.
        arrays: float32 or float64, in the order in which they are written.

    Yields:
        The header, then each array.
    """
    held = list(arrays)
    # Written by hand, since the library would first put all arrays into one string of bytes.
    text = json.dumps(finite_values(records), ensure_ascii=False)
    header: dict[str, Any] = {"__metadata__": {"format": KIND, "trace": text}}
    place = 0
    for name, array in held:
        end = place + array.nbytes
        kind = _NAMES[array.dtype.newbyteorder("<")]
        header[name] = {"dtype": kind, "shape": array.shape, "data_offsets": [place, end]}
        place = end
    head = json.dumps(header).encode()
    # The format wants arrays to begin at a multiple of eight bytes.
    head += b" " * (-len(head) % 8)
    yield len(head).to_bytes(8, "little") + head
    for _, array in held:
        yield np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()


def write_tensors(trace: TraceData, path: Path) -> None:
    """Write a trace as ``.safetensors``."""
    records = {name: getattr(trace, name) for name in RECORDS}
    write_bytes(path, b"".join(tensor_chunks(records, trace.arrays.items())), follows_link=True)


def read_trace_tensors(stream: BinaryIO, name: str) -> dict[str, Any]:
    """Read the arrays and the records of a trace.

    Args:
        stream: the file.
        name: its name, for messages.

    Raises:
        InputError: it is of another kind.
    """
    size = int.from_bytes(stream.read(8), "little")
    header = read_json_text(stream.read(size).decode())
    about = header.pop("__metadata__", {})
    if about.get("format") != KIND:
        raise InputError(
            f"A trace in safetensors must have the format {KIND}, but {name} has "
            f"{about.get('format')}. Name a file that a trace was saved to."
        )
    records = read_json_text(about["trace"])
    # An answer of the service has more records, which are no part of the trace.
    values = {record: records[record] for record in RECORDS}
    body = stream.read()
    for array_name, entry in header.items():
        start, end = entry["data_offsets"]
        numbers = np.frombuffer(body[start:end], dtype=_DTYPES[entry["dtype"]])
        values[array_name] = numbers.reshape(entry["shape"])
    return values
