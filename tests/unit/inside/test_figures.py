"""Figures show every word and number, say where they come from, and are the same every time."""

from __future__ import annotations

import math
import re
import struct
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from made_up_traces import SOURCE, TARGET, make_trace
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

import pellucid
from pellucid.bundle import Bundle
from pellucid.errors import InputError, OutputError
from pellucid.inside.show.colors import shade_signed, to_hex
from pellucid.inside.show.figures import style
from pellucid.inside.show.figures.draw import (
    draw_difference_figure,
    draw_grid_figure,
    draw_stages_figure,
    draw_trace_figure,
)
from pellucid.inside.show.figures.encodings import (
    draw_positions_figure,
    positions_of,
    products_by_offset,
)
from pellucid.inside.show.figures.panels import MOST_DOTS, panel_of, reduced
from pellucid.inside.show.figures.style import Lettering
from pellucid.inside.show.view import HeadView, default_view, describe_decoding, number_in_cell
from pellucid.inside.traces import Trace
from pellucid.terminal.text import percent

CROSS = {"part": "decoder", "layer": 1, "kind": "cross", "head": 2}


def words_of(path: Path) -> list[str]:
    """The texts of an SVG, in order."""
    root = ET.parse(path).getroot()
    return ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.fixture(scope="module")
def trace() -> Trace:
    return make_trace()


def test_head_figure_has_every_word_and_the_number_of_every_cell(
    trace: Trace, tmp_path: Path
) -> None:
    draw_trace_figure(trace, tmp_path / "head.svg", **CROSS)
    words = Counter(words_of(tmp_path / "head.svg"))
    weights = trace["decoder.1.cross.2"]
    numbers = Counter(number_in_cell(float(weight), None) for weight in weights.flat)
    assert not numbers - words
    assert not Counter([*SOURCE, *TARGET, *trace.target_tokens]) - words


def test_head_figure_caption_says_model_place_convention_decoding_and_special_mass(
    trace: Trace, tmp_path: Path
) -> None:
    draw_trace_figure(trace, tmp_path / "head.svg", **CROSS)
    said = " ".join(words_of(tmp_path / "head.svg"))
    mass = trace["decoder.1.cross.2"][:, -1]
    for part in (
        "Weights, decoder layer 1, cross-attention, head 2. One head, nothing averaged",
        "reads one token → predicts the next",
        "weight from 0 to 1",
        f"On </s>: {percent(mass.min(), most=2)} to {percent(mass.max(), most=2)}",
        f"{percent(mass.mean(), most=2)} on average",
        "Model tiny 01234567. Beam search (beam 5) in int8; replayed in float32.",
    ):
        assert part in said


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_figure_twice_is_the_same_bytes_whatever_the_users_settings(
    trace: Trace, tmp_path: Path, ending: str
) -> None:
    paths = [tmp_path / f"{number}.{ending}" for number in (1, 2)]
    draw_trace_figure(trace, paths[0], **CROSS)
    with mpl.rc_context({"font.size": 31, "svg.fonttype": "path", "text.color": "red"}):
        draw_trace_figure(trace, paths[1], **CROSS)
    first, second = (path.read_bytes() for path in paths)
    assert first == second
    assert not re.search(rb"CreationDate|<dc:date>|tIME", first)


def test_masked_cells_are_hatched_and_have_no_number(trace: Trace, tmp_path: Path) -> None:
    path = tmp_path / "masked.svg"
    draw_trace_figure(trace, path, part="decoder", layer=0, kind="self", head=0, stage="masked")
    view = HeadView(trace, "decoder", 0, "self", 0, "masked")
    assert view.forbidden.sum() == 6  # of 4 × 4, above the diagonal
    numbers = [number_in_cell(float(v), view.largest) for v in view.cells[np.tril_indices(4)]]
    words = words_of(path)
    shown = [word for word in words if re.fullmatch(r"−?[\d.]+", word)]
    ends = [f"−{view.largest:.3g}", "0", f"{view.largest:.3g}"]
    assert Counter(shown) == Counter([*numbers, *ends])
    assert "url(#h" in path.read_text(encoding="utf-8")  # the hatch
    assert "hatched: may not be seen" in " ".join(words)


def test_weights_alone_still_tell_where_a_decoder_may_not_look(trace: Trace) -> None:
    arrays = {name: array for name, array in trace.arrays.items() if name.endswith("weights")}
    alone = make_trace(arrays=arrays)
    assert HeadView(alone, "decoder", 1, "self", 1).forbidden.sum() == 6
    assert not HeadView(alone, "decoder", 1, "cross", 1).forbidden.any()


