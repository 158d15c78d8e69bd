"""Codes and names of languages, and the identifier that names the language of a text."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

_LANGUAGES = """
af afr Afrikaans|am amh Amharic|ar ara,arb Arabic|az aze Azerbaijani|be bel Belarusian
bg bul Bulgarian|bn ben Bengali|bs bos Bosnian|ca cat Catalan|cs ces,cze Czech|cy cym Welsh
da dan Danish|de deu,ger German|el ell,gre Greek|en eng English|eo epo Esperanto|es spa Spanish
et est Estonian|eu eus Basque|fa fas,per,pes Persian|fi fin Finnish|fr fra,fre French|ga gle Irish
gl glg Galician|gu guj Gujarati|he heb,iw Hebrew|hi hin Hindi|hr hrv Croatian|hu hun Hungarian
hy hye,arm Armenian|id ind,in Indonesian|is isl,ice Icelandic|it ita Italian|ja jpn Japanese
ka kat,geo Georgian|kk kaz Kazakh|km khm Khmer|kn kan Kannada|ko kor Korean|ky kir Kyrgyz
la lat Latin|lo lao Lao|lt lit Lithuanian|lv lav Latvian|mk mkd Macedonian|ml mal Malayalam
mn mon Mongolian|mr mar Marathi|ms msa,zsm Malay|mt mlt Maltese|my mya Burmese|ne nep Nepali
nl nld,dut Dutch|nn nno Norwegian Nynorsk|no nor,nob,nb Norwegian|oc oci Occitan|pa pan Punjabi
pl pol Polish|pt por Portuguese|ro ron,rum Romanian|ru rus Russian|si sin Sinhala
sk slk,slo Slovak|sl slv Slovenian|sq sqi,alb Albanian|sr srp Serbian|sv swe Swedish
sw swa,swh Swahili|ta tam Tamil|te tel Telugu|th tha Thai|tl tgl Tagalog|tr tur Turkish
uk ukr Ukrainian|ur urd Urdu|uz uzb Uzbek|vi vie Vietnamese|zh cmn,zho,chi Chinese
"""
"""The code of two letters, other codes, and the name in English."""

_ROWS = [row.split(" ", 2) for row in _LANGUAGES.replace("\n", "|").strip("|").split("|")]
NAMES = {code: name for code, _, name in _ROWS}
"""The name of each language by its code of two letters."""

_SHORT = {other: code for code, others, _ in _ROWS for other in others.split(",")}


def short_code(language: str) -> str:
    """Shorten a code such as ``en_GB`` or ``eng_Latn`` to two letters, or leave it if unknown."""
    # Locales too: en_GB.UTF-8, sr@latin.
    code = re.split(r"[-_.@]", language.strip().lower())[0]
    return _SHORT.get(code, code)


@cache
def load_identifier() -> LanguageIdentifier:
    """Load what names the language of a text. It takes a second and 80 MB, once."""
    # Imported late, because most commands never need it.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def release_identifier() -> None:
    """Free the memory of the identifier, which a training does not need any more."""
    load_identifier.cache_clear()
