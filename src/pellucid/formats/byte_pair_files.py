"""The vocabularies of BART: byte-level byte pairs in Hugging Face's files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pellucid.bundle import read_json_object
from pellucid.errors import BundleError
from pellucid.formats.fairseq_tokens import OF_FAIRSEQ, SETTINGS, WHOLE, FairseqVocabulary
from pellucid.formats.safe_reading import list_tokens
from pellucid.text.tokenizers.byte_pairs import is_raw, raw_bytes, spell_bytes
from pellucid.text.tokenizers.headed import MERGES

_SPECIAL = (*OF_FAIRSEQ, "<mask>")


def read_byte_pairs(folder: Path, size: int) -> FairseqVocabulary:
    """Read the vocabulary of a folder of Hugging Face's.

    Args:
        folder: with ``vocab.json`` and ``merges.txt``, or ``tokenizer.json``.
        size: number of ids that the model has.

    Raises:
        BundleError: a file is missing or damaged, or the vocabulary is of another kind.
    """
    settings_path = folder / SETTINGS
    settings = read_json_object(settings_path) if settings_path.is_file() else {}
    if settings.get("add_prefix_space") is True:
        raise BundleError(
            f"add_prefix_space must be false, so that a text begins as it is written, but is true "
            f"({settings_path}). Models that were trained the other way cannot be converted."
        )
    added: list[str] = []
    if (folder / "vocab.json").is_file() and (folder / MERGES).is_file():
        used = [folder / "vocab.json", folder / MERGES]
        ids = read_json_object(used[0])
        merges = used[1].read_bytes()
    elif (folder / WHOLE).is_file():
        used = [folder / WHOLE]
        whole = read_json_object(used[0])
        ids, merges = _read_whole(whole, str(used[0]))
        for one in whole.get("added_tokens") or ():
            if isinstance(one, dict) and isinstance(one.get("content"), str):
                ids.setdefault(one["content"], one.get("id"))
                added.append(one["content"])
    else:
        raise BundleError(
            f"The folder must contain vocab.json and {MERGES}, or {WHOLE}, but does not "
            f"({folder}). Copy the whole folder."
        )
    where = str(used[0])
    more = [token for token in added if token not in _SPECIAL]
    tokens = list_tokens(ids, size, where)
    if missing := [token for token in OF_FAIRSEQ if token not in ids]:
        raise BundleError(
            f"The vocabulary must have {missing[0]}, but does not ({where}). Take the files from "
            "where the model comes from."
        )
    kept = {*_SPECIAL, *more, *(token for token in tokens if token not in ids)}
    if others := [token for token in tokens if token not in kept and not is_raw(token)]:
        raise _other_kind(where, f"has {others[0]!r}")
    spelled = [one if one in kept else spell_bytes(raw_bytes(one)) for one in tokens]
    dropped = (f"added_tokens {' '.join(more)} (cut like any text)",) if more else ()
    used += [settings_path] if settings_path.is_file() else []
    return FairseqVocabulary(spelled, merges, [], "bos", tuple(used), MERGES, dropped)


def _read_whole(values: Mapping[str, Any], where: str) -> tuple[dict[str, Any], bytes]:
    """Read the ids and the pairs of a tokenizer.json."""
    model = values.get("model")
    cutter = values.get("pre_tokenizer")
    vocab = model.get("vocab") if isinstance(model, dict) else None
    pairs = model.get("merges") if isinstance(model, dict) else None
    is_plain = (
        isinstance(cutter, dict)
        and cutter.get("type") == "ByteLevel"
        and cutter.get("use_regex") is not False
        and not cutter.get("add_prefix_space")
        and values.get("normalizer") is None
    )
    if not is_plain or not isinstance(vocab, dict) or not isinstance(pairs, list):
        raise _other_kind(where, "is of another kind")
    lines = [one if isinstance(one, str) else " ".join(map(str, one)) for one in pairs]
    return dict(vocab), "".join(f"{line}\n" for line in lines).encode()


def _other_kind(where: str, found: str) -> BundleError:
    return BundleError(
        f"The tokenizer of a BART must cut bytes as GPT-2's does, but {found} ({where}). Such a "
        "model cannot be converted."
    )
