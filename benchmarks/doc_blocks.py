"""Run every block of code on the pages, and compare what the pages say that it prints.

    python benchmarks/doc_blocks.py [--made DIR] [PAGE…]

Shell blocks run in bash, in a new folder with the files and models that the pages name; a page's
Python runs as one program; recipes are compared with the keys that exist. Comments above blocks say
what runs at a smaller size, by a test, or nowhere (tests/shared/page_code.py); the last lines count
these. Takes about a quarter of an hour on one core; the tests run a sample.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "tests" / "shared"))

import page_code  # noqa: E402

DATA = """\
[data]
source_language = "en"
target_language = "fr"
train = ["train.en", "train.fr"]
validation = ["valid.en", "valid.fr"]

[training]
max_steps = 30
validate_every = 10
"""
"""A recipe that trains for seconds, as short as those of the pages."""

SIZES = """\

[tokenizer]
vocabulary_size = 400

[model]
size = "tiny"
d_model = 32
d_ff = 32
num_heads = 2
num_encoder_layers = 2
num_decoder_layers = 3
"""
"""What keeps the model small, except on a page that starts from a model and takes its sizes."""

FILES = """
pellucid corpus -o text --count 400 --part train --part validation --part test
for side in en fr align; do
  cp text/train.$side train.$side
  head -60 text/validation.$side > valid.$side; head -20 text/test.$side > test.$side
done
cp valid.en raw.en; cp valid.fr raw.fr; cp valid.en tokenized.en; cp valid.fr tokenized.fr
cp valid.align gold.align; cp test.en in.txt; cp test.en many.txt; cp test.fr human.txt
cp test.fr theirs.txt; cp test.en a.en; cp test.fr a.fr
mkdir -p shards bucket/mono; cp test.en part.1; cp valid.en part.2
gzip -c test.en > shards/a.gz; gzip -c valid.en > shards/b.gz; cp shards/*.gz bucket/mono
echo '{"text": "The dog ate it."}' > reviews.jsonl
paste train.en train.fr > pairs.tsv; cp test.fr test.cs
"""

MODELS = """
pellucid train my-recipe.toml -o runs/mine
sed 's/"en"/"xx"/; s/"fr"/"en"/; s/"xx"/"fr"/; s/[.]en"/.xx"/; s/[.]fr"/.en"/; s/[.]xx"/.fr"/' \
  my-recipe.toml > back.toml
pellucid train back.toml -o fr-en
pellucid train pairs.tsv --source-language en --target-language fr -o runs/pairs \\
  --set model.d_model=32 --set training.max_steps=20 --set training.validate_every=10
for name in runs/old runs/first runs/en-fr runs/a runs/b en-fr MODEL demo-run; do
  cp -r runs/mine $name
done
ln -s "$DEMOS/demo-recurrent" RUN
pellucid look demo "The dog ate it." -o x.npz
pellucid export MODEL --format ctranslate2 -o of-ctranslate2
pellucid export MODEL --format marian -o of-marian
"""


def make_folder(folder: Path, env: dict[str, str], program: str = FILES + MODELS) -> None:
    """Make the files and models that the pages name, or only what a program makes of them."""
    (folder / "my-recipe.toml").write_text(DATA + SIZES, encoding="utf-8")
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", program],
        cwd=folder,
        env=os.environ | env,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def make_program(folder: Path) -> dict[str, str]:
    """Put `pellucid` and `python` of this interpreter on the path of the blocks."""
    folder.mkdir()
    for name, what in (("pellucid", "-m pellucid"), ("python", "")):
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {what} "$@"\n')
        (folder / name).chmod(0o755)
    return {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "DEMOS": str(ROOT / "src" / "pellucid" / "models"),
        "COLUMNS": "80",
    }


def run_page(page: Path, folder: Path, env: dict[str, str]) -> tuple[int, list[str]]:
    """Run the blocks of a page in a folder. Return how many ran, and the complaints."""
    blocks = [one for one in page_code.read_blocks(page) if one.is_run]
    for kind in ("ctranslate2", "marian"):
        if page.stem == kind:
            shutil.copytree(folder / f"of-{kind}", folder / "FOLDER")
    if page.stem == "training":
        shutil.rmtree(folder / "runs" / "mine")
        (folder / "my-recipe.toml").write_text(DATA, encoding="utf-8")
    complaints = []
    for block in blocks:
        found = ""
        if block.language in ("sh", "console"):
            found = page_code.run_shell(block, folder, env)
        elif block.language == "toml":
            found = page_code.check_toml(block)
        if found:
            complaints.append(f"{block.place}\n{found}")
    python = [one for one in blocks if one.language == "python"]
    if python and (found := page_code.run_python(python, folder, env)):
        complaints.append(f"{page.name}: its Python\n{found}")
    return len(blocks), complaints


def main() -> None:
    """Run them and say what failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", type=Path, help="all pages unless given")
    parser.add_argument("--made", type=Path, help="keep what all pages need here, for another run")
    options = parser.parse_args()
    wanted = [page.resolve() for page in options.pages] or page_code.find_pages()
    base = Path(tempfile.mkdtemp())
    num_run, failures = 0, []
    try:
        env = make_program(base / "bin")
        made = options.made or base / "made"
        if not made.exists():
            made.mkdir()
            make_folder(made, env)
        for page in wanted:
            if page.relative_to(ROOT).as_posix().startswith(page_code.MADE):
                continue
            begun, folder = time.monotonic(), base / page.stem
            shutil.copytree(made, folder, symlinks=True)
            count, complaints = run_page(page, folder, env)
            shutil.rmtree(folder)
            num_run, failures = num_run + count, failures + complaints
            seconds = time.monotonic() - begun
            print(f"{page.relative_to(ROOT)}: {count} blocks, {seconds:.0f} s", flush=True)
            print("".join(f"  {one}\n" for one in complaints), end="", flush=True)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    print(f"{num_run} blocks ran, {len(failures)} failed.")
    blocks = page_code.all_blocks()
    names = {page.relative_to(ROOT).as_posix() for page in wanted}
    print(page_code.describe_left_out([one for one in blocks if one.page in names]))
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
