"""The corpus as parallel files for other tools: one sentence a line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from pellucid.corpora.example import Example
from pellucid.errors import OutputError
from pellucid.files import write_text


def write_examples(folder: Path, name: str, examples: Sequence[Example]) -> list[Path]:
    """Write examples as parallel files.

    ``NAME.en`` and ``NAME.fr`` hold the sentences; ``NAME.align`` the links between the pieces that
    spaces separate, as ``i-j`` from 0; ``NAME.antecedents`` one JSON object a line, with the
    ``construction`` and the places of each of the ``pronouns`` and its antecedent.

    Args:
        folder: the folder to write to; made if it does not exist.
        name: the name of the files, without ending.
        examples: the examples to write.

    Returns:
        The files.

    Raises:
        OutputError: the folder or a file cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"The output must be a folder, but {folder} cannot be one: "
            f"{error.strerror or error}. Choose another name."
        ) from error
    columns = {
        "en": [example.source for example in examples],
        "fr": [example.target for example in examples],
        "align": [" ".join(f"{i}-{j}" for i, j in example.alignment) for example in examples],
        "antecedents": [_to_json(example) for example in examples],
    }
    paths = []
    for ending, lines in columns.items():
        path = folder / f"{name}.{ending}"
        write_text(path, "".join(f"{line}\n" for line in lines))
        paths.append(path)
    return paths


def _to_json(example: Example) -> str:
    pronouns = [asdict(pronoun) for pronoun in example.pronouns]
    return json.dumps(
        {"construction": example.construction, "pronouns": pronouns}, ensure_ascii=False
    )
