"""Reading files of other systems: any file may be damaged, and none can run code."""

from __future__ import annotations

import re
import tokenize
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
from numpy.typing import NDArray

from pellucid.errors import BundleError, InputError, need_library
from pellucid.files import read_bytes
from pellucid.text.tokenizers.marian import unused_name

# Errors of NumPy and zipfile for a file that is cut off, a pickle, a single array, an encrypted
# archive and one that is packed in an unknown way.
_READ_ERRORS = (
    *(OSError, ValueError, EOFError, TypeError, KeyError, RuntimeError, NotImplementedError),
    *(zipfile.BadZipFile, zlib.error, tokenize.TokenError),
)

_MOST_DIGITS = 20
"""The digits of an id; Python refuses to read numbers of thousands."""

_HALF = re.compile("[\ud800-\udfff]")
"""A lone surrogate: half of a character, which no UTF-8 file can hold."""

_MOST_UNPACKED = 64
"""Maximum ratio of an archive's content to its size: weights can hardly be packed."""


def check_place(out: Path) -> None:
    """Refuse to write over an existing file or a folder with content.

    Raises:
        InputError: the name is taken, or the path has no name.
    """
    if not out.name:
        raise InputError(
            f"-o must name a folder, but is {out}. Give its name, from the folder above it."
        )
    if out.is_dir() and not any(out.iterdir()):
        return
    # A link that leads nowhere does not exist, but has the name.
    if out.exists() or out.is_symlink():
        raise InputError(
            f"-o must be a new folder, but {out} exists. Choose another name, or delete it."
        )


def read_yaml_mapping(data: bytes, where: str) -> dict[str, Any]:
    """Read a YAML mapping whose scalars all stay text, ``no`` and ``1`` included.

    Raises:
        BundleError: the data is not a YAML mapping.
    """
    yaml = need_library("yaml", "A model of Marian")
    # This loader makes only text, lists and mappings, and nothing that could run code.
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        values = yaml.load(data, Loader=loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        said = " ".join(str(error).split())
        raise BundleError(
            f"A file of Marian must be YAML, but is not: {said} ({where}). Copy it again."
        ) from None
    if not isinstance(values, dict):
        raise BundleError(
            f"A file of Marian must be a YAML mapping, but is not ({where}). Copy it again."
        )
    if _has_more_parts(values, len(data)):  # a "billion laughs": few bytes, endless content
        raise BundleError(
            f"A file of Marian must be plain YAML, but its {len(data)} bytes refer to themselves "
            f"again and again ({where}). Do not use it."
        )
    return values


def _has_more_parts(values: Any, most: int) -> bool:
    """Tell whether a nested value has more than ``most`` parts, with all aliases written out."""
    waiting = [values]
    count = 0
    # Ends at the limit, because the whole may be endless.
    while waiting and count <= most:
        one = waiting.pop()
        count += 1
        if isinstance(one, dict):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, list):
            waiting += one
    return count > most


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read a NumPy archive without unpickling anything.

    Raises:
        BundleError: it is damaged, holds something other than numbers, or would unpack to many
            times its size.
    """
    try:
        with path.open("rb") as stream, zipfile.ZipFile(stream) as packed:
            # Reading stops at the sizes that the archive states, so they can be relied on.
            unpacked = sum(member.file_size for member in packed.infolist())
        size = path.stat().st_size
        found = _load_arrays(path) if unpacked <= _MOST_UNPACKED * size else None
    except _READ_ERRORS:
        raise BundleError(
            f"{path.name} must be a NumPy archive of plain numbers, but is damaged, or holds a "
            f"pickle, which could run code ({path}). Copy it again."
        ) from None
    if found is None:
        raise BundleError(
            f"{path.name} must hold weights, but its {size:,} bytes unpack to {unpacked:,}, which "
            f"weights never do ({path}). Do not use it."
        )
    return found


def _load_arrays(path: Path) -> dict[str, NDArray[Any]]:
    found = {}
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        for name in archive.files:
            array = archive[name]
            # Only whole numbers, floating-point numbers and truth values: no text, no objects.
            if not isinstance(array, np.ndarray) or array.dtype.kind not in "iufb":
                raise TypeError(f"{name} is not an array of numbers")
            # PyTorch reads numbers only in the byte order of the machine.
            found[name] = array.astype(array.dtype.newbyteorder("="), copy=False)
    return found


def read_sentencepiece(path: Path) -> bytes:
    """Read a SentencePiece model, and check that it is one.

    Raises:
        BundleError: it is missing or damaged.
    """
    if not path.is_file():
        raise BundleError(
            f"The folder must contain {path.name}, its SentencePiece model, but does not "
            f"({path.parent}). Copy the whole folder; models with other subwords cannot be "
            "converted."
        )
    data = read_bytes(path)
    try:
        sentencepiece.SentencePieceProcessor().LoadFromSerializedProto(data)
    except RuntimeError:
        raise BundleError(
            f"{path.name} must be a SentencePiece model, but its {len(data)} bytes are not one "
            f"({path}). Copy it again."
        ) from None
    return data


def read_sentencepieces(folder: Path) -> tuple[bytes, bytes]:
    """Read the SentencePiece models of the source and the target side.

    Raises:
        BundleError: one is missing or damaged.
    """
    return read_sentencepiece(folder / "source.spm"), read_sentencepiece(folder / "target.spm")


def list_tokens(ids: Mapping[str, Any], size: int, where: str) -> list[str]:
    """Turn a mapping of tokens to ids into a list.

    The model never learned an id that has no token: it becomes ``<unused-ID>``.

    Args:
        ids: the id of each token, as a number or as digits.
        size: number of ids that the model has.
        where: the file, for messages.

    Raises:
        BundleError: an id is not a number below the size, or occurs twice; or a token contains a
            line break or half a character.
    """
    # A model may have more rows than its list has tokens.
    tokens = [unused_name(place) for place in range(size)]
    seen: set[int] = set()
    for token, text in ids.items():
        digits = str(text)
        is_number = digits.isdecimal() and len(digits) <= _MOST_DIGITS
        place = int(digits) if is_number else -1
        if not 0 <= place < size:
            raise BundleError(
                f"Every id must be a number below the {size} of the model, but {token!r} has "
                f"{text!r} ({where}). The vocabulary belongs to another model."
            )
        if place in seen:
            raise BundleError(
                f"Every id must stand for one token, but {place} stands for {tokens[place]!r} "
                f"and {token!r} ({where}). The file is damaged: copy it again."
            )
        if not token or "\n" in token or _HALF.search(token):
            raise BundleError(
                f"A token must be whole characters without a line break, but {place} is {token!r} "
                f"({where}). Take the file from where the model comes from."
            )
        seen.add(place)
        tokens[place] = token
    return tokens


def same_for_both(sides: Sequence[Sequence[str]], token: str, where: str) -> int:
    """Find the id of a token, which must be the same in both vocabularies.

    Raises:
        BundleError: the token is missing, or the vocabularies disagree.
    """
    places = [tokens.index(token) if token in tokens else None for tokens in sides]
    if places[0] is None or places[0] != places[-1]:
        raise BundleError(
            f"{token} must have one id in every vocabulary, but has "
            f"{' and '.join('none' if p is None else str(p) for p in places)} ({where})."
        )
    return places[0]
