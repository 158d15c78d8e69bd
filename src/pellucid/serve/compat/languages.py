"""Languages as LibreTranslate's clients name them, and the model for each pair."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pellucid.serve.models import Models, ServedModel
from pellucid.serve.problems import Problem

_NAMES = """
af afr Afrikaans|am amh Amharic|ar ara Arabic|az aze Azerbaijani|be bel Belarusian
bg bul Bulgarian|bn ben Bengali|bs bos Bosnian|ca cat Catalan|cs ces Czech|cy cym Welsh
da dan Danish|de deu German|el ell Greek|en eng English|eo epo Esperanto|es spa Spanish
et est Estonian|eu eus Basque|fa fas Persian|fi fin Finnish|fr fra French|ga gle Irish
gl glg Galician|gu guj Gujarati|he heb Hebrew|hi hin Hindi|hr hrv Croatian|hu hun Hungarian
hy hye Armenian|id ind Indonesian|is isl Icelandic|it ita Italian|ja jpn Japanese
ka kat Georgian|kk kaz Kazakh|km khm Khmer|kn kan Kannada|ko kor Korean|ky kir Kyrgyz
la lat Latin|lo lao Lao|lt lit Lithuanian|lv lav Latvian|mk mkd Macedonian|ml mal Malayalam
mn mon Mongolian|mr mar Marathi|ms msa Malay|mt mlt Maltese|my mya Burmese|nb nob Norwegian
ne nep Nepali|nl nld Dutch|oc oci Occitan|pa pan Punjabi|pl pol Polish|pt por Portuguese
ro ron Romanian|ru rus Russian|si sin Sinhala|sk slk Slovak|sl slv Slovenian|sq sqi Albanian
sr srp Serbian|sv swe Swedish|sw swa Swahili|ta tam Tamil|te tel Telugu|th tha Thai
tl tgl Tagalog|tr tur Turkish|uk ukr Ukrainian|ur urd Urdu|uz uzb Uzbek|vi vie Vietnamese
zh-Hans cmn Chinese|zh-Hant zht Chinese (traditional)|pt-BR pob Portuguese (Brazil)
"""

_OTHER = {"zh": "zh-Hans", "zt": "zh-Hant", "pb": "pt-BR", "no": "nb", "zho": "zh-Hans"}
"""Codes that mean another one; the first three are what LibreTranslate's old clients send."""


@cache
def _table() -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the name of each code, and the code of each other one."""
    names, codes = {}, dict(_OTHER)
    for entry in _NAMES.replace("\n", "|").strip("|").split("|"):
        code, other, name = entry.split(" ", 2)
        names[code], codes[other] = name, code
    codes |= {code.lower(): code for code in names if code != code.lower()}
    return names, codes


def to_code(language: str) -> str:
    """Turn a model's or a client's code into the one that is shown.

    ``fra`` and ``fr_FR`` become ``fr``; codes that are not known stay.
    """
    names, codes = _table()
    lowered = language.strip().replace("_", "-").lower()
    for form in (lowered, lowered.split("-")[0]):
        if form in names:
            return form
        if form in codes:
            return codes[form]
    return language.strip()


def display_name(code: str) -> str:
    """Return a language's name in English; its code if it is not known."""
    return _table()[0].get(code, code)


@dataclass(frozen=True)
class Route:
    """The way from one language to another.

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
        self._routes: dict[tuple[str, str], Route] = {}
        for model in models:
            for target in model.targets:
                if model.source and target:
                    pair = (to_code(model.source), to_code(target))
                    route = Route(model, target if model.is_for_several else None)
                    self._routes.setdefault(pair, route)
        self.codes = tuple(dict.fromkeys(code for pair in self._routes for code in pair))
        self.sources = tuple(dict.fromkeys(source for source, _ in self._routes))

    @property
    def default(self) -> tuple[str, str]:
        """The first pair, or two empty codes."""
        return next(iter(self._routes), ("", ""))

    def list_all(self) -> list[dict[str, Any]]:
        """List all languages with their targets, each also into itself."""
        return [
            {
                "code": code,
                "name": display_name(code),
                "targets": sorted({code, *(t for s, t in self._routes if s == code)}),
            }
            for code in self.codes
        ]

    def check(self, language: str) -> str:
        """Return the code of a language that a client names.

        Raises:
            Problem: 400, no model has it.
        """
        code = to_code(language)
        if code not in self.codes:
            raise Problem(400, f"{language[:40]} is not supported")
        return code

    def find(self, source: str, target: str) -> Route | None:
        """Find the way between two languages; None if they are the same.

        Raises:
            Problem: 400, no model has this pair.
        """
        if source == target:
            return None
        route = self._routes.get((source, target))
        if route is None:
            raise Problem(
                400,
                f"{display_name(target)} ({target}) is not available as a target language from "
                f"{display_name(source)} ({source})",
            )
        return route


class Detector:
    """Names the language of texts; for one thread only.

    Args:
        codes: the languages to tell apart.
    """

    def __init__(self, codes: Sequence[str]) -> None:
        self._codes = tuple(codes)

    def detect(self, text: str) -> list[dict[str, Any]]:
        """Rank the languages of a text, each with a confidence from 0 to 100.

        The confidence counts all languages that the identifier knows: a text in a language that
        the server does not have gets low ones.
        """
        scores = dict.fromkeys(self._codes, 0.0)
        if any(map(str.isalpha, text)):
            for label, probability in _ranking()(text):
                code = to_code(label)
                if code in scores:
                    scores[code] += float(probability)
        return [
            {"confidence": round(100 * min(score, 1.0), 1), "language": code}
            for code, score in sorted(scores.items(), key=lambda pair: -pair[1])
        ]


@cache
def _ranking() -> Callable[[str], Iterable[tuple[str, float]]]:
    """Load the identifier of languages, once for all that use it."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    rank: Callable[[str], Iterable[tuple[str, float]]] = LanguageIdentifier.from_model_file(
        MODEL_FILE, norm_probs=True
    ).rank
    return rank