def test_grid_has_every_head_and_its_special_mass(trace: Trace, tmp_path: Path) -> None:
    draw_grid_figure(trace, tmp_path / "grid.svg", part="decoder", kind="cross")
    words = words_of(tmp_path / "grid.svg")
    for layer in (0, 1):
        assert f"layer {layer}" in words
        for head in range(3):
            mass = trace[f"decoder.{layer}.cross.{head}"][:, -1].mean()
            assert f"head {head}   special {percent(mass, most=2)}" in words


@pytest.mark.parametrize(("layers", "where"), [(None, "2 layers"), ((1,), "layer 1")])
def test_grid_names_how_many_layers_it_has(
    trace: Trace, tmp_path: Path, layers: tuple[int, ...] | None, where: str
) -> None:
    path = tmp_path / "grid.svg"
    draw_grid_figure(trace, path, part="decoder", kind="cross", layers=layers)
    assert f"every head of {where}, none averaged" in " ".join(words_of(path))


def test_stages_stand_in_order_with_scales_of_their_own(trace: Trace, tmp_path: Path) -> None:
    path = tmp_path / "stages.svg"
    draw_stages_figure(trace, path, part="decoder", layer=1, kind="self", head=0)
    words = words_of(path)
    titles = [word for word in words if re.fullmatch(r"\d\. \w+", word)]
    assert titles == ["1. scores", "2. scaled", "3. masked", "4. weights", "5. context"]
    for stage in ("scores", "scaled", "masked", "context"):
        assert f"{HeadView(trace, 'decoder', 1, 'self', 0, stage).largest:.3g}" in words


def test_difference_subtracts_what_both_have_and_names_the_rest(tmp_path: Path) -> None:
    first, second = make_trace(), make_trace(source=("▁The", "▁cow", "▁came", "▁out", "</s>"))
    path = tmp_path / "difference.svg"
    views = [HeadView(one, "decoder", 1, "cross", 0) for one in (first, second)]
    draw_difference_figure(views[0], views[1], path, names=("pizza", "cow"))
    kept = [0, 2, 3, 4]
    expected = views[0].cells[:, kept] - views[1].cells[:, kept]
    limit = np.abs(expected).max()
    words = words_of(path)
    numbers = Counter(number_in_cell(float(value), float(limit)) for value in expected.flat)
    assert not numbers - Counter(words)
    said = " ".join(words)
    assert "“pizza” minus “cow”" in said
    mass = views[0].cells[:, 1].mean()
    assert f"only in “pizza”: ▁pizza, with {percent(mass, most=2)}" in said
    assert "only in “cow”: ▁cow" in said


def test_difference_of_unlike_maps_is_refused(trace: Trace, tmp_path: Path) -> None:
    views = [HeadView(trace, "decoder", 1, kind, 0) for kind in ("self", "cross")]
    with pytest.raises(InputError, match="of one part and kind"):
        draw_difference_figure(views[0], views[1], tmp_path / "x.svg")


def test_signed_colors_are_blue_below_white_at_and_orange_above_zero() -> None:
    blue, white, orange = (shade_signed(value) for value in (-1.0, 0.0, 1.0))
    assert blue[2] > blue[0]
    assert orange[0] > orange[2]
    assert min(white) > 240
    assert shade_signed(-7) == blue
    assert to_hex((0, 34, 255)) == "#0022ff"


def test_long_sentence_has_no_numbers_and_says_where_they_are(tmp_path: Path) -> None:
    source = (*(f"▁w{index}" for index in range(69)), "</s>")
    draw_trace_figure(make_trace(source), tmp_path / "long.svg", **CROSS)
    words = words_of(tmp_path / "long.svg")
    assert not [word for word in words if re.fullmatch(r"\.\d\d", word)]
    assert "More than 64 words: the numbers are in the trace's file." in words
    assert "▁w68" in words


