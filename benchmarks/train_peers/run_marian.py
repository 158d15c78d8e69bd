"""One measured run of Marian's training command, whose log has labels and seconds."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from side_by_side.processes import exchange, peak_megabytes_of_children

LINE = re.compile(r"Up\. ([\d,]+) .* \* ([\d,]+) @ .* : Time ([\d.]+)s")


def measure(work: dict[str, Any]) -> dict[str, Any]:
    """Train, and read the lines after the warm-up."""
    with tempfile.TemporaryDirectory(dir=work["scratch"]) as folder:
        done = subprocess.run(
            [sys.executable, "-m", "pymarian", *options(work, Path(folder))],
            env=os.environ | {"OMP_NUM_THREADS": str(work["threads"] // work["workers"])},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    if done.returncode:
        raise SystemExit(done.stdout[-2000:])
    lines = [[word.replace(",", "") for word in found] for found in LINE.findall(done.stdout)]
    timed = [(int(labels), float(time)) for at, labels, time in lines if int(at) > work["warm_up"]]
    return {
        "seconds": sum(seconds for _, seconds in timed),
        "target_tokens": sum(labels for labels, _ in timed),
        "peak_megabytes": peak_megabytes_of_children(),
        "parameters": None,
        "versions": {"pymarian": version("pymarian")},
    }


def options(work: dict[str, Any], folder: Path) -> list[str]:
    """Return Marian's options for the work; Marian measures a batch by its source tokens."""
    size, text = work["size"], Path(work["text"])
    ids = ["</s>", "<unk>", *map(str, range(2, work["vocabulary"]))]
    vocabulary = folder / "vocabulary.yml"
    # JSON is YAML.
    vocabulary.write_text(json.dumps({token: place for place, token in enumerate(ids)}, indent=0))
    words: dict[str, Any] = {
        "--type": "transformer",
        "--model": folder / "model.npz",
        "--train-sets": [text / "train.source.ids", text / "train.target.ids"],
        "--vocabs": [vocabulary, vocabulary],
        "--dim-vocabs": [len(ids), len(ids)],
        "--tempdir": folder,
        "--max-length": 256,
        "--enc-depth": size["num_encoder_layers"],
        "--dec-depth": size["num_decoder_layers"],
        "--dim-emb": size["d_model"],
        "--transformer-dim-ffn": size["d_ff"],
        "--transformer-heads": size["num_heads"],
        "--transformer-ffn-activation": "relu",
        "--transformer-postprocess": "dan",
        "--transformer-dropout": work["dropout"],
        "--label-smoothing": work["label_smoothing"],
        "--learn-rate": 0.0003,
        "--seed": 1,
        "--cpu-threads": work["workers"],
        "--workspace": 6000 // work["workers"],
        "--mini-batch-words": round(
            work["max_tokens_per_batch"] * work["source_tokens_per_target_token"]
        ),
        "--mini-batch-round-up": "false",
        "--maxi-batch": 1000,
        "--after": f"{work['warm_up'] + work['steps']}u",
        "--disp-freq": f"{math.gcd(work['warm_up'], work['steps'])}u",
    }
    flags = ["--tied-embeddings-all", "--sync-sgd", "--overwrite"]
    listed = (
        [name, *(value if isinstance(value, list) else [value])] for name, value in words.items()
    )
    return [str(word) for one in listed for word in one] + flags


if __name__ == "__main__":
    exchange(measure)
