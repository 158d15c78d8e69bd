"""Plurals of the target's language: forms that a document of the source's language lacks."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from shutil import which
from xml.etree import ElementTree

import polib
import pytest
import yaml
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


RAILS = """en:
  dogs:
    one: one dog
    other: "%{count} dogs" # all
  cats:
    zero: no cats
    one: one cat
    other: |
      %{count} cats

      and more
  flow: {one: a dog, other: "%{count} dogs"}
  list:
    - other: y dogs
      one: x dog
  order: {one: first, other: second, third: third}
"""


@pytest.mark.parametrize(("target", "more"), [("ru", ["few", "many"]), ("de", [])])
def test_rails_gets_the_forms_that_its_language_has(target: str, more: list[str]) -> None:
    for document in (RAILS, RAILS.replace("\n", "\r\n")):
        written, _ = translate("yaml", document, target=target)
        found = yaml.safe_load(written)[target]
        assert found["dogs"] == {
            "one": "ONE DOG",
            **dict.fromkeys(["other", *more], "%{count} DOGS"),
        }
        assert found["cats"]["zero"] == "NO CATS"
        both = [found["cats"][one] for one in ("other", *more)]
        assert both == ["%{count} CATS\n\nAND MORE\n"] * len(both)
        assert [*found["flow"]] == ["one", "other", *more]
        assert {*found["list"][0]} == {"one", "other", *more}
        assert [*found["order"]] == ["one", "other", "third"]
        assert ("\r\n" in document) == ("\n" not in written.replace("\r\n", ""))


OLD_I18NEXT = """{
  "n": "{{count}} dog",
  "n_plural": "{{count}} dogs",
  "plural": "a",
  "_plural": "b",
  "in": { "one": "a cat", "other": "{{count}} cats" },
  "m_ordinal_one": "{{count}}st",
  "m_ordinal_other": "{{count}}th"
}
"""


@pytest.mark.parametrize(
    ("target", "forms"),
    [
        ("ru", ["DOG", "DOGS", "DOGS"]),
        ("ar", ["DOGS", "DOG", "DOGS", "DOGS", "DOGS", "DOGS"]),
        ("ja", ["DOGS"]),
        ("fr", []),
    ],
)
def test_i18next_3_gets_numbered_forms(target: str, forms: list[str]) -> None:
    written, _ = translate("json", OLD_I18NEXT, target=target)
    found = json.loads(written)
    more = {f"n_{number}": f"{{{{count}}}} {form}" for number, form in enumerate(forms)}
    assert {one: text for one, text in found.items() if one[:2] == "n_"} == {
        "n_plural": "{{count}} DOGS",
        **more,
    }
    assert {*found["in"]} == {"one", "other", *plural_categories(target)}
    assert [one for one in found if one[0] == "m"] == ["m_ordinal_one", "m_ordinal_other"]
    assert (found["plural"], found["_plural"]) == ("A", "B")
    # A file that has the forms keeps them.
    again, _ = translate("json", written, target=target)
    assert again == written


def test_fluent_gets_the_variants_that_its_language_has() -> None:
    document = (
        "dogs = { $n ->\n    [0] none\n    [one] one dog\n   *[other] { $n } dogs\n"
        "        sleep\n}\n"
        "    .title = { $n ->\n        [one] a\n       *[other] b\n    }\n"
        "mac = { PLATFORM() ->\n    [macos] one\n   *[other] all\n}\n"
    )
    written, _ = translate("fluent", document, target="ru")
    new = "".join(f"    [{one}] {{ $n }} DOGS\n        SLEEP\n" for one in ("few", "many"))
    assert f"    [one] ONE DOG\n{new}   *[other] {{ $n }} DOGS" in written
    assert "        [one] A\n        [few] B\n        [many] B\n       *[other] B\n" in written
    assert "[macos] ONE\n   *[other] ALL" in written
    assert "[few]" not in translate("fluent", document, target="de")[0]


PLURAL = "{n, plural, =0 {no dogs} one {# dog} other {the # dogs of {who}}}"


@pytest.mark.parametrize("name", ["json", "properties", "yaml", "po"])
def test_texts_of_messages_are_translated_with_the_forms_of_the_language(name: str) -> None:
    documents = {
        "json": f'{{"a": "{PLURAL}"}}',
        "properties": f"a={PLURAL}",
        "yaml": f"a: '{PLURAL}'",
        "po": f'msgid "{PLURAL}"\nmsgstr ""\n',
    }
    written, reasons = translate(name, documents[name], target="ru")
    more = "".join(f" {one} {{THE # DOGS OF {{who}}}}" for one in ("few", "many"))
    assert f"=0 {{NO DOGS}} one {{# DOG}} other {{THE # DOGS OF {{who}}}}{more}}}" in written
    assert not reasons


def test_messages_are_read_inside_each_other_and_reported_between_words() -> None:
    inner = "{n, plural, one {a cat} other {# cats}}"
    document = json.dumps(
        {
            "nested": f"{{g, select,\n male {{He has {inner}}}\n female {{{inner}}} other {{}}}}",
            "within": f"You have {inner}.",
            "broken": "{n, plural, one {a cat} other {# cats}",
            "offset": "{n, plural, offset:1 =1 {you} other {you and # others}}",
        }
    )
    written, reasons = translate("json", document, target="fr")
    found = json.loads(written)
    assert found["nested"] == (
        f"{{g, select,\n male {{HE HAS {inner}}}\n female "
        "{{n, plural, one {A CAT} other {# CATS} many {# CATS}}} other {}}"
    )
    assert found["within"] == f"YOU HAVE {inner}."
    assert found["offset"] == "{n, plural, offset:1 =1 {YOU} other {YOU AND # OTHERS}}"
    said = "a message of ICU within a text is not translated"
    assert reasons["nested"] == reasons["within"] == said
    assert reasons.keys() - {"broken"} == {"nested", "within"}


def test_forms_between_bars_are_texts_and_reported_where_a_language_needs_others() -> None:
    document = json.dumps(
        {
            "laravel": "one dog|:count dogs",
            "ranges": "{0} no dogs|[1,19] some dogs|[20,*] many dogs",
            "one": "{1} :count dog|[2,*] :count dogs",
            "symfony": "{1} one cat|[2,5[ a few|]4,Inf[ %count% cats",
            "vue": "no cats | {n} cat | {count} cats",
            "title": "Home | Shop",
            "text": "{name|upper} or (this|that) || `a|b`",
        }
    )
    written, reasons = translate("json", document, target="ru")
    assert json.loads(written) == {
        "laravel": "ONE DOG|:count DOGS",
        "ranges": "{0} NO DOGS|[1,19] SOME DOGS|[20,*] MANY DOGS",
        "one": "{1} :count DOG|[2,*] :count DOGS",
        "symfony": "{1} ONE CAT|[2,5[ A FEW|]4,Inf[ %count% CATS",
        "vue": "NO CATS | {n} CAT | {count} CATS",
        "title": "HOME | SHOP",
        "text": "{name|upper} OR (THIS|THAT) || `A|B`",
    }
    assert reasons == {"laravel": "a plural of two forms may need others: 3 in ru"}
    assert not translate("json", document, target="de")[1]
    written, reasons = translate(
        "yaml", "a: one|%count% dogs\nb: 'x | y'\nc: [a | b|c]\n", target="ja"
    )
    assert written == "a: ONE|%count% DOGS\nb: 'X | Y'\nc: [A | B|C]\n"
    assert reasons == {"a": "a plural of two forms may need others: 1 in ja"}
