"""The files of a folder of Marian: settings, weights, vocabularies as lists or SentencePiece.

After the version, 1, and the number of arrays come four numbers of eight bytes for each: the length
of its name, its type, its number of axes, and its length in bytes. Then come all names, all axes,
zeros up to a multiple of 256, and the data.

Source:
    Marian's ``common/binary.cpp`` and ``tensors/cpu/expression_graph_packable.h``; Bergamot's fork
    numbers the type of int8 differently.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
from numpy.typing import NDArray

from pellucid.errors import BundleError
from pellucid.files import endings, read_bytes
from pellucid.formats.safe_reading import (
    list_tokens,
    read_arrays,
    read_sentencepiece,
    read_sentencepieces,
    read_yaml_mapping,
)
from pellucid.terminal.text import count_of

_KEPT = {"word-penalty": ("0", "0.0"), "allow-special": ("false",), "output-sampling": ("false",)}
"""Settings that change translations if they have other values."""


@dataclass(frozen=True)
class MarianFolder:
    """What a folder holds.

    Attributes:
        folder: the folder.
        settings: those of ``decoder.yml`` or ``config.yml``; empty if there is none.
        settings_path: the file of the settings, or the folder.
        weights: the file of the weights.
        vocabularies: of source and target; the same file twice if it is joint.
        dropped: settings that a bundle has no form for, each with its value.
    """

    folder: Path
    settings: Mapping[str, Any]
    settings_path: Path
    weights: Path
    vocabularies: tuple[Path, ...]
    dropped: tuple[str, ...]

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that are read."""
        found = [self.weights, *dict.fromkeys(self.vocabularies)]
        found += [self.settings_path] if self.settings else []
        if not _is_sentencepiece(self.vocabularies[0]):
            found += [self.folder / "source.spm", self.folder / "target.spm"]
        return tuple(found)

    def read_weights(self) -> dict[str, NDArray[Any]]:
        """Read the weights, without what only int8 products of Marian need.

        Raises:
            BundleError: the file is damaged, or of another kind.
        """
        is_archive = endings(self.weights).kind == ".npz"
        arrays = read_arrays(self.weights) if is_archive else read_marian_binary(self.weights)
        return {name: array for name, array in arrays.items() if not name.endswith(MULTIPLIER)}

    def read_models(self) -> tuple[bytes, bytes]:
        """Read the SentencePiece models that cut the source and the target.

        Raises:
            BundleError: one is missing or damaged.
        """
        if not _is_sentencepiece(self.vocabularies[0]):
            return read_sentencepieces(self.folder)
        source, target = map(read_sentencepiece, self.vocabularies)
        return source, target

    def read_ids(self, path: Path, size: int) -> list[str]:
        """List the tokens of a vocabulary in the order of their ids, of which there are ``size``.

        Raises:
            BundleError: the file is damaged, or belongs to another model.
        """
        if not _is_sentencepiece(path):
            return list_tokens(read_yaml_mapping(read_bytes(path), str(path)), size, str(path))
        # Marian takes the ids of a SentencePiece model as they are.
        model = sentencepiece.SentencePieceProcessor()
        model.LoadFromSerializedProto(read_sentencepiece(path))
        pieces = {model.IdToPiece(place): place for place in range(model.GetPieceSize())}
        return list_tokens(pieces, size, str(path))


def is_marian_folder(folder: Path) -> bool:
    """Tell whether a folder holds weights of Marian, or settings that name them."""
    is_named = any(folder.glob("*decoder.yml")) or any(folder.glob("*.npz"))
    return is_named or any(map(is_marian_binary, folder.glob("*.bin")))


