"""Text in and out: tokenizers, normalization, readers of parallel text."""

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
