"""Prepare the data: learn the tokenizer, turn text files into token ids, count what is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from pellucid.bundle import MANIFEST, bundle_json, read_json_object, verify_files
from pellucid.config import Recipe, TokenizerConfig, parse_toml, validate
from pellucid.config.parsing import read_record
from pellucid.data import TokenStore, VariantStore, build_store, build_variants
from pellucid.errors import BundleError, ConfigurationError, DataError, InputFileNotFoundError
from pellucid.files import hash_file, new_folder, read_bytes, write_bytes, write_text
from pellucid.terminal.text import count_of
from pellucid.text.learned import (
    STATISTICS,
    TextStatistics,
    merge_statistics,
    read_text_counts,
)
from pellucid.text.outside import Outside, count_outside
from pellucid.text.reading.bad_lines import BadLines
from pellucid.text.reading.held_out import SET_ASIDE
from pellucid.text.reading.sentence_pairs import (
    SentencePair,
    find_aside,
    read_lessons,
    read_pairs,
    resolve_folder,
)
from pellucid.text.tokenizers.kinds import load_tokenizer
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.training.run.folder import RECIPE_FILE, RunFolder
from pellucid.training.start.fit import check_lengths
from pellucid.training.start.from_model import describe_extension
from pellucid.training.start.kept_pairs import KeptText
from pellucid.training.start.preparation import Say, say_progress
from pellucid.training.start.training_pairs import BrokenLinks, CorpusCount, KeptPair, KeptPairs

TOKENIZER_CONFIG = "tokenizer.json"
CORPORA = "corpora.json"
TEXT_HASHES = "text.json"
RECIPE_FOLDER = "recipe_folder.txt"
"""Where the names of the run's recipe start; it stays out of everything that is reproducible."""

OWN_FILES = frozenset(
    (
        TOKENIZER_CONFIG,
        CORPORA,
        TEXT_HASHES,
        SET_ASIDE,
        STATISTICS,
        MANIFEST,
        RECIPE_FOLDER,
    )
)
"""The files of the folder that are not the tokenizer's."""
TRAIN = "train"
VARIANTS = "segmentations"
LINKS = "links"

MOST_PAIRS = 2**28
"""The largest epoch whose corpora have weights: its order takes some gigabytes."""


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
        outside: tokens of the training text outside the vocabulary.
        validation_outside: the same of the validation text.
    """

    tokenizer: Tokenizer
    store: TokenStore
    validation: list[SentencePair]
    corpora: tuple[CorpusCount, ...]
    variants: VariantStore | None
    links: TokenStore | None = None
    outside: Outside | None = None
    validation_outside: Outside | None = None

    @property
    def longest(self) -> int:
        """The tokens of the longest sentence that a batch may hold."""
        stores = [self.store]
        if self.variants is not None:
            stores.append(self.variants.store)
        return max(
            max(int(store.source_lengths.max()), int(store.target_lengths.max()))
            for store in stores
        )


def prepare_data(
    recipe: Recipe,
    base: Path,
    run: RunFolder,
    *,
    tokenizer: Tokenizer | None = None,
    learned: Mapping[str, Any] | None = None,
    text: KeptText | None = None,
) -> PreparedData:
    """Learn the tokenizer and build the token store, or take those of an earlier start.

    Args:
        recipe: the recipe.
        base: the folder that the recipe's relative names start from.
        run: the run folder, which keeps the result.
        tokenizer: a trained one; None learns one from the training text.
        learned: the manifest of the model with this tokenizer, whose text counts as learned too.
        text: what was learned of the text to choose settings.

    Raises:
        BundleError: the files of an earlier start are damaged.
        ConfigurationError: the text is not what the run started with.
        DataError: the text cannot be used; the message says where.
    """
    if run.data.is_dir():
        _check_whole(run.data)
        advice = f"train on with the new text in another folder (-o), with --start {run.path}"
        _check_same_text(run.data, recipe, base, advice)
    bad = BadLines()
    pairs = read_lessons(recipe.data, "validation", base, symbols=recipe.tokenizer.symbols, bad=bad)
    validation = [pair for pair in pairs if pair.source.strip() and pair.target.strip()]
    if not validation:
        raise DataError(
            "The validation text must hold at least one pair, but holds none (data.validation)."
        )
    if not run.data.is_dir():
        with new_folder(run.data) as part:
            text = text or KeptText(base)
            for line in _prepare_into(part, recipe, base, tokenizer, learned, text, run.log):
                run.log(line)
        for line in _describe_bad(bad, "validation"):
            run.log(line)
    prepared = _open(run.data, recipe, validation)
    if sentence := check_lengths(recipe, prepared.tokenizer, validation):
        run.log(sentence)
    return prepared


def _text_files(recipe: Recipe, base: Path) -> dict[str, Path]:
    """List the files that training and validation read, by their names in the recipe."""
    data = recipe.data
    folder = resolve_folder(data.folder, base)
    texts = *data.names("train"), data.train_alignments, *data.names("validation")
    return {name: folder / name for name in chain(*texts)}


def _check_same_text(data: Path, recipe: Recipe, base: Path, advice: str) -> None:
    """Refuse to use other text than the run's tokens were made of."""
    hashes = data / TEXT_HASHES
    earlier = read_json_object(hashes)
    for name, path in _text_files(recipe, base).items():
        if earlier.get(name) != hash_file(path):
            raise ConfigurationError(
                f"The text must be what this run started with, but {path} has been changed since "
                f"(its hash is not that in {hashes}). Put the earlier text back, or {advice}."
            )


