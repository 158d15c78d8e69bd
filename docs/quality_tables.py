"""Tables of translation quality, of their result files."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from typing import Any

from result_files import count, link, load, several, span, table

PARTS = ("test", "compositional", "pronoun")


def demo_table() -> str:
    """Write what three seeds of the demo translate exactly, for each corpus it has had."""
    rows = []
    for name, title, minutes in (
        ("2026-11-27-demo", "3,200 updates, one core with AVX2, seeds 1 and 2", 0),
        ("", "", 0),
        ("2026-11-21-demo", "subwords, AVX2, float32", 1),
        ("2026-11-25-demo", "subwords, AVX-512 BF16, bfloat16", 1),
    ):
        if not name:
            rows.append(words_row())
            continue
        found = load(name)
        seeds = list(found["seeds"].values())
        exact = [several(one["percent"][part] for one in seeds) for part in PARTS]
        took = span([one["training_seconds"] / 60 for one in seeds], minutes)
        rows.append((f"{title} ({link(found['date'], name)})", *exact, took))
    return table(
        "| | test | compositional | pronoun | minutes of training |",
        "| --- | --- | --- | --- | --- |",
        rows,
    )


def words_row() -> Sequence[str]:
    """Return the row of the demo with whole words, whose seeds have a file each."""
    names = [f"recurrent/2026-11-26-transformer-seed-{seed}" for seed in (1, 2, 3)]
    last = [load(name)["measurements"][-1] for name in names]
    exact = [several(one["exact"][part] for one in last) for part in PARTS]
    links = ", ".join(link(str(at), name) for at, name in enumerate(names, start=1))
    took = span([one["seconds"] / 60 for one in last])
    title = f"{count(last[0]['updates'])} updates, whole words (2026-11-26; seeds {links})"
    return (title, *exact, f"{took} of one processor with AVX-512")


QUALITY = "multi30k-quality-multi30k"
PUBLISHED = {"fr": 61.8, "de": 41.0}
"""Wu et al. 2021, text only, a model of the same size."""
RAW = {
    "fr": ("2026-11-23", "2026-11-23", "2026-11-23"),
    "de": ("2026-11-22", "2026-11-23", "2026-11-23"),
}
LOWERCASED = {
    "fr": ("2026-11-24", "2026-11-24", "2026-11-25"),
    "de": ("2026-11-24", "2026-11-24", "2026-11-25"),
}
"""The days of the latest runs of seeds 1, 2 and 3."""


def runs_of(recipe: str, dates: Sequence[str]) -> tuple[list[dict[str, Any]], str]:
    """Read the runs of three seeds, and link them."""
    names = [f"{date}-{QUALITY}-{recipe}-seed-{seed}" for seed, date in enumerate(dates, start=1)]
    links = ", ".join(link(str(seed), name) for seed, name in enumerate(names, start=1))
    return [load(name) for name in names], links


def minutes_of(run: dict[str, Any]) -> str:
    """Return the minutes of a training with its validations; some files lack those of seed 1."""
    seconds = run["seconds"].get("train", run["training"]["training_seconds"])
    return f"{seconds / 60:.0f}"


def spread(runs: Sequence[dict[str, Any]], kind: str, *, is_bold: bool) -> str:
    """Write the mean BLEU of some runs, and each of them."""
    scores = [run["scores"][kind]["bleu"]["score"] for run in runs]
    mean = f"{statistics.mean(scores):.1f}"
    return f"{f'**{mean}**' if is_bold else mean} ({several(scores)})"


def deviation(runs: Sequence[dict[str, Any]], kind: str) -> str:
    """Write the standard deviation of BLEU over seeds."""
    return f"{statistics.stdev(run['scores'][kind]['bleu']['score'] for run in runs):.1f}"


def raw_table() -> str:
    """Write the BLEU of the recipes that read and write raw text."""
    rows = []
    for target, dates in RAW.items():
        runs, links = runs_of(f"en-{target}", dates)
        minutes = ", ".join(minutes_of(run) for run in runs)
        for search, first in (
            ("beam", (f"`multi30k-en-{target}`", links, minutes, "beam 5")),
            ("greedy", ("the same", "", "", "greedy")),
        ):
            is_bold = search == "beam"
            kinds = (f"cased, {search}", f"tokenized, {search}")
            rows.append((*first, *(spread(runs, kind, is_bold=is_bold) for kind in kinds)))
    return table(
        "| recipe | seeds | minutes | search | BLEU, cased, detokenized "
        "| BLEU, lower-cased, Moses-tokenized |",
        "| --- | --- | --- | --- | --- | --- |",
        rows,
    )


def threads_of(run: dict[str, Any]) -> str:
    """Return the number of threads that a run had."""
    found = re.search(r"(\d) of \d threads", run["machine"])
    assert found is not None, run["machine"]
    return found[1]


def lowercased_table() -> str:
    """Write the BLEU of the recipes of lower-cased, tokenized text."""
    rows: list[Sequence[str]] = []
    for target, dates in LOWERCASED.items():
        runs, links = runs_of(f"en-{target}-lowercased", dates)
        minutes = ", ".join(
            f"{minutes_of(run)}{'¹' if threads_of(run) == '1' else ''}" for run in runs
        )
        first = (f"`multi30k-en-{target}-lowercased`", links, minutes, "beam 5")
        beam = spread(runs, "tokenized, beam", is_bold=True)
        greedy = spread(runs, "tokenized, greedy", is_bold=False)
        rows.append((*first, beam, deviation(runs, "tokenized, beam")))
        rows.append(("the same", "", "", "greedy", greedy, deviation(runs, "tokenized, greedy")))
        source = (
            "([Wu et al. 2021](https://arxiv.org/abs/2105.14462))"
            if target == "fr"
            else "(the same)"
        )
        title = f"published, same size, text only {source}"
        rows.append((title, "", "", "", f"{PUBLISHED[target]}", ""))
    return table(
        "| recipe | seeds | minutes | search | BLEU on test_2016_flickr | deviation |",
        "| --- | --- | --- | --- | --- | --- |",
        rows,
    )


READ_ONCE = ("2026-11-22", "2026-11-22", "2026-11-22")
"""The runs before each pair was read twice."""
ADDED = {
    "fr": "R-Drop ({} without), Muon, a first phase in both directions, a tuned length penalty",
    "de": "the same ({} without R-Drop)",
}


def readme_quality() -> str:
    """Write README's table of translation quality."""
    rows = []
    for target, dates in LOWERCASED.items():
        runs, _ = runs_of(f"en-{target}-lowercased", dates)
        mean = spread(runs, "tokenized, beam", is_bold=True).partition(" ")[0]
        others, _ = runs_of(f"en-{target}-lowercased", READ_ONCE)
        without = spread(others, "tokenized, beam", is_bold=False).partition(" ")[0]
        name = f"`multi30k-en-{target}-lowercased`"
        rows.append((name, mean, f"{PUBLISHED[target]}", ADDED[target].format(without)))
    return table(
        "| `pellucid train` | BLEU | published | what the recipe adds |",
        "| --- | --- | --- | --- |",
        rows,
    )


