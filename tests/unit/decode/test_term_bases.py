"""Term bases in TBX, as glossaries: versions 2 and 3, what is preferred, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pellucid.decode.constraints.glossary import Glossary
from pellucid.decode.constraints.glossary_files import load_glossary
from pellucid.errors import DataError

BASIC = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE martif SYSTEM "TBXBasiccoreStructV02.dtd">
<martif type="TBX-Basic" xml:lang="en"><martifHeader><fileDesc><sourceDesc>
<p>Terms of a kitchen</p></sourceDesc></fileDesc></martifHeader><text><body>
<termEntry id="c1"><descrip type="subjectField">pets</descrip>
 <langSet xml:lang="en-US"><tig><term id="t1">dog</term></tig></langSet>
 <langSet xml:lang="fr"><tig><term>cabot</term>
  <termNote type="administrativeStatus">deprecatedTerm-admn-sts</termNote></tig>
  <tig><term>clébard</term><termNote type="administrativeStatus">admittedTerm-admn-sts</termNote>
  </tig><tig><term>chien</term><termNote type="administrativeStatus">preferredTerm-admn-sts
  </termNote></tig></langSet>
 <langSet xml:lang="de"><tig><term>Hund</term></tig></langSet></termEntry>
<termEntry id="c2"><langSet lang="en"><ntig><termGrp><term>R<hi>&amp;</hi>D <!-- no -->
   unit</term><termNote type="partOfSpeech">noun</termNote></termGrp></ntig></langSet>
 <langSet lang="fr"><ntig><termGrp><term><![CDATA[unité de <R&D>]]></term></termGrp></ntig>
 </langSet>
</termEntry></body></text></martif>
"""
DCA = """<tbx style="dca" type="TBX-Basic" xml:lang="en" xmlns="urn:iso:std:iso:30042:ed-2">
<tbxHeader/><text><body>
<conceptEntry id="c1"><langSec xml:lang="en"><termSec><term>dog</term></termSec></langSec>
<langSec xml:lang="fr"><termSec><term>cabot</term>
<termNote type="administrativeStatus">supersededTerm-admn-sts</termNote></termSec>
<termSec><term>chien</term></termSec></langSec></conceptEntry></body></text></tbx>
"""
DCT = """<tbx style="dct" type="TBX-Basic" xml:lang="en" xmlns="urn:iso:std:iso:30042:ed-2"
 xmlns:min="http://www.tbxinfo.net/ns/min"><tbxHeader/><text><body>
<conceptEntry id="c1"><min:subjectField>pets</min:subjectField>
<langSec xml:lang="en"><termSec><term>dog</term></termSec></langSec>
<langSec xml:lang="fr"><termSec><term>cabot</term>
<min:administrativeStatus>deprecatedTerm-admn-sts</min:administrativeStatus></termSec>
<termSec><term>chien</term></termSec></langSec></conceptEntry></body></text></tbx>
"""


def entry(*terms: tuple[str, str]) -> str:
    sections = "".join(
        f'<langSec xml:lang="{code}"><termSec><term>{term}</term></termSec></langSec>'
        for code, term in terms
    )
    return f"<conceptEntry>{sections}</conceptEntry>"


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], Glossary]:
    def load(text: str) -> Glossary:
        path = tmp_path / "terms.tbx"
        path.write_text(text, encoding="utf-8")
        return load_glossary(path)

    return load


def body(*entries: str) -> str:
    return f'<tbx style="dca"><text><body>{"".join(entries)}</body></text></tbx>'


def test_tbx_of_version_2_gives_terms_with_the_preferred_form_first(
    load: Callable[[str], Glossary],
) -> None:
    glossary = load(BASIC).for_languages(("en", "fr"))
    assert glossary.terms == {"dog": "chien|clébard", "R&D unit": "unité de <R&D>"}
    assert [one.forms for one in glossary.terms_for("The dog sleeps.")] == [("chien", "clébard")]
    # A term that is not wanted is found all the same.
    turned = load(BASIC).for_languages(("fr", "en")).terms
    assert turned == {
        "cabot": "dog",
        "clébard": "dog",
        "chien": "dog",
        "unité de <R&D>": "R&D unit",
    }
    assert load(BASIC).for_languages(("de", "fr")).terms == {"Hund": "chien|clébard"}


@pytest.mark.parametrize("text", [DCA, DCT], ids=["attributes", "elements"])
def test_tbx_of_version_3_gives_terms(load: Callable[[str], Glossary], text: str) -> None:
    assert load(text).for_languages(("en", "fr")).terms == {"dog": "chien"}


def test_tbx_takes_the_nearest_region_and_joins_concepts(load: Callable[[str], Glossary]) -> None:
    text = body(
        entry(("en-GB", "lorry"), ("en-US", "truck"), ("pt-PT", "camião"), ("pt-BR", "caminhão")),
        entry(("en", "bank"), ("pt", "banco")),
        entry(("en", "bank"), ("pt", "margem")),
        entry(("en", "alone"), ("de", "allein")),
    )
    terms = {"bank": "banco|margem", "lorry": "caminhão", "truck": "caminhão"}
    assert load(text).for_languages(("en", "pt-BR")).terms == terms
    assert load(text).for_languages(("eng_Latn", "por_Latn")).terms["lorry"] == "camião|caminhão"


def test_tables_count_more_than_term_bases(tmp_path: Path, write_lines: Callable[..., str]) -> None:
    base = tmp_path / "terms.tbx"
    base.write_text(BASIC, encoding="utf-8")
    glossary = load_glossary(base, write_lines("own.tsv", "dog\ttoutou", "cat\tchat"))
    terms = glossary.for_languages(("en", "fr")).terms
    assert (terms["dog"], terms["cat"], len(terms)) == ("toutou", "chat", 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (body("<conceptEntry>"), "XML must be well-formed, but is not: mismatched tag"),
        ("", "XML must be well-formed, but is not: no element found"),
        ("<tmx version='1.4'/>", "root martif or tbx, but has another one"),
        (body(), "must hold terms, but has none"),
        (body(entry(("en", " "))), "must hold terms, but has none"),
        (
            f'<!DOCTYPE tbx [<!ENTITY a "b">]>\n{body(entry(("en", "&a;")))}',
            "XML must not declare entities, but declares a",
        ),
        (
            body("\n", entry(("en", "a|b"), ("fr", "c"))),
            "no |, which separates forms, but is 'a|b'",
        ),
    ],
)
def test_tbx_with_a_fault_is_refused(
    load: Callable[[str], Glossary], text: str, message: str
) -> None:
    with pytest.raises(DataError, match=re.escape(message)) as refused:
        load(text)
    assert re.search(r"\(.*terms\.tbx:\d\)\. \w", str(refused.value))


def test_tbx_of_other_languages_is_refused_with_those_it_has(
    load: Callable[[str], Glossary],
) -> None:
    with pytest.raises(DataError, match=r"in en and ja .*, but has de, en, en-US, fr"):
        load(BASIC).for_languages(("en", "ja"))
    with pytest.raises(DataError, match="the languages of the model, which names none"):
        load(BASIC).for_languages(("", ""))
