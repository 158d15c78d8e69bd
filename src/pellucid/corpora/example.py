"""An example: a pair of written sentences, with gold links and antecedents; files of them.

A *piece* is the text between two spaces. Punctuation belongs to the word before it, and an elided
or contracted word forms one piece with the next word: *l'homme*, *l'a*, *du*. Links join pieces, so
that ``l'a`` is linked both to *it* and to *ate*. The only space inside a piece is the narrow
no-break space of ``vie !``. It occurs only before the last mark, so that programs that cut there
too count the same indices.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pellucid.corpora.french import NARROW_SPACE, Word
from pellucid.corpora.sentence import Sentence
from pellucid.errors import DataError, OutputError
from pellucid.files import write_text


@dataclass(frozen=True, slots=True)
class Pronoun:
    """The pieces of a pronoun and of its antecedent's head noun, from 0, in both languages."""

    source: int
    source_antecedent: int
    target: int
    target_antecedent: int


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence pair of the corpus.

    ``alignment`` holds sure links (English piece, French piece), sorted.
    """

    source: str
    target: str
    alignment: tuple[tuple[int, int], ...]
    pronouns: tuple[Pronoun, ...]
    construction: str


@dataclass(frozen=True, slots=True)
class Style:
    """The writing of a sentence: a capital or not, and the last mark."""

    has_capital: bool
    mark: str
    is_title: bool = False


def make_example(sentence: Sentence, pieces: Sequence[Word], style: Style) -> Example:
    """Write out a sentence pair.

    Args:
        sentence: the words in both languages.
        pieces: the French words, joined.
        style: the capital and the last mark, the same in both languages.
    """
    english = list(sentence.english)
    french = [piece.text for piece in pieces]
    if style.is_title:
        # Titles have capitals in English only.
        english = [word if word in _SMALL else _capital(word) for word in english]
    # *I* and names always have a capital, so that nothing in English would announce a lower-case
    # word at the beginning of the French.
    if style.has_capital or english[0][0].isupper():
        english[0] = _capital(english[0])
        french[0] = _capital(french[0])
    english[-1] += style.mark
    french[-1] += NARROW_SPACE + style.mark if style.mark in ("!", "?") else style.mark
    # A joined piece keeps the links of both its words.
    alignment = {(link, j) for j, piece in enumerate(pieces) for link in piece.links}
    # Roles find the pieces after words have been joined.
    places = {role: j for j, piece in enumerate(pieces) for role in piece.roles}
    pronouns = tuple(
        Pronoun(
            link.english, link.english_antecedent, places[link.role], places[link.role_antecedent]
        )
        for link in sentence.pronouns
    )
    return Example(
        " ".join(english),
        " ".join(french),
        tuple(sorted(alignment)),
        pronouns,
        sentence.construction,
    )


_SMALL = frozenset(
    ["a", "an", "and", "at", "behind", "from", "in", "of", "on", "out", "the", "to", "under"]
)
"""Words without a capital inside a title."""


def _capital(word: str) -> str:
    return word[0].upper() + word[1:]


ENDINGS = ("en", "fr", "align", "antecedents")


def example_files(folder: Path, name: str) -> list[Path]:
    """List the files that `write_examples` writes."""
    return [folder / f"{name}.{ending}" for ending in ENDINGS]


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


def read_pronouns(lines: Sequence[str]) -> list[list[Pronoun]]:
    """Read the pronouns of each line of ``NAME.antecedents``, as `write_examples` writes them.

    Raises:
        DataError: a line holds something else.
    """
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            found.append([Pronoun(**one) for one in json.loads(line)["pronouns"]])
        # Whatever is wrong with the line, the sentence is the same.
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                "A line of antecedents must be a JSON object with pronouns, as the command corpus "
                f"writes it, but line {number} is not. Correct it."
            ) from error
    return found


def _to_json(example: Example) -> str:
    pronouns = [asdict(pronoun) for pronoun in example.pronouns]
    return json.dumps(
        {"construction": example.construction, "pronouns": pronouns}, ensure_ascii=False
    )
