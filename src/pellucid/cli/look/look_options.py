"""The options of ``pellucid look`` and its relatives, except those of decoding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pellucid.cli.lines.decoding_options import FEW_DECODING
from pellucid.cli.lines.streams import STANDARD, is_special
from pellucid.cli.option_rules import Apart, Needs, check_rules
from pellucid.cli.options import HEADS, Option, check_utf8, flag
from pellucid.cli.outputs import Outputs, shown_path
from pellucid.errors import InputError, not_together
from pellucid.text.reading.lines import read_lines

if TYPE_CHECKING:
    from pellucid.inside.ask import Ask

PLACE: Mapping[str, Option] = {
    "head": HEADS,
    "stage": (
        list[str],
        "S",
        "query, key, value, scores, scaled, masked, weights, context, output, or one around them: "
        "input, residual, norm, inner, activated, embedding, positions, logits; of recurrent units "
        "update, reset, forget, candidate, state, initial, vector, readout. May be repeated.",
    ),
    "everything": (bool, "", "Everything from token to token; its size is shown first."),
}
"""The arrays to look at."""

MEASURING: Mapping[str, Option] = {
    "measure": (
        list[str],
        "NAME",
        "weights, norms, residual-norms, alti, rollout, gradients, integrated-gradients, "
        "value-zeroing or occlusion. May be repeated, to see how similar the measures are. Of "
        "heads and layers instead of words: logit-attribution (add --head encoder to follow "
        "cross-attention), head-gradients, q-composition, k-composition or v-composition. "
        "integrated-gradients:steps=256,baseline=unknown has so many points (128), and begins at "
        "unknown words instead of zeros.",
    ),
}
"""The measures, with what belongs to some of them."""

SHOWN: Mapping[str, Option] = {
    "show": (
        Literal["links", "heads", "lens", "trust", "words", "verify"],
        None,
        "links: which words of the two sentences go together; heads: a table of all layers and "
        "heads; lens: what would be predicted from each layer; trust: how far each --measure can "
        "be trusted, as words are removed in its order and at random; words: with --row in layer "
        "0, the words whose keys match best; verify: the weight that --row follows, recomputed "
        "from the bundle's files.",
    ),
    "sort": (
        str,
        "FIGURE",
        "With --show heads: sort by entropy, confidence, end_mass, punctuation_mass, distance, "
        "cut_effect or alignment_error.",
    ),
    "gold_links": (
        str,
        "LINKS",
        "With --show heads: show each head's alignment error, given the right word links such as "
        "'0-0 1-2'.",
    ),
    "row": (
        str,
        "N",
        "Follow row N, from 0, number by number; N:C shows the product with the key in column C. "
        "With --everything every number of the vectors is shown.",
    ),
    "contexts": (
        str,
        "WORD",
        "Compare WORD's vectors in several sentences, layer by layer; TEXT may be repeated.",
    ),
    "change": (
        list[str],
        "CHANGE",
        "Show what happens under a change, by the same search: 'cut decoder.1.cross.0' (a head), "
        "'cut encoder.0.self.2:4>7' (an edge), 'cut word pizza', 'average …', "
        "'force decoder.1.cross.0:3>2=0.8'; may be repeated.",
    ),
    "decode_changed": (
        bool,
        "",
        "With --change: look at what the changed model writes, as at any translation.",
    ),
    "random": (int, "N", "With --change: make the same change to N other heads, at random."),
    **MEASURING,
    "compare_text": (str, "TEXT", "Show the head's weights minus those on another line."),
    "compare_head": (str, "ADDRESS", "Show them minus those of another head."),
    "compare_model": (
        str,
        "MODEL",
        "Show what MODEL answers next to it: tokens, probabilities, and the words that each "
        "reads. With --compare-head or --compare-text: the weights minus those of MODEL.",
    ),
}
"""Things for the terminal to show instead of one map."""

FORMS = ("html", "svg", "png", "pdf", "npz", "json")
"""The forms of a trace's files."""

WAYS = ("row", "contexts", "change", "measure")
"""Options that each show something else; so does ``--show``."""

OF_OTHERS = ("trust", "words", "verify")
"""What ``--show`` adds to ``--measure`` or ``--row``."""

