"""Write tables of measured.md, README and the guide of training, of their result files.

    python docs/make_measured.py

Each table stands below ``<!-- made: NAME -->``, where NAME is one of `TABLES`, or below
``<!-- by hand: REASON -->`` if no result file has its figures. A test runs this and compares.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import quality_tables
import speed_tables

ROOT = Path(__file__).parents[1]
PAGES = (
    ROOT / "docs" / "measured.md",
    ROOT / "README.md",
    ROOT / "docs" / "guides" / "training.md",
)
MARK = re.compile(r"^<!-- made: ([\w-]+) -->\n(?:\|.*\n)+", re.MULTILINE)

TABLES: dict[str, Callable[[], str]] = {
    "demo": quality_tables.demo_table,
    "raw": quality_tables.raw_table,
    "lowercased": quality_tables.lowercased_table,
    "one-table": quality_tables.one_table,
    "distilled": quality_tables.distilled_table,
    "similar": quality_tables.similar_table,
    "study": quality_tables.study_table,
    "variants": quality_tables.variants_table,
    "decoding": partial(speed_tables.decoding_table, "2026-11-26-decode-speed-zen4"),
    "decoding-avx2": partial(speed_tables.decoding_table, "2026-11-26-decode-speed-zen4-avx2"),
    "decoding-intel": partial(speed_tables.decoding_table, "2026-11-26-decode-speed"),
    "pipe": speed_tables.pipe_table,
    "serving": speed_tables.serving_table,
    "abuse": speed_tables.abuse_table,
    "beside": speed_tables.beside_table,
    "minutes": quality_tables.minutes_table,
    "training": speed_tables.training_table,
    "readme-quality": quality_tables.readme_quality,
    "readme-speed": speed_tables.readme_speed,
}


def with_tables(text: str) -> str:
    """Return a page with its marked tables made again."""
    return MARK.sub(lambda found: f"<!-- made: {found[1]} -->\n{TABLES[found[1]]()}", text)


def main() -> None:
    """Write the pages."""
    for page in PAGES:
        page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
