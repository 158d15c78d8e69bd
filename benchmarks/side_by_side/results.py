"""Result files: dated, with the machine, the versions and the command."""

from __future__ import annotations

import datetime
import json
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from side_by_side.environments import PEERS
from side_by_side.machine import describe

RESULTS = Path(__file__).parents[1] / "results"


def write_result(
    name: str, found: Mapping[str, Any], peers: tuple[str, ...], out: Path | None
) -> None:
    """Write what a benchmark found, and print where.

    Args:
        name: of the benchmark: its file's name, without the ending, with hyphens.
        found: the results, written with machine, versions and command.
        peers: the peers whose versions are written.
        out: the file; a dated one in ``results/`` unless given, or in the folder that it is.
    """
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    path = out or RESULTS
    if out is None or path.is_dir():
        path = path / f"{date}-{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    written = {
        "date": date,
        "command": shlex.join(["python", f"benchmarks/{name.replace('-', '_')}.py", *sys.argv[1:]]),
        "machine": describe(),
        "peers": {peer: PEERS[peer] for peer in peers},
        **found,
    }
    text = json.dumps(written, indent=2, ensure_ascii=False) + "\n"
    if data := os.environ.get("MULTI30K"):
        text = text.replace(data, "$MULTI30K")
    path.write_text(text)
    print(f"\n{path}")
