"""The teacher's translations of the training text, made part by part."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from pellucid.config.parsing import read_json_text
from pellucid.errors import ConfigurationError, DataError, PellucidError
from pellucid.evaluation.tokenization import choose_tokenizer
from pellucid.evaluation.word_links import write_links
from pellucid.files import read_bytes, write_text, writing
from pellucid.translate.links.aligning import Aligner
from pellucid.translate.results import TranslatedHypothesis, Translation
from pellucid.translate.translator import Translator

LINES_IN_A_PART = 1000
SETTINGS_FILE = "settings.json"


@dataclass(frozen=True)
class TeacherSettings:
    """The way in which the teacher translates.

    Attributes:
        beam: the width of its beam.
        n_best: the number of hypotheses, of which the one that is most like the reference is taken.
        is_guided: True to link the words of source and translation too.
    """

    beam: int
    n_best: int = 1
    is_guided: bool = False


@dataclass(frozen=True)
class TaughtPair:
    """A sentence for the student.

    Attributes:
        source: the sentence.
        target: the teacher's translation; None if it could not translate the sentence.
        links: the word links in Pharaoh format; empty unless they were asked for.
    """

    source: str
    target: str | None
    links: str = ""


def teach(
    translator: Translator,
    sources: Iterable[tuple[str, str | None]],
    how: TeacherSettings,
    folder: Path,
    until: float | None = None,
) -> Iterator[TaughtPair]:
    """Translate sources with the teacher; parts that an earlier call finished are read.

    Args:
        translator: one model, or several together.
        sources: sentences with their references; None for a sentence without one.
        how: the search.
        folder: for the parts; made if it is not there.
        until: the ``time.monotonic()`` after which no further part begins; None translates all.

    Yields:
        A lesson for each source, in order.

    Raises:
        ConfigurationError: the folder holds the translations of another teacher or search.
        DataError: it holds those of other text, or is damaged.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    check_settings(folder / SETTINGS_FILE, _settings(translator, how))
    aligner = None
    if how.is_guided:
        aligner = translator.aligner()
    rest = iter(sources)
    number = 0
    while rows := list(islice(rest, LINES_IN_A_PART)):
        path = folder / f"part-{number:06d}.jsonl"
        if path.exists():
            yield from _read_part(path, [source for source, _ in rows])
        elif number and until is not None and time.monotonic() > until:
            return
        else:
            lessons = _translate(translator, rows, how, aligner)
            write_text(path, "".join(_to_line(lesson) for lesson in lessons))
            yield from lessons
        number += 1


def _settings(translator: Translator, how: TeacherSettings) -> dict[str, Any]:
    return {
        "models": list(translator.model_hashes),
        "beam": how.beam,
        "n_best": how.n_best,
        "guided": how.is_guided,
        "lines_in_a_part": LINES_IN_A_PART,
    }


def check_settings(path: Path, settings: Mapping[str, Any]) -> None:
    """Write the settings of a new folder, or compare them with those of an old one.

    Args:
        path: the file of the settings.
        settings: the teacher's hashes and its search.

    Raises:
        ConfigurationError: the folder has translations of another teacher or search.
        DataError: the file is damaged.
    """
    if not path.exists():
        write_text(path, json.dumps(settings, indent=1) + "\n")
        return
    try:
        found = read_json_text(read_bytes(path))
    except (PellucidError, ValueError):
        found = None
    if not isinstance(found, dict):
        raise DataError(f"{path} is damaged. Delete its folder to translate the text again.")
    for name, value in settings.items():
        if found.get(name) != value:
            # Hashes of models say nothing to a reader.
            differing = f"{name} {found.get(name)!r}, not {value!r}"
            raise ConfigurationError(
                f"The teacher's translations must be of one teacher and one search, but those in "
                f"{path.parent} have {'another teacher' if name == 'models' else differing}. "
                "Choose another folder with -o, or delete that folder to translate again."
            )


def _translate(
    translator: Translator,
    rows: Sequence[tuple[str, str | None]],
    how: TeacherSettings,
    aligner: Aligner | None,
) -> list[TaughtPair]:
    found = translator.translate(
        [source for source, _ in rows],
        beam=how.beam,
        n_best=how.n_best,
        sample=False,
        align=aligner or False,
    )
    taught = []
    for (source, reference), translation in zip(rows, found, strict=True):
        best = _choose(translation, reference)
        links = "" if best is None or not how.is_guided else write_links(best.alignment or ())
        taught.append(TaughtPair(source, None if best is None else best.text, links))
    return taught


def _choose(translation: Translation, reference: str | None) -> TranslatedHypothesis | None:
    """Choose the hypothesis that is most like the reference, the better one of equals."""
    hypotheses = [one for one in translation.hypotheses if one.text.strip()]
    if translation.error is not None or not hypotheses:
        return None
    if reference is None or len(hypotheses) == 1:
        return hypotheses[0]
    return max(hypotheses, key=lambda one: _sentence_bleu(one.text, reference))


def _sentence_bleu(hypothesis: str, reference: str) -> float:
    from sacrebleu.metrics.bleu import BLEU

    tokenizer = choose_tokenizer([reference], may_use_mecab=False)
    metric = BLEU(effective_order=True, tokenize=tokenizer)
    return float(metric.sentence_score(hypothesis, [reference]).score)


def _to_line(lesson: TaughtPair) -> str:
    record = {
        "source_sha256": _hash(lesson.source),
        "target": lesson.target,
        "links": lesson.links,
    }
    return json.dumps(record, ensure_ascii=False) + "\n"


def _read_part(path: Path, sources: Sequence[str]) -> list[TaughtPair]:
    """Read a finished part, and make sure that it is of these sources."""
    try:
        records = [json.loads(line) for line in read_bytes(path).decode().splitlines()]
        hashes = [record["source_sha256"] for record in records]
        lessons = [
            TaughtPair(source, record["target"], record["links"])
            for source, record in zip(sources, records, strict=False)
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} is damaged. Delete it to translate its lines again.") from error
    if hashes != [_hash(source) for source in sources]:
        raise DataError(
            f"The teacher's translations must be of this text, but those in {path} are of another. "
            "Choose another folder with -o, or delete that folder to translate again."
        )
    return lessons


def _hash(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()[:16]
