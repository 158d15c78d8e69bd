"""All measures of a line: their links against gold, their order against occlusion, their time."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from pellucid.bundle import Bundle
from pellucid.evaluate.links import count_links
from pellucid.inside.align.links import LinkRule, links_of_maps
from pellucid.inside.align.units import SIDES, find_units
from pellucid.inside.corpus.lines import Line
from pellucid.inside.measures.agreement import agreement
from pellucid.inside.measures.maps import Map, source_words
from pellucid.inside.measures.registry import MEASURES, measure
from pellucid.inside.pair import Pair

RULES: tuple[LinkRule, ...] = ("best", "both")


def measures_of(bundle: Bundle) -> list[str]:
    """Name the measures that a model has; a recurrent one has few."""
    is_recurrent = bundle.config.model.is_recurrent
    return [one.name for one in MEASURES.values() if one.is_for_recurrent or not is_recurrent]


def measure_line(bundle: Bundle, line: Line) -> dict[str, Any]:
    """Measure one line with every measure, each with its default layer and all heads.

    Returns:
        For each measure the ``seconds`` that it took, the counts of `count_links` by the rules
        ``best`` and ``both``, and Kendall's correlation with occlusion (``order``).
    """
    pair = Pair(bundle.model, bundle.tokenizer, tuple(line.ids[0]), tuple(line.ids[1]))
    maps: dict[str, Map] = {}
    found: dict[str, Any] = {}
    for name in measures_of(bundle):
        started = time.perf_counter()
        maps[name] = measure(pair, name)
        found[name] = {"seconds": time.perf_counter() - started}
        found[name] |= _count(bundle, pair, line, maps[name])
    for name, one in maps.items():
        found[name]["order"] = float(agreement(pair, [one, maps["occlusion"]]).kendall[0, 1])
    return found


def _count(bundle: Bundle, pair: Pair, line: Line, map_: Map) -> dict[str, Any]:
    """Read links from the rows that predict the target's tokens."""
    assert line.gold is not None
    rows_TX = map_.source_matrix[:-1]
    if rows_TX.shape[1] != len(pair.source_ids):  # columns of words: their tokens share them
        words = source_words(pair)
        rows_TS = np.zeros((len(rows_TX), len(pair.source_ids)))
        for column, word in enumerate(words):
            rows_TS[:, list(word)] = rows_TX[:, [column]] / len(word)
        rows_TX = rows_TS
    texts, ids = (line.source, line.target), line.ids
    units = [
        find_units(bundle.tokenizer, side, text, rule="auto", ids=one)
        for side, text, one in zip(SIDES, texts, ids, strict=True)
    ]
    source, target = (
        unit.of_tokens(bundle.tokenizer, side, text, one)
        for unit, side, text, one in zip(units, SIDES, texts, ids, strict=True)
    )
    sizes = len(units[0].names), len(units[1].names)
    return {
        rule: count_links(links_of_maps(rows_TX[None], (source, target), sizes, rule)[0], line.gold)
        for rule in RULES
    }
