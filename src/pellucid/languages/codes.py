"""Codes and names of languages, and the identifier that names the language of a text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from pellucid.arguments import check_kind

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

_LANGUAGES = """
af afr Afrikaans|am amh Amharic|ar ara,arb Arabic|az aze,azj Azerbaijani|be bel Belarusian
bg bul Bulgarian|bn ben Bengali|bs bos Bosnian|ca cat Catalan|cs ces,cze Czech|cy cym Welsh
da dan Danish|de deu,ger German|el ell,gre Greek|en eng English|eo epo Esperanto|es spa Spanish
et est Estonian|eu eus Basque|fa fas,per,pes Persian|fi fin Finnish|fr fra,fre French|ga gle Irish
gl glg Galician|gu guj Gujarati|he heb,iw Hebrew|hi hin Hindi|hr hrv Croatian|hu hun Hungarian
hy hye,arm Armenian|id ind,in Indonesian|is isl,ice Icelandic|it ita Italian|ja jpn Japanese
ka kat,geo Georgian|kk kaz Kazakh|km khm Khmer|kn kan Kannada|ko kor Korean|ky kir Kyrgyz
la lat Latin|lo lao Lao|lt lit Lithuanian|lv lav,lvs Latvian|mk mkd Macedonian|ml mal Malayalam
mn mon,khk Mongolian|mr mar Marathi|ms msa,zsm Malay|mt mlt Maltese|my mya Burmese|ne nep,npi Nepali
nl nld,dut Dutch|nn nno Norwegian Nynorsk|no nor,nob,nb Norwegian|oc oci Occitan|pa pan Punjabi
pl pol Polish|pt por Portuguese|ro ron,rum Romanian|ru rus Russian|si sin Sinhala
sk slk,slo Slovak|sl slv Slovenian|sq sqi,alb,als Albanian|sr srp Serbian|sv swe Swedish
sw swa,swh Swahili|ta tam Tamil|te tel Telugu|th tha Thai|tl tgl,fil Tagalog|tr tur Turkish
uk ukr Ukrainian|ur urd Urdu|uz uzb,uzn Uzbek|vi vie Vietnamese|zh cmn,zho,chi Chinese
"""
"""The code of two letters, other codes, and the name in English."""

_ROWS = [row.split(" ", 2) for row in _LANGUAGES.replace("\n", "|").strip("|").split("|")]
NAMES = {code: name for code, _, name in _ROWS}
"""The name of each language by its code of two letters."""

_SHORT = {other: code for code, others, _ in _ROWS for other in others.split(",")}

# Codes that stand for a language with a script or a region.
_WHOLE = {"zht": "zh-Hant", "zt": "zh-Hant", "pob": "pt-BR", "pb": "pt-BR"}

_OWN_NAMES = """
ar العربية|bg български|ca català|cs čeština|da dansk|de deutsch|el ελληνικά|es español,castellano
et eesti|eu euskara|fa فارسی|fi suomi|fr français|ga gaeilge|gl galego|he עברית|hi हिन्दी|hr hrvatski
hu magyar|id bahasa indonesia|is íslenska|it italiano|ja 日本語|ko 한국어|lt lietuvių|lv latviešu
nl nederlands|no norsk|pl polski|pt português|ro română|ru русский|sk slovenčina|sl slovenščina
sr српски,srpski|sv svenska|th ไทย|tr türkçe|uk українська|ur اردو|vi tiếng việt|zh 中文,汉语
zh-Hans 简体中文,simplified chinese,chinese (simplified)
zh-Hant 繁體中文,traditional chinese,chinese (traditional)
pt-BR português (brasil),brazilian portuguese,portuguese (brazil)
pt-PT português (portugal),european portuguese,portuguese (portugal)
"""
"""What headers call languages besides the names in English."""

# In German, French, Spanish, Italian, Portuguese, Dutch and Polish: a table of two of these
# languages has a header in one of them.
_OTHER_NAMES = """
ar arabisch,arabe,árabe,arabo,arabski|cs tschechisch,tchèque,checo,ceco,tsjechisch,czeski
de allemand,alemán,tedesco,alemão,duits,niemiecki
en englisch,anglais,inglés,inglese,inglês,engels,angielski
es spanisch,espagnol,spagnolo,espanhol,spaans,hiszpański
fr französisch,francés,francese,francês,frans,francuski
it italienisch,italien,italiano,italiaans,włoski
ja japanisch,japonais,japonés,giapponese,japonês,japoński
nl niederländisch,néerlandais,neerlandés,olandese,neerlandês,holandês,niderlandzki
pl polnisch,polonais,polaco,polacco,polonês,pools
pt portugiesisch,portugais,portugués,portoghese,portugees
ru russisch,russe,ruso,russo,rosyjski|sv schwedisch,suédois,sueco,svedese,zweeds,szwedzki
tr türkisch,turc,turco,turks,turecki|uk ukrainisch,ukrainien,ucraniano,ucraino,oekraïens,ukraiński
zh chinesisch,chinois,chino,cinese,chinês,chinees,chiński
"""
_BY_NAME = {name.casefold(): code for code, name in NAMES.items()}
_BY_NAME |= {
    name: row.partition(" ")[0]
    for row in f"{_OWN_NAMES}{_OTHER_NAMES}".replace("\n", "|").strip("|").split("|")
    if row
    for name in row.partition(" ")[2].split(",")
}

# Scripts that follow from the region. Without one a code says nothing: zh may be either.
_SCRIPTS = {
    **dict.fromkeys(("zh-TW", "zh-HK", "zh-MO"), "Hant"),
    **dict.fromkeys(("zh-CN", "zh-SG", "zh-MY"), "Hans"),
}
_USUAL_SCRIPT = {"zh": "Hans"}
"""The script that a code without one more likely means, of languages that have several."""

_CHILDREN = {
    "es-419": "AR BO BR BZ CL CO CR CU DO EC GT HN MX NI PA PE PR PY SV US UY VE",
    "pt-PT": "AO CH CV FR GQ GW LU MO MZ ST TL",
    "en-001": "150 AT AU BE BW CH CY DE DK FI GB GH HK IE IL IN JM KE MT MY NG NL NZ PK SE SG TT "
    "UG ZA ZW",
    "zh-HK": "MO",
}
"""The regions whose language is more like that of another region than like any other's.

