"""Languages as LibreTranslate's clients name them, and the model for each pair."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from pellucid.documents.markup.reading import visible_text
from pellucid.languages.codes import (
    NAMES,
    are_same_language,
    load_identifier,
    pick_codes,
    read_tag,
)
from pellucid.languages.more_names import NAMES as MORE_NAMES
from pellucid.machine.turns import give_way
from pellucid.serve.answers.responses import Problem
from pellucid.serve.models import Models, ServedModel
from pellucid.serve.queue.scheduler import Scheduler
from pellucid.serve.queue.tasks import estimate_tokens

SHORT = 40
"""Characters up to which a text's language is judged by all texts of the request."""

# The codes that LibreTranslate shows instead of others.
_SHOWN = {"zh": "zh-Hans", "no": "nb"}

_NAMES = {**NAMES, "zh-Hans": NAMES["zh"], "nb": NAMES["no"]}
_NAMES |= {"zh-Hant": "Chinese (traditional)", "pt-BR": "Portuguese (Brazil)"}


def to_code(language: str) -> str:
    """Turn a model's or a client's code into the one that is shown.

    ``fra`` and ``fr_FR`` become ``fr``, ``zh-TW`` becomes ``zh-Hant``; codes that are not known
    stay.
    """
    tag = read_tag(language)
    code = _SHOWN.get(tag.language, tag.language)
    for whole in (f"{tag.language}-{tag.script}", f"{tag.language}-{tag.region}"):
        code = whole if whole in _NAMES else code
    return code if code in _NAMES else language.strip()


def display_name(code: str) -> str:
    """Return a language's name in English; its code if it is not known."""
    name = _NAMES.get(code) or MORE_NAMES.get(read_tag(code).language, code)
    script = read_tag(code).script
    return f"{name} ({script})" if script and code not in _NAMES else name


@dataclass(frozen=True)
class LanguagePair:
    """A translation direction: from one language to another.

    Attributes:
        model: the model.
        to: the language to name in each text, or None.
    """

    model: ServedModel
    to: str | None


class Languages:
    """The languages of a server's models.

    Args:
        models: the models; for the same pair the first counts.
    """

    def __init__(self, models: Models) -> None:
        self._directions: dict[tuple[str, str], LanguagePair] = {}
        for model in models:
            for source, target in product(model.sources, model.targets):
                # A model that reads its own target would only copy.
                if not (source and target) or (model.is_for_all and source == target):
                    continue
                pair = (to_code(source), to_code(target))
                taken = self._directions.get(pair)
                if taken is not None and taken.model is model:
                    # Such as Serbian in both scripts.
                    pair = (pair[0], str(read_tag(target)))
                way = LanguagePair(model, model.code_of(source, target))
                # The first model that was named on the command line is the one for a pair.
                self._directions.setdefault(pair, way)
        self._join(models)
        self.codes = tuple(dict.fromkeys(code for pair in self._directions for code in pair))
        self.sources = tuple(dict.fromkeys(source for source, _ in self._directions))
        # Found once: a model of 200 languages has 40,000 pairs.
        self._targets: dict[str, set[str]] = {code: {code} for code in self.codes}
        for source, target in self._directions:
            self._targets[source].add(target)

    def _join(self, models: Models) -> None:
        """Add the pairs that no model has, but several one after the other."""
        known = list(self._directions)
        # What a model is told may have its source before it: eng_Latn:fra_Latn.
        targets = {
            target: (pair.to or pair.model.target).rpartition(":")[2]
            for (_, target), pair in self._directions.items()
        }
        for source in dict.fromkeys(source for source, _ in known):
            for shown, target in targets.items():
                if are_same_language(source, shown) or (source, shown) in self._directions:
                    continue
                if (found := models.find_chain(source, target)) is not None:
                    own = pick_codes(target, found.targets)
                    to = found.code_of(source, own[0] if own else None)
                    self._directions[source, shown] = LanguagePair(found, to)

    @property
    def default(self) -> tuple[str, str]:
        """The first pair, or two empty codes."""
        return next(iter(self._directions), ("", ""))

    def list_all(self) -> list[dict[str, Any]]:
        """List all languages with their targets, each also into itself."""
        return [
            {
                "code": code,
                "name": display_name(code),
                "targets": sorted(self._targets[code]),
            }
            for code in self.codes
        ]

    def check(self, language: str) -> str:
        """Return the code of a language that a client names.

        Raises:
            Problem: 400, no model has it.
        """
        whole = str(read_tag(language))
        code = whole if whole in self.codes else to_code(language)
        if code not in self.codes:
            raise Problem(400, f"{language[:40]} is not supported")
        return code

    def find(self, source: str, target: str) -> LanguagePair | None:
        """Find the way between two languages; None if they are the same.

        Raises:
            Problem: 400, no model has this pair.
        """
        if source == target:
            return None
        direction = self._directions.get((source, target))
        if direction is None:
            raise Problem(
                400,
                f"{display_name(target)} ({target}) is not available as a target language from "
                f"{display_name(source)} ({source})",
            )
        return direction


# Two first requests must not load it twice.
_loading = threading.Lock()


def _load() -> None:
    with _loading:
        load_identifier()


class Detector:
    """Names the language of texts; for one thread only.

    Args:
        codes: the languages to tell apart.
    """

    def __init__(self, codes: Sequence[str]) -> None:
        self._codes = tuple(codes)

    @staticmethod
    async def prepare() -> None:
        """Load the identifier, once, in a thread: it takes seconds, in which others compute."""
        await asyncio.to_thread(_load)

    def detect(self, text: str) -> list[dict[str, Any]]:
        """Rank the languages of a text, each with a confidence from 0 to 100.

        The confidence counts all languages that the identifier knows: a text in a language that
        the server does not have gets low ones.
        """
        give_way()
        scores = dict.fromkeys(self._codes, 0.0)
        if any(map(str.isalpha, text)):
            for label, probability in load_identifier().rank(text):
                code = to_code(label)
                if code in scores:
                    scores[code] += float(probability)
        return [
            {"confidence": round(100 * min(score, 1.0), 1), "language": code}
            for code, score in sorted(scores.items(), key=lambda pair: -pair[1])
        ]


async def detect_each(
    scheduler: Scheduler, detector: Detector, texts: Sequence[str], *, is_html: bool = False
) -> list[dict[str, Any]]:
    """Find the language of each text; short ones are judged by all texts together."""

    def detect() -> list[dict[str, Any]]:
        shown = []
        for text in texts:
            give_way()  # A page of 20,000 characters may take 50 ms.
            shown.append(visible_text(text) if is_html else text)
        # A word or two says little about its language.
        of_all = detector.detect(" ".join(shown))
        return [
            (detector.detect(one) if len(one) > SHORT and len(shown) > 1 else of_all)[0]
            for one in shown
        ]

    cost = sum(map(estimate_tokens, texts))
    await detector.prepare()
    found: list[dict[str, Any]] = await scheduler.call(detect, cost=cost)
    return found
