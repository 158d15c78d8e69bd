"""Replay agrees with the decode; what is shown has every token and needs no network."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import pellucid
from pellucid.errors import InputError
from pellucid.inside import (
    CrossAttention,
    attention_maps,
    draw_row,
    html_page,
    html_table,
    ink_on,
    replay_cross_attention,
    shade,
)

SOURCE = "The pizza came out of the oven ."


@pytest.fixture(scope="module")
def attention(bundle_folder: Path) -> CrossAttention:
    translator = pellucid.load(bundle_folder)
    (translation,) = translator.translate([SOURCE])
    assert translator.bundle is not None
    return replay_cross_attention(
        translator.bundle,
        SOURCE,
        translation.ids,
        log_probabilities=translation.token_log_probabilities,
    )


def test_replay_agrees_with_the_decode_and_every_row_sums_to_one(
    attention: CrossAttention,
) -> None:
    assert attention.largest_difference < 1e-4
    layers, heads, rows, sources = attention.weights_NHTS.shape
    assert (layers, heads) == (2, 2)
    assert rows == len(attention.read_tokens) == len(attention.predicted_tokens)
    assert sources == len(attention.source_tokens)
    sums_NHT = attention.weights_NHTS.sum(dim=-1)
    torch.testing.assert_close(sums_NHT, torch.ones_like(sums_NHT))


def test_replay_rows_read_what_the_row_before_predicted(attention: CrossAttention) -> None:
    assert attention.read_tokens[0] == "<s>"
    assert attention.read_tokens[1:] == attention.predicted_tokens[:-1]
    assert attention.source_tokens[-1] == "</s>"


def test_replay_of_other_numbers_says_how_far_they_are(bundle_folder: Path) -> None:
    translator = pellucid.load(bundle_folder)
    (translation,) = translator.translate([SOURCE])
    assert translator.bundle is not None
    wrong = tuple(value - 0.5 for value in translation.token_log_probabilities)
    found = replay_cross_attention(
        translator.bundle, SOURCE, translation.ids, log_probabilities=wrong
    )
    assert found.largest_difference == pytest.approx(0.5, abs=1e-4)


def test_replay_of_nothing_is_refused(bundle_folder: Path) -> None:
    bundle = pellucid.load(bundle_folder).bundle
    assert bundle is not None
    with pytest.raises(InputError, match="has none"):
        replay_cross_attention(bundle, "", (), log_probabilities=())


def test_terminal_row_has_a_line_a_head_and_every_token(attention: CrossAttention) -> None:
    first, *lines = draw_row(attention, 1)
    assert attention.read_tokens[1] in first.plain
    assert attention.predicted_tokens[1] in first.plain
    assert len(lines) == 4
    for line in lines:
        for token in attention.source_tokens:
            assert token.replace("▁", "") in line.plain


def test_maps_have_a_cell_for_every_weight_and_need_no_network(
    attention: CrossAttention,
) -> None:
    page = html_page("A <title> & more", attention_maps(attention))
    assert page.count("<td title=") == attention.weights_NHTS.numel()
    assert "A &lt;title&gt; &amp; more" in page
    assert not re.search(r"https?:|<script|<link|@import|url\(", page)
    weight = float(attention.weights_NHTS[1, 0, 1, 2])
    assert f"{weight:.4f}" in page


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
