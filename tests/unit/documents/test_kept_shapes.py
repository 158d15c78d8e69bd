"""Placeholders in documents: kept in every format, over inline codes, and compared at the end."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from growing import MOST, exponent

from pellucid.documents.formats import FORMATS
from pellucid.documents.markup.segments import Segment
from pellucid.documents.markup.split_messages import find_split_messages
from pellucid.documents.segment_writing import (
    BROKEN,
    CUT,
    DIFFERS,
    EMPTIED,
    OTHER,
    WORDLESS,
    write_segment,
)
from pellucid.documents.units import How, Unit

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from documents import Answer

XLIFF = (
    '<xliff version="1.2"><file source-language="en" target-language="fr"><body>'
    '<trans-unit id="a"><source>{}</source></trans-unit></body></file></xliff>'
)
SPLIT = "{VAR_PLURAL, plural, =1 {the dog <x/> eats} other {the dogs eat}}"


def parts_of(name: str, document: str) -> list[str | Unit]:
    return list(FORMATS[name].read(document, How(languages=("en", "fr"))))


def segments_of(parts: Sequence[str | Unit]) -> list[Segment]:
    return [one for unit in parts if isinstance(unit, Unit) for one in unit.segments]


def translated(name: str, document: str, answer: str, links: object = None) -> tuple[str, str]:
    """Write the only text of a document; return the document, and why to look at it."""
    parts = parts_of(name, document)
    (segment,) = segments_of(parts)
    words = segment.text.split()
    write_segment(segment, [Answer(answer, answer.split(), links)], words)  # type: ignore[arg-type]
    return "".join(map(str, parts)), segment.reason


@pytest.mark.parametrize(
    ("document", "answer", "written"),
    [
        (
            "<p>Hello {{ name }}, good day.</p>",
            "Bonjour {{ name }}, bonne journée.",
            "<p>Bonjour {{ name }}, bonne journée.</p>",
        ),
        (
            "<p>{% if user %}The dog{% endif %}</p>",
            "Le chien",
            "<p>{% if user %}Le chien{% endif %}</p>",
        ),
        ("<p>Hello <%= x %>!</p>", "Bonjour <%= x %> !", "<p>Bonjour <%= x %> !</p>"),
        ('<p title="Hello %name%"></p>', "Bonjour %name%", '<p title="Bonjour %name%"></p>'),
        ("<p>{{ a|default:&quot;b&quot; }} dogs</p>", '{{ a|default:"b" }} chiens', None),
    ],
)
def test_placeholders_of_html_are_kept(document: str, answer: str, written: str | None) -> None:
    found, reason = translated("html", document, answer)
    assert found == (written or document.replace("dogs", "chiens"))
    assert reason == ""


def test_placeholder_that_html_loses_comes_back_and_is_reported() -> None:
    links = [(0, 0), (2, 1)]
    found, reason = translated("html", "<p>Hello {{name}}, dear.</p>", "Bonjour, cher.", links)
    assert found.count("{{name}}") == 1
    assert "placeholders were lost" in reason


@pytest.mark.parametrize(
    ("name", "frame", "message"),
    [
        ("xliff", XLIFF, SPLIT),
        ("html", "<p>{}</p>", "{n, plural, =1 {<b>one</b> dog} other {<i>dogs</i>}}"),
    ],
)
def test_message_that_codes_cut_is_one_placeholder(name: str, frame: str, message: str) -> None:
    assert not segments_of(parts_of(name, frame.replace("{}", message)))
    document = frame.replace("{}", f"There are {message} here, and a {{dog}}")
    found = parts_of(name, document)
    (segment,) = segments_of(found)
    assert len(segment.copies) == 2
    assert message in translated(name, document, segment.text.upper())[0].replace("  ", " ")


@pytest.mark.parametrize(
    ("texts", "messages"),
    [
        (["a {n, plural, other {", None, "}} b"], [(0, 2, 2, 2)]),
        (["{n, plural, other {", None, "{m, select, x {", None, "}}}} b"], [(0, 0, 4, 4)]),
        (["{n, plural, other {", None, "} b"], []),
        (["{see ", None, "below}"], []),
        (["{n, plural, other {x}}", None, "a"], []),
    ],
)
def test_split_messages_are_the_outermost_that_end_in_another_text(
    texts: list[str | None], messages: list[tuple[int, int, int, int]]
) -> None:
    assert find_split_messages(texts) == messages


def test_many_split_messages_take_linear_time() -> None:
    def find(text: str) -> None:
        find_split_messages([one or None for one in text.split("|")])

    assert exponent(find, "{}", "{n, plural, other {||", 8000) < MOST
    assert exponent(find, "{}", "{n, plural, other {||}}", 8000) < MOST


def test_braces_that_a_translation_loses_are_reported() -> None:
    _, reason = translated("json", '{"a": "The dog {see below}"}', "Le chien (voir plus bas)")
    assert reason == f"{DIFFERS}: {{ }}"
    _, reason = translated("json", '{"a": "The dog {see below}"}', "Le chien {voir plus bas}")
    assert reason == ""


def test_text_of_which_only_placeholders_are_left_is_reported() -> None:
    assert translated("json", '{"a": "match %d of %d"}', "%d / %d")[1] == WORDLESS
    assert translated("json", '{"a": "match %d of %d"}', "trouvé %d / %d")[1] == ""
    # A copied word is none of the translation.
    assert translated("json", '{"a": "for {name}"}', "{name}")[1] == WORDLESS


def test_element_that_held_words_and_holds_none_is_reported() -> None:
    document = '{"a": "Why not <a href=\\"%(url)s\\">add one</a>?"}'
    found, reason = translated("json", document, "Pourquoi des documents ?", [(0, 0), (1, 1)])
    assert "></a>" in found
    assert reason == f'{EMPTIED}: <a href=\\"%(url)s\\">'
    found, reason = translated("json", document, "Pourquoi pas en ajouter ?", [(2, 2), (3, 3)])
    assert found == '{"a": "Pourquoi pas <a href=\\"%(url)s\\">en ajouter</a> ?"}'
    assert reason == ""


BLOCKS = [
    ("{% if x %}", "{% endif %}"),
    ("<% if (x) { %>", "<% } %>"),
    ("{% trans %}", "{% endtrans %}"),
    ("{{#if x}}", "{{/if}}"),
    ("{#if x}", "{/if}"),
    ("<?php if(x): ?>", "<?php endif ?>"),
    ("<?php if ($a->b) { ?>", "<?php } ?>"),
    ("[% IF x %]", "[% END %]"),
    ("{{ if .x }}", "{{ end }}"),
    ("{b}", "{/b}"),
]
FRAMES = [
    ("json", '{{"a": "{}"}}'),
    ("html", "<p>{}</p>"),
    ("markdown", "{}\n"),
    ("strings", '"a" = "{}";\n'),
]


@pytest.mark.parametrize(("name", "frame"), FRAMES)
@pytest.mark.parametrize(("opener", "closer"), BLOCKS)
def test_blocks_of_templates_stay_around_the_words_that_they_had(
    opener: str, closer: str, name: str, frame: str
) -> None:
    document = frame.format(f"The {opener}red car{closer} is old.")
    links = [(0, 0), (1, 2), (2, 1), (3, 3), (4, 4)]
    found, reason = translated(name, document, "La voiture rouge est vieille.", links)
    assert found == frame.format(f"La {opener}voiture rouge{closer} est vieille.")
    assert reason == ""


@pytest.mark.parametrize(("name", "frame"), FRAMES)
@pytest.mark.parametrize(("opener", "closer"), BLOCKS)
def test_words_that_leave_a_block_are_reported(
    opener: str, closer: str, name: str, frame: str
) -> None:
    document = frame.format(f"The {opener}red car{closer} is old.")
    links = [(0, 0), (1, 3), (2, 1), (3, 2), (4, 4)]
    found, reason = translated(name, document, "La voiture est rouge vieille.", links)
    assert found.index(opener) < found.index(closer)
    assert reason
    found, reason = translated(name, document, "Elle est vieille.", [(3, 1), (4, 2)])
    assert found.index(opener) < found.index(closer)
    assert reason


def test_branches_of_a_block_keep_their_order_and_their_words() -> None:
    document = '{"a": "The {% if x %}red{% else %}blue{% endif %} car"}'
    links = [(0, 0), (1, 2), (2, 3), (3, 1)]
    found, reason = translated("json", document, "La voiture rouge bleue", links)
    assert found == '{"a": "La voiture {% if x %}rouge{% else %} bleue{% endif %}"}'
    assert reason == ""
    links = [(0, 0), (1, 3), (2, 2), (3, 1)]
    found, reason = translated("json", document, "La voiture bleue rouge", links)
    assert found.index("if x") < found.index("else") < found.index("endif")
    assert reason


def test_block_within_a_word_is_reported() -> None:
    document = '{"a": "The car{{#if x}}s{{/if}} sleep"}'
    found, reason = translated("json", document, "Les voitures dorment", [(0, 0), (1, 1), (2, 2)])
    assert found == '{"a": "Les voiture{{#if x}}s{{/if}} dorment"}'
    assert reason == f"{CUT}: {{{{#if x}}}}"


@pytest.mark.parametrize("text", ["from {{ start }} to {{ end }}", "{b} and {c}", "Hi [% name %]"])
def test_what_only_looks_like_a_tag_of_a_block_is_shown(text: str) -> None:
    (segment,) = segments_of(parts_of("json", f'{{"a": "{text}"}}'))
    assert segment.text == text
    assert not segment.blocks


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("html", "<p>Hello {na<b>me</b>}, the dog</p>"),
        ("html", "<p>Hello %(na<i>me</i>)s, the dog</p>"),
        ("markdown", "Hello {na**me**}, the dog\n"),
        ("xliff", XLIFF.format('Hello {na<g id="1">me</g>}, the dog')),
        ("xliff", XLIFF.format('Hello {na<x id="1"/>me}, the dog')),
    ],
)
def test_placeholder_that_tags_cut_is_kept_or_the_source_stays(name: str, document: str) -> None:
    found, reason = translated(name, document, "Bonjour, le chien", [(0, 0), (2, 1), (3, 2)])
    assert "Bonjour" not in found
    assert reason.startswith(BROKEN)
    (segment,) = segments_of(parts_of(name, document))
    kept = segment.text.replace("Hello", "Bonjour").replace("the dog", "le chien")
    found, reason = translated(name, document, kept, [(0, 0), (1, 1), (2, 2), (3, 3)])
    assert document.replace("Hello", "Bonjour").replace("the dog", "le chien") == found or (
        name == "xliff" and "Bonjour {na<" in found
    )
    assert reason == ""


@pytest.mark.parametrize(("opener", "closer"), ["\u202b\u202c", "\u2066\u2069", "\u2068\u2069"])
@pytest.mark.parametrize(("name", "frame"), FRAMES)
def test_signs_of_direction_around_a_placeholder_stay_together(
    opener: str, closer: str, name: str, frame: str
) -> None:
    document = frame.format(f"Hello {opener}{{name}}{closer}, the dog")
    own = f"{opener}{{name}}{closer}"
    found, reason = translated(name, document, f"Bonjour {own}, le chien")
    assert found == frame.format(f"Bonjour {own}, le chien")
    assert reason == ""
    # The model loses the placeholder, or one of the signs.
    answers = ("Bonjour, le chien", f"Bonjour {{name}}{closer}, le chien", "Bonjour {name}, le")
    for answer in answers:
        found, _ = translated(name, document, answer, [(0, 0), (2, 1)])
        assert found.count(opener) == found.count(closer)
        assert found.count("{name}") == 1
    document = frame.format(f"Hello {opener}{{name}} dog{closer}.")
    found, _ = translated(name, document, f"Bonjour {opener}{{name}} chien.", [(0, 0)])
    assert found == frame.format("Bonjour {name} chien.")


def test_translation_that_keeps_a_block_is_taken_before_a_likelier_one() -> None:
    parts = parts_of("json", '{"a": "The {% if x %}red car{% endif %} is old."}')
    (segment,) = segments_of(parts)
    words = segment.text.split()
    lost = Answer("Elle est vieille.", ["Elle", "est", "vieille."], [(3, 1), (4, 2)])
    kept = Answer(
        "La voiture rouge est vieille.",
        ["La", "voiture", "rouge", "est", "vieille."],
        [(0, 0), (1, 2), (2, 1), (3, 3), (4, 4)],
    )
    write_segment(segment, [lost, kept], words)
    assert "".join(map(str, parts)) == '{"a": "La {% if x %}voiture rouge{% endif %} est vieille."}'
    assert segment.reason == OTHER
    write_segment(segment, [kept, lost], words)
    assert segment.reason == ""


@pytest.mark.parametrize(
    "motif",
    ["a {% if x %}b{% endif %} ", "{{#if x}}a ", "{b}a{/b} ", "{% else %}a", "<?php ", "[% "],
)
def test_blocks_are_written_in_linear_time(motif: str) -> None:
    def write(text: str) -> None:
        translated("html", f"<p>The {text}", "Le chien", [(0, 0)])

    assert exponent(write, "{}", motif, 4000) < MOST
