"""Make anew everything that shows what the packaged model does, after another came in its place.

    python docs/make_demo_files.py [--pictures]

`tests/golden/make_demo_model.py` puts the model there. The steps run in this order, as the lessons
read what the first two record. ``--pictures`` also takes those of the page, which needs a browser.
Afterwards, by hand: the sentences around the numbers that docs/make_printed.py wrote,
docs/decisions/0008-the-demo-model.md, docs/measured.md, and the claims with

    python benchmarks/claims/run.py && python benchmarks/claims/page.py
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
STEPS = (
    "tests/golden/find_coarse_lines.py",
    "docs/lessons/make_outputs.py",
    "docs/lessons/make_lessons.py",
    "docs/make_printed.py",
    "docs/make_notebook.py",
    "docs/make_pictures.py",
)
SENTENCE = "The pizza came out of the oven and it tasted good"
PICTURES = {"decoder.1.cross.0": "cross-attention.png", "encoder.0": "self-attention.png"}


def main() -> None:
    """Run the steps; the first that fails ends it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", action="store_true", help="also those of the page")
    steps = [[step] for step in STEPS]
    for head, name in PICTURES.items():
        output = ("-o", f"docs/pictures/{name}", "--overwrite")
        steps.append(["-m", "pellucid", "look", "demo", SENTENCE, "--head", head, *output])
    if parser.parse_args().pictures:
        steps.append(["docs/make_page_pictures.py"])
    for step in steps:
        begun = time.monotonic()
        subprocess.run([sys.executable, *step], cwd=ROOT, check=True)
        print(f"{step[0]}: {time.monotonic() - begun:.0f} s", flush=True)
    write_word_count()


def write_word_count() -> None:
    """Write into README.md how many English words the model knows."""
    page = ROOT / "README.md"
    words = (ROOT / "src/pellucid/models/demo/source.txt").read_text(encoding="utf-8").splitlines()
    text = page.read_text(encoding="utf-8")
    page.write_text(
        re.sub(r"[\d,]+(?= English words\])", f"{len(words):,}", text), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
