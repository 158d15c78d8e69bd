"""The options of ``pellucid align`` that choose views of attention, words and files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pellucid.cli.options import Option, flag
from pellucid.errors import InputError, not_together

VIEWS: Mapping[str, Option] = {
    "layer": (int, "L", "Decoder layer, from 0."),
    "head": (int, "H", "Head of that layer, from 0."),
    "map": (
        Literal["head", "layer-mean", "norms"],
        None,
        "A head's weights, the mean over a layer's heads, or the norms of the weighted values.",
    ),
    "convention": (
        Literal["predicts", "reads"],
        None,
        "The token that a decoder row counts for: the one it predicts, or the one it reads.",
    ),
    "links": (
        Literal["best", "both", "all"],
        None,
        "Link each target word to its best source word (best), also each source word to its best "
        "target word (both), or each target word to all with half of the best one's weight (all). "
        "The default is both, for a head that was taught links all; with --reverse it is best.",
    ),
    "reverse": (str, "MODEL", "A model that translates the target into the source."),
    "reverse_layer": (int, "L", "Decoder layer of the --reverse model."),
    "reverse_head": (int, "H", "Head of that layer."),
    "symmetrize": (
        Literal["intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and"],
        None,
        "How to join the links of the two directions; grow-diag-final by default.",
    ),
    "history": (
        bool,
        "",
        "Show the entropy of each head, and with --gold its error, at every model that the run "
        "folder MODEL keeps.",
    ),
}

WORDS: Mapping[str, Option] = {
    "words_by": (
        Literal["auto", "spaces", "script"],
        None,
        "What a word is: a piece between spaces; or, in scripts without spaces, a Chinese "
        "character, a run of kana, or a Thai, Lao, Khmer or Burmese letter with its marks. The "
        "default, auto, cuts lines without spaces by script, and all others at spaces.",
    ),
    "subwords": (bool, "", "Link the model's subword pieces instead of words."),
}
"""The words that links count; `pellucid translate --align` has them too."""


def gather_files(
    *, source: str | None, target: str | None, pairs: str | None, others: Mapping[str, str | None]
) -> dict[str, str]:
    """Collect the files that are read, by option.

    Args:
        source: file of the source lines.
        target: file of their translations.
        pairs: file of both, instead of these two.
        others: further files; None for one that was not given.

    Raises:
        InputError: the lines come from no file, or from two.
    """
    files = {"--pairs": pairs, "--source": source, "--target": target}
    found = {name: path for name, path in files.items() if path is not None}
    if pairs is not None and len(found) > 1:
        other = "--source" if source is not None else "--target"
        raise not_together("--pairs", other)
    if pairs is None and len(found) < 2:
        missing = [name for name in ("--source", "--target") if name not in found]
        raise InputError(
            "Lines to align need --source and --target, or --pairs with SOURCE ||| TARGET on each "
            f"line, but {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing. "
            f"Add {' and '.join(f'{name} FILE' for name in missing)}."
        )
    return found | {name: path for name, path in others.items() if path is not None}


def check_link_options(
    options: Mapping[str, Any], layer: int | None, head: int | None, *, is_wanted: bool
) -> Literal["auto", "spaces", "script", "subwords"]:
    """Check the options of links that come with translations.

    Args:
        options: those of `WORDS`.
        layer: the layer that links are read from.
        head: the head.
        is_wanted: True if there are links.

    Returns:
        How lines are cut into words.

    Raises:
        InputError: an option needs another one, or contradicts it.
    """
    given = {
        "--align-layer": layer is not None,
        "--align-head": head is not None,
        "--words-by": options["words_by"] is not None,
        "--subwords": bool(options["subwords"]),
    }
    for name, is_given in given.items():
        if is_given and not is_wanted:
            raise InputError(f"{name} needs --align. Add it, or leave both out.")
    if head is not None and layer is None:
        raise InputError("--align-head needs --align-layer. Add it.")
    if options["subwords"]:
        if options["words_by"] is not None:
            raise not_together("--subwords", "--words-by")
        return "subwords"
    rule: Literal["auto", "spaces", "script"] = options["words_by"] or "auto"
    return rule


def check_align_options(
    options: Mapping[str, Any], *, has_gold: bool, has_words: bool = False
) -> None:
    """Refuse options that contradict or lack each other.

    Args:
        options: those of `VIEWS` and `WORDS`.
        has_gold: True if there are gold links.
        has_words: True if words are given.

    Raises:
        InputError: some do.
    """
    if options["subwords"]:
        others = {
            "--words-by": options["words_by"] is not None,
            "--source-words or --target-words": has_words,
            "--history": bool(options["history"]),
            "--reverse": options["reverse"] is not None,
        }
        for name, is_given in others.items():
            if is_given:
                raise not_together("--subwords", name)
    if options["history"]:
        if options["links"] is not None and not has_gold:
            raise InputError("--links needs --gold with --history. Add --gold FILE.")
        if has_words or options["words_by"] is not None:
            name = "given words" if has_words else "--words-by"
            raise not_together("--history", name)
        for name in VIEWS:
            if options[name] is not None and name not in ("history", "convention", "links"):
                raise InputError(
                    f"--history cannot be combined with {flag(name)}: it shows all heads of one "
                    f"run. Leave {flag(name)} out."
                )
    for name in ("symmetrize", "reverse_layer", "reverse_head"):
        if options["reverse"] is None and options[name] is not None:
            raise InputError(f"{flag(name)} needs a second model. Add --reverse MODEL.")
    if options["map"] == "layer-mean":
        for name in ("head", "reverse_head"):
            if options[name] is not None:
                raise InputError(
                    f"--map layer-mean cannot be combined with {flag(name)}: it is the mean over "
                    "heads. Leave one out."
                )