def _prepare_into(
    folder: Path,
    recipe: Recipe,
    base: Path,
    tokenizer: Tokenizer | None,
    learned: Mapping[str, Any] | None,
    text: KeptText,
    say: Say,
) -> Iterator[str]:
    """Write everything; yield sentences about what was left out."""
    hashes = {name: hash_file(path) for name, path in _text_files(recipe, base).items()}
    write_text(folder / TEXT_HASHES, bundle_json(hashes))
    given = tokenizer
    tokenizer = text.learn(recipe, given)
    former = given or tokenizer
    if recipe.start.new_tokens:
        yield describe_extension(former, tokenizer)
    dropped: Counter[str] = Counter()
    counts: list[CorpusCount] = []
    kept = KeptPairs(recipe, base, tokenizer, dropped, counts)
    sizes = {
        "source_vocabulary_size": tokenizer.source_vocabulary_size,
        "target_vocabulary_size": tokenizer.target_vocabulary_size,
    }
    statistics = TextStatistics(**sizes)
    pairs = _counted(say_progress(kept, "Cutting the text into tokens", say), tokenizer, statistics)
    build_store(folder / TRAIN, (pair.ids for pair in pairs), dropped=dropped, **sizes)
    counted = statistics.to_manifest()
    for side, numbers in kept.outside.to_sides().items():
        counted[side] |= numbers
    known = {side: len(former.vocabulary(side)) for side in ("source", "target")}
    text_counts = merge_statistics(read_text_counts(learned or {}), counted, known)
    write_text(folder / STATISTICS, bundle_json(text_counts))
    held_out = find_aside(recipe.data, base).held_out
    write_text(folder / SET_ASIDE, bundle_json(held_out.to_record() if held_out.splits else {}))
    if num_doubtful := held_out.doubtful.total():
        yield (
            f"{count_of(num_doubtful, 'pair')} of the validation and test text may be known to "
            f"{recipe.data.set_aside_as}, which set too few of this text's pairs aside. Scores may "
            "be too high: name other text in data.validation and data.test."
        )
    if recipe.training.subword_samples:
        dropped.clear()
        counts.clear()
        variants = kept.segmentations(recipe.training)
        build_variants(folder / VARIANTS, variants, recipe.training.subword_samples, **sizes)
    if recipe.training.guided_head:
        dropped.clear()
        counts.clear()
        # Positions take the place of ids: none is above the longest sentence.
        longest = recipe.data.max_pair_length
        broken = BrokenLinks()
        build_store(
            folder / LINKS,
            (kept.links(pair, broken) for pair in kept),
            source_vocabulary_size=longest,
            target_vocabulary_size=longest,
        )
        if sentence := broken.describe():
            yield sentence
    yield from _describe_bad(kept.bad, "training")
    for name, data in tokenizer.files().items():
        write_bytes(folder / name, data)
    write_text(folder / TOKENIZER_CONFIG, bundle_json(tokenizer.config.model_dump(mode="json")))
    write_text(folder / CORPORA, bundle_json({"corpora": [asdict(count) for count in counts]}))
    _write_manifest(folder)
    write_text(folder / RECIPE_FOLDER, str(base.resolve()))


