"""Measures beyond weights, how far to trust them, lenses, and why a word is not another one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pellucid.cli.look.look_options import read_measure
from pellucid.cli.look.reasons import by_word, say_differences, show_reasons, summarize_contrast
from pellucid.cli.look.writer import LookWriter
from pellucid.errors import InputError
from pellucid.inside.ask import Ask
from pellucid.inside.measures.agreement import Agreement, agreement, on_words
from pellucid.inside.measures.contrast import Contrast, contrast_measure, find_contrast
from pellucid.inside.measures.faithfulness import Faithfulness, faithfulness, find_raises
from pellucid.inside.measures.lens import decoder_lens, logit_lens
from pellucid.inside.measures.maps import Map, source_words
from pellucid.inside.measures.occlusion import occlusion
from pellucid.inside.measures.registry import find_measure, measure
from pellucid.inside.pair import PairData
from pellucid.inside.record.trace_data import row_labels
from pellucid.inside.show.steps import NumberTable
from pellucid.terminal.text import percent

_MOST_OFF = 0.05
"""The error of an integral, as a share of its largest value, above which more steps are advised."""


def to_place(ask: Ask) -> dict[str, Any]:
    """Collect the place that a measure is asked for, as `measure` takes it.

    Args:
        ask: the place, one address at most.

    Raises:
        InputError: an option names several.
    """
    heads = tuple(ask.heads)
    if len(heads) > 1:
        raise InputError(f"A measure must be of one place, but {len(heads)} are named. Name one.")
    return {"head": heads[0] if heads else None}


def _make_maps(pair: PairData, names: Sequence[str], place: Mapping[str, Any]) -> list[Map]:
    """Compute the map of each measure at the place that was asked for.

    Raises:
        InputError: a measure does not exist, or does not apply to that place.
    """
    asked = [read_measure(text) for text in names]
    return [measure(pair, name, **place, **settings) for name, settings in asked]


def show_measures(
    pair: PairData, names: Sequence[str], place: Mapping[str, Any], writer: LookWriter
) -> None:
    """Show maps, and how similarly several of them order the source words.

    Raises:
        InputError: a measure does not exist, or does not apply to the place asked for.
    """
    maps = _make_maps(pair, names, place)
    for map_ in maps:
        writer.lines(["", *describe_map(map_)])
        writer.matrix(map_.matrix, map_.row_labels, map_.column_labels, is_share=map_.sums_to_one)
    maps = _of_words(maps)
    if len(maps) > 1:
        writer.table(_to_table(agreement(pair, maps)))
        # By words, since measures may have columns of tokens or of words.
        largest = np.array([on_words(pair, map_).argmax(axis=1) for map_ in maps])
        # The place of the largest number is what most readers take from a map.
        same = int((largest == largest[0]).all(axis=0).sum())
        writer.lines(
            [
                "Kendall's τ of the source words' order, mean over the decoder's rows: 1 is the "
                "same order, 0 unrelated, -1 reversed.",
                f"The same word has the most in {same} of {largest.shape[1]} rows.",
            ]
        )


def describe_map(map_: Map) -> Iterator[str]:
    """Describe a map: its place, its paper, the meaning of its numbers, and its check."""
    about = find_measure(map_.name)
    yield f"{map_.title}. {map_.source}."
    yield f"A number is {about.meaning}."
    if about.is_of_parts:
        if map_.differences is not None and len(map_.differences) == 1:
            total = map_.matrix.sum()
            logit = map_.differences[0]
            yield f"All parts add up to {total:.3f}; the model's own number is {logit:.3f}."
        return
    if map_.differences is not None:
        yield from _describe_completeness(map_, map_.differences)
    if map_.kind == "whole" and map_.part == "decoder" and not map_.is_signed:
        shares = ", ".join(
            f"{token} {share:.2f}"
            for token, share in zip(map_.predicted_tokens or (), map_.source_share, strict=True)
        )
        if map_.num_source_columns < len(map_.column_tokens):
            yield f"Share of the source (the earlier target has the rest): {shares}."


def _of_words(maps: Sequence[Map]) -> list[Map]:
    """Leave out maps of parts of the model, which order no words."""
    return [map_ for map_ in maps if not find_measure(map_.name).is_of_parts]


def _describe_completeness(map_: Map, differences: tuple[float, ...]) -> Iterator[str]:
    """Say how far an integral is from what its numbers must add up to."""
    off = float(np.abs(map_.matrix.sum(axis=1) - differences).max())
    ends = "the difference between the two ends of the integral"
    if len(differences) == 1:
        whole = f"the numbers add up to {differences[0]:.2f}, {ends}; off by {off:.3f}"
    else:
        whole = f"the numbers of a row add up to {ends}; off by at most {off:.3f}"
    yield f"Completeness: {whole}."
    # A sentence of one token may have no difference to divide by.
    size = max(1e-6, float(np.abs(differences).max()))
    if off > _MOST_OFF * size:
        yield "That is much: take more steps (--measure integrated-gradients:steps=512)."


def _to_table(found: Agreement) -> NumberTable:
    names = tuple(title.split(",")[0] for title in found.titles)
    rows: list[tuple[str | float, ...]] = [
        (name, *row) for name, row in zip(names, found.kendall.tolist(), strict=True)
    ]
    return NumberTable(
        "How similarly they order the source words", "", ("measure", *names), tuple(rows)
    )


def show_trust(
    pair: PairData, names: Sequence[str], place: Mapping[str, Any], writer: LookWriter
) -> None:
    """Test how far maps can be trusted: remove words in their order, and in random orders.

    Raises:
        InputError: a measure does not exist, or its map is not of decoder rows by source words.
    """
    maps = _make_maps(pair, names, place)
    # First, since it may refuse a map.
    found = faithfulness(pair, maps)
    writer.lines(map_.title for map_ in maps)
    writer.table(_trust_table(maps, found))
    writer.lines(
        [
            "Comprehensiveness: how much a token's probability falls without the words that a map "
            "puts first; higher is better. Sufficiency: how much it falls with only those; lower "
            "is better. Next to each is the 95 % interval of random orders (DeYoung et al. 2020)."
        ]
    )
    effects = occlusion(pair)
    words = ["".join(pair.source_tokens[place] for place in word) for word in source_words(pair)]
    for map_ in maps:
        # A signed map has no share of a row to speak of.
        if map_.is_signed:
            continue
        for raised in find_raises(pair, map_, effects)[:5]:
            writer.lines(
                [
                    f"{map_.name}: {percent(raised.share)} of the row that predicts "
                    f"{pair.predicted_tokens[raised.row]} is on {words[raised.word]}, but without "
                    f"that word it is likelier ({-raised.effect:+.3f} in log-probability)."
                ]
            )


def _trust_table(maps: Sequence[Map], found: Sequence[Faithfulness]) -> NumberTable:
    header = ("measure", "compr.", "random", "to", "suff.", "random", "to ")
    rows: list[tuple[str | float, ...]] = []
    for map_, one in zip(maps, found, strict=True):
        cells: list[str | float] = [map_.name]
        for score in (one.comprehensiveness, one.sufficiency):
            cells += [score.value, score.low, score.high]
        rows.append(tuple(cells))
    return NumberTable("How far to trust these maps on this sentence", "", header, tuple(rows))


def show_lenses(pair: PairData, writer: LookWriter) -> None:
    """Show the predictions from each layer of the decoder, and of the encoder."""
    depths = logit_lens(pair, most=1)
    header = ("row", *(f"after {depth.depth}" for depth in depths))
    rows: list[tuple[str | float, ...]] = []
    for row, label in enumerate(row_labels(pair.read_tokens, pair.predicted_tokens)):
        best = [depth.guesses[row][0] for depth in depths]
        rows.append((label, *(f"{guess.token} {guess.probability:.2f}" for guess in best)))
    title = "Logit lens: the likeliest token if the decoder ended after that many layers"
    writer.table(NumberTable(title, "", header, tuple(rows)))
    lines = [
        f"after {depth.depth}: {depth.written.text}"
        for depth in decoder_lens(pair, most=1)
        if depth.written is not None
    ]
    writer.lines(["", "DecoderLens: the translation if the encoder ended after that many layers"])
    writer.lines(lines)


def show_contrast(
    pair: PairData,
    words: tuple[str, str, str | None],
    names: Sequence[str],
    place: Mapping[str, Any],
    writer: LookWriter,
) -> None:
    """Show measures as the difference of two words.

    Args:
        pair: the sentence with its translation.
        words: the text of the translation, its word, and the other one; None takes the likeliest.
        names: of the measures; without one each source word is hidden.
        place: as `to_place` collects it.
        writer: where to show it.

    Raises:
        InputError: a word cannot be compared, or a measure does not exist or apply.
    """
    # All are computed first: a mistake in the last measure shows before the first is drawn.
    contrast, maps = _contrast(pair, words, names, place)
    if not maps:
        show_reasons(contrast, writer)
        return
    writer.lines(summarize_contrast(contrast))
    for map_ in maps:
        # Zeros everywhere would look like a finding.
        if not find_measure(map_.name).is_of_word and not map_.matrix.any():
            writer.lines(["", _cannot_tell(map_.name, contrast)])
            continue
        writer.lines(["", *describe_map(map_), *_rank(map_, contrast)])
        writer.matrix(map_.matrix, map_.row_labels, map_.column_labels, is_share=False)
    maps = _of_words(maps)
    if len(maps) > 1:
        numbers = [by_word(map_) for map_ in maps]
        writer.lines(["", *say_differences([map_.name for map_ in maps], numbers)])


def contrast_to_record(
    pair: PairData,
    words: tuple[str, str, str | None],
    names: Sequence[str],
    place: Mapping[str, Any],
) -> dict[str, Any]:
    """Put what `show_contrast` shows into a record; its arguments are the same."""
    contrast, maps = _contrast(pair, words, names, place)
    sides = zip(contrast.words, contrast.pieces, contrast.log_probabilities, strict=True)
    word, other = (
        {"text": text, "tokens": list(pieces), "token_log_probabilities": list(logs)}
        for text, pieces, logs in sides
    )
    return {
        "word": word,
        "other": other,
        "row": contrast.start,
        "difference": contrast.difference,
        "hidden": [
            {**vars(one), "fall": None if math.isnan(one.fall) else one.fall}
            for one in (() if maps else contrast.hidden)
        ],
        "measures": [
            {
                "name": map_.name,
                "title": map_.title,
                "columns": list(map_.column_labels),
                "num_source_columns": map_.num_source_columns,
                **_numbers_of(map_),
            }
            for map_ in maps
        ],
    }


def _numbers_of(map_: Map) -> dict[str, Any]:
    if not find_measure(map_.name).is_of_parts:
        return {"values": map_.matrix[0].tolist()}
    return {"rows": list(map_.row_labels), "values": map_.matrix.tolist()}


def _contrast(
    pair: PairData,
    words: tuple[str, str, str | None],
    names: Sequence[str],
    place: Mapping[str, Any],
) -> tuple[Contrast, list[Map]]:
    contrast = find_contrast(pair, *words)
    # A recurrent model has no positions to hide: it reads the sentence without the word.
    usual = ("occlusion",) if pair.model.config.is_recurrent else ()
    asked = [read_measure(text) for text in names or usual]
    maps = [contrast_measure(contrast, name, **place, **settings) for name, settings in asked]
    return contrast, maps


def _cannot_tell(name: str, contrast: Contrast) -> str:
    why, other = contrast.words
    return (
        f"{name} cannot say why {why} and not {other}: both words are predicted from the same row, "
        "whose numbers are the same whichever is chosen. Try --measure occlusion."
    )


def _rank(map_: Map, contrast: Contrast) -> Iterator[str]:
    """Name the columns, or the parts of the model, that speak most for either word."""
    is_of_parts = find_measure(map_.name).is_of_parts
    row = map_.matrix.sum(axis=1) if is_of_parts else map_.matrix[0]
    labels = map_.row_labels if is_of_parts else map_.column_labels
    num_read = len(labels) if is_of_parts else map_.num_source_columns
    why, other = contrast.words
    for word, order, is_for in (
        (why, row.argsort()[::-1], row > 0),
        (other, row.argsort(), row < 0),
    ):
        read: list[str] = []
        written: list[str] = []
        for place in order[:_MOST_NAMED].tolist():
            if is_for[place]:
                side = read if place < num_read else written
                side.append(f"{labels[place]} {row[place]:+.2f}")
        said = [", ".join(read)] if read else []
        if written:
            said.append(f"already written: {', '.join(written)}")
        if said:
            yield f"For {word}: {'; '.join(said)}"


_MOST_NAMED = 4
