"""Write the tables of some pages, and the sentences that follow from them.

    python benchmarks/pronouns.py --count 400 --choose 150 --write
    python benchmarks/beside.py
    python docs/make_tables.py [pronouns] [ten-tasks] [measured]

The first two measure, in some minutes; their newest files of results are read. The ten tasks are
measured here, in about as long. Of measured.md only the part on TransformerLens and nnsight is
written.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from page_tables import put, renew_table

import pellucid
from pellucid.corpora import make_split
from pellucid.evaluation.word_links import GoldLinks
from pellucid.inside import patch_corpus, study

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "benchmarks" / "results"
PAIR = ("The pizza came out of the oven and it tasted good.",
        "The cake came out of the oven and it tasted good.")  # fmt: skip
KINDS = (("encoder", "self", "the encoder"),
         ("decoder", "cross", "cross-attention"),
         ("decoder", "self", "the decoder's self-attention"))  # fmt: skip
ROWS = {
    "pronoun": "row of the pronoun",
    "predicate": "rows of the predicate",
    "predicts": "row that predicts the gender",
    "reads": "row that reads the gender",
}
FLOWS = {
    "gradients, predicts": "gradient × attention, through all layers",
    "rollout, predicts": "rollout",
    "alti, predicts": "ALTI+",
    "occlusion, predicts": "occlusion of each word",
    "cut pronoun > noun": "cutting the edges pronoun → noun",
    "cut noun > predicate": "cutting the edges noun → predicate",
    "cut predicate > noun": "cutting the edges predicate → noun",
    "cut decoder > noun": "cutting the edges decoder → noun, at the rows that predict the gender",
    "cut word": "cutting every edge to the noun",
}
LOOKED_UP = 0.6
"""The share from which the decoder is said to look at the noun itself."""
MEASURES = {"weights": "weights", "norms": "norms", "residual-norms": "residual norms",
            "alti": "ALTI+", "rollout": "rollout", "occlusion": "occlusion",
            "value-zeroing": "value zeroing", "gradients": "gradient × attention",
            "integrated-gradients": "integrated gradients"}  # fmt: skip


def main() -> None:
    """Write the pages that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", choices=[[], *PAGES], metavar="PAGE")
    for name in parser.parse_args().pages or PAGES:
        path = next(DOCS.rglob(f"{name}.md"))
        path.write_text(PAGES[name](path.read_text(encoding="utf-8")), encoding="utf-8")


def write_pronouns(text: str) -> str:
    """Write what `benchmarks/pronouns.py` measured last into the page."""
    found = json.loads(max(RESULTS.glob("*-pronouns.json")).read_text(encoding="utf-8"))
    shares = {one["name"]: one for one in found["shares"]}
    best = best_heads(shares)
    between = {name: parts["share"] for name, parts in between_nouns(found).items()}
    text = renew_table(text, "| pointer | right |", pointer_rows(found, shares, best))
    named = {"nearest noun": "the nearest noun",
             best["the encoder"][0]: "best head of the encoder, weights",
             best["cross-attention"][0]: "best head of cross-attention, weights",
             **{name: FLOWS[name] for name in list(FLOWS)[2:]}}  # fmt: skip
    rows = (
        (title, *(f"{100 * one:.0f} %" for one in between[name])) for name, title in named.items()
    )
    text = renew_table(text, "| pointer | none between |", rows)
    text = renew_table(text, "| vector of | layer |", probe_rows(found))
    text = re.sub(
        r"1,000 draws of whole pairs \([\d-]+\)",
        f"1,000 draws of whole pairs ({found['date']})",
        text,
    )
    return conclude(text, found, shares, best)


def best_heads(shares: dict[str, Any]) -> dict[str, list[str]]:
    """Name the best head of each kind of attention: by weights, then by norms."""
    found = {}
    for part, kind, title in KINDS:
        names = [one for one in shares if re.match(rf"{part}\.\d\.{kind}\.\d ", one)]
        found[title] = sorted(names, key=lambda one: " norms," in one)
    return found


