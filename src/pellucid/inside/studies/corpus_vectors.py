"""Vectors of many lines at a place of a model: in batches of equal length, window by window."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from pellucid.arguments import checked, list_texts
from pellucid.attention.probe import Probe, parts_of
from pellucid.bundle import Bundle, HasBundle, bundle_of
from pellucid.decode.decoder import make_decoder
from pellucid.decode.hypothesis import OVERFLOW
from pellucid.decode.probing.under_probe import UnderProbe
from pellucid.errors import DataError, InputError, suggestion
from pellucid.files import endings, expand_home, writing
from pellucid.inside.align.alignment_maps import BATCH_TOKENS
from pellucid.inside.ask import arrays_of, check_number
from pellucid.inside.changes.cutting import change_model
from pellucid.inside.changes.given_changes import (
    BY_A_PROBE,
    GivenChanges,
    SeveralProbes,
    describe_probe,
    read_changes,
)
from pellucid.inside.changes.written_changes import MARKS
from pellucid.inside.pair import Keeper, PairData, make_pair
from pellucid.inside.patches.patched_places import expand_sites
from pellucid.inside.record.vector_files import (
    ROW,
    Vectors,
    check_vector_output,
    load_vectors,
    write_vectors,
)
from pellucid.inside.studies.kept_steps import Steps
from pellucid.inside.studies.study_lines import Searcher
from pellucid.languages.codes import direction
from pellucid.text.language_tokens import with_codes
from pellucid.text.reading.lines import not_a_line
from pellucid.text.token_words import (
    is_punctuation,
    mark_unknown,
    show_unknown,
    source_pieces,
    split_pieces,
    words_of_tokens,
)
from pellucid.text.tokenizers.tokenizer import SPACE_SIGN
from pellucid.text.tokenizers.whole_words import without_joiner

WINDOW = 2000
"""Lines that are kept together: enough for batches of one length, few enough to do again."""


@checked
def vectors(
    model: Bundle | HasBundle,
    sources: Iterable[str],
    targets: Iterable[str] | None = None,
    *,
    at: str,
    output: str | Path,
    words: str | Iterable[str] = (),
    changes: GivenChanges | None = None,
    overwrite: bool = False,
    source_language: str | None = None,
    to: str | None = None,
    on_step: Callable[[str, int, int], None] | None = None,
) -> Vectors:
    """Collect the vectors of many lines at one place of a model, in a file.

    They are those of `Pair.see`. Lines of one length run together, without padding, through the
    half of the model that the place needs, if they have one of the words. What is done stands in a
    folder next to the output, whose name ends in ``.part``: the same call continues from there.

    Args:
        model: a translator, or its bundle.
        sources: the lines.
        targets: their translations, which only decoder rows depend on; the model's own, greedy,
            unless given.
        at: an array such as ``encoder.1.feed_forward.norm`` or ``decoder.1.cross.key``, that of one
            head such as ``encoder.0.self.3.value``, or a layer, as for `patch`. An array of heads
            without the number of one has all heads next to each other.
        output: the ``.npz`` or ``.parquet`` file to make.
        words: keep only the rows of these words: of the source, or of what decoder rows predict.
        changes: of the model, for all lines, as for `Translator.changed`; its own translations are
            found under them too. Under a probe, which has no name to know it by, an interrupted
            call begins again.
        overwrite: replace the file if it exists.
        source_language: the language of the lines, for a model that must be told.
        to: the language of their translations, for a model that has several.
        on_step: called with the next step, the number of steps done, and of all steps.

    Raises:
        InputError: the place or a word does not exist, a change cannot be made or comes after the
            place, no line can be used, or the output exists.
        DataError: the texts differ in length.
        OutputError: the disk cannot take the output.
    """
    bundle = bundle_of(model)
    lines: Sequence[str] = list_texts("sources", sources)
    given = None if targets is None else list_texts("targets", targets)
    wanted = [words] if isinstance(words, str) else list_texts("words", words)
    path = Path(expand_home(output))
    check_vector_output(path, overwrite=overwrite)
    place = _find_place(bundle, at)
    probe = None if changes is None else read_changes(changes, bundle.config.model)
    changed, under = change_model(bundle.model, bundle.tokenizer, probe)
    _check_parts(probe, place)
    bundle = replace(bundle, given=changed)
    said = "" if probe is None else describe_probe(probe)
    if given is not None and len(given) != len(lines):
        raise DataError(
            f"There must be targets for each of {len(lines)} sources, but there are {len(given)}."
        )
    lines = with_codes(bundle.tokenizer, direction(source_language, to), lines)
    texts = given if place.is_of_target else lines
    if texts is not None and wanted:
        _check_words(bundle, texts, wanted)
    task = _Task(bundle, place, lines, given, wanted, under)
    depends_on = [bundle.model_hash, WINDOW, place, lines, given, wanted, said]
    identity = hashlib.sha256(json.dumps(depends_on).encode()).hexdigest()
    # Another command with the same output has a folder of its own.
    folder = path.with_name(f"{path.name}.{identity[:8]}.part")
    with writing(path):
        if BY_A_PROBE in said:
            # What another one left looks the same.
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(exist_ok=True)
    starts = range(0, len(lines), WINDOW)
    steps = Steps(folder / "steps", identity, len(starts), on_step)
    num_rows = 0
    left_out: list[str] = []
    for start in starts:
        compute = partial(_write_window, task, folder, start, num_rows)
        done = steps.take(f"window {start + 1} and the lines after it", compute)
        num_rows += done["rows"]
        left_out += done["left_out"]
    if under is not None:
        under.probe.warn()
    about = {
        "at": place.label,
        "side": "target" if place.is_of_target else "source",
        "words": wanted,
        "changes": said,
        "model_hash": bundle.model_hash,
        "lines": len(lines),
        "left_out": left_out,
    }
    if not num_rows:
        shutil.rmtree(folder)
        why = f"none has {' or '.join(wanted)} there." if wanted else "there is no line."
        all_fail = lines and len(left_out) == len(lines)
        raise InputError(f"No line has vectors to keep: {left_out[0] if all_fail else why}")
    with writing(path):
        vectors_ND = np.memmap(folder / "vectors", "<f4", "r", shape=(num_rows, place.width))
        rows = np.memmap(folder / "rows", ROW, "r", shape=(num_rows,))
        found = Vectors(vectors_ND, rows, about)
        write_vectors(found, path)
        shutil.rmtree(folder)
    return load_vectors(path) if endings(path).kind == ".npz" else found


class _Place(NamedTuple):
    """An array of the model, or one head of it.

    Attributes:
        label: its name for users.
        name: the name of the array.
        head: None for all heads, or if there are none.
        is_of_target: True if its rows are the decoder's.
        width: of one row.
    """

    label: str
    name: str
    head: int | None
    is_of_target: bool
    width: int


def _find_place(bundle: Bundle, at: str) -> _Place:
    """Find the array that a name means.

    Raises:
        InputError: it does not exist, has no vectors, or there are several.
    """
    config = bundle.config.model
    eos = (bundle.tokenizer.config.eos_id,)
    found = expand_sites(PairData(bundle.model, bundle.tokenizer, eos, eos), [at])
    array, readers, _ = found[0]
    if readers:
        raise InputError(
            f"A place with vectors must be no path, but is {at!r}. Name its beginning."
        )
    name, head = array
    label = str(array)
    axes = next(wanted.axes for wanted in arrays_of(config) if wanted.name == name)
    side = axes[-2]
    width = axes[-1]
    is_of_heads = axes.startswith("H")
    if len(found) > 1 or side not in "ST" or width in "ST" or not (is_of_heads or head is None):
        names = ", ".join(map(str, found))
        raise InputError(
            f"A place must have one vector for each word, but {at} has "
            f"{f'several: {names}' if len(found) > 1 else 'none'}. Name another."
        )
    if head is not None:
        check_number("head", head, config.num_heads)
    sizes = {
        "D": config.d_model,
        "F": config.d_ff,
        "K": config.d_key,
        "E": config.d_value,
        "V": config.target_vocabulary_size or 0,
    }
    num_heads = config.num_heads if is_of_heads and head is None else 1
    return _Place(label, name, head, side == "T", num_heads * sizes[width])


def _check_parts(probe: Probe | None, place: _Place) -> None:
    """Refuse a change that cannot reach a place.

    Raises:
        InputError: it is of the decoder only, and the place is before that.
    """
    if probe is None or "encoder" in parts_of(probe) or place.name.startswith("decoder"):
        return
    raise InputError(
        f"A change must come before the vectors, but {place.label} does not depend on the decoder, "
        f"which is changed ({describe_probe(probe)}). Change the encoder, or name a place of the "
        "decoder."
    )


def _check_words(bundle: Bundle, texts: Sequence[str], words: Sequence[str]) -> None:
    """Refuse words that no line has, before anything is computed."""
    pieces = {piece for text in texts for piece in source_pieces(bundle.tokenizer, text)}
    known = {piece.strip(MARKS) for piece in pieces}
    missing = [word for word in words if word not in known and not is_punctuation(word)]
    if missing:
        hint = suggestion(missing[0], known)
        raise InputError(
            f"--words must be words of the text, but {missing[0]!r} is in none of {len(texts):,} "
            # Without a near word the hint would list all words.
            f"lines. {hint if hint.startswith('Did') else 'Name one that is there.'}"
        )


class _Task(NamedTuple):
    """What is asked for.

    Attributes:
        bundle: the model.
        place: where the vectors are.
        lines: the sources.
        targets: their translations; None for the model's own.
        words: those whose rows are kept; all if there are none.
        under: what changes the model on the way.
    """

    bundle: Bundle
    place: _Place
    lines: Sequence[str]
    targets: Sequence[str] | None
    words: Sequence[str]
    under: UnderProbe | None


_Line = tuple[PairData, np.ndarray]
"""A line to run, and the records of the rows to keep, of the type `ROW`."""


def _write_window(task: _Task, folder: Path, start: int, num_rows: int) -> dict[str, Any]:
    """Write the vectors of some lines after those that are there, and count them."""
    left_out: list[str] = []
    lines = list(_read(task, start, left_out))
    rows = np.concatenate([np.empty(0, ROW), *(rows for _, rows in lines)])
    ends = np.cumsum([len(rows) for _, rows in lines])
    vectors_ND = np.empty((len(rows), task.place.width), "<f4")
    # A probe may know one sentence at a time.
    at_once = 1 if task.under is not None and not task.under.takes_batches else len(lines)
    for group in _groups_of(lines, at_once):
        vectors_BLD = _run(task, [lines[index][0] for index in group])
        for index, vectors_LD in zip(group, vectors_BLD, strict=True):
            kept = lines[index][1]["position"]
            vectors_ND[ends[index] - len(kept) : ends[index]] = vectors_LD[kept]
    for name, array in (("vectors", vectors_ND), ("rows", rows)):
        path = folder / name
        # Written rather than mapped: on a full disk, a write to a map ends the process.
        with writing(path), path.open("r+b" if path.exists() else "wb") as stream:
            stream.seek(num_rows * array[:1].nbytes)
            stream.write(array.tobytes())
            stream.flush()
            # The count of the rows must not reach the disk before them.
            os.fsync(stream.fileno())
    return {"rows": len(rows), "left_out": left_out}


def _read(task: _Task, start: int, left_out: list[str]) -> Iterator[_Line]:
    """Yield the lines of a window that have rows to keep; say why others cannot be run."""
    tokenizer = task.bundle.tokenizer
    # Vectors of the source do not depend on a translation.
    targets = task.targets if task.place.is_of_target else None
    pairs: dict[int, tuple[PairData, str]] = {}
    for number, source in enumerate(task.lines[start : start + WINDOW], start=start):
        target = None if targets is None else targets[number]
        try:
            pairs[number] = _make(task.bundle, source, target)
        except InputError as error:
            left_out.append(f"line {number + 1}: {error}")
    if task.place.is_of_target and targets is None:
        decoder = make_decoder([task.bundle.model], tokenizer)
        if task.under is not None:
            decoder = decoder.under(task.under)
        sources = [(text, list(pair.source_ids)) for pair, text in pairs.values()]
        written = Searcher(task.bundle).translate(decoder, sources)
        for number, (text, ids) in zip(list(pairs), written, strict=True):
            pair, _ = pairs.pop(number)
            if ids:
                pair = replace(pair, target_ids=tuple(ids))
                pairs[number] = (pair, mark_unknown(tokenizer, text))
            else:
                left_out.append(f"line {number + 1}: The model writes nothing for it.")
    for number, (pair, text) in pairs.items():
        rows = _rows_of(task, number, pair, text)
        # The model need not run for a line without one of the words.
        if len(rows):
            yield pair, rows


def _make(bundle: Bundle, source: str, target: str | None) -> tuple[PairData, str]:
    """Make a pair, and the text whose words its rows belong to.

    Raises:
        InputError: one of the lines cannot be used.
    """
    tokenizer = bundle.tokenizer
    if fault := not_a_line(source) or not_a_line(target or ""):
        raise InputError(fault)
    if target is not None and not target.strip():
        raise InputError("The translation is empty. Write one in it.")
    if target is None:
        return make_pair(bundle, source, [tokenizer.config.eos_id]), tokenizer.masked(source)
    written = mark_unknown(tokenizer, tokenizer.masked_pair(source, target)[1])
    return make_pair(bundle, source, target), written


def _rows_of(task: _Task, number: int, pair: PairData, text: str) -> np.ndarray:
    """Describe the rows of a line that are kept."""
    tokenizer = task.bundle.tokenizer
    if task.place.is_of_target:
        tokens = pair.predicted_tokens
        pieces = split_pieces(text)
        owners = words_of_tokens(tokenizer, "target", text, pair.target_ids)
    else:
        tokens = pair.source_tokens
        pieces = source_pieces(tokenizer, text)
        owners = words_of_tokens(tokenizer, "source", text, pair.source_ids)
    rows = np.empty(len(tokens), ROW)
    # The end of the sentence belongs to no word.
    for position, (token, owner) in enumerate(zip(tokens, [*owners, range(0)], strict=True)):
        word = owner.start if owner else -1
        letters = show_unknown(pieces[word]) if owner else ""
        if owner and is_punctuation(token):
            letters = without_joiner(token.replace(SPACE_SIGN, "").strip())
        rows[position] = (number, position, word, letters.strip(MARKS) or letters, token)
    # Cut as the texts of rows are.
    wanted = np.array(task.words, ROW["text"])
    return rows[np.isin(rows["text"], wanted)] if task.words else rows


def _groups_of(lines: Sequence[_Line], at_once: int) -> Iterator[list[int]]:
    """Yield the numbers of lines whose sources and targets have one length."""
    groups: dict[tuple[int, int], list[int]] = {}
    for index, (pair, _) in enumerate(lines):
        groups.setdefault((len(pair.source_ids), len(pair.target_ids)), []).append(index)
    for lengths, group in groups.items():
        size = min(at_once, max(1, BATCH_TOKENS // max(lengths)))
        for start in range(0, len(group), size):
            yield group[start : start + size]


class _KeepsOne(Keeper):
    """Keeps one array, and leaves attention elsewhere its fast path."""

    def __init__(self, name: str) -> None:
        site, _, stage = name.rpartition(".")
        self.sites = {site}
        super().__init__({stage}, self.sites)


@torch.inference_mode()
def _run(task: _Task, pairs: Sequence[PairData]) -> np.ndarray:
    """Run pairs of one length as far as their vectors need it: ``vectors_BLD``."""
    model = task.bundle.model
    place = task.place
    keeper = _KeepsOne(place.name)
    probe: Probe = keeper
    if task.under is not None:
        # The change comes first.
        probe = SeveralProbes([task.under.probe, keeper])
        probe.begin(pairs[0])
    memory_BSD = model.encode(pairs[0].to_tensor([pair.source_ids for pair in pairs]), probe=probe)
    if place.name.startswith("decoder"):
        read_BT = pairs[0].to_tensor([pair.read_ids for pair in pairs])
        states_BTD = model.decode(read_BT, memory_BSD, probe=probe)
        if place.name == "decoder.logits":
            model.logits(states_BTD, probe=probe)
    array = keeper.found[place.name]
    if array.ndim == 4:
        # Heads come before positions.
        array = array.transpose(1, 2)
        array = array.flatten(2) if place.head is None else array[:, :, place.head]
    if not array.isfinite().all():
        raise InputError(OVERFLOW)
    taken: np.ndarray = array.float().numpy(force=True)
    return taken
