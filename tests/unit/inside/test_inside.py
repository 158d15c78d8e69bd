"""The page of a translation has every token and needs no network."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import pellucid
from pellucid.inside import Trace
from pellucid.inside.show.colors import Color, ink_on, luminance, shade, shade_signed
from pellucid.inside.show.terminal import draw_row
from pellucid.page.plain_page import html_page, html_table

SOURCE = "The pizza came out of the oven ."


@pytest.fixture(scope="module")
def trace(bundle_folder: Path) -> Trace:
    return pellucid.load(bundle_folder).look(SOURCE)


def test_terminal_row_has_a_line_a_head_and_every_token(trace: Trace) -> None:
    first, *lines = draw_row(trace, 1)
    assert trace.target_tokens[1] in first.plain
    assert trace.predicted_tokens[1] in first.plain
    assert len(lines) == 4
    for line in lines:
        for token in trace.source_tokens:
            assert token.replace("▁", "") in line.plain


def test_page_of_text_escapes_its_title_and_needs_no_network() -> None:
    page = html_page("A <title> & more", "<p>Text.</p>")
    assert "A &lt;title&gt; &amp; more" in page
    assert not re.search(r"https?:|<script|<link|@import|url\(", page)


def test_table_escapes_text_and_sets_numbers_to_the_right() -> None:
    table = html_table(("a",), [("<b>",), ("12.5%",), ("3 apples",)])
    assert "&lt;b&gt;" in table
    assert table.count('class="number"') == 1


def test_shade_grows_lighter_and_stays_in_range() -> None:
    lights = [sum(shade(step / 50)) for step in range(51)]
    assert lights == sorted(lights)
    assert shade(-1.0) == shade(0.0)
    assert shade(2.0) == shade(1.0)
    assert ink_on(shade(0.0)) == "#ffffff"
    assert ink_on(shade(1.0)) == "#000000"


@pytest.mark.parametrize("scale", [shade, shade_signed])
def test_ink_on_every_color_has_enough_contrast(scale: Callable[[float], Color]) -> None:
    for step in range(-200, 201):
        ground = scale(step / 200)
        ink = (0, 0, 0) if ink_on(ground) == "#000000" else (255, 255, 255)
        low, high = sorted(luminance(color) + 0.05 for color in (ground, ink))
        assert high / low >= 4.5, (step, ground)
