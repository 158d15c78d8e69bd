"""The libraries in C that an editable installation builds: those that the processor can run."""

from __future__ import annotations

from pathlib import Path

import pytest

from pellucid.native.libraries import ENGINES, FOLDERS, KERNELS, Library, engines, runs_here
from pellucid.native.loading import instruction_sets

AVX2 = "fpu sse2 fma avx avx2 bmi2"
AVX512 = f"{AVX2} avx512f avx512dq avx512bw avx512vl"


def names_for(flags: str, folder: Path) -> set[str]:
    processor = folder / "cpuinfo"
    processor.write_text(f"processor\t: 0\nflags\t\t: {flags}\nbugs\t\t:\n")
    every = [Library(FOLDERS["kernels"], *one) for one in KERNELS.items()]
    every += [Library(FOLDERS["engine"], *one) for one in ENGINES.items()]
    return {one.name for one in every if runs_here(one, processor)}


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        ("fpu sse2", {"portable"}),
        (AVX2, {"portable", "avx2", "avx2_float32", "avx2_bfloat16"}),
        (
            AVX512,
            {"portable", "avx2", "avx2_float32", "avx2_bfloat16", "avx512", "avx512_float32"},
        ),
        (
            f"{AVX2} avx_vnni",
            {"portable", "avx2", "avx_vnni", "avx2_float32", "avx2_bfloat16"},
        ),
        (f"{AVX512} avx_vnni avx512_vnni avx512_bf16", {*KERNELS, *ENGINES}),
    ],
)
def test_libraries_of_a_processor_are_those_that_it_can_run(
    flags: str, names: set[str], tmp_path: Path
) -> None:
    assert names_for(flags, tmp_path) == names


@pytest.mark.parametrize(
    ("machine", "names"),
    [
        ("x86_64", ["portable", "avx2", "avx_vnni", "avx512", "avx512_vnni"]),
        ("arm64", ["portable", "dotprod"]),
        ("aarch64", ["portable", "dotprod"]),
        ("riscv64", ["portable"]),
    ],
)
def test_sets_of_instructions_follow_the_kind_of_machine(
    machine: str, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert list(engines()) == names


def test_libraries_processor_unknown_all_are_built(tmp_path: Path) -> None:
    library = Library(FOLDERS["engine"], "avx512", ENGINES["avx512"])
    (tmp_path / "arm").write_text("processor : 0\nFeatures : fp asimd\n")

    assert runs_here(library, tmp_path / "missing")
    assert runs_here(library, tmp_path / "arm")


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="needs Linux's list of a processor")
def test_the_engine_finds_every_set_that_linux_lists() -> None:
    every = [Library(FOLDERS["engine"], *one) for one in engines().items()]
    assert list(instruction_sets()) == [one.name for one in every if runs_here(one)]
