"""Vectors of a corpus on disk: ``.npz``, read through a memory map, and Parquet."""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from pellucid.arguments import checked
from pellucid.errors import InputError, InputFileNotFoundError, need_library
from pellucid.files import create_file, endings, expand_home
from pellucid.inside.record.trace_files import DAMAGE, NpzWriter
from pellucid.shapes import Brief

LONGEST_TEXT = 32
"""Characters of a word or token that a row keeps, so that all rows have one size."""

ROW = np.dtype(
    [
        ("line", "<i8"),
        ("position", "<i4"),
        ("word", "<i4"),
        ("text", f"<U{LONGEST_TEXT}"),
        ("token", f"<U{LONGEST_TEXT}"),
    ]
)
"""What is known of a row besides its vector."""

FORMS = (".npz", ".parquet")
_BEFORE_NAME_LENGTH = 26
"""Bytes of an entry of a zip file before the two lengths that say where its content begins."""


@dataclass(frozen=True, eq=False, repr=False)
class Vectors(Brief):
    """Vectors of many lines at one place of a model, with the word that each belongs to.

    Attributes:
        vectors: a row for each token, ``vectors_ND``; read from disk where they are used.
        rows: the same rows as a structured array: ``line`` (its number, from 0), ``position`` (of
            the source, or the decoder row), ``word`` (its number in the line, from 0; -1 for
            ``</s>``), ``text`` (that word without the marks around it; for a mark, the mark) and
            ``token``. Texts are cut after 32 characters.
        about: ``at``, ``side``, ``words``, ``changes`` (as text), ``model_hash``, ``lines`` and
            ``left_out``, a sentence about each line without vectors.
    """

    vectors: np.ndarray
    rows: np.ndarray
    about: Mapping[str, Any]


def check_vector_output(path: Path, *, overwrite: bool) -> None:
    """Refuse a place that cannot take vectors, before anything is computed.

    Raises:
        InputError: it has another ending, or exists.
        LibraryError: Parquet needs a library that is not installed.
    """
    form = endings(path)
    if form.packing or form.kind not in FORMS:
        raise InputError(
            f"The output must end in {' or '.join(FORMS)}, but is named {path.name}. Rename it."
        )
    if form.kind == ".parquet":
        need_library("pyarrow.parquet")
    if path.is_dir() or (path.exists() and not overwrite):
        raise InputError(
            f"The output must be a new file, but {path} exists. Choose another name, or add "
            "--overwrite."
        )


def write_vectors(found: Vectors, path: Path) -> None:
    """Write vectors in the form that the file's ending names."""
    about = json.dumps(found.about, ensure_ascii=False)
    if endings(path).kind == ".npz":
        with NpzWriter(path) as writer:
            # First the large array, which readers map into memory.
            writer.finish({"vectors": found.vectors, "rows": found.rows, "about": np.array(about)})
        return
    pyarrow = import_module("pyarrow")
    columns = {name: pyarrow.array(np.array(found.rows[name])) for name in ROW.names or ()}
    values = pyarrow.array(found.vectors.reshape(-1))
    columns["vector"] = pyarrow.FixedSizeListArray.from_arrays(values, found.vectors.shape[1])
    part = path.with_name(f".{path.name}.part")
    with create_file(part) as stream:
        table = pyarrow.table(columns, metadata={"pellucid": about})
        need_library("pyarrow.parquet").write_table(table, stream)
    part.replace(path)


@checked
def load_vectors(source: str | Path) -> Vectors:
    """Read vectors of a corpus back, without reading the vectors themselves yet.

    Args:
        source: a ``.npz`` file that `vectors` made.

    Raises:
        InputFileNotFoundError: it does not exist.
        InputError: it is damaged, or is something else.
    """
    path = Path(expand_home(source))
    try:
        vectors_ND = _map_first(path)
        # Nothing is unpickled, which could run code.
        with np.load(path, allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            rows = file["rows"]
        if rows.dtype != ROW or len(rows) != len(vectors_ND):
            raise ValueError("its rows are others")
    except FileNotFoundError:
        raise InputFileNotFoundError(f"The file {path} does not exist. Check the name.") from None
    except (OSError, AttributeError, struct.error, *DAMAGE) as error:
        raise InputError(
            f"The vectors must be a .npz file that pellucid vectors made, but {path} is not "
            f"({error}). Make it again."
        ) from None
    return Vectors(vectors_ND, rows, about)


def _map_first(path: Path) -> np.ndarray:
    """Map the array of numbers that a ``.npz`` file begins with into memory."""
    with zipfile.ZipFile(path) as archive, path.open("rb") as stream:
        stream.seek(archive.getinfo("vectors.npy").header_offset + _BEFORE_NAME_LENGTH)
        stream.seek(sum(struct.unpack("<HH", stream.read(4))), 1)
        np.lib.format.read_magic(stream)
        shape, *_ = np.lib.format.read_array_header_1_0(stream)
        return np.memmap(path, "<f4", "r", stream.tell(), shape)
