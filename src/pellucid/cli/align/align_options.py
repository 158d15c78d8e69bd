"""The options of ``pellucid align`` that choose views of attention, words and files."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pellucid.cli.option_rules import Apart, Needs, check_rules
from pellucid.cli.options import Option, flag
from pellucid.errors import InputError, not_together
from pellucid.text.link_choices import (
    Convention,
    LinkRule,
    MapName,
    Symmetrization,
    UnitRule,
)

VIEWS: Mapping[str, Option] = {
    "head": (
        str,
        "ADDRESS",
        "The cross-attention to read: decoder.1.cross.0, or decoder.1 for a layer.",
    ),
    "map": (
        MapName,
        None,
        "A head's weights, the mean over a layer's heads, or the norms of the weighted values.",
    ),
    "convention": (
        Convention,
        None,
        "The token that a decoder row counts for: the one it predicts, or the one it reads.",
    ),
    "link_rule": (
        LinkRule,
        None,
        "Link each target word to its best source word (best), also each source word to its best "
        "target word (both), or each target word to all with half of the best one's weight (all). "
        "The default is both, for a head that was taught links all; with --reverse it is best.",
    ),
    "reverse": (str, "MODEL", "A model that translates the target into the source."),
    "reverse_head": (str, "ADDRESS", "The cross-attention of the --reverse model to read."),
    "symmetrize": (
        Symmetrization,
        None,
        "How to join the links of the two directions; grow-diag-final by default.",
    ),
}

WORDS: Mapping[str, Option] = {
    "words_by": (
        UnitRule,
        None,
        "What a word is: a piece between spaces; or by script, where there are no spaces, a "
        "Chinese character, a run of kana, or a Thai, Lao, Khmer or Burmese letter with its marks; "
        "or a subword piece of the model. The default, auto, cuts lines without spaces by script, "
        "and all others at spaces.",
    ),
}
"""The words that links count; `pellucid translate --align` has them too."""


JOINED = "PAIRS"
"""The file that has SOURCE ||| TARGET on each line."""

MAY_BE_DAMAGED = ("--source", "--target", JOINED)
"""Files in which a line that is too long or not text costs only its own pair."""

TRANSLATED_LINKS_RULES = (Needs("align_head words_by", "align"),)
"""Rules for the options of links that come with translations."""

ALIGN_RULES = (
    Apart("words_by=subwords", "source_words target_words reverse", "they count words"),
    Needs("symmetrize reverse_head", "reverse", "a second model"),
)


def unit_rule(options: Mapping[str, Any]) -> UnitRule:
    """Return how lines are cut into the words that links count."""
    rule: UnitRule | None = options["words_by"]
    return rule or "auto"


def read_place(options: Mapping[str, Any], name: str) -> tuple[int | None, int | None]:
    """Return the decoder layer and the head that links are read from; None for all.

    Args:
        options: the address by the name of its option.
        name: that name.

    Raises:
        InputError: it is not an address of cross-attention.
    """
    from pellucid.config.head_address import parse_address

    if options[name] is None:
        return None, None
    found = parse_address(options[name])
    if found.part == "encoder" or found.kind not in (None, "cross"):
        raise InputError(
            f"{flag(name)} must be cross-attention of the decoder, which links are read from, but "
            f"is {options[name]}. Write it as decoder.1.cross.0."
        )
    return found.layer, found.head


def check_align_options(options: Mapping[str, Any], files: Collection[str]) -> None:
    """Refuse options that contradict or lack each other.

    Args:
        options: those of `VIEWS` and `WORDS`.
        files: the options of the files that are given, such as ``--source-words``.

    Raises:
        InputError: some do.
    """
    # Files are named by their options here, the others by their parameters.
    given_files = {name.removeprefix("--").replace("-", "_"): True for name in files}
    is_of_pieces = {"words_by=subwords": options["words_by"] == "subwords"}
    check_rules(ALIGN_RULES, {**options, **given_files, **is_of_pieces})
    for name in ("head", "reverse_head"):
        _, head = read_place(options, name)
        if options["map"] == "layer-mean" and head is not None:
            raise not_together("--map layer-mean", flag(name), "it is the mean over heads")