def find_marian_files(folder: Path) -> MarianFolder:
    """Find the files of a folder, by its settings or, without any, by their names.

    Raises:
        BundleError: a file is missing, or there are several of a kind.
    """
    path = _find_settings(folder)
    settings = {} if path is None else read_yaml_mapping(read_bytes(path), str(path))
    if path is None:
        weights = _only(
            (*folder.glob("*.npz"), *filter(is_marian_binary, folder.glob("*.bin"))),
            "file of weights",
            folder,
        )
        vocabularies = _find_vocabularies(folder)
    else:
        weights = _named(folder, settings, "models", path, count=1)[0]
        vocabularies = _named(folder, settings, "vocabs", path, count=2)
    if len({_is_sentencepiece(one) for one in vocabularies}) > 1:
        raise BundleError(
            "Both vocabularies must be .yml files or both SentencePiece models, but are "
            f"{vocabularies[0].name} and {vocabularies[1].name} ({folder})."
        )
    dropped = [
        f"{name} = {settings[name]}"
        for name, usual in _KEPT.items()
        if name in settings and settings[name] not in usual
    ]
    # A list of the likely words of each source word, which saves time and may leave out the best.
    shortlists = sorted(one.name for one in folder.glob("lex*") if one.is_file())
    if shortlists or "shortlist" in settings:
        dropped.append(f"shortlist = {', '.join(shortlists) or settings['shortlist']}")
    where = folder if path is None else path
    return MarianFolder(folder, settings, where, weights, tuple(vocabularies), tuple(dropped))


def _find_settings(folder: Path) -> Path | None:
    found = sorted(folder.glob("*decoder.yml")) or sorted(folder.glob("config*.yml"))
    if len(found) > 1:
        raise BundleError(
            "A folder of Marian must hold one decoder.yml or config.yml, which names the model and "
            f"the vocabulary, but {folder} holds {len(found)}. Leave one there."
        )
    # Without settings the vocabulary is a SentencePiece model. With source.spm it is another file.
    is_complete = any(folder.glob("*.spm")) and not (folder / "source.spm").exists()
    if not found and not is_complete:
        raise BundleError(
            "A folder of Marian must hold one decoder.yml, which names the model and the "
            f"vocabulary, but {folder} holds 0. Unpack the whole zip file."
        )
    return found[0] if found else None


def _find_vocabularies(folder: Path) -> Sequence[Path]:
    """Find a joint vocabulary, or ``srcvocab`` and ``trgvocab``, as Firefox names them."""
    separate = [sorted(folder.glob(f"{side}vocab*.spm")) for side in ("src", "trg")]
    if any(separate):
        return [
            _only(one, f"{side}vocab*.spm", folder)
            for side, one in zip(("src", "trg"), separate, strict=True)
        ]
    joint = _only(folder.glob("*.spm"), "SentencePiece model", folder)
    return [joint, joint]


def _only(found: Iterable[Path], what: str, folder: Path) -> Path:
    paths = sorted(found)
    if len(paths) != 1:
        names = f" ({', '.join(one.name for one in paths)})" if paths else ""
        raise BundleError(
            f"A folder of Marian without settings must hold one {what}, but {folder} holds "
            f"{len(paths)}{names}. Leave one there; unpack what is packed."
        )
    return paths[0]


def _named(
    folder: Path, settings: Mapping[str, Any], key: str, path: Path, *, count: int
) -> list[Path]:
    """Find the files that a key of the settings names."""
    names = settings.get(key)
    if not isinstance(names, list) or len(names) != count:
        raise BundleError(
            f"{key} must name {count_of(count, 'file')}, but is {names!r} "
            f"({path}). Ensembles cannot be converted: leave one model."
        )
    # The settings may name files by their place on the machine that trained.
    paths = [folder / Path(str(name)).name for name in names]
    for found in paths:
        if not found.is_file():
            raise BundleError(
                f"The folder must contain {found.name}, which {path.name} names under {key}, but "
                f"does not ({folder}). Unpack the whole zip file."
            )
        if key == "vocabs" and endings(found).kind not in (".yml", ".yaml", ".spm"):
            raise BundleError(
                f"A vocabulary must be a .yml file or a SentencePiece model (.spm), but is "
                f"{found.name} ({path}). Vocabularies of other kinds cannot be converted."
            )
    return paths