def one_table() -> str:
    """Write what twenty minutes bring from one table of pairs."""
    rows = []
    for place, run in enumerate(load("2026-11-27-one-table")["runs"]):
        command = re.sub(r" --threads 1.*", "", run["commands"][0])
        remark = "" if place == 0 else ", whose settings are meant for half an hour on two cores"
        minutes, seconds = divmod(round(run["seconds"]), 60)
        bleu = run["evaluation"]["bleu"]
        score = f"{bleu['score']:.1f}"
        interval = f"[{bleu['low']:.1f}, {bleu['high']:.1f}]"
        rows.append(
            (
                f"`{command}`{remark}",
                f"{minutes} min {seconds} s",
                str(run["steps"]),
                f"{score if place else f'**{score}**'} {interval}",
                f"{run['evaluation']['chrf']['score']:.1f}",
            )
        )
    return table(
        "| command | took | steps | BLEU on test_2016_flickr | chrF |",
        "| --- | --- | --- | --- | --- |",
        rows,
    )


def distilled_table() -> str:
    """Write quality and speed of a teacher and its student."""
    rows = []
    seen: set[str] = set()
    for one in load("2026-11-26-distill-multi30k")["rows"]:
        size = ("", "")
        if one["name"] not in seen:
            size = (count(one["parameters"]), f"{one['num_bytes'] / 1e6:.1f}")
        seen.add(one["name"])
        score = f"{one['bleu']:.1f} [{one['low']:.1f}, {one['high']:.1f}]"
        speed = (count(one["single"]), count(one["bulk"]))
        rows.append((f"{one['name']}, {one['search']}", score, *size, *speed))
    return table(
        "| model, search | BLEU [95 %] | parameters | MB | one sentence | in bulk |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
        rows,
    )


