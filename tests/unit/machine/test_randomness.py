"""Random numbers are pure functions of (seed, purpose, indices), frozen for good."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from pellucid.machine.randomness import derive_key, generator, random_bytes

PLACES: list[tuple[int, str, tuple[int | str, ...]]] = [
    (1, "dropout", (2, "encoder.0.self")),
    (2, "dropout", (2, "encoder.0.self")),
    (1, "order", (2, "encoder.0.self")),
    (1, "dropout", (3, "encoder.0.self")),
    (1, "dropout", (2, "encoder.1.self")),
    (1, "dropout", (2,)),
    (1, "dropout", ()),
    (12, "dropout", ()),
    (1, "2dropout", ()),
    (1, "dropout", (22,)),
    (1, "dropout", (2, 2)),
]


@pytest.mark.parametrize(
    ("seed", "purpose", "indices", "expected"),
    [
        (1, "dropout", (2, "encoder.0.self"), 0xFF25AC6F9FD2674A4D0EC3AD6E2BAFC8),
        (0, "order", (), 0x892577E5F41E3EF0617A6272C087C7AA),
        (
            12345678901234567890,
            "initialization",
            ("output.weight",),
            0xFD94D94619D08BA0C4BD1262E7A54652,
        ),
    ],
)
def test_derive_key_gives_the_key_it_always_gave(
    seed: int, purpose: str, indices: tuple[int | str, ...], expected: int
) -> None:
    assert derive_key(seed, purpose, *indices) == expected


def test_random_bytes_gives_the_bytes_it_always_gave() -> None:
    drawn = random_bytes(11, 1, "dropout", 2, "encoder.0.self")
    assert drawn.tolist() == [201, 76, 78, 181, 217, 62, 138, 225, 15, 198, 165]


def test_generator_gives_the_numbers_it_always_gave() -> None:
    """Frozen: permutations order the data, normals and uniforms are a new model's weights."""
    numbers = generator(1, "order", 3)
    assert numbers.permutation(11).tolist() == [6, 9, 10, 1, 5, 4, 0, 3, 8, 7, 2]
    assert numbers.random(3).tolist() == [
        0.4764657702676509,
        0.029996336418643632,
        0.6959799284934084,
    ]
    assert numbers.standard_normal(3).tolist() == pytest.approx(
        [-0.335756155384543, 1.1853936922233803, 2.2232042242540317], rel=1e-14
    )
    assert numbers.integers(0, 1000, 5).tolist() == [160, 890, 104, 677, 715]
    assert numbers.uniform(-2, 3, 2).tolist() == pytest.approx(
        [-0.22893453050902846, 1.1079440710181139], rel=1e-14
    )


def test_derive_key_of_different_places_differs() -> None:
    keys = [derive_key(seed, purpose, *indices) for seed, purpose, indices in PLACES]
    assert len(set(keys)) == len(keys)
    assert all(0 <= key < 2**128 for key in keys)


def test_random_bytes_of_different_places_share_nothing() -> None:
    drawn = [random_bytes(4096, seed, purpose, *i) for seed, purpose, i in PLACES]
    for index, one in enumerate(drawn):
        for other in drawn[index + 1 :]:
            # Independent bytes agree once in 256: 16 of 4096, standard deviation 4.
            assert int((one == other).sum()) < 16 + 6 * 4


def test_random_bytes_do_not_depend_on_what_was_drawn_before() -> None:
    first = random_bytes(101, 1, "dropout", 2)
    numbers = generator(1, "dropout", 2)
    numbers.random(1000)
    np.random.default_rng(5).random(3)
    random_bytes(977, 3, "order")
    assert np.array_equal(first, random_bytes(101, 1, "dropout", 2))


def test_random_bytes_in_another_process_are_the_same() -> None:
    """Python's own hash differs from process to process; ours must not."""
    code = (
        "from pellucid.machine.randomness import *;"
        "print(derive_key(5, 'order', 'a', 7), random_bytes(5, 5, 'order').tolist())"
    )
    expected = f"{derive_key(5, 'order', 'a', 7)} {random_bytes(5, 5, 'order').tolist()}"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout.strip() == expected


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 1000])
def test_random_bytes_of_any_count_start_the_longer_draw(count: int) -> None:
    drawn = random_bytes(count, 1, "dropout")
    assert drawn.dtype == np.uint8
    assert drawn.shape == (count,)
    assert np.array_equal(drawn, random_bytes(1001, 1, "dropout")[:count])


def test_random_bytes_are_uniform() -> None:
    counts = np.bincount(random_bytes(256 * 1000, 1, "dropout"), minlength=256)
    chi_squared = float(((counts - 1000) ** 2 / 1000).sum())
    # 255 degrees of freedom: mean 255, standard deviation 22.6.
    assert 255 - 6 * 22.6 < chi_squared < 255 + 6 * 22.6


def test_random_bytes_can_be_written_to_without_touching_a_second_draw() -> None:
    first = random_bytes(16, 1, "dropout")
    kept = first.copy()
    first[:] = 0
    assert np.array_equal(kept, random_bytes(16, 1, "dropout"))


def test_generator_of_the_same_place_starts_anew() -> None:
    assert generator(1, "order", 3).random() == generator(1, "order", 3).random()
    assert generator(1, "order", 3).random() != generator(1, "order", 4).random()
