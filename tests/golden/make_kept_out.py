"""Write the hashes of the sentences that the beginner's course keeps out of its text.

    .venv/bin/python tests/golden/make_kept_out.py [FOLDER]

Reads `beginner_blind.tsv` and `beginner_open.tsv`, here or in the given folder, and prints nothing
of them.
"""

import sys
from pathlib import Path

from pellucid.corpora.course.kept_out import hash_of

FOLDER = Path(__file__).parent
FILE = FOLDER.parent.parent / "src/pellucid/corpora/course/kept_out.txt"


def hashes_of(folder: Path) -> list[str]:
    """List the hashes of the English sentences of both sets."""
    hashes = set()
    for name in ("blind", "open"):
        text = (folder / f"beginner_{name}.tsv").read_text(encoding="utf-8")
        hashes |= {hash_of(line.split("\t")[0]) for line in text.splitlines() if line}
    return sorted(hashes)


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    FILE.write_text("".join(f"{one}\n" for one in hashes_of(folder)), encoding="utf-8")
