"""Drawings have the numbers of the model that the configuration makes, and no words overlap."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from itertools import combinations
from typing import Any, get_args

import pytest

from pellucid.config import ModelConfig
from pellucid.errors import InputError
from pellucid.inside.drawings.architecture import Drawing, draw_architecture
from pellucid.inside.drawings.counts import Counts
from pellucid.model import Transformer

SVG = "{http://www.w3.org/2000/svg}"
BLUE = "#08468b"
VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {},
    "pre-norm": {"norm": "pre", "projection_bias": True, "positions": "learned"},
    "a norm of the input": {"input_norm": True, "positions": "learned"},
    "no norm": {"norm": "none", "residual": False, "scale_scores": False},
    "separate": {"tied_embeddings": "none", "source_vocabulary_size": 53},
    "decoder tied": {"tied_embeddings": "decoder", "embedding_scale": "none"},
    "weights on keys": {"projections": "qk", "d_key": 29, "d_value": 29},
    "bare": {
        "projections": "none",
        "d_model": 22,
        "num_heads": 2,
        "d_key": 11,
        "d_value": 11,
        "positions": "none",
        "embedding_scale": "none",
        "look_ahead_mask": False,
    },
}


def make_config(**changes: Any) -> ModelConfig:
    sizes = {"d_model": 22, "d_ff": 41, "num_heads": 3, "d_key": 29, "d_value": 31}
    depths = {"num_encoder_layers": 2, "num_decoder_layers": 3}
    limits = {"max_source_length": 43, "max_target_length": 47}
    vocabulary = {"source_vocabulary_size": 37, "target_vocabulary_size": 37}
    return ModelConfig.model_validate({**sizes, **depths, **limits, **vocabulary, **changes})


@dataclass(frozen=True)
class Words:
    text: str
    left: float
    right: float
    top: float
    bottom: float
    fill: str

    def meets(self, other: Words) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


def words_of(svg: str) -> list[Words]:
    """Every text with about the room that it takes."""
    found = []
    for node in ET.fromstring(svg).iter(f"{SVG}text"):
        text, size = node.text or "", float(node.attrib["font-size"])
        width = 0.55 * size * len(text)
        x, baseline = float(node.attrib["x"]), float(node.attrib["y"])
        left = {"start": x, "middle": x - width / 2, "end": x - width}[node.attrib["text-anchor"]]
        place = (left, left + width, baseline - 0.75 * size, baseline + 0.2 * size)
        found.append(Words(text, *place, node.attrib["fill"]))
    return found


def counts_of(svg: str) -> list[int]:
    """The blue numbers next to arrows."""
    return [
        int(words.text.replace(",", ""))
        for words in words_of(svg)
        if words.fill == BLUE and not words.text.endswith("each")
    ]


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_total_is_that_of_the_model(changes: dict[str, Any], has_bias: bool) -> None:
    config = make_config(**changes)
    model = Transformer(config, has_output_bias=has_bias)
    expected = sum(parameter.numel() for parameter in model.parameters())
    assert Counts(config, has_bias).total == expected


@pytest.mark.parametrize("what", ["training", "inference"])
@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_counts_beside_the_arrows_of_the_stacks_add_up_to_the_model(
    changes: dict[str, Any], what: Drawing
) -> None:
    config = make_config(**changes)
    svg = draw_architecture(config, what, has_output_bias=True)
    assert sum(counts_of(svg)) == Counts(config, True).total


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_counts_of_the_whole_are_those_of_one_layer_each_and_what_is_around(
    changes: dict[str, Any],
) -> None:
    config = make_config(**changes)
    counts = Counts(config)
    more_layers = counts.of("encoder.layers.0") + 2 * counts.of("decoder.layers.0")
    svg = draw_architecture(config, "whole")
    shown = sum(counts_of(svg))
    assert shown + more_layers == counts.total
    words = [one.text for one in words_of(svg)]
    assert {"2 × encoder layer", "3 × decoder layer"} <= set(words)
    assert words.count("add the input") == (5 if config.residual else 0)


def test_one_attention_and_its_heads_have_the_shapes_of_the_configuration() -> None:
    svg = draw_architecture(make_config(), "attention")
    words = {one.text for one in words_of(svg)}
    assert {"Q: L × 29", "K: M × 29", "V: M × 31", "context: L × 31", "÷ √29 = 5.39"} <= words
    assert counts_of(svg) == [22 * 29, 22 * 29, 22 * 31]
    svg = draw_architecture(make_config(), "heads")
    words = {one.text for one in words_of(svg)}
    assert {"head 0", "head 1", "head 2", "3 heads × 31 = 93", "93 × 22"} <= words
    assert sum(counts_of(svg)) == Counts(make_config()).of("encoder.layers.0.self_attention")


def test_encoder_feeds_every_decoder_layer() -> None:
    for what in ("training", "inference"):
        svg = draw_architecture(make_config(num_decoder_layers=5), what)
        into = re.findall(r'points="345,(-?[\d.]+) [\d.]+,\1"[^>]*marker-end', svg)
        assert len(set(into)) == 5


def test_many_heads_are_cut_in_the_middle_and_it_shows() -> None:
    config = make_config(d_model=64, num_heads=16, d_key=4, d_value=4)
    words = [one.text for one in words_of(draw_architecture(config, "heads"))]
    assert "⋯" in words
    assert [word for word in words if word.startswith("head ")][-1] == "head 15"
    assert "16 heads × 4 = 64" in words


@pytest.mark.parametrize("what", [what for what in get_args(Drawing) if what != "unit"])
@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_no_two_words_overlap_and_all_are_on_the_page(
    changes: dict[str, Any], what: Drawing
) -> None:
    svg = draw_architecture(make_config(**changes), what, model="tiny 01234567")
    words = words_of(svg)
    found = [(a.text, b.text) for a, b in combinations(words, 2) if a.meets(b)]
    assert not found
    left, top, width, height = map(float, ET.fromstring(svg).attrib["viewBox"].split())
    for one in words:
        assert left <= one.left
        assert one.right <= left + width
        assert top <= one.top
        assert one.bottom <= top + height


def test_drawing_says_what_it_is_and_is_the_same_every_time() -> None:
    first = draw_architecture(make_config(), "whole", model="a<b 01234567")
    assert first == draw_architecture(make_config(), "whole", model="a<b 01234567")
    words = " ".join(one.text for one in words_of(first))
    total = f"{Counts(make_config()).total:,}"
    assert f"The whole architecture. Model a<b 01234567. {total} parameters" in words


def test_drawing_of_no_such_name_is_refused() -> None:
    with pytest.raises(InputError, match="Did you mean 'heads'"):
        draw_architecture(make_config(), "head")  # type: ignore[arg-type]


def test_self_attention_is_called_masked_where_a_mask_looks_ahead() -> None:
    for is_masked in (True, False):
        config = make_config(look_ahead_mask=is_masked)
        whole = [words.text for words in words_of(draw_architecture(config, "whole"))]
        assert ("masked self-attention" in whole) == is_masked
        training = " ".join(words.text for words in words_of(draw_architecture(config, "training")))
        assert ("a row sees itself and before" in training) == is_masked
