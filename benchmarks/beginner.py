"""How many sentences of a first-year class a model translates as a teacher would.

    .venv/bin/python benchmarks/beginner.py demo [MODEL …]

`tests/golden/beginner_blind.tsv` has 200 English sentences, each with every French translation that
its author would accept. It was written before the corpus's course, and whoever works on the course
must not read it. `beginner_open.tsv` has 60 of the same kind, `beginner_second.tsv` 120, and
`beginner_third.tsv` 300 that its author wrote along a list of grammar before widening the course;
these may be read. A translation is right if it equals one of them, except for spaces, the shape of
an apostrophe, œ and the first letter's case.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from pathlib import Path

import pellucid

GOLDEN = Path(__file__).parent.parent / "tests" / "golden"


def plain(text: str) -> str:
    """Leave out what a teacher would not look at."""
    text = unicodedata.normalize("NFC", text).replace("’", "'").replace("œ", "oe")
    text = re.sub(r"\s+(?=[?!:;])", "", re.sub(r"\s+", " ", text.strip()))
    return text[:1].lower() + text[1:]


def main() -> None:
    """Translate both sets with each model, with a beam of 5."""
    for model in sys.argv[1:]:
        translator = pellucid.load(model)
        for name in ("blind", "open", "second", "third"):
            lines = (GOLDEN / f"beginner_{name}.tsv").read_text(encoding="utf-8").splitlines()
            rows = [line.split("\t") for line in lines if line]
            found = translator.translate([row[0] for row in rows], beam=5)
            right = [
                plain(one.text) in map(plain, row[1:]) for one, row in zip(found, rows, strict=True)
            ]
            flagged = sum(
                bool(one.notes.flags or one.notes.unknown_words)
                for one, is_right in zip(found, right, strict=True)
                if not is_right
            )
            print(
                f"{model} {name}: {sum(right)} of {len(rows)} right, "
                f"{flagged} of {len(rows) - sum(right)} wrong ones flagged"
            )


if __name__ == "__main__":
    main()
