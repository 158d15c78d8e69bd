"""Write the counts of the training text into the manifest of the model in the package.

    python tests/golden/count_demo_text.py

The model was trained before bundles had these counts. The text is generated again; the fingerprint
of its tokens must be the one in the manifest. Weights, configuration and tokenizer do not change,
and so neither does the model's hash.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from pellucid.bundle import load_bundle, resolve_model, to_json
from pellucid.corpora import make_split
from pellucid.data import build_store
from pellucid.text.statistics import TextStatistics


def main() -> None:
    bundle = load_bundle(resolve_model("demo"))
    tokenizer = bundle.tokenizer
    sizes = {
        "source_vocabulary_size": tokenizer.source_vocabulary_size,
        "target_vocabulary_size": tokenizer.target_vocabulary_size,
    }
    statistics = TextStatistics(**sizes)

    def pairs() -> Iterator[tuple[list[int], list[int]]]:
        for example in make_split("train", seed=1):
            ids = tokenizer.encode_source(example.source), tokenizer.encode_target(example.target)
            texts = tokenizer.normalized(example.source), tokenizer.normalized(example.target)
            statistics.add(*texts, *ids)
            yield ids

    with tempfile.TemporaryDirectory() as folder:
        store = build_store(Path(folder) / "store", pairs(), **sizes)
        fingerprint = store.fingerprint
    manifest = dict(bundle.manifest)
    if fingerprint != manifest["data"]["fingerprint"]:
        raise SystemExit("The corpus is not the one that the model was trained on any more.")
    manifest["data"] = {**manifest["data"], "text": statistics.to_manifest()}
    (bundle.folder / "manifest.json").write_text(to_json(manifest), encoding="utf-8")


if __name__ == "__main__":
    main()
