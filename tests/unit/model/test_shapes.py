"""The legend of axis letters."""

from __future__ import annotations

from pellucid.shapes import AXES


def test_legend_has_the_letters_of_the_style_guide() -> None:
    assert set("BLMSTDHKEFVNW1") <= set(AXES)
    assert all(len(letter) == 1 and meaning for letter, meaning in AXES.items())
    assert len(set(AXES.values())) == len(AXES)
