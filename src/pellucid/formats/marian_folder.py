"""The files of a folder of Marian: settings, weights, vocabularies as lists or SentencePiece."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sentencepiece
from numpy.typing import NDArray

from pellucid.errors import BundleError
from pellucid.files import endings, read_bytes
from pellucid.formats.marian_binary import MULTIPLIER, is_marian_binary, read_marian_binary
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
        is_archive = self.weights.suffix == ".npz"
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