def similar_table() -> str:
    """Write what a similar text of a memory is worth as a translation, and as its beginning."""
    found = load("2026-11-29-similar-texts")
    titles = {
        "model": "the model's translation",
        "prefix": "the model's, which begins as the memory's does",
        "memory": "the memory's translation",
    }
    rows = [
        (title, f"{found[name]['BLEU']:.1f}", f"{found[name]['chrF']:.1f}")
        for name, title in titles.items()
    ]
    return table("| what is written | BLEU | chrF |", "| --- | --- | --- |", rows)


VARIANTS = {
    "sinusoidal": "sinusoidal positions, the base",
    "rotary": "rotary positions",
    "alibi": "ALiBi",
    "relative": "relative positions",
    "RMS norm": "RMS norm",
    "gated": "gated feed-forward, two thirds as wide",
    "two heads of keys": "two heads of keys and values, not four",
}


def variants_table() -> str:
    """Write the share of lines that each variant translates exactly, one number a seed."""
    found = load("2026-11-28-variants")["rows"]
    rows = []
    for name, title in VARIANTS.items():
        seeds = sorted(
            (one for one in found if one["variant"] == name), key=lambda one: one["seed"]
        )
        right = [
            " · ".join(f"{100 * one['right'][length]:.0f}" for one in seeds) for length in "1234"
        ]
        rows.append((title, count(seeds[0]["weights"]), *right))
    return table(
        "| variant | weights | 1 sentence | 2 sentences | 3, longer | 4, longer |",
        "| --- | ---: | --- | --- | --- | --- |",
        rows,
    )


def study_table() -> str:
    """Write the time of a study and how far its cuts are from replays."""
    found = load("2026-11-27-study")
    of = f"of {found['compared']} whose greedy translation without a head differs from the replay's"
    rows = [
        (
            f"seconds for {count(found['lines'])} lines: "
            "all figures of all heads, and each head cut",
            count(found["seconds"]),
        ),
        (
            "largest difference of a cut's effect from that of a replay, 24 heads, "
            f"{found['compared']} lines",
            f"{found['largest_difference']:.7f} nats a line",
        ),
        (f"lines {of}, 4 heads", str(found["lines_that_differ"])),
    ]
    return table("| | |", "| --- | ---: |", rows)


MINUTES = (5, 20, 60, 240)
TEXTS = (("captions (Multi30k)", 29_000), ("real prose", 230_000))
"""What the guide wants to know: cells that were not measured are open."""


def minutes_table() -> str:
    """Write what more minutes of training buy, by the size of the text."""
    measured = [twenty_minutes(), *load("more-minutes")["rows"]]
    cells = {(one["text"], one["pairs"], one["minutes"]): one for one in measured}
    rows = []
    for text, pairs in TEXTS:
        for minutes in MINUTES:
            row = cells.get((text, pairs, minutes))
            first = (text, count(pairs), str(minutes))
            rows.append((*first, *(("", "", "open", "", "") if row is None else bought(row))))
    return table(
        "| text | pairs | minutes | of a processor | updates | BLEU [95 %] | chrF | machine |",
        "| --- | ---: | ---: | ---: | ---: | --- | --- | --- |",
        rows,
    )


def twenty_minutes() -> dict[str, Any]:
    """Return the cell of twenty minutes as an older file has it, without processor time."""
    found = load("2026-11-27-one-table")
    run = found["runs"][0]
    return {
        "date": found["date"],
        "text": TEXTS[0][0],
        "pairs": TEXTS[0][1],
        "minutes": 20,
        "processor_minutes": None,
        "updates": run["steps"],
        "test": run["evaluation"],
        "threads": 1,
        "machine": {"processor": "x86-64", "cores": 2, "instructions": ["avx2"]},
        "note": "busy with other work",
    }


def bought(row: dict[str, Any]) -> Sequence[str]:
    """Return what a cell measured."""
    bleu = row["test"]["bleu"]
    machine = row["machine"]
    vectors = "AVX-512" if "avx512f" in machine["instructions"] else "AVX2"
    threads = f"{row['threads'] or machine['torch_threads']} of {machine['cores']} threads"
    note = f", {row['note']}" if row["note"] else ""
    return (
        "" if row["processor_minutes"] is None else f"{row['processor_minutes']:.1f}",
        count(row["updates"]),
        f"{bleu['score']:.1f} [{bleu['low']:.1f}, {bleu['high']:.1f}]",
        f"{row['test']['chrf']['score']:.1f}",
        f"{machine['processor']}, {vectors}, {threads}{note}, {row['date']}",
    )
