"""Prepare the data: learn the tokenizer, turn text files into token ids, count what is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pellucid.bundle import MANIFEST, read_json, to_json, verify_files
from pellucid.config import Recipe, TokenizerConfig, TrainingConfig
from pellucid.data import TokenStore, VariantStore, build_store, build_variants
from pellucid.data.variants import Variant
from pellucid.errors import BundleError, ConfigurationError, DataError, InputFileNotFoundError
from pellucid.files import hash_file, new_folder, read_bytes, write_bytes, write_text
from pellucid.text import (
    Pair,
    Tokenizer,
    learn_tokenizer,
    load_tokenizer,
    read_pairs,
    reason_to_drop,
)
from pellucid.text.corpus import BadLines, resolve_folder
from pellucid.text.scan import corpora
from pellucid.text.statistics import (
    STATISTICS,
    TextStatistics,
    merge_statistics,
    read_text_counts,
)
from pellucid.text.subwords import SentencePieceTokenizer
from pellucid.text.token_words import split_pieces
from pellucid.train.run.folder import RunFolder
from pellucid.train.start.lengths import check_lengths
from pellucid.train.start.links import BrokenLinks, link_tokens, read_links

__all__ = ["CorpusCount", "PreparedData", "prepare_data"]

TOKENIZER_CONFIG = "tokenizer.json"
CORPORA = "corpora.json"
TEXT_HASHES = "text.json"
OWN_FILES = frozenset((TOKENIZER_CONFIG, CORPORA, TEXT_HASHES, STATISTICS, MANIFEST))
"""The files of the folder that are not the tokenizer's."""
TRAIN = "train"
VARIANTS = "segmentations"
LINKS = "links"

MOST_PAIRS = 2**28
"""The largest epoch whose corpora have weights: its order takes some gigabytes."""


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
        tokenizer: learned from the training text, or that of the model to start from.
        store: the training pairs as ids.
        validation: the validation pairs as text.
        corpora: the corpora in the store, in its order.
        variants: other segmentations of the pairs, if the recipe asks for them.
        links: between the tokens of each pair, for a guided head.
    """

    tokenizer: Tokenizer
    store: TokenStore
    validation: list[Pair]
    corpora: tuple[CorpusCount, ...]
    variants: VariantStore | None
    links: TokenStore | None = None

    def longest(self, pad_to: int) -> int:
        """Find the length of the longest sentence that a batch may hold, in tokens.

        Args:
            pad_to: the length that every sentence is padded to; 0 for none.
        """
        stores = [self.store] if self.variants is None else [self.store, self.variants.store]
        return max(
            pad_to,
            *(
                int(lengths.max())
                for store in stores
                for lengths in (store.source_lengths, store.target_lengths)
            ),
        )


def prepare_data(
    recipe: Recipe,
    base: Path,
    run: RunFolder,
    *,
    tokenizer: Tokenizer | None = None,
    learned: Mapping[str, Any] | None = None,
) -> PreparedData:
    """Learn the tokenizer and build the token store, or take those of an earlier start.

    Args:
        recipe: the recipe.
        base: the folder that the recipe's relative names start from.
        run: the run folder, which keeps the result.
        tokenizer: a trained one; None learns one from the training text.
        learned: the manifest of the model with this tokenizer, whose text counts as learned too.

    Raises:
        BundleError: the files of an earlier start are damaged.
        ConfigurationError: the text is not what the run started with.
        DataError: the text cannot be used; the message says where.
    """
    if run.data.is_dir():
        _check_whole(run.data)
        _check_same_text(run, recipe, base)
    bad = BadLines()
    pairs = read_pairs(recipe.data, "validation", base, bad=bad)
    validation = [pair for pair in pairs if pair.source.strip() and pair.target.strip()]
    if not validation:
        raise DataError(
            "The validation text must hold at least one pair, but holds none "
            "(data.validation_source, data.validation_target)."
        )
    if not run.data.is_dir():
        with new_folder(run.data) as part:
            for line in _prepare_into(part, recipe, base, tokenizer, learned):
                run.log(line)
        if bad.count:
            run.log(_describe_bad(bad, "validation"))
    prepared = _open(run.data, recipe, validation)
    if sentence := check_lengths(recipe, prepared.tokenizer, validation):
        run.log(sentence)
    return prepared


def _text_files(recipe: Recipe, base: Path) -> dict[str, Path]:
    """List the files that training and validation read, by their names in the recipe."""
    data = recipe.data
    folder = resolve_folder(data.folder, base)
    named = (
        *(data.train_source + data.train_target + data.train + data.train_alignments),
        *(data.validation_source + data.validation_target + data.validation),
    )
    return {name: folder / name for name in named}


def _check_same_text(run: RunFolder, recipe: Recipe, base: Path) -> None:
    """Refuse to continue with other text than the run's tokens were made of."""
    hashes = run.data / TEXT_HASHES
    earlier = read_json(hashes)
    for name, path in _text_files(recipe, base).items():
        if earlier.get(name) != hash_file(path):
            raise ConfigurationError(
                f"The text must be what this run started with, but {path} has been changed since "
                f"(its hash is not that in {hashes}). Put the earlier text back, or train on with "
                f"the new text in another --out, with --from {run.path}."
            )