def between_nouns(found: dict[str, Any]) -> dict[str, dict[str, list[float]]]:
    """Return the shares with no noun between antecedent and pronoun, and with one."""
    parts = found["by_nouns_between"]
    return {name: {"share": [one[at]["share"] for at in "01"]} for name, one in parts.items()}


def pointer_rows(
    found: dict[str, Any], shares: dict[str, Any], best: dict[str, list[str]]
) -> Iterable[Sequence[str]]:
    """Yield the rows of the large table."""
    yield share_row("a noun at random", shares["random noun"])
    yield ("the nearest noun", percent(shares["nearest noun"]["share"]), "by construction", "0")
    yield share_row("the first noun", shares["first noun"])
    heads = found["heads"]["weights"]
    spread = f"{100 * heads['low']:.1f}–{100 * heads['high']:.1f}"
    mean = percent(heads["mean"])
    yield ("weights of a random head: mean, and range over all", mean, spread, "")
    for title, (weights, norms) in best.items():
        head, rows = read_name(weights)
        yield share_row(f"best head of {title} (`{head}`, {rows}), weights", shares[weights])
        other = read_name(norms)
        name = f"best head of {title}, norms (`{other[0]}`, {other[1]})"
        is_same = other == (head, rows)
        yield share_row("the same head, norms" if is_same else name, shares[norms])
    for name, title in FLOWS.items():
        yield share_row(title, shares[name])


def read_name(name: str) -> tuple[str, str]:
    """Split ``encoder.0.self.3 weights, predicate`` into its head and its rows in words."""
    return name.split(" ")[0], ROWS[name.rpartition(" ")[2]]


def share_row(title: str, share: dict[str, Any]) -> Sequence[str]:
    """Return a row: right, its interval, and both of a pair."""
    interval = f"{100 * share['low']:.1f}–{100 * share['high']:.1f}"
    both = share["both_right"]
    return title, percent(share["share"]), interval, percent(both) if both else "0"


def percent(share: float) -> str:
    """Write a share with one digit, a whole one without."""
    return f"{100 * share:.1f} %".replace("100.0", "100")


def probe_rows(found: dict[str, Any]) -> Iterable[Sequence[str]]:
    """Yield what probes of the gender read from each layer."""
    probes = [one for one in found["probes"] if one["task"] == "gender"]
    for word in ("pronoun", "predicate"):
        for at, one in enumerate(probe for probe in probes if probe["word"] == word):
            layer = "embedding" if one["layer"] == "input" else one["layer"].removeprefix("layer ")
            rest = share_row("", one["accuracy"])[1:]
            yield ("" if at else f"the {word}", layer, *rest, percent(one["control"]["share"]))


