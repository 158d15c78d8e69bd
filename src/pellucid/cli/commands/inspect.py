"""``pellucid inspect``: what a bundle is."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pellucid.cli.lines.streams import check_target, to_json_line
from pellucid.cli.options import Json, Model, described
from pellucid.errors import InputError, make_printable
from pellucid.files import endings

if TYPE_CHECKING:
    from pellucid.bundle import Bundle
    from pellucid.inside.drawings.architecture import Drawing

Drawn = Literal["whole", "attention", "heads", "training", "inference", "positions", "unit"]


@described(
    vocabulary=("", "Show the vocabulary instead: index and word."),
    draw=(
        "",
        "Draw the whole architecture, one attention, the heads with W_O, the encoder feeding every "
        "decoder layer in training or inference, or the positions; of a recurrent model the whole, "
        "unrolled, or one unit.",
    ),
    output_file=("FILE", "File for the drawing.", {"name": "-o --output"}),
)
def inspect(
    model: Model,
    vocabulary: bool = False,
    draw: Drawn | None = None,
    output_file: str | None = None,
    json: Json = False,
) -> None:
    """Describe a model: sizes, parameters, data, training, hashes.

    Drawings are SVG, with shapes and parameter counts on every edge. Positions can also be PNG or
    PDF.
    """
    from pellucid.bundle import load_bundle, resolve_model

    if (draw is None) is not (output_file is None):
        raise InputError("--draw and -o FILE must be given together. Give both or neither.")
    if output_file is not None:
        # Before the model is loaded, which may take seconds.
        check_target(output_file, may_overwrite=True)
    bundle = load_bundle(resolve_model(model))
    if draw is not None and output_file is not None:
        _draw(bundle, draw, Path(output_file))
        return
    if vocabulary:
        sides = _vocabularies(bundle)
        text = to_json_line(sides) if json else _vocabulary_to_text(sides)
    else:
        record = _describe(bundle)
        text = to_json_line(record) if json else "".join(_to_lines(record))
    sys.stdout.write(text)


def _draw(bundle: Bundle, what: Drawing | Literal["positions"], path: Path) -> None:
    from pellucid.files import write_text
    from pellucid.inside.drawings.architecture import draw_architecture

    if what == "positions":
        from pellucid.inside.show.figures.encodings import draw_positions_figure

        longest = bundle.config.model.max_source_length
        draw_positions_figure(bundle, path, num_positions=min(64, longest))
        return
    if endings(path).kind != ".svg":
        raise InputError(f"The file of a drawing must end in .svg, but is {path.name} (-o).")
    name = f"{bundle.folder.name} {bundle.model_hash[:8]}"
    has_bias = bundle.model.output_bias is not None
    drawing = draw_architecture(bundle.config.model, what, model=name, has_output_bias=has_bias)
    write_text(path, drawing, follows_link=True)


def _vocabularies(bundle: Bundle) -> dict[str, list[str]]:
    tokenizer = bundle.tokenizer
    source = tokenizer.source_tokens(list(range(tokenizer.source_vocabulary_size)))
    if bundle.config.tokenizer.sharing == "joint":
        return {"joint": source}
    target = tokenizer.target_tokens(list(range(tokenizer.target_vocabulary_size)))
    return {"source": source, "target": target}


def _vocabulary_to_text(sides: Mapping[str, list[str]]) -> str:
    lines = []
    for side, words in sides.items():
        if len(sides) > 1:
            lines.append(side)
        lines += [f"{index}\t{make_printable(word)}" for index, word in enumerate(words)]
    return "".join(f"{line}\n" for line in lines)


def _describe(bundle: Bundle) -> dict[str, Any]:
    return {
        "folder": str(bundle.folder),
        "model_hash": bundle.model_hash,
        "parameters": _count_parameters(bundle),
        "language_codes": list(bundle.tokenizer.language_codes),
        "config": bundle.config.model_dump(mode="json"),
        "manifest": bundle.manifest,
    }


def _count_parameters(bundle: Bundle) -> dict[str, int]:
    """Count parameters by part; a matrix that several parts share counts once."""
    counts: dict[str, int] = {}
    for name, parameter in bundle.model.named_parameters():
        part = name.partition(".")[0]
        counts[part] = counts.get(part, 0) + parameter.numel()
    return {**counts, "total": sum(counts.values())}


# A bundle may come from anyone: its control characters are shown, and steer no terminal.
def _to_lines(record: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """Write nested values as an indented list."""
    for key, value in record.items():
        indent = "  " * depth
        name = make_printable(str(key))
        if key == "set_aside":  # Hashes, thousands of them.
            yield f"{indent}{name}: hashes (see --json)\n"
        elif isinstance(value, Mapping):
            yield f"{indent}{name}\n"
            yield from _to_lines(value, depth + 1)
        elif key == "language_codes":
            if value:  # Most models have none.
                yield f"{indent}{name}: {' '.join(value)}\n"
        # True is an int as well, but no number to write with separators.
        elif isinstance(value, int) and not isinstance(value, bool):
            yield f"{indent}{name}: {value:,}\n"
        else:
            yield f"{indent}{name}: {make_printable(str(value))}\n"
