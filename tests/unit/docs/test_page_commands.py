"""The blocks of pages run, at small sizes, in a folder that has the files that they name.

`benchmarks/doc_blocks.py` does the same for all pages, some of which need trained models.
"""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from page_code import Block, find_pages, run_shell

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def doc_blocks() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "benchmarks" / "doc_blocks.py"))


@pytest.fixture(scope="module")
def env(doc_blocks: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    found: dict[str, str] = doc_blocks["make_program"](tmp_path_factory.mktemp("bin") / "bin")
    return found | {"OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def files(
    doc_blocks: dict[str, Any], env: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("files")
    doc_blocks["make_folder"](folder, env, doc_blocks["FILES"])
    return folder


@pytest.mark.timeout(400)
def test_every_command_for_many_machines_runs(
    doc_blocks: dict[str, Any], env: dict[str, str], files: Path, tmp_path: Path
) -> None:
    (page,) = (page for page in find_pages() if page.stem == "many-machines")
    folder = tmp_path / "folder"
    shutil.copytree(files, folder)
    count, complaints = doc_blocks["run_page"](page, folder, env)
    assert not complaints, "\n".join(complaints)
    assert count >= 6
    texts = [(folder / name).read_text() for name in ("test.en", "valid.en")]
    shown = [(folder / name).read_text() for name in ("translations.txt", "distilled.tsv")]
    wanted = sum(text.count("\n") for text in texts)
    assert [text.count("\n") for text in shown] == [wanted] * 2
    # What a pod of Kubernetes does, on the job that has a bucket's address.
    text = (ROOT / "deploy" / "bulk.yaml").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^ +args: \[(.*)\]$", text, re.MULTILINE)
    changed = listed.replace("s3://", "file://").replace("/models/en-fr", "demo")
    words = ["pellucid", *shlex.split(changed.replace(",", " "))]
    block = Block("many-machines.md", 0, "sh", shlex.join(words), "", None)
    assert not run_shell(block, folder, env)


def test_guard_a_block_that_fails_is_found(
    doc_blocks: dict[str, Any], env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doc_blocks["page_code"], "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("<!-- run with: true = false; 1 = 2 -->\n```sh\ntrue || exit 1\n```\n")
    count, complaints = doc_blocks["run_page"](page, tmp_path, env)
    assert count == 1
    assert complaints == ["page.md:1\nexit code 2: "]