COMPARED = ("compare_text", "compare_head", "compare_model")

MOST_DIGITS = 18
"""Digits of a row and a column; Python refuses to read numbers of thousands."""

MOST_RANDOM = 100_000
"""Other heads that a change is compared with; each costs a pass of the decoder."""

_OF_ONE = "it looks at one translation of the changed model"
_PLACE = " ".join(PLACE)
_DECODING = " ".join(FEW_DECODING)
CHANGED_RULES = (
    Needs("decode_changed", "change"),
    Apart("decode_changed", "translation", "it is not decoded"),
    Apart("decode_changed", "random contexts compare_text compare_head compare_model", _OF_ONE),
)
LOOK_RULES = (
    Needs("show=words show=verify", "row"),
    Needs("sort gold_links", "show=heads"),
    Needs("random", "change"),
    Needs("show=trust", "measure"),
    Apart("translation", _DECODING, "it is not decoded"),
    Apart("translation", "compare_text", "it translates one line only"),
    Apart(
        "contexts",
        f"{_PLACE} {_DECODING} translation prefix",
        "it compares the encoder's states after every layer",
    ),
    Apart("measure", "stage everything", "a measure has one map"),
    Apart("show=links show=lens change", _PLACE, "it does not show single arrays"),
    Apart("show=heads", "stage everything", "it is of the weights"),
)


def read_changed(options: Mapping[str, Any]) -> list[str]:
    """Return the changes to decode under, which are then not shown by their effect.

    Raises:
        InputError: ``--decode-changed`` has no change, or cannot be combined with another option.
    """
    check_rules(CHANGED_RULES, options)
    return list(options["change"]) if options["decode_changed"] else []


def check_look_options(options: Mapping[str, Any], outputs: Outputs) -> None:
    """Refuse options that contradict or lack each other, or that say nothing.

    Args:
        options: all of them by name, ``translation`` and ``prefix`` among them.
        outputs: the files, and what standard output gets.

    Raises:
        InputError: some do.
    """
    show = options["show"]
    shown = {} if show is None else {f"show={show}": True}
    check_rules(LOOK_RULES, {**options, **shown})
    if options["random"] is not None and not 1 <= options["random"] <= MOST_RANDOM:
        raise InputError(
            f"--random must be from 1 to {MOST_RANDOM:,}, but is {options['random']}. Change it."
        )
    if options["translation"] is not None and options["prefix"] and not options["change"]:
        raise not_together("--translation", "--prefix, except under --change", "it is not decoded")
    check_measures(options["measure"] or ())
    _check_ways(options, outputs)


def _check_ways(options: Mapping[str, Any], outputs: Outputs) -> None:
    """Refuse two things to show at once, and files of what has none.

    Raises:
        InputError: there are two, or such a file.
    """
    if is_beside(options):
        for name in PLACE:
            if options[name]:
                raise not_together("--compare-model", flag(name), "it shows one map of each model")
        if (options["n_best"] or 1) > 1:
            raise not_together("--compare-model", "--n-best", "each model answers once")
    ways = [flag(name) for name in WAYS if options[name] not in (None, [])]
    if options["show"] not in (None, *OF_OTHERS):
        ways.append(f"--show={options['show']}")
    ways += [flag(name) for name in COMPARED if options[name] is not None][:1]
    if len(ways) > 1:
        raise not_together(*ways[:2])
    drawn: tuple[str, ...] = ("svg", "png", "pdf") if is_compared(options) else ()
    if is_beside(options):
        drawn = (*drawn, "json")
    places = [(f"-o {shown_path(path)}", form) for path, form in outputs.files.items()]
    if outputs.standard == "json":
        places.append(("--json", "json"))
    for place, form in places:
        # Ways of looking write no files, except those that can be drawn.
        if ways and form not in drawn:
            raise not_together(ways[0], place)
        is_one_place = place == "--json" or is_special(place.removeprefix("-o "))
        if is_one_place and (options["n_best"] or 1) > 1:
            raise InputError(
                f"--n-best writes several files, but {place} is one place. Name a file; a number "
                "is added to its name."
            )


