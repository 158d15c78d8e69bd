"""Code that the pages show runs, and pages that a script writes are up to date."""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from page_code import (
    RUNS,
    SHOWS,
    Block,
    all_blocks,
    check_toml,
    commands,
    compare,
    compare_comment,
    complain,
    describe_left_out,
    find_pages,
    mark_prints,
    read_blocks,
    run_shell,
)

import pellucid
import pellucid.config
from pellucid.cli.app import load_command
from pellucid.cli.overview import COMMANDS, SUBCOMMANDS
from pellucid.config import Recipe, Strict

ROOT = Path(__file__).parents[3]
REFERENCE = ROOT / "docs" / "reference"
PACKAGE = Path(pellucid.__file__).parent


def python_blocks(page: Path) -> str:
    return "\n".join(
        re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    )


@pytest.mark.parametrize(
    ("page", "model"), [("README.md", "demo"), ("docs/start.md", "runs/pairs")]
)
def test_python_of_a_page_runs_on_any_model(
    page: str, model: str, bundle_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = python_blocks(ROOT / page)
    assert model in code
    names: dict[str, Any] = {}
    exec(code if model == "demo" else code.replace(model, str(bundle_folder)), names)
    if page == "docs/start.md":
        trace = names["trace"]
        expected = (len(trace.target_tokens), len(trace.source_tokens))
        assert names["weights_TS"].shape == expected
    else:
        assert "tensor" in capsys.readouterr().out


@pytest.fixture(scope="module")
def make_recipes() -> dict[str, Any]:
    return runpy.run_path(str(REFERENCE / "make_recipes.py"))


def test_reference_of_recipes_is_up_to_date(make_recipes: dict[str, Any]) -> None:
    page = (REFERENCE / "recipes.md").read_text(encoding="utf-8")
    assert page == make_recipes["page"](), "run `make docs`"


def test_reference_of_recipes_has_every_key_with_a_meaning() -> None:
    page = (REFERENCE / "recipes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]+ \| ([^|]+) \|$", page, re.MULTILINE)
    assert Counter(key for key, _ in rows) == Counter(
        key
        for section in Recipe.model_fields.values()
        for key in section.annotation.model_fields  # type: ignore[union-attr]
        if key not in section.annotation.written_by_programs  # type: ignore[union-attr]
    )
    first = re.findall(r"^\| `(\w+)\.(\w+)` \|", page, re.MULTILINE)
    assert 12 <= len(first) <= 14
    named = {key for key, _ in rows} | {"size"}
    assert all(key in named for _, key in first)
    assert all(len(meaning.split()) > 1 for _, meaning in rows)


@pytest.mark.parametrize(
    "section",
    [one for one in vars(pellucid.config).values() if isinstance(one, type) and one is not Strict],
)
def test_every_field_of_configuration_has_a_meaning(
    make_recipes: dict[str, Any], section: type[Strict]
) -> None:
    meanings = make_recipes["read_meanings"](section)
    assert list(meanings) == list(section.model_fields)
    assert all(meaning.endswith((".", ")")) for _, meaning in meanings.values())


class Measured(Strict):
    # Length
    width: int = 1
    """In pixels,
    as shown."""
    height: int = 2
    # Not a topic of a field below it

    depth: int = 3
    """In layers."""


def test_guard_field_without_a_meaning_is_found(make_recipes: dict[str, Any]) -> None:
    assert make_recipes["read_meanings"](Measured) == {
        "width": ("Length", "In pixels, as shown."),
        "depth": ("Length", "In layers."),
    }


def test_contributing_names_only_paths_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = set(re.findall(r"`((?:[\w-]+/)+[\w.-]*)`", text))
    assert len(paths) > 50
    missing = [
        path
        for path in paths
        if "NAME" not in path
        and not any((folder / path).exists() for folder in (ROOT, PACKAGE, *PACKAGE.iterdir()))
    ]
    assert not missing


def test_contributing_has_every_module_on_its_floor() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    floor = ""
    found: dict[str, float] = {}
    for number, modules in re.findall(r"^\| ?([\d.]*) \| (`[^|]+`) \| ", text, re.MULTILINE):
        floor = number or floor
        found |= {name: float(floor) for name in re.findall(r"`(\w+)/?`", modules)}
    floors = runpy.run_path(str(ROOT / "tests" / "house" / "test_imports.py"))["FLOORS"]
    assert found == {name: number for name, number in floors.items() if name != "__main__"}


BLOCKS = all_blocks()
SAMPLE = (
    "start",
    "data",
    "probes",
    "guides/python",
    "reference/python",
    "looking",
    "trace",
    "ten-tasks",
    "measures",
    "what-if",
)
"""Pages whose Python the tests run; `benchmarks/doc_blocks.py` runs everything."""


RUN_NOWHERE = 11
"""Blocks that no program runs: they install, need a network, or take hours. Lower it if you can."""


def test_every_block_runs_or_has_a_reason() -> None:
    unknown = [one.place for one in BLOCKS if one.language not in (*RUNS, *SHOWS)]
    assert not unknown, "name the language, or teach tests/shared/page_code.py to run it"
    assert sum(one.is_run for one in BLOCKS) > 80
    assert all(len(one.reason.split()) > 1 for one in BLOCKS if one.reason)
    assert all((ROOT / one.runner).is_file() for one in BLOCKS if one.runner)
    assert all(one.runnable for one in BLOCKS)
    complaints = [check_toml(one) for one in BLOCKS if one.language == "toml"]
    assert not any(complaints), complaints


def test_blocks_that_run_nowhere_are_counted() -> None:
    left_out = [one for one in BLOCKS if one.reason]
    assert len(left_out) == RUN_NOWHERE, describe_left_out(BLOCKS)


def test_commands_of_the_pages_have_only_options_that_exist(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The guide to a new layer option sets one that the package does not have yet.
    monkeypatch.setattr("pellucid.config.check_overrides", lambda _: None)
    found: dict[str, list[list[str]]] = {}
    # One page adds an option first.
    blocks = [one for one in BLOCKS if "change_the_architecture" not in one.runner]
    for block in blocks:
        for arguments in commands(block.text) if block.language in ("sh", "console") else ():
            size = 2 if arguments[0] in SUBCOMMANDS else 1
            if arguments[0] != "help":
                found.setdefault(" ".join(arguments[:size]), []).append(arguments[size:])
    assert sum(map(len, found.values())) > 50
    for name, lines in found.items():
        command = load_command(name)
        for arguments in lines:
            command.make_context(name, list(arguments), resilient_parsing=False)


def test_page_of_commands_has_every_command() -> None:
    text = (REFERENCE / "commands.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \| ", text, re.MULTILINE) == sorted(
        COMMANDS, key=lambda name: text.index(f"| `{name}` |")
    )


def test_guard_option_that_does_not_exist_is_found() -> None:
    command = load_command("look")
    (arguments,) = commands('pellucid look demo "A cat." --no-such-option | head\n')
    with pytest.raises(Exception, match="no-such-option"):
        command.make_context("look", arguments[1:], resilient_parsing=False)


@pytest.mark.parametrize("name", SAMPLE)
def test_python_of_a_page_prints_what_the_page_says(
    name: str, bundle_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = next(one for one in find_pages() if one.as_posix().endswith(f"/{name}.md"))
    blocks = [one for one in read_blocks(page) if one.language == "python" and one.is_run]
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "pairs").symlink_to(bundle_folder)
    monkeypatch.chdir(tmp_path)
    if name == "trace":
        pellucid.load("demo").look("The dog ate it.").save("x.npz")
    names: dict[str, Any] = {}
    for block in blocks:
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            exec(mark_prints(block.runnable), names)
        assert not complain(block, shown.getvalue())


@pytest.mark.parametrize("name", ["looking", "recurrent", "translating", "what-if"])
def test_commands_of_a_page_print_what_the_page_says(name: str, tmp_path: Path) -> None:
    page = next(page for page in find_pages() if page.stem == name)
    blocks = [one for one in read_blocks(page) if one.is_run and one.language != "python"]
    shown = [one for one in blocks if one.output is not None or one.language == "console"]
    assert shown
    env = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "80",
    }
    complaints = [run_shell(one, tmp_path, env) for one in shown]
    assert not any(complaints), complaints


def test_tasks_of_research_take_one_command_or_ten_lines() -> None:
    blocks = [one for one in BLOCKS if one.page.endswith("ten-tasks.md")]
    assert len(blocks) >= 8
    for one in blocks:
        assert one.text.strip().count("\n") < 10, one.place


def test_guard_another_output_than_the_page_says_is_found() -> None:
    assert not compare("a …\nd", "a  b c d\n")
    assert compare("a …\nd", "a b c e")


def test_guard_another_number_than_the_comment_after_a_print_says_is_found() -> None:
    block = Block("page.md", 1, "python", "print(0.8912)  # 0.89: a share\n", "", None)
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        exec(mark_prints(block.text), {})
    assert not complain(block, shown.getvalue())
    assert complain(block, shown.getvalue().replace("0.89", "0.98"))
    assert not compare_comment("Edit(place=7, before=…)", "Edit(place=7, before=('a',))\n")
    assert compare_comment("elle", "il\n")


def test_every_table_of_measured_figures_names_a_result_file() -> None:
    text = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")
    parts = re.split(r"^#{2,3} (.*)$", text, flags=re.MULTILINE)[1:]
    found = dict(zip(parts[::2], parts[1::2], strict=True))
    with_tables = [title for title, part in found.items() if "\n| ---" in part]
    assert len(with_tables) > 7
    missing = [title for title in with_tables if "(../benchmarks/results/" not in found[title]]
    assert not missing


def test_table_of_other_tools_is_that_of_the_newest_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    make = runpy.run_path(str(ROOT / "docs" / "make_tables.py"))
    text = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")
    assert make["write_beside"](text) == text, "run `python docs/make_tables.py measured`"
    assert make["write_beside"](text.replace("TransformerLens 4", "TransformerLens 3")) == text


def test_every_page_is_in_the_table_of_contents() -> None:
    listed = set()
    for index in ("README.md", "lessons/README.md", "decisions/README.md"):
        path = ROOT / "docs" / index
        links = re.findall(r"\]\(([^):#]+\.(?:md|ipynb))", path.read_text(encoding="utf-8"))
        listed |= {(path.parent / link).resolve() for link in links} | {path}
    assert {*find_pages()} - listed == {ROOT / "docs" / "progress.md"}, "for developers only"


def test_links_to_places_in_pages_lead_somewhere() -> None:
    dead = []
    for page in find_pages():
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for name, place in re.findall(r"\]\(([^)\s#]*)#([^)\s]+)\)", text):
            target = page.parent / name if name else page
            if "://" not in name and place not in find_places(target.read_text(encoding="utf-8")):
                dead.append(f"{page.relative_to(ROOT)}: {name}#{place}")
    assert not dead


def find_places(text: str) -> set[str]:
    """List the anchors of a page's headings, as its host writes them."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    places: Counter[str] = Counter()
    for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "").lower()
        places[re.sub(r"[^\w\- ]", "", title).strip().replace(" ", "-")] += 1
    return {*places, *(f"{name}-{n}" for name, count in places.items() for n in range(1, count))}


def test_guard_place_of_a_heading_is_found() -> None:
    assert find_places("# A *b*, `c d`: é\n\n## x\n\n```\n# no\n```\n\n## x\n") == {
        *("a-b-c-d-é", "x", "x-1")
    }


def test_citation_has_the_version_and_license() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {pellucid.__version__}\n" in text
    assert "\nlicense: Apache-2.0\n" in text


def test_autoencoder_of_the_guide_is_short_and_learns_a_gender(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = ROOT / "docs" / "guides" / "probes.md"
    blocks = [one for one in read_blocks(page) if one.language == "python"]
    texts = [one.text for one in blocks]
    (autoencoder,) = (text for text in texts if "class SparseAutoencoder" in text)
    assert autoencoder.count("\n") <= 100
    monkeypatch.chdir(tmp_path)
    # On fewer lines, and without the linear probes.
    collect = next(text for text in texts if 'output="all.npz"' in text)
    labels = next(text for text in texts if "def words_of" in text).partition("\nnouns =")[0]
    names: dict[str, Any] = {"translator": pellucid.load("demo")}
    short = collect.replace("count=2400", "count=800")
    with contextlib.redirect_stdout(io.StringIO()):
        exec("\n".join([short, labels, autoencoder.replace("steps=300", "steps=150")]), names)
    assert names["explained"] > 0.85
    assert names["used"] > 0.5
    is_test = names["is_test"]
    share = names["share"]
    at_elle, at_il = (share(names[one] & is_test) for one in ("is_elle", "is_il"))
    assert at_elle[names["feminine"]] - at_il[names["feminine"]] > 0.5
    assert abs(names["gap"]) < 0.5
