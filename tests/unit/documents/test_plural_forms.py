"""Plurals of the target's language: forms that a document of the source's language lacks."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from shutil import which
from xml.etree import ElementTree

import polib
import pytest
from capitals import translate

from pellucid.languages.plurals import plural_categories, plural_rule

TEMPLATE = (
    '#, fuzzy\nmsgid ""\nmsgstr ""\n{}"Content-Type: text/plain; charset=utf-8\\n"\n\n'
    '#, python-format\nmsgid "%d cat"\nmsgid_plural "%d cats"\nmsgstr[0] ""\nmsgstr[1] ""\n\n'
    'msgid "a dog"\nmsgstr ""\n'
)
BABEL = '"PO-Revision-Date: YEAR-MO-DA HO:MI+ZONE\\n"\n'
XGETTEXT = '"Language: \\n"\n"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"\n'
FORMS = {"fr": 2, "ru": 3, "ja": 1, "ar": 6, "pt-BR": 2}
ANDROID = (
    '<resources>\n  <plurals name="n">\n    <item quantity="one">%d dog</item>\n'
    '    <item quantity="other">%d dogs</item>\n  </plurals>\n</resources>\n'
)
I18NEXT = '{\n  "n_one": "{{count}} dog",\n  "n_other": "{{count}} dogs",\n  "a_other": "a"\n}\n'


@pytest.mark.parametrize("target", FORMS)
@pytest.mark.parametrize("header", [BABEL, XGETTEXT])
def test_template_gets_the_header_and_the_forms_of_its_language(
    header: str, target: str, tmp_path: Path
) -> None:
    written, _ = translate("po", TEMPLATE.format(header), target=target)
    path = tmp_path / "a.po"
    path.write_text(written)
    found = polib.pofile(str(path))
    assert found.metadata["Language"] == target.replace("-", "_")
    assert f"nplurals={FORMS[target]};" in found.metadata["Plural-Forms"]
    assert not found.metadata_is_fuzzy
    forms = found[0].msgstr_plural
    assert [*forms] == [*range(FORMS[target])]
    assert forms[FORMS[target] - 1] == "%d CATS"
    assert found[1].msgstr == "A DOG"
    if which("msgfmt"):
        subprocess.run(["msgfmt", "-c", "-o", "/dev/null", path], check=True, capture_output=True)


def test_catalogue_that_is_no_template_keeps_its_header() -> None:
    header = '"Last-Translator: A <a@b>\\n"\n'
    written, _ = translate("po", TEMPLATE.format(header).replace("#, fuzzy\n", ""))
    assert "Language" not in written


@pytest.mark.parametrize(
    ("target", "more"), [("fr", ["many"]), ("ru", ["few", "many"]), ("de", [])]
)
def test_android_and_i18next_get_the_forms_that_their_language_has(
    target: str, more: list[str]
) -> None:
    written, _ = translate("android", ANDROID, target=target)
    items = ElementTree.fromstring(written)[0]
    assert [one.get("quantity") for one in items] == ["one", "other", *more]
    assert [one.text for one in items][1:] == ["%d DOGS"] * (1 + len(more))
    written, _ = translate("json", I18NEXT, target=target)
    # Of a key without a form for one nothing is missing.
    keys = ["n_one", "n_other", *(f"n_{one}" for one in more), "a_other"]
    assert [*json.loads(written)] == keys
    assert written.count("{{count}} DOGS") == 1 + len(more)


def test_only_the_quantity_of_a_copied_form_is_another_one() -> None:
    document = ANDROID.replace('quantity="other"', "quantity = 'other'")
    written, _ = translate("android", document, target="ru")
    items = ElementTree.fromstring(written)[0]
    assert [one.get("quantity") for one in items] == ["one", "other", "few", "many"]
    written, _ = translate("json", I18NEXT.replace('"n_', '"see_other_'), target="ru")
    keys = [f"see_other_{one}" for one in ("one", "other", "few", "many")]
    assert [*json.loads(written)] == [*keys, "a_other"]


def test_rules_have_as_many_forms_as_their_languages_have_categories() -> None:
    for target in ("ja", "de", "ru", "pl", "cs", "ro", "lt", "lv", "sl", "ar"):
        names = plural_categories(target)
        # A form for fractions, as Slavic languages have it, is none of gettext's, which counts.
        fractions = target in ("ru", "pl", "cs", "lt")
        count = len(names) - fractions
        assert plural_rule(target).startswith(f"nplurals={count};")
