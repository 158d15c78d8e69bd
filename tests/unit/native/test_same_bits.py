"""The same bits on every processor: the engine's operations here, and on an emulated ARM."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pellucid.native.call import length_penalties
from pellucid.native.libraries import ARM_ENGINES, ENGINES, FOLDERS, GENERAL
from pellucid.native.loading import SETS, instruction_sets

PROGRAM = Path(__file__).with_name("same_bits.c")
ARM_COMPILER = "aarch64-linux-gnu-gcc"
EMULATOR = "qemu-aarch64"


def answer(compiler: str, flags: str, program: Path, *runner: str) -> bytes:
    """Build the program with the engine's sources, and return what it writes."""
    folder = FOLDERS["engine"]
    options = [one for one in GENERAL.split() if one != "-shared"]
    options += [*flags.split(), "-static", f"-I{folder}", "-Wno-overflow"]
    sources = [str(folder / name) for name in ("products.c", "rows.c", "attention.c")]
    command = [compiler, *options, "-o", str(program), str(PROGRAM), *sources, "-lm"]
    subprocess.run(command, check=True)
    return subprocess.run([*runner, str(program)], check=True, stdout=subprocess.PIPE).stdout


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What AVX2 gives."""
    if "avx2" not in instruction_sets() or not shutil.which("cc"):
        pytest.skip("needs AVX2 and a C compiler")
    return answer("cc", ENGINES["avx2"], tmp_path_factory.mktemp("avx2") / "program")


@pytest.mark.parametrize("name", [name for name in ENGINES if name not in ("portable", "avx2")])
def test_wider_vectors_give_the_bits_of_avx2(name: str, wanted: bytes, tmp_path: Path) -> None:
    if name not in instruction_sets():
        pytest.skip(f"this processor has no {name}")
    assert answer("cc", ENGINES[name], tmp_path / "program") == wanted


@pytest.mark.parametrize("name", ARM_ENGINES)
def test_neon_gives_the_bits_of_avx2(name: str, wanted: bytes, tmp_path: Path) -> None:
    if not shutil.which(ARM_COMPILER) or not shutil.which(EMULATOR):
        pytest.skip(f"needs {ARM_COMPILER} and {EMULATOR} (qemu-user)")
    runner = (EMULATOR, "-cpu", "max")
    assert answer(ARM_COMPILER, ARM_ENGINES[name], tmp_path / "program", *runner) == wanted


def test_numbers_of_sets_are_places_in_one_list() -> None:
    assert set(SETS) in ({*ENGINES}, {*ARM_ENGINES}, {"portable"})
    assert instruction_sets()[0] == "portable"


@pytest.mark.parametrize("kind", ["gnmt", "average"])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.5, 50.0])
def test_penalties_have_no_digits_in_which_powers_differ(kind: str, alpha: float) -> None:
    found = length_penalties(kind, alpha, 307)
    exact = ((5 + np.arange(308)) / 6 if kind == "gnmt" else np.arange(308).clip(1)) ** alpha
    assert np.allclose(found, exact, rtol=2**-24, atol=0)
    # A power that is off by its last digit, up or down, would give the same score.
    for other in (np.nextafter(exact, 0), np.nextafter(exact, np.inf)):
        fraction, power = np.frexp(other)
        assert (np.ldexp(np.rint(np.ldexp(fraction, 24)), power - 24) == found).all()
