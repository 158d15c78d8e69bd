"""Word links of one translation: what goes with what, before any number."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from pellucid.bundle import Bundle
from pellucid.cli.look.writer import Writer
from pellucid.errors import InputError
from pellucid.formats.exporting import guided_convention, guided_head
from pellucid.inside.align.links import Aligned, align_pairs
from pellucid.inside.align.maps import View
from pellucid.inside.ask import require_attention


def show_links(bundle: Bundle, source: str, target: str, writer: Writer) -> None:
    """Show which words of a translation go with which words of its source.

    Links are read from the head that was taught word links; if none was, from the mean of the last
    layer's heads, which is a guess. ``pellucid align --gold`` measures every head.

    Args:
        bundle: the model.
        source: the line.
        target: its translation.
        writer: where to show them.

    Raises:
        InputError: the pair cannot be aligned.
    """
    view, why = _choose(bundle)
    (aligned,) = align_pairs(bundle.model, bundle.tokenizer, [source], [target], [view])
    if aligned.error is not None:
        raise InputError(aligned.error)
    writer.lines(_describe(aligned, view, why))


def _choose(bundle: Bundle) -> tuple[View, str]:
    place = guided_head(bundle)
    if place is not None:
        view = View(place[0], "head", place[1], guided_convention(bundle))
        return view, "which was taught word links"
    require_attention(bundle.config.model)
    last = bundle.config.model.attending_layers[-1]
    return View(last, "layer-mean", None, "predicts"), "in a model that was taught no word links"


def _describe(aligned: Aligned, view: View, why: str) -> Iterator[str]:
    links = sorted(aligned.links[0])
    rows = {
        source: " ".join(aligned.target_words[target] for _, target in group)
        for source, group in groupby(links, key=lambda link: link[0])
    }
    yield aligned.source
    yield aligned.target
    yield ""
    yield f"Words that go together, by cross-attention ({view.place}, {why}):"
    width = max(map(len, aligned.source_words))
    for number, word in enumerate(aligned.source_words):
        yield f"  {word:{width}}  {('→ ' + rows[number]) if number in rows else '–'}"
    linked = {target for _, target in links}
    left = [word for number, word in enumerate(aligned.target_words) if number not in linked]
    if left:
        yield f"  (nothing){' ' * max(0, width - 9)}  → {' '.join(left)}"
    yield ""
    yield f"In numbers: {' '.join(f'{i}-{j}' for i, j in links)}"
