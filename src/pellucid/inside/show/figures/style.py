"""The style of figures: fonts, color scales, captions, and reproducible files."""

from __future__ import annotations

import io
import logging
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from rich.cells import cell_len

from pellucid.errors import InputError
from pellucid.files import endings, write_bytes
from pellucid.inside.show.colors import BLUE_ORANGE, CIVIDIS
from pellucid.terminal.text import any_of
from pellucid.text.tokenizers.whole_words import without_joiners

INK = "#1a1a1a"
FORBIDDEN_COLOR = "#d9d9d9"
ONE_WAY = LinearSegmentedColormap.from_list("cividis", [f"#{stop}" for stop in CIVIDIS])
SIGNED = LinearSegmentedColormap.from_list("blue-orange", [f"#{stop}" for stop in BLUE_ORANGE])
ENDINGS = (".svg", ".png", ".pdf")
FIRST_FONT = "DejaVu Sans"
"""This font comes with Matplotlib, so that a figure looks the same everywhere."""

_WIDE_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Source Han Sans SC",
    "WenQuanYi Micro Hei",
    "PingFang SC",
    "Hiragino Sans",
    "Hiragino Sans GB",
    "Apple SD Gothic Neo",
    "Arial Unicode MS",
    "Noto Sans",
)
_SETTINGS: dict[str, Any] = {
    "font.size": 8.0,
    # Text stays text, so that it can be searched and read aloud.
    "svg.fonttype": "none",
    # Equal pictures have equal bytes.
    "svg.hashsalt": "pellucid",
    # TrueType, since some journals refuse the default, Type 3.
    "pdf.fonttype": 42,
    "hatch.linewidth": 0.5,
    "hatch.color": "#8a8a8a",
    "text.color": INK,
    "axes.formatter.use_mathtext": False,
    # A token may hold a dollar sign, which is no formula.
    "text.parse_math": False,
}


class Lettering:
    """The fonts of a figure.

    SVG keeps text as text, and the program that shows it finds the fonts. PNG and PDF need an
    installed font. A letter that no font has is written as its code point, such as U+4E2D, rather
    than as an empty box.

    Args:
        path: the file that the figure is for.
        texts: everything that will be written.
    """

    def __init__(self, path: Path, texts: Iterable[str]) -> None:
        self.is_free = endings(path).kind == ".svg"
        letters = {letter for text in texts for letter in text if not letter.isspace()}
        self.families = [FIRST_FONT]
        # Listing the installed fonts is slow, and seldom needed.
        missing = letters - _letters_of(FIRST_FONT)
        installed = set(fontManager.get_font_names()) if missing else set()
        for family in _WIDE_FONTS:
            if family in installed and missing & _letters_of(family):
                self.families.append(family)
                missing -= _letters_of(family)
        self._missing = set() if self.is_free else missing

    def write(self, text: str) -> str:
        """Return the text in letters that can be drawn; the sign of a joined token is none."""
        return "".join(
            f"U+{ord(letter):04X}" if letter in self._missing else letter
            for letter in without_joiners(text)
        )

    @contextmanager
    def settings(self) -> Iterator[None]:
        """Draw with Matplotlib's defaults and these fonts, whatever the user's settings are."""
        log = logging.getLogger("matplotlib.font_manager")
        level = log.level
        with mpl.rc_context():
            mpl.rcdefaults()
            families = {"font.family": "sans-serif", "font.sans-serif": self.families}
            settings = _SETTINGS | families
            for name, value in settings.items():
                mpl.rcParams[name] = value  # type: ignore[index]
            # Matplotlib warns about each font that is not installed.
            log.setLevel(logging.ERROR)
            try:
                yield
            finally:
                log.setLevel(level)


class Sheet:
    """A figure laid out in inches from its top left corner.

    Args:
        width: in inches.
        height: in inches.
    """

    def __init__(self, width: float, height: float) -> None:
        self.width = width
        self.height = height
        self.figure = Figure(figsize=(width, height), facecolor="white")

    def axes(self, left: float, top: float, width: float, height: float) -> Any:
        """Add axes with their upper left corner at a place."""
        bottom = self.height - top - height
        box = (left / self.width, bottom / self.height, width / self.width, height / self.height)
        return self.figure.add_axes(box)

    def text(self, left: float, top: float, text: str, **style: Any) -> None:
        """Write text at a place."""
        self.figure.text(
            left / self.width, 1 - top / self.height, text, **{"va": "top", "ha": "left", **style}
        )


