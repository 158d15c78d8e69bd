"""Codes of languages are compared as tags: language, script, region."""

from __future__ import annotations

from pathlib import Path

import pytest

from pellucid.documents.document_pairs import read_document_pairs
from pellucid.documents.formats import PAIRED
from pellucid.documents.units import How
from pellucid.errors import DataError
from pellucid.languages.codes import (
    are_same_language,
    find_columns,
    find_language,
    pick_codes,
    read_tag,
    short_code,
)


@pytest.mark.parametrize(
    ("code", "tag", "written"),
    [
        ("en", ("en", "", ""), "en"),
        ("en_GB.UTF-8", ("en", "", "GB"), "en-GB"),
        ("eng_Latn", ("en", "Latn", ""), "en"),
        ("zh_TW.UTF-8", ("zh", "Hant", "TW"), "zh-TW"),
        ("zh-Hant-HK", ("zh", "Hant", "HK"), "zh-HK"),
        ("zh-Hans-HK", ("zh", "Hans", "HK"), "zh-Hans-HK"),
        ("cmn_Hant", ("zh", "Hant", ""), "zh-Hant"),
        ("zht", ("zh", "Hant", ""), "zh-Hant"),
        ("sr@latin", ("sr", "Latn", ""), "sr-Latn"),
        ("sr_RS@latin", ("sr", "Latn", "RS"), "sr-Latn-RS"),
        ("uz_UZ.UTF-8@cyrillic", ("uz", "Cyrl", "UZ"), "uz-Cyrl-UZ"),
        ("de_DE@euro", ("de", "", "DE"), "de-DE"),
        ("fil_PH", ("tl", "", "PH"), "tl-PH"),
        ("es-419", ("es", "", "419"), "es-419"),
        ("de-1996", ("de", "", ""), "de"),
        ("pob", ("pt", "", "BR"), "pt-BR"),
        ("tlh", ("tlh", "", ""), "tlh"),
        ("", ("", "", ""), ""),
    ],
)
def test_tag_of_a_code_has_language_script_and_region(
    code: str, tag: tuple[str, str, str], written: str
) -> None:
    assert tuple(read_tag(code)) == tag
    assert str(read_tag(code)) == written
    assert read_tag(written) == read_tag(written.replace("-", "_").upper())
    assert short_code(code) == tag[0]


@pytest.mark.parametrize(
    ("wanted", "codes", "picked"),
    [
        ("pt-BR", ["en", "pt-BR", "pt-PT"], ["pt-BR"]),
        ("pt-BR", ["pt-PT", "pt"], ["pt"]),
        ("pt-BR", ["pt-PT"], ["pt-PT"]),
        ("pt", ["pt-PT", "pt-BR"], ["pt-PT", "pt-BR"]),
        ("zh-CN", ["zh-TW", "zh-CN"], ["zh-CN"]),
        ("zh-CN", ["zh-TW"], []),
        ("zh_Hant", ["zh-CN", "zh-TW"], ["zh-TW"]),
        ("zh", ["zh-TW", "zh-CN"], ["zh-CN"]),
        ("zh", ["zh-TW"], ["zh-TW"]),
        ("eng_Latn", ["en-US", "fr"], ["en-US"]),
        ("", ["en", ""], []),
        ("es-MX", ["es-ES", "es-419"], ["es-419"]),
        ("es-MX", ["es", "es_419"], ["es_419"]),
        ("es-MX", ["es-419", "es-AR", "es-MX"], ["es-MX"]),
        ("es-MX", ["es-ES", "es-AR"], ["es-AR"]),
        ("es-MX", ["es-AR", "es"], ["es"]),
        ("es-419", ["es-ES", "es-MX"], ["es-MX"]),
        ("es-ES", ["es-419", "es"], ["es"]),
        ("pt-AO", ["pt-BR", "pt-PT"], ["pt-PT"]),
        ("pt-BR", ["pt-AO", "pt-PT"], ["pt-AO", "pt-PT"]),
        ("en-AU", ["en-US", "en-GB"], ["en-GB"]),
        ("en_NZ", ["en", "en-001"], ["en-001"]),
        ("zh-MO", ["zh-TW", "zh-HK"], ["zh-HK"]),
    ],
)
def test_nearest_codes_are_picked_and_none_of_another_script(
    wanted: str, codes: list[str], picked: list[str]
) -> None:
    assert pick_codes(wanted, codes) == picked


