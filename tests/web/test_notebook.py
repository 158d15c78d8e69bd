"""A trace in a notebook: safe HTML without a script."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
from made_up_traces import TARGET, make_trace

from pellucid.inside.show.static import fragment
from pellucid.inside.show.view import number_in_cell


class Reader(HTMLParser):
    """A parser that collects the tags of a fragment and the texts of its cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.cells: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        if tag == "td":
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.cells and self.lasttag == "td":
            self.cells[-1] += data.strip()


def test_notebook_fragment_is_safe_and_complete() -> None:
    trace = make_trace(("<script>alert(1)</script>", "</s>"), checks={"rows": 0.5})
    reader = Reader(fragment(trace))
    assert set(reader.tags) <= {
        *("div", "style", "p", "b", "br", "figure", "figcaption"),
        *("table", "thead", "tbody", "tr", "th", "td"),
    }
    assert set(reader.attributes) <= {"class", "style", "scope", "title"}
    weights = trace["decoder.1.cross.0"]
    assert reader.cells == [number_in_cell(float(weight), None) for weight in weights.flat]
    assert "Each row of weights must sum to 1" in fragment(trace)
    assert trace._repr_html_() == fragment(trace)


def test_notebook_fragment_of_a_trace_without_heads_and_of_a_long_one() -> None:
    logits = {"decoder.logits": np.zeros((len(TARGET), 7), dtype=np.float32)}
    assert "1 arrays, none of them a head's" in fragment(make_trace(arrays=logits))
    words = (*(f"▁{index}" for index in range(119)), "</s>")
    assert "The first 83 of 120 rows are shown" in fragment(make_trace(words, words))