def draw_color_bar(
    sheet: Sheet,
    box: tuple[float, float, float, float],
    colors: Colormap,
    norm: Normalize,
    ticks: Sequence[float],
) -> Any:
    """Draw a color scale with numbers at its ticks.

    Args:
        sheet: to draw on.
        box: left, top, width and height, in inches.
        colors: of the scale.
        norm: the numbers at its ends.
        ticks: which numbers to write.

    Returns:
        The color bar.
    """
    bar = sheet.figure.colorbar(ScalarMappable(norm, colors), cax=sheet.axes(*box))
    bar.set_ticks(ticks, labels=[f"{tick:.3g}".replace("-", "−") for tick in ticks])
    bar.ax.tick_params(labelsize=7, length=2, width=0.5)
    bar.outline.set(linewidth=0.5, edgecolor="#8a8a8a")
    return bar


def save_figure(figure: Figure, path: Path, *, title: str) -> None:
    """Write a figure without a date: equal content gives equal bytes.

    Args:
        figure: the figure; call this within `Lettering.settings`.
        path: ends in ``.svg``, ``.png`` or ``.pdf``.
        title: a description for readers who cannot see it.

    Raises:
        OutputError: the file cannot be written.
    """
    kind = endings(path).kind.removeprefix(".")
    metadata: dict[str, dict[str, str | None]] = {
        "svg": {"Title": title, "Creator": None, "Date": None},
        "png": {"Title": title, "Software": None},
        "pdf": {"Title": title, "Creator": None, "Producer": None, "CreationDate": None},
    }
    stream = io.BytesIO()
    with warnings.catch_warnings():
        if kind == "svg":  # It keeps letters that this font lacks: the viewer finds another.
            warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font")
        figure.savefig(stream, format=kind, dpi=DOTS_PER_INCH, metadata=metadata[kind])
    write_bytes(path, stream.getvalue(), follows_link=True)


def check_ending(path: str | Path) -> Path:
    """Make sure that a picture's file has a known ending, and return its path.

    Raises:
        InputError: the ending is not known.
    """
    path = Path(path)
    if endings(path).kind not in ENDINGS:
        raise InputError(
            f"A picture's file must end in {any_of(ENDINGS)}, but is named {path.name}. Rename it."
        )
    return path


def width_in_inches(text: str, size: float) -> float:
    """Return the most room that a text needs at a font size in points."""
    # An estimate that is never too small: measuring would need the drawn text.
    broad = sum(letter in "MWmw@%" for letter in text)
    return (cell_len(text) * 0.66 + broad * 0.34) * size / 72


def wrap_sentences(sentences: Sequence[str], width: float, size: float) -> list[str]:
    """Break sentences into lines, each sentence on a new one.

    Args:
        sentences: of a caption.
        width: in inches.
        size: of the font, in points.
    """
    letters = max(30, int(width / (0.56 * size / 72)))
    return [line for sentence in sentences for line in textwrap.wrap(sentence, letters)]


@cache
def _letters_of(family: str) -> frozenset[str]:
    font = get_font(findfont(FontProperties(family=[family])))
    return frozenset(map(chr, font.get_charmap()))


MARGIN = 0.12
"""Inches around everything."""

DOTS_PER_INCH = 150
"""The resolution of PNG files."""

LINE = 0.135
"""Inches from one line of a caption to the next."""

CAPTION_SIZE = 7.0


@contextmanager
def captioned(
    path: Path,
    lettering: Lettering,
    caption: Sequence[str],
    width: float,
    top: float,
    *,
    below: float = MARGIN,
) -> Iterator[Sheet]:
    """Make a sheet to draw on; at the end write the caption at its foot, and the file.

    Args:
        path: the file.
        lettering: its fonts.
        caption: sentences, each on a new line; the first is also the file's title.
        width: of the sheet, in inches.
        top: of the caption, in inches; the sheet is as high as the caption needs.
        below: inches below the caption.
    """
    sentences = [lettering.write(sentence) for sentence in caption]
    lines = wrap_sentences(sentences, width - 2 * MARGIN, CAPTION_SIZE)
    with lettering.settings():
        sheet = Sheet(width, top + LINE * len(lines) + below)
        yield sheet
        for index, line in enumerate(lines):
            is_warning = line.startswith("WARNING")
            style = {"color": "#a01010", "weight": "bold"} if is_warning else {}
            sheet.text(MARGIN, top + index * LINE, line, size=CAPTION_SIZE, **style)
        save_figure(sheet.figure, path, title=sentences[0])