def test_regions_are_one_language_and_scripts_are_two() -> None:
    assert are_same_language("pt-BR", "por_PT")
    assert are_same_language("zh", "zh-TW")
    assert not are_same_language("zh-CN", "zh-TW")
    assert not are_same_language("sr_Latn", "sr-Cyrl")
    assert not are_same_language("", "")


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("English", "en"), ("Deutsch", "de"), ("FRANÇAIS", "fr"), ("en-US", "en-US"),
        ("eng", "en"), ("German text", "de"), ("en_sentence", "en"), ("日本語", "ja"),
        ("Chinese (Traditional)", "zh-Hant"), ("annotator", ""), ("source", ""), ("", ""),
        ("it is a house.", ""), ("score", ""), ("English (United States)", "en"),
        ("Englisch", "en"), ("allemand", "de"), ("Inglés", "en"), ("niemiecki", "de"),
        ("Deutsch (Deutschland)", "de"), ("Chinese (Hong Kong)", ""), ("Notes (internal)", ""),
    ],
)  # fmt: skip
def test_headers_name_languages_as_people_write_them(name: str, code: str) -> None:
    assert find_language(name) == code


def test_columns_of_a_language_are_found_by_any_name() -> None:
    assert find_columns("en", ["id", "en-US", "de-DE"]) == [1]
    assert find_columns("de", ["id", "English", "Deutsch", "annotator"]) == [2]
    assert find_columns("pt-BR", ["pt-PT", "pt-BR"]) == [1]
    assert find_columns("tlh", ["tlh", "en"]) == [0]
    assert find_columns("", ["", "en"]) == []


def tmx(*units: dict[str, str]) -> str:
    """Write a memory of units that have a text for each code."""
    body = "".join(
        "<tu>"
        + "".join(
            f'<tuv xml:lang="{code.rstrip("2")}"><seg>{text}</seg></tuv>'
            for code, text in unit.items()
        )
        + "</tu>"
        for unit in units
    )
    return f'<tmx version="1.4"><header/><body>{body}</body></tmx>'


def pairs_of(text: str, source: str, target: str) -> tuple[list[tuple[str, str]], list[str]]:
    found = []
    reasons = []
    how = How("a.tmx", (source, target))
    for _, reason, pairs in read_document_pairs(PAIRED[".tmx"], [text], how):
        found += pairs
        reasons += [reason] if reason else []
    return found, reasons


TRAIN = {"en": "The train", "pt-BR": "O trem", "pt-PT": "O comboio"}
BUS = {"en": "The bus", "pt-PT": "O autocarro", "pt-BR": "O ônibus"}
SIGN = {"en": "Sign", "zh-CN": "简体", "zh-TW": "繁體"}


@pytest.mark.parametrize(
    ("target", "texts"),
    [
        ("pt-BR", ["O trem", "O ônibus"]),
        ("por_PT", ["O comboio", "O autocarro"]),
        ("zh-CN", ["简体"]),
        ("zh", ["简体"]),
        ("zh_Hant", ["繁體"]),
    ],
)
def test_tmx_gives_the_variant_that_was_asked_for(target: str, texts: list[str]) -> None:
    found, _ = pairs_of(tmx(TRAIN, BUS, SIGN), "en", target)
    assert [text for _, text in found] == texts


def test_tmx_of_two_variants_gives_neither_and_counts_them() -> None:
    only = {"en": "A cat", "pt-PT": "Um gato"}
    found, reasons = pairs_of(tmx(TRAIN, BUS, only), "en", "pt")
    assert found == [("A cat", "Um gato")]
    assert reasons == ["both pt-BR and pt-PT"] * 2
    with pytest.raises(DataError, match=r"texts in en and zh-CN, but its languages are en, zh-TW"):
        pairs_of(tmx({"en": "Sign", "zh-TW": "繁體"}), "en", "zh-CN")


def test_tmx_with_two_translations_in_one_language_gives_both() -> None:
    found, _ = pairs_of(tmx({"en": "A cat", "pt": "Um gato", "pt2": "O gato"}), "en", "pt")
    assert found == [("A cat", "Um gato"), ("A cat", "O gato")]


def test_no_other_module_cuts_codes_into_parts() -> None:
    source = Path(__file__).parents[3] / "src/pellucid"
    found = [
        path.name
        for path in source.rglob("*.py")
        if any(one in path.read_text("utf-8") for one in ('r"[-_]"', '"[-_]"', "[-_.@]"))
    ]
    assert found == []