Source:
    Unicode CLDR, "supplementalData", ``parentLocales``; of English the regions that are met often.
"""
_PARENTS = {
    f"{parent[:2]}-{region}": parent
    for parent, regions in _CHILDREN.items()
    for region in regions.split()
}

_SEVERAL_SCRIPTS = frozenset(("az", "bs", "kk", "mn", "pa", "sr", "uz", "zh"))

# A language, then a script of four letters and a region, both of which may be missing.
_TAG = re.compile(
    r"(?P<language>[a-z]{2,8})(?:-[a-z]{3}(?=-|$))?(?:-(?P<script>[a-z]{4})(?![^-]))?"
    r"(?:-(?P<region>[a-z]{2}|\d{3})(?![^-]))?(?:-.*)?"
)
_CODE = re.compile(r"[a-z]{2,3}(?:[-_][a-z0-9]{2,8}){0,2}")
_ADDED = re.compile(r"[ _-](?:text|sentence|segment)s?$")
"""What names of columns have after the language."""

_IN_BRACKETS = re.compile(r" \([^()]*\)$")
"""The region after the name of a language, as in ``English (United States)``."""

_MODIFIERS = {"latin": "Latn", "cyrillic": "Cyrl", "devanagari": "Deva"}
"""Scripts as locales name them, after the region and the encoding: ``sr_RS.UTF-8@latin``."""


class Tag(NamedTuple):
    """The parts of a language code that are compared.

    Attributes:
        language: the code of two letters, or as it is if there is none.
        script: such as ``Hant``; empty if unknown.
        region: such as ``BR``; empty if unknown.

    Source:
        RFC 5646, "Tags for Identifying Languages", section 2.1.
    """

    language: str
    script: str
    region: str

    def __str__(self) -> str:
        """Write the tag as documents have it, such as ``pt-BR``; ``eng_Latn`` becomes ``en``."""
        has_script = self.language in _SEVERAL_SCRIPTS and self.script
        # Who knows the region knows the script.
        is_implied = _SCRIPTS.get(f"{self.language}-{self.region}") == self.script
        script = self.script if has_script and not is_implied else ""
        return "-".join(filter(None, (self.language, script, self.region)))


def read_tag(code: str) -> Tag:
    """Read a code such as ``en``, ``eng_Latn``, ``pt-BR``, ``zh_TW.UTF-8`` or ``sr@latin``."""
    plain = code.strip().lower().replace("_", "-")
    plain = _WHOLE.get(plain, plain).lower()
    plain, _, modifier = plain.partition("@")
    # Locales name an encoding.
    plain = plain.partition(".")[0]
    match = _TAG.fullmatch(plain)
    if match is None:
        return Tag(plain, "", "")
    language = _SHORT.get(match["language"], match["language"])
    region = (match["region"] or "").upper()
    script = (match["script"] or "").title() or _MODIFIERS.get(modifier, "")
    return Tag(language, script or _SCRIPTS.get(f"{language}-{region}", ""), region)


def direction(source: str | None, target: str | None) -> str | None:
    """Join two languages to one text, ``en:fr``; the target alone without a source.

    Raises:
        InputError: one is no text.
    """
    check_kind("source_language", source, str | None, "a code or name of a language")
    check_kind("to", target, str | None, "a code or name of a language")
    return target if source is None else f"{source}:{target or ''}"


def short_code(language: str) -> str:
    """Shorten a code such as ``en_GB`` or ``eng_Latn`` to two letters, or leave it if unknown.

    Use `pick_codes` to choose among codes: this one knows no script and no region.
    """
    return read_tag(language).language


def are_same_language(first: str, second: str) -> bool:
    """Tell whether two codes may mean the same language: regions differ, scripts do not."""
    return _closeness(read_tag(first), read_tag(second)) is not None


def pick_codes(wanted: str, codes: Iterable[str]) -> list[str]:
    """Pick the codes that are nearest to a wanted one: its own script and region if they exist.

    Returns:
        None of another language or script; ``es-419`` rather than ``es-ES`` for ``es-MX``. Several
        if they are equally near: of ``pt-BR`` and ``pt-PT`` both for ``pt``.
    """
    asked = read_tag(wanted)
    found: dict[tuple[bool, int], list[str]] = {}
    for code in codes:
        near = _closeness(asked, read_tag(code))
        if near is not None:
            found.setdefault(near, []).append(code)
    return found[max(found)] if found else []


def _closeness(first: Tag, second: Tag) -> tuple[bool, int] | None:
    """Compare two tags: whether their scripts agree, and how well their regions do."""
    if first.language != second.language or not first.language:
        return None
    usual = _USUAL_SCRIPT.get(first.language, "")
    if first.script and second.script and first.script != second.script:
        return None
    has_script = (first.script or usual) == (second.script or usual)
    return has_script, _nearness(first, second)


def _nearness(first: Tag, second: Tag) -> int:
    """Compare the regions of two tags of one language, from 0 (both known, and apart) to 4."""
    if first.region == second.region:
        return 4
    regions = [f"{tag.language}-{tag.region}" for tag in (first, second)]
    parents = [_PARENTS.get(region, region) for region in regions]
    if parents[0] == parents[1]:
        # A parent is nearer than a language without a region, and that nearer than a sibling.
        return 3 if {*regions} & {*parents, "en-GB"} else 1
    return 0 if first.region and second.region else 2


def plain_name(name: str) -> str:
    """Reduce the name of a column to what it means: ``Source text`` to ``source``."""
    return _ADDED.sub("", name.strip().casefold())


def find_language(name: str) -> str:
    """Find the language that a header means: ``English``, ``Deutsch``, ``en-US`` or ``eng``.

    Returns:
        Its code, or ``""`` if the name is none of a known language.
    """
    plain = plain_name(name)
    if plain in _BY_NAME:
        return _BY_NAME[plain]
    # Where a language has several scripts, the region would decide between them.
    language = _BY_NAME.get(_IN_BRACKETS.sub("", plain), "")
    if language and language not in _SEVERAL_SCRIPTS:
        return language
    tag = read_tag(plain)
    return str(tag) if tag.language in NAMES and _CODE.fullmatch(plain) else ""


def find_languages(names: Sequence[str]) -> list[str]:
    """Find the language of each name of a header, as `find_language` does.

    ``id`` next to two languages is a column of numbers rather than Indonesian.
    """
    codes = [find_language(name) for name in names]
    has_two = len({*codes} - {"", "id"}) > 1
    return ["" if code == "id" and has_two else code for code in codes]


def find_columns(language: str, names: Sequence[str]) -> list[int]:
    """Find the columns whose names mean a language; its own region's if they have several."""
    codes = [find_language(name) for name in names]
    near = pick_codes(language, filter(None, codes))
    # A code that is unknown must be repeated.
    own = language.casefold()
    return [
        place
        for place, (code, name) in enumerate(zip(codes, names, strict=True))
        if code in near or (own and name.strip().casefold() == own)
    ]


@cache
def load_identifier() -> LanguageIdentifier:
    """Load what names the language of a text. It takes a second and 80 MB, once."""
    # Imported late, because most commands never need it.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def release_identifier() -> None:
    """Free the memory of the identifier, which a training does not need any more."""
    load_identifier.cache_clear()
