"""The caption below a figure: its lines, and the sheet that it stands on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pellucid.inside.show.figures.style import Lettering, Sheet, save_figure, wrap

MARGIN = 0.12
"""Inches around everything."""

LINE = 0.135
"""Inches from one line of a caption to the next."""

CAPTION_SIZE = 7.0


def caption_lines(lettering: Lettering, caption: Sequence[str], width: float) -> list[str]:
    """Break sentences into the lines of a caption, on a sheet of this width in inches."""
    sentences = [lettering.write(sentence) for sentence in caption]
    return wrap(sentences, width - 2 * MARGIN, CAPTION_SIZE)


@contextmanager
def captioned(
    path: Path, lettering: Lettering, caption: Sequence[str], size: tuple[float, float], top: float
) -> Iterator[Sheet]:
    """Make a sheet to draw on; at the end write the caption from `top` down, and the file."""
    with lettering.settings():
        sheet = Sheet(*size)
        yield sheet
        for index, line in enumerate(caption_lines(lettering, caption, sheet.width)):
            is_warning = line.startswith("WARNING")
            style = {"color": "#a01010", "weight": "bold"} if is_warning else {}
            sheet.text(MARGIN, top + index * LINE, line, size=CAPTION_SIZE, **style)
        save_figure(sheet.figure, path, title=lettering.write(caption[0]))
