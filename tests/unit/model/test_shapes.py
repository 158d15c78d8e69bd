"""The legend of axis letters, and reading the axes of a name."""

from __future__ import annotations

import pytest

from pellucid.shapes import AXES, axes_of


@pytest.mark.parametrize(
    ("name", "axes"),
    [
        ("scores_BHLM", "BHLM"),
        ("memory_BSD", "BSD"),
        ("newest_B1", "B1"),
        ("mask_11LM", "11LM"),
        ("states_B1D", "B1D"),
        ("positions_LD", "LD"),
        ("bias_V", "V"),
        ("chosen_log_B", "B"),
        ("_key_BHMK", "BHMK"),
    ],
)
def test_axes_of_a_tensors_name_are_its_last_letters(name: str, axes: str) -> None:
    assert axes_of(name) == axes


@pytest.mark.parametrize(
    "name", ["scores", "BHLM", "_B", "scores_", "d_model", "max_length", "log_Z", "mask_BHx", ""]
)
def test_axes_of_a_name_without_axes_is_none(name: str) -> None:
    assert axes_of(name) is None


def test_legend_has_the_letters_of_the_style_guide() -> None:
    assert set("BLMSTDHKEFVNW1") <= set(AXES)
    assert all(len(letter) == 1 and meaning for letter, meaning in AXES.items())
    assert len(set(AXES.values())) == len(AXES)
