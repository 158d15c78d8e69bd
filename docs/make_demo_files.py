"""Make anew everything that shows what the packaged model does, after another came in its place.

    python docs/make_demo_files.py [--folder runs/packaged] [--pictures]

``--folder`` first puts the models there that `tests/golden/make_demo_model.py` trained in it. The
steps run in this order, as the lessons read what the first two record. ``--pictures`` also takes
those of the page, which needs a browser. Afterwards, by hand: the tables of docs/guides/pronouns.md
and docs/guides/ten-tasks.md, docs/decisions/0008-the-demo-model.md, docs/measured.md, and the
claims with

    python benchmarks/claims/run.py && python benchmarks/claims/page.py
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
FIRST = (
    "tests/golden/find_coarse_lines.py",
    "docs/lessons/make_outputs.py",
    "docs/lessons/make_lessons.py",
    "docs/make_wrong_story.py",
)
THEN = ("docs/make_printed.py", "docs/make_notebook.py", "docs/make_pictures.py")
SENTENCE = "The pizza came out of the oven and it tasted good"
PICTURES = {"decoder.1.cross.0": "cross-attention.png", "encoder.0": "self-attention.png"}


def main() -> None:
    """Run the steps; the first that fails ends it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", metavar="FOLDER", help="put the models of this folder in place")
    parser.add_argument("--pictures", action="store_true", help="also those of the page")
    options = parser.parse_args()
    if options.folder:
        run("tests/golden/make_demo_model.py", "--folder", options.folder)
    for step in FIRST:
        run(step)
    for page in ("README.md", "docs/guides/documents.md"):
        replace(page, r"[\d,]+(?= English words\])", lambda _: word_count())
    # The line that int8 turns stands in two commands.
    replace(
        "docs/guides/translating.md",
        r'(?<=\$ echo ")[^"]+(" \| pellucid translate demo\n.*\n\$ echo ")[^"]+'
        r'(?=" \| pellucid translate demo --precision int8)',
        lambda match: f"{coarse_line()}{match[1]}{coarse_line()}",
    )
    for step in THEN:
        run(step)
    for head, name in PICTURES.items():
        output = ("-o", f"docs/pictures/{name}", "--overwrite")
        run("-m", "pellucid", "look", "demo", SENTENCE, "--head", head, *output)
    if options.pictures:
        run("docs/make_page_pictures.py")


def run(*step: str) -> None:
    """Run a program of Python, and say how long it took."""
    begun = time.monotonic()
    subprocess.run([sys.executable, *step], cwd=ROOT, check=True)
    print(f"{step[0]}: {time.monotonic() - begun:.0f} s", flush=True)


def replace(page: str, pattern: str, make: Callable[[re.Match[str]], str]) -> None:
    """Replace the one place of a page that has a pattern."""
    path = ROOT / page
    text, count = re.subn(pattern, make, path.read_text(encoding="utf-8"))
    if count != 1:
        raise SystemExit(f"{page} must have one place such as {pattern}, but has {count}.")
    path.write_text(text, encoding="utf-8")


def word_count() -> str:
    """Count the English words that the model knows."""
    words = (ROOT / "src/pellucid/models/demo/source.txt").read_text(encoding="utf-8").splitlines()
    return f"{len(words):,}"


def coarse_line() -> str:
    """Return the first line of which int8 writes other words than float32."""
    found = (ROOT / "tests/golden/coarse_lines.tsv").read_text(encoding="utf-8")
    return found.partition("\t")[0]


if __name__ == "__main__":
    main()
