"""``pellucid inspect``: what a bundle is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from pellucid.cli.lines.streams import to_json_line
from pellucid.cli.option_rules import Apart, check_rules
from pellucid.cli.options import Json, Model, described
from pellucid.cli.outputs import Files, OverwriteFiles, choose_outputs, write_outputs
from pellucid.errors import InputError, make_printable

if TYPE_CHECKING:
    from pellucid.bundle import Bundle
    from pellucid.decode.native import StoredModel
    from pellucid.inside.drawings.architecture import Drawing

Drawn = Literal["whole", "attention", "heads", "training", "inference", "positions", "unit"]

PARTS = ("embedding", "source_embedding", "target_embedding", "encoder", "decoder", "output")
"""The parts of a model, in the order of reading."""

RULES = (Apart("draw", "vocabulary json", "it draws"),)


@described(
    vocabulary=("", "Show the vocabulary instead: index and word."),
    draw=(
        "",
        "Draw the whole architecture, one attention, the heads with W_O, the encoder feeding every "
        "decoder layer in training or inference, or the positions; of a recurrent model the whole, "
        "unrolled, or one unit.",
    ),
)
def inspect(
    model: Model,
    vocabulary: bool = False,
    draw: Drawn | None = None,
    json: Json = False,
    output: Files = None,
    overwrite: OverwriteFiles = False,
) -> None:
    """Describe a model: sizes, parameters, data, training, hashes.

    A drawing is SVG, with shapes and parameter counts on every edge; positions go to a file, which
    can also be PNG or PDF.
    """
    from pellucid.bundle import open_bundle, resolve_model
    from pellucid.translate.model_weights import find_stored

    # Before the model is loaded, which may take seconds.
    forms: tuple[str, ...] = ("json", "txt") if draw is None else ("svg",)
    if draw == "positions":
        forms = ("svg", "png", "pdf")
    outputs = choose_outputs(output, forms, overwrite=overwrite, json=json)
    check_rules(RULES, {"vocabulary": vocabulary, "draw": draw, "json": json})
    if draw == "positions" and outputs.standard is not None:
        raise InputError("--draw positions must have a file. Add -o FILE, such as -o x.svg.")
    bundle = open_bundle(resolve_model(model))
    stored = find_stored(bundle, None)
    # Loaded now, so that damaged weights show here too; whole ones need no PyTorch.
    if stored is None:
        _ = bundle.model
    if draw == "positions":
        from pellucid.inside.show.figures.encodings import draw_positions_figure

        longest = bundle.config.model.max_source_length
        for path in outputs.files:
            draw_positions_figure(bundle, path, num_positions=min(64, longest))
    elif draw is not None:
        drawing = _draw(bundle, draw)
        write_outputs(outputs, lambda _form: drawing)
    elif vocabulary:
        sides = _vocabularies(bundle)
        write_outputs(
            outputs,
            lambda form: to_json_line(sides) if form == "json" else _vocabulary_to_text(sides),
        )
    else:
        record = _describe(bundle, stored)
        write_outputs(
            outputs,
            lambda form: to_json_line(record) if form == "json" else "".join(_to_lines(record)),
        )


def _draw(bundle: Bundle, what: Drawing) -> str:
    from pellucid.inside.drawings.architecture import draw_architecture

    name = f"{bundle.folder.name} {bundle.model_hash[:8]}"
    has_bias = bundle.model.output_bias is not None
    return draw_architecture(bundle.config.model, what, model=name, has_output_bias=has_bias)


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


def _describe(bundle: Bundle, stored: StoredModel | None) -> dict[str, Any]:
    from pellucid.translate.translator import Translator

    decoding = bundle.config.decoding
    translator = Translator(stored or bundle.model, bundle.tokenizer, decoding=decoding)
    return {
        "folder": str(bundle.folder),
        "model_hash": bundle.model_hash,
        "stored": bundle.config.precision,
        "computes": translator.computes,
        "computed_by": translator.decoder.describe(translator.options()),
        "parameters": _count_parameters(bundle, stored),
        "language_codes": list(bundle.tokenizer.language_codes),
        "config": bundle.config.model_dump(mode="json"),
        "manifest": bundle.manifest,
    }


def _count_parameters(bundle: Bundle, stored: StoredModel | None) -> dict[str, int]:
    """Count parameters by part; a matrix that several parts share counts once."""
    from pellucid.native.quantization import SCALE

    if stored is None:
        sizes = {name: one.numel() for name, one in bundle.model.named_parameters()}
    else:
        weights = stored.weights.items()
        sizes = {name: one.size for name, one in weights if not name.endswith(SCALE)}
    counts = dict.fromkeys(PARTS, 0)
    for name, size in sizes.items():
        part = name.partition(".")[0]
        counts[part] = counts.get(part, 0) + size
    return {**{part: size for part, size in counts.items() if size}, "total": sum(counts.values())}


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
