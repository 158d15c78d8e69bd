"""The page's own model compared with the package: sentences and traces for Node, and its answer."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import pellucid
from pellucid.inside.show.model_page import carry_model

__all__ = ["compare", "find_node", "learning_page_computes", "write_fixture"]

WEB = Path(__file__).parents[2] / "web"


def find_node() -> str | None:
    """Find Node, or return None if it or the page's libraries are missing."""
    return shutil.which("node") if (WEB / "node_modules" / ".bin" / "esbuild").exists() else None


def learning_page_computes() -> dict[str, list[object]]:
    """Read from its source which options the model that learns in the page computes."""
    source = (WEB / "src" / "grow" / "model.ts").read_text(encoding="utf-8")
    _, _, after = source.partition("export const COMPUTES")
    rows = re.findall(r"^  (\w+): (\[.*\]),$", after[: after.index("};")], re.MULTILINE)
    return {name: json.loads(values) for name, values in rows}


def write_fixture(folder: Path, sentences: Iterable[str], file: Path) -> Path:
    """Write a model, sentences, and what the package computes of them."""
    translator = pellucid.load(folder)
    found = []
    for text in sentences:
        trace = translator.look(text, everything=True, beam=1)
        best = translator.look(text, beam=5)
        greedy = {
            "ids": trace.predicted_ids,
            "logs": trace.decode_log_probabilities,
            "text": trace.decoding["text"],
        }
        found.append(
            {
                "text": text,
                "source_ids": trace.source_ids,
                "greedy": greedy,
                "beam": {"ids": best.predicted_ids, "score": best.decoding["score"]},
                "arrays": {name: _pack(array) for name, array in trace.arrays.items()},
            }
        )
    fixture = {"model": carry_model(translator.bundle), "sentences": found}
    file.write_text(json.dumps(fixture), encoding="utf-8")
    return file


def _pack(array: np.ndarray) -> dict[str, Any]:
    data = base64.b64encode(np.ascontiguousarray(array, dtype="<f4").tobytes()).decode()
    return {"shape": array.shape, "data": data}


def compare(
    node: str, fixtures: Sequence[Path], folder: Path, program: str = "parity"
) -> list[dict[str, Any]]:
    """Run the page's model on fixtures: for each the largest differences, and what is wrong."""
    script = folder / f"{program}.mjs"
    esbuild = WEB / "node_modules" / ".bin" / "esbuild"
    options = ["--bundle", "--platform=node", "--format=esm", "--log-level=error"]
    subprocess.run(
        [str(esbuild), str(WEB / "tests" / f"{program}.ts"), *options, f"--outfile={script}"],
        check=True,
    )
    run = subprocess.run(
        [node, str(script), *map(str, fixtures)], check=True, capture_output=True, text=True
    )
    return [json.loads(line) for line in run.stdout.splitlines()]
