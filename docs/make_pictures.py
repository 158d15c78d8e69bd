"""Make one picture of each kind with the model `demo`, and the page that shows them.

    python docs/make_pictures.py [--out DIR]

Equal versions give equal files: nothing in them depends on the day or the machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, get_args

import pellucid
from pellucid.bundle import Bundle
from pellucid.files import write_text
from pellucid.inside import Ask, Trace
from pellucid.inside.ask import MAP_STAGES
from pellucid.inside.drawings.architecture import Drawing, draw_architecture
from pellucid.inside.show.figures.beside import draw_answers_figure
from pellucid.inside.show.figures.draw import (
    draw_difference_figure,
    draw_grid_figure,
    draw_stages_figure,
    draw_trace_figure,
)
from pellucid.inside.show.figures.encodings import draw_positions_figure
from pellucid.inside.show.view import HeadView
from pellucid.inside.two_models import AnswerOfModel, make_answer
from pellucid.translate.translator import Translator

FOLDER = Path(__file__).parent / "pictures"
SENTENCE = "The pizza came out of the oven and it tasted good"
PAIR = ("The cow saw the cat and it mooed", "The cow saw the cat and it meowed")


def figures(translator: Translator, bundle: Bundle) -> dict[str, Callable[..., None]]:
    """Return the function that draws each figure, by the file's name without its ending."""
    trace = translator.look(SENTENCE, everything=True)
    first, second = (_self(translator.look(text)) for text in PAIR)
    names = ("it mooed", "it meowed")
    last: dict[str, Any] = {"trace": trace, "part": "decoder", "layer": 1}
    return {
        "head": partial(draw_trace_figure, **last, kind="cross", head=0),
        "masked": partial(draw_trace_figure, **last, kind="self", head=0, stage="masked"),
        "grid": partial(draw_grid_figure, trace, part="decoder", kind="cross"),
        "stages": partial(draw_stages_figure, **last, kind="self", head=0),
        "difference": partial(draw_difference_figure, first, second, names=names),
        "positions": partial(draw_positions_figure, bundle),
        "two-machines": partial(draw_answers_figure, [_answer("demo"), _answer("demo-recurrent")]),
    }


def drawings(bundle: Bundle) -> dict[str, str]:
    """Make every drawing of the model's configuration, as SVG."""
    model = f"{bundle.folder.name} {bundle.model_hash[:8]}"
    config = bundle.config.model
    has_bias = bundle.model.output_bias is not None
    return {
        what: draw_architecture(config, what, model=model, has_output_bias=has_bias)
        for what in get_args(Drawing)
        if what != "unit"  # only a recurrent model has it
    }


def _answer(model: str) -> AnswerOfModel:
    """Let a packaged model answer the sentence."""
    translator = pellucid.load(model)
    trace = translator.look(SENTENCE)
    translation = translator.tokenizer.decode_target(trace.predicted_ids)
    return make_answer(translator.bundle, trace, name=model, translation=translation)


def _self(trace: Trace) -> HeadView:
    return HeadView(trace, "encoder", 1, "self", 2)


def main() -> None:
    """Write every picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=FOLDER)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    translator = pellucid.load("demo")
    bundle = translator.bundle
    assert bundle is not None
    for name, draw in figures(translator, bundle).items():
        draw(path=out / f"{name}.svg")
    for name, svg in drawings(bundle).items():
        write_text(out / f"drawing-{name}.svg", svg)
    translator.look(SENTENCE, ask=Ask(stages=MAP_STAGES)).save(out / "trace.html")
    print(f"{len(list(out.iterdir()))} files are in {out}.")


if __name__ == "__main__":
    main()