def conclude(
    text: str, found: dict[str, Any], shares: dict[str, Any], best: dict[str, list[str]]
) -> str:
    """Write the sentences that say what the tables mean."""
    cuts = {one: shares[f"cut {one} > noun"]["share"] for one in ("pronoun", "predicate")}
    carrier = max(cuts, key=cuts.__getitem__)
    other = min(cuts, key=cuts.__getitem__)
    name = best["the encoder"][0]
    head, rows = read_name(name)
    gender = {
        one["word"]: one["accuracy"]["share"] for one in found["probes"] if one["task"] == "gender"
    }
    nearer = {
        one["word"]: one["accuracy"]["share"]
        for one in found["probes"]
        if one["task"] == "position"
    }
    alti, occlusion = (shares[f"{one}, predicts"]["share"] for one in ("alti", "occlusion"))
    opening = (
        "the reason. This page measures how often such a picture is right. The model `demo` writes "
        f"{found['translated_exactly']:.0%} of 400 sentences right. **One head of its encoder "
        f"names the antecedent in {shares[name]['share']:.0%} of them, in the {rows}. An average "
        f"head does so in {found['heads']['weights']['mean']:.0%}, where chance gives 44 %; a "
        f"measure that follows the flow through all layers in {alti:.0%}, and removing words in "
        f"{occlusion:.0%}.**"
    )
    nearest = (
        "Whether the antecedent is the nearer noun is read right from the pronoun's last vector in "
        f"{nearer['pronoun']:.1%}, from the predicate's in {nearer['predicate']:.1%}."
    )
    conclusions = (
        f"In this model the antecedent is found at the {carrier}. Cutting the edges from the "
        f"{carrier} to it costs the right gender in {cuts[carrier]:.0%}, and the gender can be "
        f"read from the {carrier}'s last vector in {gender[carrier]:.0%}. The head that points "
        f"best is `{head}`, in the {rows}.",
        f"The other word matters less: cutting the edges from the {other} to the antecedent points "
        f"at it in {cuts[other]:.0%}, and the {other}'s own vector has the gender in "
        f"{gender[other]:.0%}."
        + ("" if carrier == "pronoun" else " The picture that one would expect is not the cause."),
        f"Cutting the decoder's edges to the noun points at the antecedent in "
        f"{shares['cut decoder > noun']['share']:.0%}, where chance gives 44 %: "
        + (
            "it does not look the noun up, and knows the gender from another word's place."
            if shares["cut decoder > noun"]["share"] < LOOKED_UP
            else "it also looks the noun up itself."
        ),
        f"A measure that follows the flow through all layers, ALTI+, names the antecedent in "
        f"{alti:.0%} of the sentences, the best head in {shares[name]['share']:.0%}. Which of them "
        "is right cannot be seen without a measure that takes something away.",
    )
    places = {
        r"the reason\. This page measures how often(?:.|\n)*?\*\*(?=\n\n)": fill(opening),
        r"Whether the antecedent is the nearer noun(?:.|\n)*?(?=\n\n)": fill(nearest),
        r"- In this model the antecedent(?:.|\n)*?(?=\n- A head chosen among 16)": "\n".join(
            fill(f"- {one}", "  ") for one in conclusions
        ),
    }
    for pattern, new in places.items():
        text = put(text, pattern, new)
    return text


def fill(text: str, indent: str = "") -> str:
    """Break a paragraph into lines, as the pages do, with a space before each percent sign."""
    text = re.sub(r"(\d)%", r"\1 %", text)
    return textwrap.fill(text, 124, subsequent_indent=indent, break_on_hyphens=False)


def write_ten_tasks(text: str) -> str:
    """Measure the tasks that have tables, and write them."""
    translator = pellucid.load("demo")
    examples = make_split("test", count=100)
    golds = [GoldLinks(frozenset(one.alignment), frozenset(one.alignment)) for one in examples]
    sources, targets = ([getattr(one, side) for one in examples] for side in ("source", "target"))
    found = study(translator, sources, targets, golds=golds, num_measured=20)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    text = put(text, r"\(BLEU [\d.]+\), [\d-]+", f"(BLEU {found.bleu:.2f}), {today}")
    heads = found.heads
    rows = []
    for at in heads.order("cut_bleu")[:5]:
        name = heads.rows[at]
        loss, log = (heads.column(one)[at] for one in ("cut_bleu", "cut_log_probability"))
        rows.append((name, signed(loss), str(len(found.changed[name])), signed(log)))
    text = renew_table(text, "| head | change of BLEU", rows)
    same, previous = (
        [x if x == x else 0 for x in heads.column(one)] for one in ("same", "previous")
    )
    copying = heads.rows[same.index(max(same))]
    text = put(
        text,
        r"`[\w.]+` has [\d.]+ of its weight on its own token; no head has more than [\d.]+",
        f"`{copying}` has {max(same):.2f} of its weight on its own token; no head has more than "
        f"{max(previous):.2f}",
    )
    records = {one["measure"]: one for one in found.measures.records()}
    measured = []
    for name, title in MEASURES.items():
        best, both, _, seconds = list(records[name].values())[1:5]
        measured.append((title, f"{100 * best:.1f}", f"{100 * both:.1f}", f"{seconds:,.0f}"))
    text = renew_table(text, "| measure | strongest", measured)
    shares = [f"{100 * one:.1f} %" for one in found.lens.values[:, 0]]
    text = put(
        text,
        r"[\d.]+ %, [\d.]+ % and [\d.]+ %(?= of the target)",
        f"{shares[0]}, {shares[1]} and {shares[2]}",
    )
    return write_patches(text, translator)