def all_inside(figure: Figure) -> list[str]:
    """Texts that reach over the figure's edge."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    page = figure.bbox
    found = []
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        box = text.get_window_extent(renderer)
        is_drawn = text.get_visible() and text.get_text()
        if is_drawn and not (page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0):
            found.append(text.get_text())
        if is_drawn and box.y1 > page.y1:
            found.append(text.get_text())
    return found


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("source", "target"),
    [
        (("</s>",), ("</s>",)),
        (SOURCE, TARGET),
        (("▁Donaudampfschifffahrtsgesellschaft", "</s>"), ("▁MMMMMMMMWWWWWW", "</s>")),
        (("▁披萨很好吃", "</s>"), ("▁披萨", "</s>")),
        (tuple(f"▁{index}" for index in range(61)), TARGET),
    ],
    ids=["one token", "short", "long words", "wide letters", "many tokens"],
)
def test_nothing_reaches_over_the_edge(
    source: tuple[str, ...], target: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    outside: list[str] = []
    monkeypatch.setattr(
        style, "save_figure", lambda figure, *_, **__: outside.extend(all_inside(figure))
    )
    trace = make_trace(source, target)
    draw_trace_figure(trace, "x.png", **CROSS)
    draw_grid_figure(trace, "x.png", part="decoder", kind="cross")
    draw_stages_figure(trace, "x.png", part="decoder", layer=0, kind="self", head=0)
    assert not outside


def test_letters_of_no_font_are_written_as_code_points_but_svg_keeps_them() -> None:
    rare = "\U00012000"  # a cuneiform sign
    assert Lettering(Path("a.png"), [f"a{rare}"]).write(f"a{rare}") == "aU+12000"
    assert Lettering(Path("a.svg"), [f"a{rare}"]).write(f"a{rare}") == f"a{rare}"
    assert Lettering(Path("a.png"), ["▁é"]).write("▁é") == "▁é"
    assert Lettering(Path("a.png"), ["￭."]).write("good ￭. ￭") == "good . U+FFED"


def test_svg_of_letters_that_no_font_has_is_drawn_without_a_warning(tmp_path: Path) -> None:
    rare = "￭\U00012000"  # a joiner of subwords and a cuneiform sign
    trace = make_trace(target=[rare, "ab", "</s>"])
    draw_trace_figure(trace, tmp_path / "x.svg", **CROSS)  # A warning would be an error.
    words = " ".join(words_of(tmp_path / "x.svg"))
    assert rare[1:] in words
    assert "￭" not in words, "a joined token is drawn without its sign"


def test_problem_of_a_trace_is_told_in_its_picture(tmp_path: Path) -> None:
    draw_trace_figure(make_trace(checks={"rows": 0.25}), tmp_path / "x.svg", **CROSS)
    assert "WARNING: Each row of weights must sum to 1" in " ".join(words_of(tmp_path / "x.svg"))


def test_wrong_requests_are_told(trace: Trace, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must end in .svg, .png or .pdf, but is named x.jpeg"):
        draw_trace_figure(trace, tmp_path / "x.jpeg", **CROSS)
    with pytest.raises(InputError, match="but is 5"):
        draw_trace_figure(trace, tmp_path / "x.svg", **{**CROSS, "head": 5})
    with pytest.raises(InputError, match=r"does not hold .decoder.7.cross.2.weights"):
        draw_trace_figure(trace, tmp_path / "x.svg", **{**CROSS, "layer": 7})
    with pytest.raises(InputError, match="stage to draw"):
        draw_trace_figure(trace, tmp_path / "x.svg", **CROSS, stage="output")
    with pytest.raises(InputError, match=r"encoder.0.self.0.weights"):
        draw_grid_figure(trace, tmp_path / "x.svg", part="encoder", kind="self")
    with pytest.raises(OutputError):
        draw_trace_figure(trace, tmp_path / "missing" / "x.svg", **CROSS)


@pytest.mark.parametrize(
    ("value", "limit", "short"),
    [
        (0.0, None, "0"),
        (0.004, None, "0"),
        (0.126, None, ".13"),
        (0.999, None, "1"),
        (-0.126, 1.0, "−.13"),
        (-0.04, 5.0, "0"),
        (-12.34, 50.0, "−12.3"),
        (123.4, 200.0, "123"),
    ],
)
def test_numbers_in_cells_are_short(value: float, limit: float | None, short: str) -> None:
    assert number_in_cell(value, limit) == short


def test_decoding_is_described() -> None:
    assert describe_decoding({"given": True}) == "Target given, not decoded"
    sampled = {"beam": 1, "sample": True, "temperature": 0.5, "seed": 3, "hypothesis": 2}
    assert describe_decoding(sampled) == (
        "Sampling (temperature 0.5, seed 3) in float32, hypothesis 2"
    )


def test_default_view_is_cross_attention_of_the_last_layer(trace: Trace) -> None:
    view = default_view(trace)
    assert (view.name, view.head) == ("decoder.1.cross.weights", 0)
    with pytest.raises(InputError, match="holds no array"):
        default_view(make_trace(arrays={}))


@pytest.fixture(scope="module")
def bundle(bundle_folder: Path) -> Bundle:
    found = pellucid.load(bundle_folder).bundle
    assert found is not None
    return found


def test_products_of_sinusoidal_positions_depend_on_the_offset_alone(bundle: Bundle) -> None:
    positions_LD = positions_of(bundle, part="encoder", num_positions=11)
    assert positions_LD.shape == (11, 6)
    table_LX = products_by_offset(positions_LD @ positions_LD.T)
    np.testing.assert_allclose(table_LX[:, 0], table_LX[:, 2], atol=1e-12)
    rates = 10000.0 ** (-np.arange(0, 6, 2) / 6)
    expected = [np.cos(offset * rates).sum() for offset in range(11)]
    np.testing.assert_allclose(table_LX[:, 1], expected, atol=1e-12)


def test_products_by_offset_of_any_vectors_have_a_range() -> None:
    products = np.array([[1.0, 2.0, 9.0], [2.0, 3.0, 6.0], [9.0, 6.0, 5.0]])
    assert products_by_offset(products).tolist() == [[1, 3, 5], [2, 4, 6], [9, 9, 9]]


def test_positions_figure_names_its_model(bundle: Bundle, tmp_path: Path) -> None:
    draw_positions_figure(bundle, tmp_path / "p.svg", part="decoder", num_positions=13)
    said = " ".join(words_of(tmp_path / "p.svg"))
    assert "of the decoder, sinusoidal, positions 0 to 12, width 6. Model untrained " in said
    assert bundle.model_hash[:8] in said
    with pytest.raises(InputError, match="from 1 to 13"):
        draw_positions_figure(bundle, tmp_path / "p.svg", part="decoder", num_positions=14)


def make_long_trace(num_source: int, num_target: int, **heads: int) -> Trace:
    """A trace of one weight far above the others in each head of the decoder."""
    words = tuple(f"w{index}" for index in range(max(num_source, num_target)))
    shape = heads.get("heads", 2), num_target, num_source
    weights = np.full(shape, 0.001, dtype=np.float32)
    weights[:, 7, 11] = 0.9
    causal = np.tril(np.full((shape[0], num_target, num_target), 0.002, dtype=np.float32))
    return replace(
        make_trace(),
        arrays={
            f"decoder.{layer}.{kind}.weights": array
            for layer in range(heads.get("layers", 2))
            for kind, array in (("cross", weights), ("self", causal))
        },
        source_tokens=words[:num_source],
        target_tokens=words[:num_target],
        predicted_tokens=words[:num_target],
        heads=tuple(range(shape[0])),
    )


def test_map_with_more_cells_than_dots_shows_the_largest_of_each_block() -> None:
    panel = panel_of(HeadView(make_long_trace(5003, 4001), "decoder", 0, "cross", 1))
    found = reduced(panel)
    assert max(found.cells_LM.shape) <= math.sqrt(MOST_DOTS)
    assert found.cells_LM.max() == panel.cells_LM.max()
    assert (found.cells_LM > 0.5).sum() == 1
    words, blocks = found.notes
    assert words == "Too many words to write: they are in the trace's file."
    assert "each dot shows the number farthest from 0 among its cells" in blocks
    masked = panel_of(HeadView(make_long_trace(13, 4001), "decoder", 0, "self", 1))
    hidden = reduced(masked).forbidden_LM
    assert hidden is not None
    assert 0.45 < hidden.mean() < 0.5  # a block is hidden only if all of its cells are
    signed = replace(panel, cells_LM=-panel.cells_LM, limit=1.0)
    assert reduced(signed).cells_LM.min() == -panel.cells_LM.max()


def test_map_of_a_usual_sentence_is_not_reduced(trace: Trace) -> None:
    panel = panel_of(HeadView(trace, "decoder", 1, "cross", 2))
    assert reduced(panel) is panel
    assert panel.notes == ()


@pytest.mark.sample(kind="cross")
@pytest.mark.parametrize("kind", ["cross", "self"])
@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_grid_of_a_long_sentence_has_a_bounded_size(kind: str, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"grid.{ending}"
    trace = make_long_trace(217, 258, heads=8, layers=3)
    draw_grid_figure(trace, path, part="decoder", kind=kind)
    assert path.stat().st_size < 4 * 2**20
    if ending == "png":
        width, height = struct.unpack(">II", path.read_bytes()[16:24])
        assert width * height < 1.5 * MOST_DOTS
    if ending == "svg":
        said = " ".join(words_of(path))
        assert "Too many words to write" in said
        num_images = path.read_text(encoding="utf-8").count("<image")
        assert 24 <= num_images <= 26  # one for each map, not a shape for each cell; the scale
