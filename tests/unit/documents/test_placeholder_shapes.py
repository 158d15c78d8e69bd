"""Placeholders by shape, in fifteen scripts: the table of examples, for all that draws on it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.check.lost_parts import not_kept
from pellucid.documents.markup import placeholder_shapes
from pellucid.documents.markup.placeholder_shapes import find_placeholders
from pellucid.documents.markup.segments import Maker
from pellucid.documents.placeholder_masks import mask, unmask
from pellucid.documents.placeholders import add_html_text

TABLE = tomllib.loads(Path(__file__).with_name("placeholder_examples.toml").read_text("utf-8"))
KEPT = [(own.split(), text) for rows in TABLE["kept"].values() for own, text in rows]
KEPT += [([own], text) for rows in TABLE["whole"].values() for own, text in rows]
TEXTS = [text for rows in TABLE["text"].values() for text in rows]
# Bounded in themselves, so that any letter may touch them.
BOUNDED = ("%1$s", "%(name)s", "{name}", "{{name}}", "${x}", "#{x}", "%name%", "<%= x %>", "{0:,}")
NAMED = ("$name", "@name", ":name", "--dry-run", "%d", "https://a.b/c", "me@x.org")
# A word before and after, and what may stand between a word and a placeholder.
SPACED = ("open dog", "öffne Hunde", "мир собак", "σκύλος μου", "שלום כלב", "مرحبا كلب", "कुत्ता है")
UNSPACED = ("打开文件", "犬はカナ", "เปิดไฟล์", "បើកឯកសារ", "파일을열")
AROUND = (
    ("“", "”"),
    ("「", "」"),
    ("（", "）"),
    ("、", "。"),
    ("«", "»"),
    (" ", " "),
    ("：", "，"),
)


def copies_of(text: str) -> list[str]:
    return [one.text for one in find_placeholders(text) if one.token is None]


@pytest.mark.parametrize(("copies", "text"), KEPT)
def test_what_has_the_shape_of_a_placeholder_is_kept(copies: list[str], text: str) -> None:
    assert copies_of(text) == copies
    masked, own = mask(text)
    assert unmask(masked, own) == text
    assert not any(copy in masked for copy in copies)


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_text_of_a_language_is_no_placeholder(text: str) -> None:
    assert copies_of(text) == []
    assert mask(text) == (text, {})
    assert "placeholders" not in not_kept(text, "x")


@pytest.mark.parametrize(("copies", "text"), KEPT)
def test_check_and_html_read_the_same_table(copies: list[str], text: str) -> None:
    kinds = {one.kind for one in find_placeholders(text) if one.token is None}
    lost = {*not_kept(text, "x")}
    assert ("placeholders" in lost) == bool(kinds & {"code", "brace", "name", "range"})
    assert ("addresses" in lost) == ("address" in kinds)
    if not kinds & {"tag", "entity"} and "</" not in text:
        maker = Maker()
        add_html_text(maker, text.replace("&", "&amp;"))
        own = maker.take()
        shown = [*own.copies, *("".join(map(str, point.opening)) for point in own.points)]
        assert sorted(shown) == sorted(one.strip() for one in copies)


@given(
    st.sampled_from(BOUNDED + NAMED), st.sampled_from(SPACED + UNSPACED), st.sampled_from(AROUND)
)
def test_placeholder_between_marks_or_spaces_of_any_script_is_found(
    one: str, words: str, around: tuple[str, str]
) -> None:
    half = len(words) // 2
    before, after = around
    assert copies_of(f"{words[:half]}{before}{one}{after}{words[half:]}") == [one]


@given(st.sampled_from(BOUNDED + NAMED), st.sampled_from(UNSPACED))
def test_placeholder_that_touches_words_of_scripts_without_spaces_is_bounded(
    one: str, words: str
) -> None:
    half = len(words) // 2
    assert copies_of(f"{words[:half]}{one}{words[half:]}") == [one]


@given(st.text(alphabet="%{}$@:!_-[]<>&#a1, .", max_size=40))
def test_placeholders_are_parts_of_the_text_in_order(text: str) -> None:
    last = 0
    for one in find_placeholders(text):
        assert last <= one.start < one.end
        assert text[one.start : one.end] == one.text
        last = one.end


@pytest.mark.parametrize("motif", ["{", "%", "$", "{a", "<%", ":", "a@b.", "{a, ", "%(", "--a"])
def test_scanner_takes_as_many_steps_as_its_text_is_long(
    motif: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = 0
    at = placeholder_shapes._at

    def counted(*given: object) -> object:
        nonlocal steps
        steps += 1
        return at(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(placeholder_shapes, "_at", counted)
    found = []
    for size in (20_000, 40_000):
        steps = 0
        list(find_placeholders(motif * size))
        found.append(steps)
    assert found[1] <= 2 * found[0] + 2
