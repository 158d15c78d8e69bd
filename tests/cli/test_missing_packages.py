"""A package without some of its libraries: what needs one says so, the rest works."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

# What `pellucid` does if the packages that its first argument lists were not installed.
WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1].split():
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from pellucid.cli.main import run
sys.exit(run(sys.argv[2:]))
"""

NO_PYTORCH = "torch sacrebleu py3langid fsspec matplotlib"
SAME = ("evaluate", "--hypothesis", "a.txt", "--reference", "a.txt")
NEEDS = {
    "matplotlib": (("look", "demo", "The dog", "-o", "a.png"), "'pellucid[pictures]'"),
    "sacremoses": ((*SAME, "--moses", "en"), "'pellucid[moses]'"),
    "rapidfuzz": (("translate", "demo", "-i", "a.md", "--memory", "a.tsv"), "'pellucid[memory]'"),
    "starlette": (("serve", "demo"), "'pellucid[serve]'"),
    "uvicorn": (("serve", "demo"), "'pellucid[serve]'"),
    "yaml": (("translate", "demo", "-i", "a.yaml"), "'pellucid[documents]'"),
    "markdown_it": (("translate", "demo", "-i", "a.md"), "'pellucid[documents]'"),
    "fsspec": (("bulk", "run", "demo", "a.txt", "-o", "out"), "'pellucid[bulk]'"),
    "torch": (("look", "demo", "The dog"), "torch"),
    "sacrebleu": (SAME, "sacrebleu"),
}


def write_texts(folder: Path) -> None:
    (folder / "a.txt").write_text("The dog\nThe cat\n")
    (folder / "a.tsv").write_text("The dog\tLe chien\n")
    (folder / "a.yaml").write_text("one: The dog\n")
    (folder / "a.md").write_text("# The dog\n")


@pytest.mark.parametrize("package", NEEDS)
def test_a_missing_package_is_one_sentence_with_the_command_that_installs_it(
    package: str, run_python: Run, tmp_path: Path
) -> None:
    write_texts(tmp_path)
    command, install = NEEDS[package]
    done = run_python("-c", WITHOUT, package, *command, cwd=tmp_path)
    assert done.returncode == 2
    assert f"the package {package}, which is not installed. Install it with: pip install" in (
        done.stderr
    )
    assert done.stderr.rstrip().endswith(install)
    assert "Traceback" not in done.stderr


def test_aligning_without_pytorch_names_pytorch_and_no_library_that_it_does_not_need(
    run_python: Run, tmp_path: Path
) -> None:
    write_texts(tmp_path)
    done = run_python("-c", WITHOUT, NO_PYTORCH, "align", "demo", "a.tsv", cwd=tmp_path)
    assert done.returncode == 2
    assert "the package torch, which is not installed" in done.stderr
    assert "sacrebleu" not in done.stderr


def test_without_pytorch_lines_and_documents_are_translated(
    run_python: Run, tmp_path: Path
) -> None:
    write_texts(tmp_path)
    for name, found in (("a.txt", "Le chien\nLe chat\n"), ("a.md", "# Le chien\n")):
        done = run_python("-c", WITHOUT, NO_PYTORCH, "translate", "demo", "-i", name, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, found), done.stderr


def test_without_pytorch_a_model_is_described_streamed_and_loaded_for_any_device(
    run_python: Run,
) -> None:
    described = run_python("-c", WITHOUT, NO_PYTORCH, "inspect", "demo")
    assert "computed_by: the engine in C" in described.stdout, described.stderr
    auto = run_python(
        "-c", WITHOUT, NO_PYTORCH, "translate", "demo", "--device", "auto", stdin="The cat"
    )
    assert auto.stdout == "Le chat\n", auto.stderr
    program = WITHOUT.split("from pellucid", maxsplit=1)[0]
    program += "import pellucid; print(*pellucid.load('demo').stream('The dog'))"
    assert run_python("-c", program, NO_PYTORCH).stdout.strip() == "Le chien"


@pytest.mark.parametrize(
    ("option", "purpose"),
    [
        (("--forbid", "chat"), "A phrase that a translation must or must not hold needs"),
        (("--set", "decoding.strict=true"), "This search (decoding.strict is True) needs"),
        (("--ensemble", "demo"), "An ensemble needs"),
        (("--device", "cuda"), "The device cuda needs"),
        (("--change", "cut decoder.1.cross.0"), "What the engine in C does not compute needs"),
    ],
)
def test_what_needs_pytorch_says_so_once_for_all_lines(
    option: tuple[str, ...], purpose: str, run_python: Run
) -> None:
    text = "The dog\nThe cat\n"
    done = run_python("-c", WITHOUT, "torch", "translate", "demo", *option, stdin=text)
    assert (done.returncode, done.stdout) == (2, "")
    install = "the package torch, which is not installed. Install it with: pip install torch"
    assert done.stderr.strip() == f"error: {purpose} {install}"


def test_without_pytorch_a_file_is_written(run_python: Run, tmp_path: Path) -> None:
    write_texts(tmp_path)
    # A package that is not installed has no version either.
    gone = (
        "import importlib.metadata as m\nm.Distribution.discover = classmethod(lambda *_, **__: ())"
    )
    command = ("translate", "demo", "-i", "a.txt", "-o", "b.txt")
    done = run_python("-c", gone + WITHOUT, NO_PYTORCH, *command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "b.txt").read_text() == "Le chien\nLe chat\n"


def test_without_pytorch_links_are_those_of_the_head_that_was_taught_them(
    run_python: Run, run_cli: Run
) -> None:
    # `demo` has such a head, so that nothing is chosen by computing links of many lines.
    command = ("translate", "demo", "--align")
    text = "The dog found some pizza because it was hungry.\nThe cat\n"
    done = run_python("-c", WITHOUT, NO_PYTORCH, *command, stdin=text)
    assert done.returncode == 0, done.stderr
    assert done.stdout == run_cli(*command, stdin=text).stdout
    assert done.stdout.splitlines()[1].endswith(" ||| 0-0 1-1")


def test_requirements_of_the_engine_are_those_of_the_package_without_pytorch(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = {*project["dependencies"], *extras["serve"], *extras["documents"]}
    lines = (root / "requirements-engine.txt").read_text().splitlines()
    listed = {line for line in lines if line and not line.startswith("#")}
    missing = {re.split("[<>=]", name)[0] for name in wanted - listed}
    assert missing == {"torch", "sacrebleu", "py3langid"}
    assert listed <= wanted


def test_the_core_has_ten_dependencies_and_every_extra_is_documented(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert len(project["dependencies"]) <= 10
    text = (root / "docs" / "install.md").read_text()
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    documented = {name for row in rows for name in re.findall("`([a-z0-9]+)`", row)}
    assert documented == set(project["optional-dependencies"]) - {"dev"}