def _is_sentencepiece(path: Path) -> bool:
    return endings(path).kind == ".spm"


_VERSION = b"\1" + bytes(7)
_PLAIN = {0x101: "<i1", 0x201: "<u1", 0x402: "<f2", 0x404: "<f4", 0x408: "<f8"}
"""Types of numbers, by Marian's codes."""

_INT8 = (0x4101, 0x10001)
"""Codes of int8 for every processor: of Bergamot's fork, and of Marian since version 1.10."""

MULTIPLIER = "_QuantMultA"
"""The end of the name of a number that says how far a product's input reaches. Rows are measured
when they are computed here, so it is not needed."""


def is_marian_binary(path: Path) -> bool:
    """Tell whether a file begins as Marian's binary files do."""
    try:
        with path.open("rb") as stream:
            return stream.read(len(_VERSION)) == _VERSION
    except OSError:
        return False


def read_marian_binary(path: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays of a file, those in int8 as float32.

    Raises:
        BundleError: it is damaged, or an array is packed for one kind of processor.
    """
    data = read_bytes(path)
    try:
        return _read(data, path)
    except BundleError:  # which is a ValueError, too
        raise
    # Lengths beyond the end of the file, and bytes that are not UTF-8.
    except (struct.error, ValueError, OverflowError, MemoryError):
        raise BundleError(
            f"{path.name} must be a binary file of Marian, version 1, but is damaged or cut off "
            f"({path}). Copy it again."
        ) from None


def _read(data: bytes, path: Path) -> dict[str, NDArray[Any]]:
    version, count = struct.unpack_from("<QQ", data)
    if version != 1 or 32 * count > len(data):
        raise ValueError(version)
    headers = [struct.unpack_from("<QQQQ", data, 16 + 32 * place) for place in range(count)]
    at = 16 + 32 * count
    names = []
    for name_length, _, _, _ in headers:
        names.append(_cut(data, at, name_length).rstrip(b"\0").decode("utf-8"))
        at += name_length
    shapes = []
    for _, _, axes, _ in headers:
        shapes.append(struct.unpack_from(f"<{axes}i", data, at))
        at += 4 * axes
    (padding,) = struct.unpack_from("<Q", data, at)
    at += 8 + padding
    arrays = {}
    for name, shape, (_, code, _, length) in zip(names, shapes, headers, strict=True):
        arrays[name] = _to_array(_cut(data, at, length), name, shape, code, path)
        at += length
    return arrays


def _cut(data: bytes, start: int, length: int) -> bytes:
    if start + length > len(data):
        raise ValueError(length)
    return data[start : start + length]


def _to_array(
    data: bytes, name: str, shape: tuple[int, ...], code: int, path: Path
) -> NDArray[Any]:
    if min(shape, default=1) < 1:
        raise ValueError(shape)
    size = math.prod(shape)
    if code in _PLAIN:
        # A copy, because PyTorch wants arrays that could be written to.
        return np.frombuffer(data, _PLAIN[code], size).reshape(shape).copy()
    if code not in _INT8:
        raise BundleError(
            f"Arrays must be float32, or int8 for every processor (intgemm8), but {name} is packed "
            f"in another way (type 0x{code:x}, {path}). Take the model's .npz, or one that "
            "marian-conv wrote with --gemm-type intgemm8."
        )
    values = np.frombuffer(data, np.int8, size)
    (multiplier,) = struct.unpack_from("<f", data, size)
    if not 0 < multiplier < math.inf:
        raise ValueError(multiplier)
    # A table of embeddings is stored as it is, every other matrix with a row for each output.
    if "Wemb" not in name and len(shape) == 2:
        values = values.reshape(shape[::-1]).T
    return values.reshape(shape).astype(np.float32) / np.float32(multiplier)