def read_measure(text: str) -> tuple[str, dict[str, Any]]:
    """Read a measure and its settings: ``integrated-gradients:steps=256``.

    Raises:
        InputError: a setting is not written so.
    """
    name, _, rest = text.partition(":")
    settings: dict[str, Any] = {}
    for part in rest.split(",") if rest else ():
        key, _, value = part.partition("=")
        is_right = value.isdecimal() if key == "steps" else value in ("zero", "unknown")
        if key not in ("steps", "baseline") or not is_right or key in settings:
            raise InputError(
                f"--measure must be a NAME, or NAME:steps=N,baseline=zero or unknown, but is "
                f"{text!r}. For example: integrated-gradients:steps=256."
            )
        settings[key] = int(value) if key == "steps" else value
    return name, settings


def check_measures(measures: Sequence[str]) -> None:
    """Refuse a measure with settings that are not its own.

    Raises:
        InputError: there is such a measure.
    """
    for text in measures:
        name, settings = read_measure(text)
        if settings and name != "integrated-gradients":
            raise InputError(
                f"Only integrated-gradients has steps and a baseline, but --measure is {text}. "
                f"Give --measure {name}."
            )


def read_row_place(text: str | None) -> tuple[int | None, int | None]:
    """Read ``--row N`` or ``N:C``: the row, and the column of a key.

    Raises:
        InputError: it is not written so.
    """
    if text is None:
        return None, None
    row, colon, column = text.partition(":")
    if not row.isdecimal() or (colon and not column.isdecimal()) or len(text) > MOST_DIGITS:
        raise InputError(
            f"--row must be a number from 0, or N:C with the column of a key, but is {text!r}. "
            "Change it."
        )
    return int(row), int(column) if colon else None


def read_texts(texts: Sequence[str] | None) -> list[str]:
    """Return the lines to look at: those given, or those of standard input.

    Raises:
        InputError: a text is not UTF-8, or standard input holds no line.
    """
    if texts and list(texts) != [STANDARD]:
        for text in texts:
            check_utf8("TEXT", text)
        return list(texts)
    lines = list(read_lines(STANDARD))
    if not lines:
        raise InputError("TEXT must be a line, but standard input is empty. Write one.")
    return lines


def check_one_text(texts: Sequence[str], given: Sequence[str], command: str) -> str:
    """Return the only line.

    Args:
        texts: what `read_texts` found.
        given: the words of the command that it had.
        command: the name of the command.

    Raises:
        InputError: there are several.
    """
    if len(texts) > max(len(given), 1):
        raise InputError(
            f"{command} takes one line, but standard input has {len(texts)}. Send one of them."
        )
    if len(texts) > 1:
        more = "" if command != "look" else ", or name a word with --contexts to compare it in all"
        raise InputError(
            f"{command} takes one line, but {len(texts)} are given. Put quotation marks around "
            f"it{more}."
        )
    return texts[0]


def is_beside(options: Mapping[str, Any]) -> bool:
    """Tell whether the answers of two models are asked for, and not the difference of two heads."""
    has_other = options["compare_head"] is not None or options["compare_text"] is not None
    return options["compare_model"] is not None and not has_other


def is_compared(options: Mapping[str, Any]) -> bool:
    """Tell whether something is put next to the line, its head or its model."""
    return any(options[name] is not None for name in COMPARED)


# What one wants to see of a sub-layer without heads; of an attention it is the weights.
_USUAL_STAGES = {("recurrent",): ("state",), ("feed_forward",): ("activated",)}


def to_ask(options: Mapping[str, Any]) -> Ask:
    """Collect the arrays that the options ask for.

    Raises:
        InputError: an address or a stage cannot be read.
    """
    from pellucid.inside.ask import Ask

    found = Ask(options["head"] or (), everything=bool(options["everything"]))
    usual = _USUAL_STAGES.get(found.level("kind") or (), found.stages)
    return replace(found, stages=options["stage"] or usual)


def to_files(outputs: Outputs) -> dict[Path, str]:
    """Return the form of each file that a trace is written to, standard output among them."""
    # A file as any other, so that every writer can write to it.
    standard = {Path("/dev/stdout"): "json"} if outputs.standard == "json" else {}
    return {**outputs.files, **standard}
