"""The text of a training with teachers: read once, checked, and written for both directions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from pellucid.bundle import bundle_json
from pellucid.check.foreign_text import main_language
from pellucid.check.line_languages import are_kindred, known_code
from pellucid.config import DataConfig
from pellucid.config.data import Split
from pellucid.errors import ConfigurationError, DataError
from pellucid.files import new_folder, write_text
from pellucid.languages.codes import NAMES
from pellucid.terminal.text import count_of
from pellucid.text.reading.held_out import SET_ASIDE
from pellucid.text.reading.lines import read_lines
from pellucid.text.reading.sentence_pairs import find_aside, read_pairs
from pellucid.training.start.preparation import Say

SAMPLE = 1000
"""Lines from which the language of a text is told, about."""

MOST_KNOWN = 0.5
"""The share of more text that may be in the validation and test text."""

SIDES = ("source", "target")

Pairs = list[tuple[str, str]]


def read_split(data: DataConfig, split: Split, base: Path) -> Pairs:
    """Read the pairs of a split; none if the recipe names none."""
    if not any(data.names(split)):
        return []
    return [(pair.source, pair.target) for pair in read_pairs(data, split, base)]


def read_more(
    names: Sequence[str],
    data: DataConfig,
    texts: Mapping[Split, Pairs],
    say: Say,
) -> list[str]:
    """Read sentences in the target language, each once, and none of the held-out text.

    Raises:
        ConfigurationError: a file is in another language.
        DataError: it is empty, or most of it is in the validation or test text.
    """
    held_out = {text for split in ("validation", "test") for pair in texts[split] for text in pair}
    if not names:
        return []
    code = data.target_language
    wanted = known_code(code) if code else _language([target for _, target in texts["train"]])
    found: dict[str, None] = {}
    for name in names:
        if name == "-":
            raise ConfigurationError(
                "--more-target must be a file, which is read again on resuming, but is '-'. Write "
                "it into a file first."
            )
        lines = [line for line in read_lines(Path(name)) if line.strip()]
        if not lines:
            raise DataError(f"--more-target must have sentences, but {name} is empty.")
        language = _language(lines)
        if language and wanted and not are_kindred(language, wanted):
            raise ConfigurationError(
                f"--more-target must be in the target language, {NAMES.get(wanted, wanted)}, but "
                f"{name} is mostly {NAMES.get(language, language)}. Name another file."
            )
        new = [line for line in lines if line not in held_out]
        num_known = len(lines) - len(new)
        if num_known > MOST_KNOWN * len(lines):
            raise DataError(
                f"--more-target must be other text than that of validation and test, but "
                f"{num_known:,} of {len(lines):,} lines of {name} are in it: scores would be too "
                "high. Name another file."
            )
        if num_known:
            say(f"{count_of(num_known, 'line')} of {name} are left out: they are held-out text.")
        found |= dict.fromkeys(new)
    return list(found)


def _language(lines: Sequence[str]) -> str | None:
    """Tell the language of most lines, spread over the text: its beginning may be foreign."""
    return main_language(lines[:: max(1, len(lines) // SAMPLE)])


def hash_texts(texts: Mapping[Split, Pairs], more: Sequence[str]) -> str:
    """Hash all text of a training."""
    return hashlib.sha256(json.dumps([texts, more]).encode()).hexdigest()


def write_texts(folder: Path, data: DataConfig, texts: Mapping[Split, Pairs], base: Path) -> None:
    """Write each split as two plain files, so that teachers of both directions can read it."""
    with new_folder(folder) as part:
        for split, pairs in texts.items():
            if pairs:
                write_pairs(part, pairs, f"{split}.")
        if data.split or data.set_aside_as:
            record = find_aside(data, base).held_out.to_record()
            write_text(part / SET_ASIDE, bundle_json(record))


def write_pairs(folder: Path, pairs: Pairs, name: str = "") -> None:
    """Write pairs as two plain files, ``NAMEsource`` and ``NAMEtarget``."""
    for side, texts in zip(SIDES, zip(*pairs, strict=True) if pairs else ((), ()), strict=True):
        write_text(folder / f"{name}{side}", "".join(f"{text}\n" for text in texts))


def read_added(folder: Path) -> Pairs:
    """Read the pairs that `write_pairs` wrote without a name."""
    sides = (list(read_lines(folder / side)) for side in SIDES)
    return list(zip(*sides, strict=True))
