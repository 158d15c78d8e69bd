"""Where texts of documents begin and end, what counts as translated, and spaces around copies."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from pellucid.documents.formats import FORMATS
from pellucid.documents.segment_writing import write_segment
from pellucid.documents.units import How, Unit
from pellucid.text.line_words import line_words

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from documents import Answer

Links = Sequence[tuple[int, int]]


def read(name: str, document: str, how: How | None = None) -> tuple[list[str | Unit], list[Unit]]:
    """Read a document: its parts, and the units of them."""
    parts = list(FORMATS[name].read(document, how or How(languages=("en", "fr"))))
    assert how is not None or "".join(map(str, parts)) == document or name == "xliff"
    return parts, [one for one in parts if isinstance(one, Unit)]


def cues(*texts: str, starts: Sequence[int] = (), name: str = "vtt") -> str:
    """Write cues of 0.9 seconds, each a second after the one before it, or as given."""
    mark = "." if name == "vtt" else ","
    made = ["WEBVTT\n\n"] if name == "vtt" else []
    for number, text in enumerate(texts):
        minutes, seconds = divmod(starts[number] if starts else number, 60)
        time = f"00:{minutes:02}:{seconds:02}{mark}"
        made.append(f"{number}\n{time}000 --> {time}900\n{text}\n\n")
    return "".join(made)


def sentences(document: str, name: str = "vtt") -> list[list[str]]:
    """List the texts of the units of a document."""
    found = ([one.text.strip() for one in unit.segments] for unit in read(name, document)[1])
    return [*filter(None, found)]


@pytest.mark.parametrize("name", ["srt", "vtt"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<v Bob>He ate.</v>\n<v Ann>She saw.</v>", ["He ate.", "She saw."]),
        ("<v Bob>He ate</v>\n<i><v.loud Ann>She saw</v></i>", ["He ate", "She saw"]),
        ("<v Bob>Hi</v> <v Ann>you</v><v Tim>there", ["Hi", "you", "there"]),
        ("<i>He ate.</i>\n<i>She saw.</i>", ["He ate.", "She saw."]),
        ('He said "Stop!" \nI went…\nNow', ['He said "Stop!"', "I went…", "Now"]),
        ("「はい。」\nいいえ؟\nx", ["「はい。」", "いいえ؟", "x"]),
        ("He ate.\n- And\nyou?", ["He ate.", "And you?"]),
        ("- He ate\n- She saw", ["He ate", "She saw"]),
        ("He ate 3.5\nof them", ["He ate 3.5 of them"]),
    ],
)
def test_cue_is_cut_after_sentences_and_before_speakers(
    name: str, text: str, expected: list[str]
) -> None:
    assert sentences(cues(text, name=name), name) == [expected]


def test_line_break_stays_between_the_sentences_of_a_cue() -> None:
    parts, units = read("vtt", cues("<v Bob>He ate the old\nbread.</v>\n<v Ann>She saw.</v>"))
    for segment, answer in zip(
        units[0].segments, ("Il a mangé du pain.", "Elle a vu."), strict=True
    ):
        links = [(k, k) for k in range(len(line_words(segment.text)))]
        words = line_words(segment.text)
        write_segment(segment, [Answer(answer, line_words(answer), links)], words)
    written = "".join(map(str, parts))
    assert "pain.</v>\n<v Ann>Elle a vu.</v>\n" in written


LONG = "a text of " + "letters" * 6


@pytest.mark.parametrize(
    ("texts", "starts", "expected"),
    [
        (("The cat", "ate"), (5, 600), [["The cat"], ["ate"]]),
        (("The cat", "ate"), (5, 9), [["The cat"], ["ate"]]),
        (("The cat", "ate"), (5, 8), [["The cat ate"]]),
        (("The cat", "ate"), (600, 5), [["The cat"], ["ate"]]),
        (("<v Bob>The cat</v>", "<v Bob>ate</v>"), (), [["The cat ate"]]),
        (("<v Bob>The cat</v>", "<v Ann>ate</v>"), (), [["The cat"], ["ate"]]),
        (("<v Bob>The cat", "ate</v>"), (), [["The cat ate"]]),
        (("He.\nThe cat", "saw!\nThe dog", "too"), (), [["He.", "The cat saw!", "The dog too"]]),
        (("The cat", "<i></i>", "ate"), (), [["The cat"], ["ate"]]),
        (("He.\n<b>", "The cat</b> ate"), (), [["He."], ["The cat ate"]]),
        (tuple("abcdefghijk"), (), [["a b c d e f g h i j k"]]),
        ((LONG,) * 5, (), [[" ".join([LONG] * 4)], [LONG]]),
    ],
)  # fmt: skip
def test_cues_are_one_sentence_if_they_are_near_and_of_one_speaker(
    texts: tuple[str, ...], starts: tuple[int, ...], expected: list[list[str]]
) -> None:
    assert sentences(cues(*texts, starts=starts)) == expected


def write_cues(texts: Sequence[str], answer: str, links: Links) -> tuple[list[str], str]:
    """Translate cues that share a sentence; return the texts of cues, and why to look at it."""
    parts, (unit,) = read("vtt", cues(*texts))
    (segment,) = unit.segments
    words = line_words(segment.text)
    write_segment(segment, [Answer(answer, line_words(answer), links)], words)
    return "".join(map(str, parts)).split("\n")[4::4], segment.reason


@pytest.mark.parametrize(
    ("answer", "links", "expected"),
    [
        ("du four et", [(0, 0), (1, 0), (2, 1), (3, 2)], "of the oven and"),
        ("et du four ici", [(0, 3), (3, 0)], "et du four ici"),
        ("a b c d e f", [(0, 0), (1, 5), (2, 5), (3, 5)], "a·b·c d e f"),
        ("a b c d", [], "a b c d"),
        ("猫を見た", [(0, 3), (1, 3), (2, 0), (3, 0)], "猫 を 見 た"),
    ],
)
def test_every_cue_gets_a_word_or_all_of_the_sentence_stays(
    answer: str, links: Links, expected: str
) -> None:
    found, reason = write_cues(["of", "<i>the", "oven</i>", "and"], answer, links)
    shown = [re.sub("<[^<>]*>", "", one) for one in found]
    assert [one.replace(" ", "·") for one in shown] == expected.split()
    assert {"<i>", "</i>"} == {*re.findall("<[^<>]*>", "".join(found))}
    assert ("codes or cues" in reason) == (shown[0] == "of")


HEAD = '<xliff version="1.2"><file source-language="en" target-language="fr"><body>'


def write_xliff(document: str, how: How, *, is_marked: bool = True) -> str:
    """Translate an XLIFF file into capitals."""
    parts, units = read("xliff", document, how)
    for unit in units:
        unit.is_marked = is_marked
        for segment in unit.segments:
            write_segment(segment, [Answer(segment.text.upper(), (), [])])
    return "".join(map(str, parts))


@pytest.mark.parametrize("is_marked", [True, False])
def test_xliff_unit_that_is_marked_is_approved_no_more(is_marked: bool) -> None:
    document = (
        f"{HEAD}<trans-unit id='approved' approved = 'yes' x=\"y\">\n<source>a cat</source>"
        '<target state="final">un chat</target></trans-unit></body></file></xliff>'
    )
    state = "needs-review-translation" if is_marked else "translated"
    expected = document.replace("un chat", "A CAT").replace("final", state)
    if is_marked:
        expected = expected.replace("'yes'", "'no'")
    how = How(languages=("en", "fr"), has_all=True)
    assert write_xliff(document, how, is_marked=is_marked) == expected
    assert write_xliff(document, How(languages=("en", "fr"))) == document


@pytest.mark.parametrize(
    ("state", "target", "is_translated"),
    [
        ("new", "a &quot;cat", True),
        ("new", "un chat", False),
        ("needs-translation", 'a "cat', True),
        ("needs-translation", "un chat", True),
        ("needs-review-translation", "a &quot;cat", False),
        ("translated", "a &quot;cat", False),
        ("", "a &quot;cat", False),
        ("initial", "a\n&quot;cat", True),
        ("initial", "un chat", False),
    ],
)
def test_xliff_state_says_whether_a_target_is_a_translation(
    state: str, target: str, is_translated: bool
) -> None:
    own = f' state="{state}"' if state else ""
    text = "<source>a &quot;cat</source>"
    document = f"{HEAD}<trans-unit id='1'>{text}<target{own}>{target}</target></trans-unit>"
    document += "</body></file></xliff>"
    if state == "initial":
        document = (
            f'<xliff version="2.0" srcLang="en" trgLang="fr"><file id="f"><unit id="u">'
            f"<segment{own}>{text}<target>{target}</target></segment></unit></file></xliff>"
        )
    written = write_xliff(document, How(languages=("en", "fr")))
    assert ("A &quot;CAT" in written) == is_translated
    assert is_translated or written == document


STRING = '"a" = "{}";\n'


@pytest.mark.parametrize(
    ("source", "answer", "links", "expected"),
    [
        (
            "The dog %1$@ ate %2$s", "Le chien <unk> que a mangé <unk> de",
            [(0, 0), (1, 1), (2, 2), (2, 3), (3, 4), (3, 5), (4, 6), (4, 7)],
            "Le chien %1$@ a mangé %2$s",
        ),
        ("He saw %s.", "Il a vu.", [(0, 0), (1, 1), (1, 2)], "Il a vu %s."),
        ("He saw %s, now", "Il vit des , là", [(0, 0), (1, 1), (2, 2), (3, 4)], "Il vit %s, là"),
        ("He saw %s.", "Il vit des <unk>.", [(0, 0), (1, 1), (2, 2), (2, 3)], "Il vit %s."),
        ("He saw %s .", "Il a vu .", [(0, 0), (1, 1), (1, 2), (3, 3)], "Il a vu %s."),
        ("He saw %s .", "Il a vu", [(0, 0), (1, 1), (1, 2)], "Il a vu %s."),
        ("He saw %s.", "Il a vu que.", [(0, 0), (1, 2), (2, 3)], "Il a vu %s."),
        ("He saw %s", "Il vit que!", [(0, 0), (1, 1), (2, 2)], "Il vit %s!"),
        ("Hello, %s world", "Bonjour, monde", [(0, 0), (2, 1)], "Bonjour, %s monde"),
        ("He %s %d ate", "Il mangea", [(0, 0), (3, 1)], "Il %s %d mangea"),
        ("He %d%% ate", "Il mangea", [(0, 0), (2, 1)], "Il %d%% mangea"),
        ("for %dm long", "pour m long", [(0, 0), (1, 1), (2, 2)], "pour %dm long"),
        ("see ({}) now", "voir ( ) ici", [(0, 0), (1, 1), (2, 3)], "voir ({}) ici"),
        ("%s: ate", ": a mangé", [(0, 0), (1, 1), (1, 2)], "%s: a mangé"),
    ],
)  # fmt: skip
def test_lost_copy_stands_between_spaces_as_in_its_source(
    source: str, answer: str, links: Links, expected: str
) -> None:
    parts, (unit,) = read("strings", STRING.format(source))
    (segment,) = unit.segments
    write_segment(segment, [Answer(answer, line_words(answer), links)], line_words(source))
    assert "".join(map(str, parts)) == STRING.format(expected)
    assert "placeholders were lost" in segment.reason


def test_lost_copies_without_links_stand_in_their_order() -> None:
    parts, (unit,) = read("strings", STRING.format("Read %s now %d."))
    answer = Answer("Lire maintenant.", (), None)  # type: ignore[arg-type]
    write_segment(unit.segments[0], [answer])
    assert "".join(map(str, parts)) == STRING.format("Lire %s maintenant %d.")


@pytest.mark.parametrize(
    ("source", "answer", "links", "expected"),
    [
        ("# A dog {#dog}", "Un chien <unk> de", [(0, 0), (2, 2), (2, 3)], "# Un chien {#dog}"),
        (
            "A cat and ![](a.png).", "Un chat et .",
            [(0, 0), (1, 1), (2, 2), (3, 3)], "Un chat et ![](a.png).",
        ),
        (
            "A cat and ![](a.png).", "Un chat et.",
            [(0, 0), (1, 1), (2, 2), (3, 2)], "Un chat et ![](a.png).",
        ),
        (
            "A cat ![](a.png), now", "Un chat, là",
            [(0, 0), (1, 1), (2, 1), (3, 2)], "Un chat ![](a.png), là",
        ),
        ("A cat![](a.png) now", "Un chat là", [(0, 0), (1, 1), (2, 2)], "Un chat![](a.png) là"),
        ("A **{x}** cat", "Un chat", [(0, 0), (2, 1)], "Un **{x}** chat"),
    ],
)  # fmt: skip
def test_part_without_text_keeps_the_space_before_it(
    source: str, answer: str, links: Links, expected: str
) -> None:
    parts, (unit,) = read("markdown", f"{source}\n")
    (segment,) = unit.segments
    words = line_words(segment.text.strip())
    write_segment(segment, [Answer(answer, line_words(answer), links)], words)
    assert "".join(map(str, parts)) == f"{expected}\n"


def test_new_texts_of_a_tmx_have_the_language_as_the_file_writes_it() -> None:
    unit = '<tu><tuv xml:lang="en-US"><seg>{}</seg></tuv>{}</tu>'
    done = unit.format("a", '<tuv xml:lang="fr-CA"><seg>b</seg></tuv>')
    for before, code in (("", "fr"), (done, "fr-CA")):
        document = f"<tmx>{before}{unit.format('cat', '')}</tmx>"
        parts, units = read("tmx", document, How(languages=("en", "fr")))
        (segment,) = units[0].segments
        write_segment(segment, [Answer("chat", ("chat",), ((0, 0),))], ("cat",))
        assert f'<tuv xml:lang="{code}"><seg>chat</seg></tuv></tu>' in "".join(map(str, parts))


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("a=b\nc=The dog\\", {"a": "b", "c": "The dog"}),
        ("a=b\nc\\", {"a": "b"}),
        ("a \\\n = The dog\n", {"a": "The dog"}),
        ("\\\n  a=The \\\r  dog\rb=c\r", {"a": "The dog", "b": "c"}),
        ("= The dog\n\n  \nb=c", {"": "The dog", "b": "c"}),
        ("a\u00a0b=The dog\n#c=d\\", {"a\u00a0b": "The dog"}),
    ],
)
def test_properties_are_read_as_java_reads_them(document: str, expected: dict[str, str]) -> None:
    units = read("properties", document)[1]
    assert {one.key: one.segments[0].text for one in units} == expected


def test_backslash_at_the_end_of_properties_stays_after_the_translation() -> None:
    parts, units = read("properties", "a=The dog\\")
    write_segment(
        units[0].segments[0],
        [Answer("Le chien", ["Le", "chien"], [(0, 0), (1, 1)])],
        ["The", "dog"],
    )
    assert "".join(map(str, parts)) == "a=Le chien\\"
