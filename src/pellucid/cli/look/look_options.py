"""The options of ``pellucid look``, except those of decoding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pellucid.cli.lines.decoding_options import DECODING
from pellucid.cli.lines.streams import STANDARD
from pellucid.cli.option_rules import Apart, Needs, check_rules
from pellucid.cli.options import Option, check_utf8, flag
from pellucid.errors import InputError, not_together
from pellucid.files import is_device, is_packed
from pellucid.text.link_choices import Convention

if TYPE_CHECKING:
    from pellucid.inside.ask import Ask

PLACE: Mapping[str, Option] = {
    "part": (Literal["encoder", "decoder"], None, "Encoder or decoder."),
    "layer": (list[int], "L", "Layer, from 0; may be repeated."),
    "kind": (Literal["self", "cross", "feed_forward", "recurrent"], None, "Kind of sub-layer."),
    "head": (list[int], "H", "Head, from 0; may be repeated."),
    "stage": (
        list[str],
        "S",
        "query, key, value, scores, scaled, masked, weights, context, output, or one around them: "
        "input, residual, norm, inner, activated, embedding, positions, logits; in a recurrent "
        "model update, reset, candidate, state, initial, vector, readout. May be repeated.",
    ),
    "all": (bool, "", "Everything from token to token; its size is shown first."),
}
"""The arrays to look at."""

SHOWN: Mapping[str, Option] = {
    "row": (int, "R", "Follow row R through one head, number by number."),
    "column": (int, "C", "With --row: show the product with position C in full."),
    "whole": (bool, "", "With --row: show every number of the vectors."),
    "words": (int, "N", "With --row in layer 0: list the N words whose keys match best."),
    "verify": (bool, "", "With --row: recompute the weight from the bundle's files."),
    "links": (bool, "", "Show which words of the two sentences go together."),
    "contexts": (
        str,
        "WORD",
        "Compare WORD's vectors in several sentences, layer by layer; TEXT may be repeated.",
    ),
    "heads": (bool, "", "Show a table of all layers and heads."),
    "sort": (
        str,
        "FIGURE",
        "With --heads: sort by entropy, confidence, end_mass, punctuation_mass, distance, "
        "cut_effect or alignment_error.",
    ),
    "gold": (
        str,
        "LINKS",
        "With --heads: show each head's alignment error, given gold word links such as '0-0 1-2'.",
    ),
    "convention": (
        Convention,
        None,
        "With --gold: the token that a decoder row counts for: the one it predicts (default), or "
        "the one it reads.",
    ),
    "change": (
        list[str],
        "CHANGE",
        "Show what happens under a change: 'cut decoder.1.cross.0' (a head), "
        "'cut encoder.0.self.2:4>7' (an edge), 'cut word pizza', 'average …', "
        "'force decoder.1.cross.0:3>2=0.8'; may be repeated.",
    ),
    "random": (int, "N", "With --change: make the same change to N other heads, at random."),
    "measure": (
        list[str],
        "NAME",
        "Show a measure: weights, norms, residual-norms, alti, rollout, gradients, "
        "integrated-gradients, value-zeroing or occlusion. May be repeated, to see how similar "
        "the measures are.",
    ),
    "steps": (int, "N", "With --measure integrated-gradients: points of the integral."),
    "baseline": (
        Literal["zero", "unknown"],
        None,
        "With it: begin the integral at embeddings of zeros (default), or at unknown words.",
    ),
    "why": (
        str,
        "WORD",
        "Show why the translation has WORD, or word number N from 0, and not another one, the next "
        "likeliest or --not: every --measure as the difference of the two.",
    ),
    "patch_from": (
        str,
        "TEXT",
        "Put vectors of this sentence into those of the line, one by one, and show which of them "
        "turn the translation (activation patching).",
    ),
    "at": (
        list[str],
        "SITE",
        "With --patch-from: the vectors, such as encoder (after each layer), encoder.0 or "
        "encoder.0.self.value; may be repeated.",
    ),
    "position": (
        list[str],
        "WORD",
        "With --patch-from: only this word of the line, or word number N; may be repeated.",
    ),
    "trust": (
        list[str],
        "NAME",
        "Test how far such a measure can be trusted: remove words in its order, and at random.",
    ),
    "lens": (bool, "", "Show what would be predicted from each layer."),
    "compare": (str, "TEXT", "Show the head's weights minus those on another line."),
    "compare_head": (str, "HEAD", "Subtract those of another head, such as decoder.1.cross.3."),
    "compare_model": (str, "MODEL", "Subtract those of another model, such as RUN/untrained."),
    "beside": (
        str,
        "MODEL",
        "Show what MODEL answers next to it: tokens, probabilities, and the words that each reads.",
    ),
    "plain": (bool, "", "Write sentences instead of pictures, for a screen reader."),
}
"""Things for the terminal to show instead of one map."""

FILES: Mapping[str, Option] = {
    "html": (str, "FILE", "Write a page that needs no network; '-' is standard output."),
    "svg": (str, "FILE", "Draw one head, or all heads, as SVG."),
    "png": (str, "FILE", "The same as PNG."),
    "pdf": (str, "FILE", "The same as PDF."),
    "npz": (str, "FILE", "Write the arrays for NumPy."),
    "json": (str, "FILE", "Write the arrays as JSON."),
}
"""The files to write instead."""

WAYS = (
    *("row", "links", "contexts", "heads", "change", "measure", "trust", "lens"),
    *("why", "patch_from", "beside"),
)
COMPARED = ("compare", "compare_head", "compare_model")

MOST_RANDOM = 100_000
"""Other heads that a change is compared with; each costs a pass of the decoder."""

_PLACE = " ".join(PLACE)
_DECODING = " ".join(DECODING)
LOOK_RULES = (
    Needs("whole column words verify", "row"),
    Needs("sort gold", "heads"),
    Needs("convention", "gold"),
    Needs("random", "change"),
    Needs("at position", "patch_from"),
    Needs("not", "why"),
    Apart("target", _DECODING, "it is not decoded"),
    Apart("target", "compare", "it translates one line only"),
    Apart(
        "contexts",
        f"{_PLACE} {_DECODING}",
        "it compares the encoder's states after every layer",
    ),
    Apart("beside", _PLACE, "it shows one map of each model"),
    Apart("patch_from", "part layer kind stage all", "--at names its vectors"),
    Apart("measure trust why", "stage all", "a measure has one map"),
    Apart("links lens change", _PLACE, "it does not show single arrays"),
)


def check_look_options(
    options: Mapping[str, Any], *, target: str | None, prefix: str | None
) -> None:
    """Refuse options that contradict or lack each other.

    Raises:
        InputError: some do.
    """
    check_rules(LOOK_RULES, {**options, "target": target})
    for name in ("words", "random"):
        if options[name] is not None and options[name] < 1:
            raise InputError(f"{flag(name)} must be at least 1, but is {options[name]}.")
    if (options["random"] or 0) > MOST_RANDOM:
        raise InputError(f"--random must be at most {MOST_RANDOM:,}, but is {options['random']}.")
    if target is not None and prefix and not options["change"]:
        raise not_together("--target", "--prefix, except under --change", "it is not decoded")
    if options["beside"] is not None and (options["n_best"] or 1) > 1:
        raise not_together("--beside", "--n-best", "each model answers once")
    _check_integrals(options)
    ways = [flag(name) for name in WAYS if options[name] not in (None, [])]
    if options["why"] is not None and options["measure"]:
        ways.remove("--measure")  # it says what the difference is of
    if options["why"] is not None and options["patch_from"] is not None:
        ways.remove("--why")  # it says which answers are compared
    ways += [flag(name) for name in COMPARED if options[name] is not None][:1]
    # Ways of looking write no files, except those that can be drawn.
    drawn: tuple[str, ...] = ("svg", "png", "pdf") if is_compared(options) else ()
    if options["beside"] is not None or options["patch_from"] is not None:
        drawn = ("svg", "png", "pdf", "json")
    files = [flag(name) for name in FILES if options[name] is not None and name not in drawn]
    if len(ways) > 1 or (ways and files):
        first, second = [*ways, *files][:2]
        raise not_together(first, second)


def check_texts(texts: Sequence[str], options: Mapping[str, Any]) -> None:
    """Refuse several lines, except for a word's contexts, which take no option of one line.

    Raises:
        InputError: there are several, one is not UTF-8, or such an option is given.
    """
    for text in texts:
        check_utf8("TEXT", text)
    if options["contexts"] is None and len(texts) > 1:
        raise InputError(
            f"look takes one line, but {len(texts)} are given. Put quotation marks around it, or "
            "name a word with --contexts to compare it in several."
        )


def _check_integrals(options: Mapping[str, Any]) -> None:
    # A contrast measures integrated gradients unless told otherwise.
    is_used = "integrated-gradients" in [*(options["measure"] or ()), *(options["trust"] or ())]
    is_used |= options["why"] is not None and not options["measure"]
    for name in ("steps", "baseline"):
        if options[name] is not None and not is_used:
            raise InputError(
                f"{flag(name)} needs --measure integrated-gradients. Add it, or leave both out."
            )


def is_compared(options: Mapping[str, Any]) -> bool:
    """Tell whether a difference of two heads is asked for."""
    return any(options[name] is not None for name in COMPARED)


def to_ask(options: Mapping[str, Any]) -> Ask:
    """Collect the arrays that the options ask for."""
    from pellucid.inside.ask import Ask

    kind = options["kind"]
    # What one wants to see of a unit is its state, of an attention its weights.
    stages = options["stage"] or (("state",) if kind == "recurrent" else ("weights",))
    levels = [(options["part"],), options["layer"] or (None,), (kind,), options["head"] or (None,)]
    # Levels that nobody named are left out at the end, and open before it.
    while levels and levels[-1] == (None,):
        levels.pop()
    places = product(*levels) if levels else ()
    return Ask(
        heads=[".".join("*" if one is None else str(one) for one in place) for place in places],
        stages=tuple(stages),
        everything=bool(options["all"]),
    )


def to_files(options: Mapping[str, Any]) -> dict[str, Path]:
    """Collect the files that the options ask for, by their kind.

    Raises:
        InputError: two outputs would go to one place, or the place does not fit the kind.
    """
    found: dict[str, Path] = {}
    for name in FILES:
        if options[name] is None:
            continue
        # A file as any other, so that every writer can write to it.
        path = Path("/dev/stdout" if options[name] == STANDARD else options[name])
        # The second would overwrite the first without a word.
        others = [flag(other) for other in found if found[other] == path]
        if others:
            raise InputError(
                f"Each output must have its own file, but {others[0]} and {flag(name)} are both "
                f"{options[name]}. Give one of them another name."
            )
        if name == "npz" and is_packed(path):
            raise InputError(
                f"--npz must name a file that ends in .npz, but is {options[name]}: NumPy does not "
                "unpack .gz. Drop .gz, or use --json, which may end in it."
            )
        if is_device(path) and (options["n_best"] or 1) > 1:
            raise InputError(
                f"--n-best writes several files, but {flag(name)} {options[name]} is one place. "
                "Name a file; a number is added to its name."
            )
        found[name] = path
    return found