def describe_known(num_known: int) -> str:
    """Warn that a model may know some pairs of its test text."""
    return (
        f"{num_known:,} of these may be text that the model it started from has learned, so that "
        "scores are too high. Name another source and reference."
    )


def read_test(run: Path) -> tuple[list[SentencePair], int]:
    """Read the test text of a run's recipe.

    Returns:
        The pairs, and the number of those that the model that the run started from may know.

    Raises:
        ConfigurationError: the text that the test text is set aside from has changed.
        DataError: the folder is no run, its recipe has no test text, or it cannot be read.
    """
    recipe_file = run / RECIPE_FILE
    base = run / "data" / RECIPE_FOLDER
    if not recipe_file.is_file() or not base.is_file():
        raise DataError(
            f"{run} is not a run folder that knows its test text. Name it: --source FILE "
            "--reference FILE."
        )
    values = parse_toml(read_bytes(recipe_file), str(recipe_file))
    recipe = validate(Recipe, values, str(recipe_file))
    data = recipe.data
    folder = Path(base.read_text("utf-8"))
    if not data.names("test"):
        raise DataError(
            f"The recipe of {run} has no test text (data.test). Name it: --source FILE --reference "
            "FILE."
        )
    if data.split:  # Other text has other pairs set aside, perhaps some of the training text.
        name_it = "name a test text: --source FILE --reference FILE"
        _check_same_text(run / "data", recipe, folder, name_it)
        if data.set_aside_as and (run / "untrained").is_dir():
            # The run's own copy knows the same pairs, wherever the model has gone.
            data = data.model_copy(update={"set_aside_as": str((run / "untrained").resolve())})
    num_doubtful = find_aside(data, folder).held_out.doubtful["test"]
    return list(read_pairs(data, "test", folder)), num_doubtful


def _describe_bad(bad: BadLines, text: str) -> Iterator[str]:
    if bad.count:
        yield f"Left out {count_of(bad.count, 'line')} of the {text} text: {bad.listed()}."
    if bad.entries:
        yield f"Of the documents of {text} text, {bad.about_entries()}"


def _counted(
    pairs: Iterable[KeptPair], tokenizer: Tokenizer, statistics: TextStatistics
) -> Iterator[KeptPair]:
    """Yield the pairs, and count what is in them."""
    for pair in pairs:
        source = tokenizer.normalized(pair.source)
        target = tokenizer.normalized(pair.target)
        statistics.add(source, target, *pair.ids)
        yield pair


def _open(folder: Path, recipe: Recipe, validation: list[SentencePair]) -> PreparedData:
    """Open the files that `_prepare_into` made."""
    corpora = read_json_object(folder / CORPORA).get("corpora")
    where = str(folder / CORPORA)
    if not isinstance(corpora, list):
        raise BundleError(f"corpora must be a list, but is not ({where}). The file was changed.")
    counts = tuple(read_record(CorpusCount, values, where) for values in corpora)
    _check_epoch(counts)
    variants = None
    if recipe.training.subword_samples:
        variants = VariantStore(folder / VARIANTS, recipe.training.subword_samples)
    files = {
        path.name: read_bytes(path)
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name not in OWN_FILES
    }
    path = folder / TOKENIZER_CONFIG
    config = validate(TokenizerConfig, read_json_object(path), str(path))
    tokenizer = load_tokenizer(config, files, str(folder))
    return PreparedData(
        tokenizer,
        TokenStore.open(folder / TRAIN),
        validation,
        counts,
        variants,
        TokenStore.open(folder / LINKS) if recipe.training.guided_head else None,
        Outside.read(read_json_object(folder / STATISTICS)),
        count_outside(tokenizer, ((pair.source, pair.target) for pair in validation)),
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
    write_text(folder / MANIFEST, bundle_json({"files": files}))


def _check_whole(folder: Path) -> None:
    """Refuse to continue with files that are not as an earlier start wrote them.

    Raises:
        BundleError: one is missing or has been changed.
    """
    try:
        verify_files(folder, read_json_object(folder / MANIFEST).get("files"))
    except (BundleError, InputFileNotFoundError) as error:
        raise BundleError(
            "The run's tokens must be as an earlier start wrote them, but are not. "
            f"{error} Or delete {folder}: the same command makes all of it again."
        ) from None
