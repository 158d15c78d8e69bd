"""Write the hashes of the sentences that the beginner's course keeps out of its text.

    .venv/bin/python tests/golden/make_kept_out.py [FOLDER]

Reads each `beginner_*.tsv`, here or in the given folder, and prints nothing of them. What was kept
out before stays so.
"""

import sys
from pathlib import Path

from pellucid.corpora.course.kept_out import hash_of

FOLDER = Path(__file__).parent
FILE = FOLDER.parent.parent / "src/pellucid/corpora/course/kept_out.txt"


def hashes_of(folder: Path) -> list[str]:
    """List the hashes of the English sentences of all sets, and those of before."""
    hashes = set(FILE.read_text(encoding="utf-8").split())
    for path in folder.glob("beginner_*.tsv"):
        text = path.read_text(encoding="utf-8")
        hashes |= {hash_of(line.split("\t")[0]) for line in text.splitlines() if line}
    return sorted(hashes)


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    FILE.write_text("".join(f"{one}\n" for one in hashes_of(folder)), encoding="utf-8")
