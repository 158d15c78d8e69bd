"""Tokenizers by their kind: learning a new one and loading one from a bundle."""

from __future__ import annotations

from collections.abc import Mapping

from pellucid.config import TokenizerConfig, TokenizerRecipe
from pellucid.errors import BundleError
from pellucid.text.tokenizers.headed import HeadedTokenizer
from pellucid.text.tokenizers.marian import MarianTokenizer
from pellucid.text.tokenizers.subwords import SentencePieceTokenizer
from pellucid.text.tokenizers.tokenizer import LearnedTokenizer, Lines, Tokenizer
from pellucid.text.tokenizers.whole_words import WordTokenizer

_KINDS: dict[str, type[LearnedTokenizer]] = {
    "sentencepiece": SentencePieceTokenizer,
    "words": WordTokenizer,
}


def learn_tokenizer(recipe: TokenizerRecipe, sources: Lines, targets: Lines) -> Tokenizer:
    """Learn a tokenizer from training text.

    The result depends only on the text and the recipe, not on the machine.

    Args:
        recipe: the recipe's tokenizer section.
        sources: a function that yields the source lines; a joint vocabulary reads both sides.
        targets: a function that yields the target lines.

    Returns:
        A `SentencePieceTokenizer` or a `WordTokenizer`.

    Raises:
        ConfigurationError: the vocabulary size is impossible for this text.
        DataError: the text is empty, or reading it failed.
    """
    return _KINDS[recipe.kind].learn(recipe, sources, targets)


def load_tokenizer(config: TokenizerConfig, files: Mapping[str, bytes], where: str) -> Tokenizer:
    """Read a tokenizer from a bundle's files.

    A SentencePiece model with a vocabulary file is Marian's: the file gives the ids.

    Args:
        config: the bundle's tokenizer section.
        files: the bundle's files by name; only the tokenizer's are read.
        where: the bundle, for messages.

    Raises:
        BundleError: a file is missing, damaged, or disagrees with the configuration.
    """
    # Our own models of subwords need no list: SentencePiece gives their ids.
    has_list = "vocabulary.txt" in files or "source.txt" in files
    is_marian = config.kind == "sentencepiece" and has_list
    kind: type[MarianTokenizer] | type[HeadedTokenizer] | type[LearnedTokenizer]
    kind = MarianTokenizer if is_marian else _KINDS[config.kind]
    if config.first_token not in ("none", "source-start"):
        kind = HeadedTokenizer
    tokenizer: Tokenizer = kind.load(config, files, where)
    # Decoding would look up a row that the model does not have.
    if config.target_start_id >= tokenizer.target_vocabulary_size:
        raise BundleError(
            f"tokenizer.target_start_id must be one of the {tokenizer.target_vocabulary_size} "
            f"target ids, but is {config.target_start_id} ({where}/config.json). Copy the whole "
            "folder again."
        )
    return tokenizer