def _prepare_into(
    folder: Path,
    recipe: Recipe,
    base: Path,
    tokenizer: Tokenizer | None,
    learned: Mapping[str, Any] | None,
) -> Iterator[str]:
    """Write everything; yield sentences about what was left out."""
    hashes = {name: hash_file(path) for name, path in _text_files(recipe, base).items()}
    write_text(folder / TEXT_HASHES, to_json(hashes))
    tokenizer = tokenizer or learn_tokenizer(
        recipe.tokenizer,
        lambda: (pair.source for pair in read_pairs(recipe.data, "train", base)),
        lambda: (pair.target for pair in read_pairs(recipe.data, "train", base)),
    )
    dropped: Counter[str] = Counter()
    counts: list[CorpusCount] = []
    kept = _KeptPairs(recipe, base, tokenizer, dropped, counts)
    sizes = {
        "source_vocabulary_size": tokenizer.source_vocabulary_size,
        "target_vocabulary_size": tokenizer.target_vocabulary_size,
    }
    statistics = TextStatistics(**sizes)
    pairs = (pair.ids for pair in _counted(kept, tokenizer, statistics))
    build_store(folder / TRAIN, pairs, dropped=dropped, **sizes)
    text_counts = merge_statistics(read_text_counts(learned or {}), statistics.to_manifest())
    write_text(folder / STATISTICS, to_json(text_counts))
    if recipe.training.subword_samples:
        dropped.clear()
        counts.clear()
        variants = kept.segmentations(recipe.training)
        build_variants(folder / VARIANTS, variants, recipe.training.subword_samples, **sizes)
    if recipe.training.guided_head:
        dropped.clear()
        counts.clear()
        # Positions take the place of ids: none is above the longest sentence.
        longest = recipe.data.max_length
        broken = BrokenLinks()
        build_store(
            folder / LINKS,
            (kept.links(pair, broken) for pair in kept),
            source_vocabulary_size=longest,
            target_vocabulary_size=longest,
        )
        if sentence := broken.describe():
            yield sentence
    if kept.bad.count:
        yield _describe_bad(kept.bad, "training")
    for name, data in tokenizer.files().items():
        write_bytes(folder / name, data)
    write_text(folder / TOKENIZER_CONFIG, to_json(tokenizer.config.model_dump(mode="json")))
    write_text(folder / CORPORA, to_json({"corpora": [asdict(count) for count in counts]}))
    _write_manifest(folder)


def _describe_bad(bad: BadLines, text: str) -> str:
    lines = "1 line" if bad.count == 1 else f"{bad.count:,} lines"
    return f"Left out {lines} of the {text} text: {bad.listed()}."


def _counted(
    pairs: Iterable[_Kept], tokenizer: Tokenizer, statistics: TextStatistics
) -> Iterator[_Kept]:
    """Yield the pairs, and count what is in them."""
    for pair in pairs:
        source, target = tokenizer.normalized(pair.source), tokenizer.normalized(pair.target)
        statistics.add(source, target, *pair.ids)
        yield pair


class _Kept(NamedTuple):
    """A training pair, as text and as ids; its word links, and their file and line."""

    source: str
    target: str
    ids: tuple[list[int], list[int]]
    links: str
    links_place: str


