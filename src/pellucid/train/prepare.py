"""From text files to token ids: the tokenizer is learned, the store is built, all is counted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pellucid.bundle import to_json
from pellucid.config import Recipe, TokenizerConfig
from pellucid.data import TokenStore, build_store
from pellucid.errors import BundleError, DataError
from pellucid.files import new_folder, read_bytes, write_bytes, write_text
from pellucid.text import (
    Pair,
    Tokenizer,
    learn_tokenizer,
    load_tokenizer,
    read_pairs,
    reason_to_drop,
)
from pellucid.train.run_folder import RunFolder

__all__ = ["CorpusCount", "PreparedData", "prepare_data"]

TOKENIZER_CONFIG = "tokenizer.json"


@dataclass(frozen=True)
class CorpusCount:
    """One training corpus: its file, its pairs, those that were kept, and its weight."""

    name: str
    pairs: int
    kept: int
    weight: float = 1.0


@dataclass(frozen=True)
class PreparedData:
    """Everything training reads.

    Attributes:
        tokenizer: learned from the training text.
        store: the training pairs as ids.
        validation: the validation pairs as text.
    """

    tokenizer: Tokenizer
    store: TokenStore
    validation: list[Pair]
    corpora: tuple[CorpusCount, ...] = ()


def prepare_data(
    recipe: Recipe, base: Path, run: RunFolder, *, tokenizer: Tokenizer | None = None
) -> PreparedData:
    """Learn the tokenizer and build the token store, or take those a former start made.

    Args:
        recipe: the recipe.
        base: the folder that the recipe's relative names start from.
        run: where to keep the result.
        tokenizer: one that is ready; otherwise it is learned from the training text.

    Raises:
        DataError: the text cannot be used; says where.
    """
    validation = [
        pair for pair in read_pairs(recipe.data, "validation", base) if pair.source.strip()
    ]
    if not validation:
        raise DataError(
            "The validation text must hold at least one pair, but holds none "
            "(data.validation_source, data.validation_target)."
        )
    if not run.data.is_dir():
        with new_folder(run.data) as part:
            _prepare_into(part, recipe, base, tokenizer)
    return PreparedData(
        _load_tokenizer(run.data),
        store := TokenStore.open(run.data / "train"),
        validation,
        (CorpusCount("train", len(store), len(store)),),
    )


def _prepare_into(folder: Path, recipe: Recipe, base: Path, tokenizer: Tokenizer | None) -> None:
    tokenizer = tokenizer or learn_tokenizer(
        recipe.tokenizer,
        lambda: (pair.source for pair in read_pairs(recipe.data, "train", base)),
        lambda: (pair.target for pair in read_pairs(recipe.data, "train", base)),
    )
    dropped: Counter[str] = Counter()
    build_store(
        folder / "train",
        _kept_pairs(recipe, base, tokenizer, dropped),
        source_vocabulary_size=tokenizer.source_vocabulary_size,
        target_vocabulary_size=tokenizer.target_vocabulary_size,
        dropped=dropped,
    )
    for name, data in tokenizer.files().items():
        write_bytes(folder / name, data)
    write_text(folder / TOKENIZER_CONFIG, to_json(tokenizer.config.model_dump(mode="json")))


def _kept_pairs(
    recipe: Recipe, base: Path, tokenizer: Tokenizer, dropped: Counter[str]
) -> Iterator[tuple[list[int], list[int]]]:
    limit = min(recipe.data.max_length, recipe.data.pad_to or recipe.data.max_length)
    for pair in read_pairs(recipe.data, "train", base):
        source_ids = tokenizer.encode_source(pair.source)
        target_ids = tokenizer.encode_target(pair.target)
        reason = reason_to_drop(
            pair.source,
            pair.target,
            source_ids,
            target_ids,
            max_length=limit,
            max_length_ratio=recipe.data.max_length_ratio,
        )
        if reason is None:
            yield source_ids, target_ids
        else:
            dropped[reason] += 1


def _load_tokenizer(folder: Path) -> Tokenizer:
    files = {
        path.name: read_bytes(path)
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name != TOKENIZER_CONFIG
    }
    try:
        config = TokenizerConfig.model_validate(json.loads(read_bytes(folder / TOKENIZER_CONFIG)))
    except ValueError as error:
        raise BundleError(
            f"{TOKENIZER_CONFIG} must be what this run wrote, but is not: {error} ({folder}). "
            "Delete that folder; the same command makes it again."
        ) from None
    return load_tokenizer(config, files, str(folder))