def write_patches(text: str, translator: pellucid.Translator) -> str:
    """Write where the gender of the pronoun stands, in one sentence and over pairs."""
    # One beginning, so that the pronouns are the first tokens that differ.
    beginning = "La pizza est sortie du four et"
    first, second = (
        translator.pair(source, f"{beginning} {pronoun} avait bon goût.")
        for source, pronoun in zip(PAIR, ("elle", "il"), strict=True)
    )
    patched = second.patch(first)
    places = {word: second.source_tokens.index(word) for word in ("cake", "it", "tasted", "good")}
    rows = []
    for row, after in enumerate(("embedding", "layer 0", "layer 1")):
        numbers = [patched.matrix[row, at] for at in places.values()]
        others = sum(patched.matrix[row, : len(second.source_tokens)]) - sum(numbers)
        rows.append((after, *(f"{one:.2f}".replace("-0.00", "0.00") for one in (*numbers, others))))
    text = renew_table(text, "| after | *cake*", rows)
    examples = make_split("pronoun", count=100)
    sources, targets = ([getattr(one, side) for one in examples] for side in ("source", "target"))
    found = patch_corpus(translator, sources, targets, words=["it"])
    said = []
    for column in ("it", found.shares.columns[0]):
        share, low, high = (
            table.column(column)[-1] for table in (found.shares, found.low, found.high)
        )
        said.append(f"{share:.2f} [{low:.2f}, {high:.2f}]")
    new = (
        f"Over {found.num_pairs} minimal pairs *it* restores {said[0]} after the last layer, and "
        f"the predicate {said[1]}."
    )
    return put(text, r"Over \d+ minimal pairs \*it\*(?:.|\n)*?\]\.(?=\n)", fill(new))


def write_beside(text: str) -> str:
    """Write the sentences around the table of what `benchmarks/beside.py` measured last."""
    path = max(RESULTS.glob("*-beside.json"))
    found = json.loads(path.read_text(encoding="utf-8"))
    versions = found["versions"]
    tools = f"TransformerLens {versions['transformer_lens']} and nnsight {versions['nnsight']}"
    opened = (
        f"{tools} open the packaged model through its export to MarianMT (Transformers "
        f"{versions['transformers']}). Medians of {found['rounds']} rounds in turn, one thread of "
        f"a busy machine, {found['date']} ([result](../benchmarks/results/{path.name}))."
    )
    text = put(text, r"TransformerLens [\d.]+ and nnsight(?:.|\n)*?\)\)\.(?=\n)", fill(opened))
    (grid,) = (one["tools"] for one in found["tasks"] if one["task"] == "patch")
    ours = grid["pellucid"]["seconds"]
    faster = [ours / grid[name]["seconds"] for name in ("transformer_lens", "nnsight")]
    said = (
        f"A patching grid takes Pellucid {faster[0]:.1f} times as long as TransformerLens and "
        f"{faster[1]:.1f} times as long as nnsight"
    )
    return put(text, r"A patching grid takes Pellucid(?:.|\n)*?nnsight(?=:)", said)


def signed(number: float) -> str:
    """Write a change with one digit and a minus sign of its own."""
    return f"{number:.1f}".replace("-", "−")


PAGES = {"pronouns": write_pronouns, "ten-tasks": write_ten_tasks, "measured": write_beside}


if __name__ == "__main__":
    main()
