"""Find lines that the packaged model translates with other words in int8, into coarse_lines.tsv.

    python tests/golden/find_coarse_lines.py

Which lines these are is an accident of the model. A row has the line, and what is written in
float32 and in int8, by the model itself as by its export in int8. Lines that are flagged as wrong
come last.
"""

from __future__ import annotations

import tempfile
from itertools import islice
from pathlib import Path

import pellucid
from pellucid.bundle import load_bundle, resolve_model
from pellucid.corpora import make_split
from pellucid.formats.exporting import export_bundle

HERE = Path(__file__).parent
FOUND = HERE / "coarse_lines.tsv"
BY_HAND = ("own_sentences.txt", "neighbors.txt", "harder_sentences.txt")
NUM_LINES = 3


def main() -> None:
    """Search until enough lines are found, and write them."""
    lines = []
    for name in BY_HAND:
        written = (HERE / name).read_text(encoding="utf-8").splitlines()
        lines += [line.split(" = ")[0] for line in written if not line.startswith("#")]
    lines += [example.source for example in make_split("test")]
    translator = pellucid.load("demo")
    folder = tempfile.TemporaryDirectory()
    exported = Path(folder.name) / "int8"
    export_bundle(load_bundle(resolve_model("demo")), exported, "int8", computes="int8")
    fewer = pellucid.load(exported)
    plain: list[str] = []
    flagged: list[str] = []
    left = iter(lines)
    while some := list(islice(left, 100)):
        own, other = (translator.translate(some, precision=one) for one in ("float32", "int8"))
        found = zip(some, own, other, fewer.translate(some), strict=True)
        for line, first, second, third in found:
            if first.text != second.text == third.text:
                row = f"{line}\t{first.text}\t{second.text}\n"
                (flagged if first.notes.flags or second.notes.flags else plain).append(row)
        if len(plain) >= NUM_LINES:
            break
    FOUND.write_text("".join([*plain, *flagged][:NUM_LINES]), encoding="utf-8")


if __name__ == "__main__":
    main()