class _KeptPairs:
    """The training pairs that are kept, read from the files in each iteration.

    Iterating counts the pairs left out, by reason, and each corpus at its end.
    """

    def __init__(
        self,
        recipe: Recipe,
        base: Path,
        tokenizer: Tokenizer,
        dropped: Counter[str],
        counts: list[CorpusCount],
    ) -> None:
        self._data = recipe.data
        self._base = base
        self._tokenizer = tokenizer
        self._dropped = dropped
        self._counts = counts
        self.bad = BadLines()
        self._limit = min(recipe.data.max_length, recipe.data.pad_to or recipe.data.max_length)

    def __iter__(self) -> Iterator[_Kept]:
        parts = corpora(self._data, "train")
        self.bad = BadLines()
        for number, corpus in enumerate(parts):
            num_pairs = num_kept = 0
            bad = BadLines()
            pairs = read_pairs(corpus.data, "train", self._base, bad=bad)
            for pair, links, place in read_links(pairs, self._alignment(number), bad):
                num_pairs += 1
                ids = self._ids(pair)
                if ids is not None:
                    num_kept += 1
                    yield _Kept(pair.source, pair.target, ids, links, place)
            self.bad.extend(bad)
            weight = self._data.train_weights[number] if self._data.train_weights else 1.0
            self._counts.append(CorpusCount(corpus.source, num_pairs, num_kept, weight))
        if self.bad.count:
            self._dropped["unreadable"] = self.bad.count

    def segmentations(
        self, training: TrainingConfig
    ) -> Iterator[tuple[list[Variant], list[Variant]]]:
        """Yield several segmentations of both sides of every pair, none too long.

        Raises:
            ConfigurationError: the tokenizer has no subwords.
        """
        if not isinstance(self._tokenizer, SentencePieceTokenizer):
            what = "of words" if self._tokenizer.config.kind == "words" else "Marian's"
            raise ConfigurationError(
                "training.subword_samples needs a tokenizer that SentencePiece learned, but this "
                f"one is {what}. Set training.subword_samples = 0."
            )
        cut_source, cut_target = (
            self._tokenizer.segmenter(
                side,
                training.subword_samples,
                dropout=training.subword_dropout,
                seed=training.seed,
            )
            for side in ("source", "target")
        )
        for pair in self:
            best_source, best_target = pair.ids
            yield (
                self._fitting(cut_source(pair.source), best_source),
                self._fitting(cut_target(pair.target), best_target),
            )

    def _fitting(self, ways: list[tuple[list[int], float]], best: list[int]) -> list[Variant]:
        return [way for way in ways if len(way[0]) <= self._limit] or [(best, 0.0)]

    def links(self, pair: _Kept, broken: BrokenLinks) -> tuple[list[int], list[int]]:
        """Find the positions of a pair's linked tokens."""
        sizes = (len(split_pieces(pair.source)), len(split_pieces(pair.target)))
        links = broken.check(pair.links, pair.links_place, sizes)
        return link_tokens(
            self._tokenizer, pair.source, pair.target, pair.ids, links, pair.links_place
        )

    def _alignment(self, corpus: int) -> Path | None:
        if not self._data.train_alignments:
            return None
        folder = resolve_folder(self._data.folder, self._base)
        return folder / self._data.train_alignments[corpus]

    def _ids(self, pair: Pair) -> tuple[list[int], list[int]] | None:
        source_ids = self._tokenizer.encode_source(pair.source)
        target_ids = self._tokenizer.encode_target(pair.target)
        reason = reason_to_drop(
            pair.source,
            pair.target,
            source_ids,
            target_ids,
            max_length=self._limit,
            max_length_ratio=self._data.max_length_ratio,
        )
        if reason is None:
            return source_ids, target_ids
        self._dropped[reason] += 1
        return None


def _open(folder: Path, recipe: Recipe, validation: list[Pair]) -> PreparedData:
    """Open the files that `_prepare_into` made."""
    counts = tuple(CorpusCount(**values) for values in read_json(folder / CORPORA)["corpora"])
    _check_epoch(counts)
    variants = None
    if recipe.training.subword_samples:
        variants = VariantStore(folder / VARIANTS, recipe.training.subword_samples)
    return PreparedData(
        _load_tokenizer(folder),
        TokenStore.open(folder / TRAIN),
        validation,
        counts,
        variants,
        TokenStore.open(folder / LINKS) if recipe.training.guided_head else None,
    )


def _check_epoch(counts: tuple[CorpusCount, ...]) -> None:
    """Refuse weights that make an epoch too large for memory."""
    num_pairs = sum(count.kept * count.weight for count in counts)
    most = max(MOST_PAIRS, sum(count.kept for count in counts))
    if num_pairs > most:
        raise ConfigurationError(
            f"data.train_weights must leave an epoch of at most {most:,} pairs, but make it "
            f"{num_pairs:,.0f}. Lower them."
        )


def _load_tokenizer(folder: Path) -> Tokenizer:
    files = {
        path.name: read_bytes(path)
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name not in OWN_FILES
    }
    config = TokenizerConfig.model_validate(read_json(folder / TOKENIZER_CONFIG))
    return load_tokenizer(config, files, str(folder))


def _write_manifest(folder: Path) -> None:
    """List every file with its hash and size; written last, so that it marks the end."""
    names = sorted(path for path in folder.rglob("*") if path.is_file())
    files = {
        path.relative_to(folder).as_posix(): {
            "sha256": hash_file(path),
            "size": path.stat().st_size,
        }
        for path in names
    }
    write_text(folder / MANIFEST, to_json({"files": files}))


def _check_whole(folder: Path) -> None:
    """Refuse to continue with files that are not as an earlier start wrote them.

    Raises:
        BundleError: one is missing or has been changed.
    """
    try:
        verify_files(folder, read_json(folder / MANIFEST).get("files"))
    except (BundleError, InputFileNotFoundError) as error:
        raise BundleError(
            "The run's tokens must be as an earlier start wrote them, but are not. "
            f"{error} Or delete {folder}: the same command makes all of it again."
        ) from None
