"""The project as files: one version, no private places, a short heart, no dead links."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import pellucid

MAX_FILES_IN_FOLDER = {"inside": 18, "training": 12, "cli": 12, "decode": 10, "attention": 8}
"""Files that a folder may hold at its top, ``__init__.py`` not counted; the rest is in folders."""

MAX_HEART_LINES = 1500
HEART = (
    "attention.stages",
    "attention.masks",
    "attention.positions",
    "attention.probe",
    "attention.fast",
    "attention.checks",
    "model.layers",
    "model.site",
    "model.transformer",
    "decode.greedy",
    "training.plain",
)
"""The files to read first, to understand the model and its training; CONTRIBUTING lists them.
The rest of ``attention/`` is for lessons."""

# Written apart, so that this file does not find itself.
PRIVATE = re.compile(
    "|".join(
        [
            r"(?<![\w.])/" + r"(?:work|root|opt|home)/",
            r"(?<![\w.])/" + r"tmp/w\b",
            "py" + r"pi\.org",
            "python" + r"hosted\.org",
            r"download\.py" + r"torch\.org",
            "npm" + r"js\.(?:org|com)",
        ]
    )
)


@pytest.fixture(scope="module")
def project_files(root: Path) -> list[Path]:
    """Every file that belongs to the project."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode == 0:
        names = [root / name for name in listing.stdout.split("\0") if name]
    else:  # an unpacked source archive
        names = [p for top in ("src", "tests", "docs") for p in (root / top).rglob("*")]
    return [path for path in names if path.is_file() and "__pycache__" not in path.parts]


def test_version_is_the_same_everywhere(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert pellucid.__version__ == project["version"]
    released = re.findall(r"^## \[(\d[^\]]*)\]", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert released[:1] in ([], [project["version"]])
    try:
        installed = importlib.metadata.version("pellucid")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("pellucid is run from its source folder, without having been installed")
    assert installed == project["version"]


def test_constraints_pin_every_direct_dependency_exactly(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    wanted = project["dependencies"] + [name for extra in extras for name in extra]
    lines = (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in pins)
    pinned = {pin.split("==")[0].lower().replace("_", "-") for pin in pins}
    names = {re.split(r"[\[><=]", name)[0].lower() for name in wanted}
    assert names - {"pellucid"} <= pinned  # one extra holds another
    assert "torch==2.13.0" in pins


def test_no_file_names_private_places_or_registries(project_files: list[Path], root: Path) -> None:
    found = []
    for path in project_files:
        text = path.read_bytes().decode("utf-8", errors="ignore")
        found += [f"{path.relative_to(root)}: {match}" for match in PRIVATE.findall(text)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("text", ["see /" + "work/main", "from https://py" + "pi.org/simple"])
def test_guard_private_place_is_found(text: str) -> None:
    assert PRIVATE.search(text)


def test_folders_hold_few_files_at_their_top(modules: dict[str, Path]) -> None:
    files = [
        module.split(".")[1]
        for module, path in modules.items()
        if module.count(".") == 2 and path.name != "__init__.py"
    ]
    found = {folder: files.count(folder) for folder in MAX_FILES_IN_FOLDER}
    assert all(found.values())
    assert all(found[folder] <= most for folder, most in MAX_FILES_IN_FOLDER.items()), found


def test_heart_can_be_read_in_half_an_hour(modules: dict[str, Path]) -> None:
    heart = [modules[f"pellucid.{part}"] for part in HEART]
    num_lines = sum(path.read_text(encoding="utf-8").count("\n") for path in heart)
    assert num_lines <= MAX_HEART_LINES


def test_links_between_documents_lead_somewhere(project_files: list[Path], root: Path) -> None:
    found = []
    for path in project_files:
        if path.suffix != ".md":
            continue
        for target in re.findall(r"\]\(([^)\s#]+)[^)]*\)", path.read_text(encoding="utf-8")):
            is_elsewhere = "://" in target or target.startswith("mailto:")
            if not is_elsewhere and not (path.parent / target).exists():
                found.append(f"{path.relative_to(root)} links to {target}")
    assert not found, "\n".join(found)


MAX_README_LINES, MAX_PARAGRAPH_LINES = 120, 3


def find_long_paragraphs(page: str) -> list[str]:
    """List the beginnings of paragraphs that are too long; code and tables do not count."""
    text = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    paragraphs = [part.strip() for part in text.split("\n\n")]
    return [
        part[:60]
        for part in paragraphs
        if part.count("\n") >= MAX_PARAGRAPH_LINES and not part.startswith(("|", "<!--"))
    ]


def test_readme_is_read_in_a_minute(root: Path) -> None:
    page = (root / "README.md").read_text(encoding="utf-8")
    assert page.count("\n") <= MAX_README_LINES
    assert not find_long_paragraphs(page)
    assert len(re.findall(r"^\| --- ", page, re.MULTILINE)) == 2  # quality and speed


def test_guard_long_paragraph_is_found() -> None:
    assert find_long_paragraphs("# A\n\na\nb\nc\n\nd\ne\nf\ng\n") == ["d\ne\nf\ng"]


def test_results_name_no_folder_of_the_machine_that_made_them(root: Path) -> None:
    found = [
        path.name
        for path in (root / "benchmarks" / "results").rglob("*.json")
        if re.search(r"[ \"=]/(?:tmp|home|root|work)/", path.read_text(encoding="utf-8"))
    ]
    assert not found
