"""Text in and out: tokenizers, normalization, readers of parallel text.

Names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pellucid.text.corpus import Pair, Split, check_files, read_pairs, resolve_folder
    from pellucid.text.filtering import DropCounts, DropReason, describe_drops, reason_to_drop
    from pellucid.text.kinds import learn_tokenizer, load_tokenizer
    from pellucid.text.marian import MarianTokenizer
    from pellucid.text.normalization import Normalization, normalize
    from pellucid.text.subwords import SentencePieceTokenizer
    from pellucid.text.tokenizer import SPECIAL_TOKENS, Lines, Tokenizer
    from pellucid.text.words import WordTokenizer

__all__ = [
    "SPECIAL_TOKENS",
    "DropCounts",
    "DropReason",
    "Lines",
    "MarianTokenizer",
    "Normalization",
    "Pair",
    "SentencePieceTokenizer",
    "Split",
    "Tokenizer",
    "WordTokenizer",
    "check_files",
    "describe_drops",
    "learn_tokenizer",
    "load_tokenizer",
    "normalize",
    "read_pairs",
    "reason_to_drop",
    "resolve_folder",
]

_HOMES = {
    "SPECIAL_TOKENS": "tokenizer",
    "DropCounts": "filtering",
    "DropReason": "filtering",
    "Lines": "tokenizer",
    "MarianTokenizer": "marian",
    "Normalization": "normalization",
    "Pair": "corpus",
    "SentencePieceTokenizer": "subwords",
    "Split": "corpus",
    "Tokenizer": "tokenizer",
    "WordTokenizer": "words",
    "check_files": "corpus",
    "describe_drops": "filtering",
    "learn_tokenizer": "kinds",
    "load_tokenizer": "kinds",
    "normalize": "normalization",
    "read_pairs": "corpus",
    "reason_to_drop": "filtering",
    "resolve_folder": "corpus",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
