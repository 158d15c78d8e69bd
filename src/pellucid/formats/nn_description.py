"""The description of a plain ``nn.Transformer``: what its weights do not say, as TOML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, PositiveFloat

from pellucid.config.base import Several, Strict, Width, validate
from pellucid.config.config_json import LanguagesConfig
from pellucid.config.parsing import read_toml_text
from pellucid.errors import ConfigurationError, InputError
from pellucid.files import read_bytes, write_text

ROLES = (
    *("source_embedding", "target_embedding", "output"),
    *("source_positions", "target_positions"),
)
"""The tensors outside of the layers."""


class NnModel(Strict):
    """The computation of the layers."""

    num_heads: Width
    """``nhead``."""
    norm: Literal["post", "pre"]
    """``pre`` for ``norm_first=True``."""
    activation: Literal["relu", "gelu"] = "relu"
    """``activation``."""
    layer_norm_epsilon: PositiveFloat = 1e-5
    """``layer_norm_eps``."""
    embedding_scale: Literal["sqrt", "none"]
    """``sqrt`` if embeddings are multiplied by the square root of ``d_model``."""
    positions: Literal["table", "sinusoidal", "sinusoidal_halves", "none"]
    """``table`` of the checkpoint, learned or not; or sines and cosines that it does not have."""
    max_length: int = Field(default=1024, gt=0, le=65_536)
    """Maximum number of tokens of a text. A table has its own length."""


class NnVocabulary(Strict):
    """The tokens."""

    kind: Literal["words", "characters", "sentencepiece"]
    """``words`` are separated by white space."""
    source: str = ""
    """File of the source's tokens: one a line, or a JSON object with the id of each."""
    target: str = ""
    """File of the target's tokens."""
    source_model: str = ""
    """SentencePiece model of the source; its pieces are the tokens unless ``source`` is given."""
    target_model: str = ""
    """SentencePiece model of the target."""
    padding: str = "<pad>"
    """Token of the padding."""
    unknown: str = "<unk>"
    """Token of everything that the vocabulary lacks; empty if there is none."""
    start: str = "<s>"
    """Token that a target starts with."""
    end: str = "</s>"
    """Token that ends a source and a target."""
    source_start: bool
    """True if a source starts with ``start`` too."""


class NnTensors(Strict):
    """The names of tensors outside of the layers; those that are left out are found."""

    source_embedding: str = ""
    """Table of the source's tokens."""
    target_embedding: str = ""
    """Table of the target's tokens; the same as the source's if they are shared."""
    output: str = ""
    """Matrix of the logits, the weight of a Linear."""
    source_positions: str = ""
    """Table of positions of the source."""
    target_positions: str = ""
    """Table of positions of the target."""
    ignored: Several[str] = ()
    """Tensors that translation does not need, such as a mask."""


class NnDescription(Strict):
    """The whole description."""

    model: NnModel
    vocabulary: NnVocabulary
    languages: LanguagesConfig = Field(default_factory=LanguagesConfig)
    tensors: NnTensors = Field(default_factory=NnTensors)


def read_description(path: Path) -> NnDescription:
    """Read a description.

    Raises:
        ConfigurationError: it is no TOML, or an entry is missing, unknown or impossible.
    """
    try:
        values = read_toml_text(read_bytes(path).decode("utf-8-sig"))
    except (ValueError, ConfigurationError) as error:
        said = " ".join(str(error).split())
        raise ConfigurationError(
            f"A description of a model must be TOML, but {path} is not: {said}. Correct it."
        ) from None
    return validate(NnDescription, values, str(path))


def write_draft(
    path: Path, summary: str, roles: Mapping[str, Sequence[str]], sizes: Mapping[str, int]
) -> InputError:
    """Write a draft of a description, and word what to do with it.

    Args:
        path: the new file.
        summary: the checkpoint and its sizes.
        roles: for each of `ROLES` the tensors that may be it.
        sizes: the number of tokens of ``source`` and ``target``, if they are known.
    """
    has_table = bool(roles["source_positions"])
    counts = {side: f"{sizes[side]:,} tokens" if side in sizes else "tokens" for side in SIDES}
    lines = [
        f"# A draft from {summary}. Put a value in the place of every question mark.",
        "",
        "[model]",
        'num_heads = "?"          # a number: nhead',
        'norm = "?"               # "pre" for norm_first=True, otherwise "post"',
        'activation = "relu"      # or "gelu"',
        'embedding_scale = "?"    # "sqrt" if embeddings are times sqrt(d_model), else "none"',
        f'positions = "{"table" if has_table else "?"}"      # '
        '"table" of the checkpoint, "sinusoidal", "sinusoidal_halves" (all sines first), "none"',
        "",
        "[vocabulary]",
        'kind = "?"               # "words" between spaces, "characters" or "sentencepiece"',
        *(
            f'{side} = "?"             # file of {counts[side]}: one a line, or a JSON object'
            for side in SIDES
        ),
        'padding = "<pad>"',
        'unknown = "<unk>"        # "" if there is none',
        'start = "<s>"            # which every target starts with',
        'end = "</s>"             # which ends every source and target',
        "source_start = false     # whether sources start with it too",
        "",
        "[languages]",
        'source = ""              # such as "fr"',
        'target = ""',
        "",
        "[tensors]",
    ]
    for role in ROLES:
        found = roles[role]
        if len(found) == 1:
            lines.append(f'{role} = "{found[0]}"')
        elif found:
            lines.append(f'{role} = "?"  # {", ".join(found)}')
    write_text(path, "\n".join(lines) + "\n")
    return InputError(
        f"A plain nn.Transformer needs a description. A draft of it is in {path}: put a value in "
        "the place of every question mark, and give the same command again."
    )


SIDES = ("source", "target")
