"""Tables of speed, of their result files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from result_files import count, link, load, table

PROCESSORS = {
    "2026-11-24-train-speed-tiny-avx512": "EPYC, 5th generation",
    "2026-11-24-train-speed-base-avx512": "EPYC, 5th generation",
    "2026-11-25-train-speed-tiny-zen4": "EPYC, 4th generation",
    "2026-11-25-train-speed-base-zen4": "EPYC, 4th generation",
    "2026-11-24-train-speed-tiny-kernels": "EPYC, only AVX2",
    "2026-11-26-decode-speed-zen4": "EPYC, 4th generation",
    "2026-11-26-decode-speed-zen4-avx2": "the same, only AVX2",
    "2026-11-26-decode-speed": "Intel Xeon with AMX",
}
"""Generations of AMD's processors, which do not tell theirs to programs on these machines."""

SIZES = {
    "demo": "packaged sizes (2 + 2, 96)",
    "tiny": "tiny (4 + 4, 128)",
    "small": "small (3 + 3, 256)",
    "base": "base (6 + 6, 512)",
}
WORK = {
    "single-greedy": "one sentence, greedy",
    "single-beam": "one sentence, beam 5",
    "large-greedy": "128 sentences, greedy",
    "large-beam": "128 sentences, beam 5",
}
NAMES = {
    "marian": "Marian",
    "hugging_face": "Hugging Face",
    "torch_nn": "`torch.nn`",
    "joeynmt": "JoeyNMT",
    "ctranslate2": "CTranslate2",
}


class Cell(NamedTuple):
    """One comparison: ours in tokens a second, next to the fastest other."""

    size: str
    work: str
    processor: str
    ours: float
    theirs: float
    peer: str
    ratio: float

    def __str__(self) -> str:
        return (
            f"{self.size}, {self.work}, {self.processor}: {count(self.ours)} and "
            f"{count(self.theirs)} ({NAMES[self.peer]}), **{ratio_of(self)}**"
        )


def ratio_of(cell: Cell) -> str:
    """Write a ratio: the median of the rounds, and that of the medians if it is far worse."""
    of_medians = cell.ours / cell.theirs
    if of_medians < 0.9 * cell.ratio:
        return f"{cell.ratio:.2f} (of the medians {of_medians:.2f})"
    return f"{cell.ratio:.1f}"


DECODING = (
    "2026-11-26-decode-speed-zen4",
    "2026-11-26-decode-speed-zen4-avx2",
    "2026-11-26-decode-speed",
)


def decoding_cells(name: str) -> Iterator[Cell]:
    """Yield the comparisons of a file of decoding speed, our best with the best of others."""
    for size, model in load(name)["models"].items():
        for work, setting in model["settings"].items():
            found = setting["ratios"]["the best peer"]
            ours, theirs = (
                setting["systems"][found[side]]["tokens_per_second"] for side in ("ours", "theirs")
            )
            peer = found["theirs"].split()[0]
            yield Cell(size, WORK[work], PROCESSORS[name], ours, theirs, peer, found["ratio"])


def decoding_table(name: str) -> str:
    """Write all sizes, works and precisions of a file of decoding speed."""
    rows = []
    for size, model in load(name)["models"].items():
        for place, (work, setting) in enumerate(model["settings"].items()):
            systems = setting["systems"]
            speeds = [
                count(systems[f"{system} {precision}"]["tokens_per_second"])
                for system in ("pellucid", "ctranslate2")
                for precision in ("float32", "int8")
            ]
            share = f"{100 * systems['pellucid int8']['share_of_products']:.0f} %"
            ratio = f"{setting['ratios']['the best peer']['ratio']:.2f}"
            title = SIZES[size] if place == 0 else ""
            rows.append((title, WORK[work], *speeds, ratio, share))
    return table(
        "| model | work | ours float32 | ours int8 | CTranslate2 float32 | CTranslate2 int8 "
        "| ratio | of int8's rate |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        rows,
    )


TRAINING = (
    "2026-11-24-train-speed-tiny-avx512",
    "2026-11-24-train-speed-base-avx512",
    "2026-11-25-train-speed-tiny-zen4",
    "2026-11-25-train-speed-base-zen4",
    "2026-11-24-train-speed-tiny-kernels",
)
"""The files of training speed that the tables show: the kernels in C on three processors."""


def training_cells(name: str) -> Iterator[Cell]:
    """Yield the comparisons of a file of training speed, precision by precision."""
    for size, found in load(name)["sizes"].items():
        speeds = {
            tuple(system.split()): one["subwords_per_second"]
            for system, one in found["systems"].items()
        }
        for precision in ("float32", "bfloat16"):
            if ("pellucid", precision) not in speeds:
                continue
            ours = speeds["pellucid", precision]
            others = {
                system: speed
                for (system, of), speed in speeds.items()
                if of == precision and system != "pellucid"
            }
            peer = max(others, key=others.__getitem__)
            theirs = others[peer]
            yield Cell(size, precision, PROCESSORS[name], ours, theirs, peer, ours / theirs)


def training_table() -> str:
    """Write training speed, each precision next to the others' in the same one."""
    rows = []
    for name in TRAINING:
        found = load(name)
        for cell in training_cells(name):
            systems = found["sizes"][cell.size]["systems"]
            others = [
                systems.get(f"{system} {cell.work}", {}).get("subwords_per_second")
                for system in ("marian", "hugging_face", "torch_nn")
            ]
            rows.append(
                (
                    f"{cell.size}, {cell.processor} ({link(found['date'], name)})",
                    cell.work,
                    count(cell.ours),
                    *("" if one is None else count(one) for one in others),
                    f"{cell.ratio:.1f}",
                )
            )
    return table(
        "| model, processor | precision | ours | Marian | Hugging Face | `torch.nn` "
        "| ours ÷ the fastest other |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
        rows,
    )


def readme_speed() -> str:
    """Write the best and the worst cell of each kind of work."""
    trained = [cell for name in TRAINING for cell in training_cells(name)]
    decoded = [cell for name in DECODING for cell in decoding_cells(name)]
    kinds = {
        "training in float32": [one for one in trained if one.work == "float32"],
        "training in bfloat16": [one for one in trained if one.work == "bfloat16"],
        "one sentence": [one for one in decoded if one.work.startswith("one")],
        "128 sentences": [one for one in decoded if one.work.startswith("128")],
    }
    rows = []
    for title, cells in kinds.items():
        best = max(cells, key=lambda one: one.ratio)
        worst = min(cells, key=lambda one: min(one.ratio, one.ours / one.theirs))
        rows.append((title, shown(best, title), shown(worst, title)))
    return table("| work | best case | worst case |", "| --- | --- | --- |", rows)


def shown(cell: Cell, title: str) -> str:
    """Write a cell without what the title of its row says already."""
    return str(cell._replace(work=cell.work.removeprefix(f"{title}, "))).replace(
        f", {title.rpartition(' ')[2]},", ","
    )


def pipe_table() -> str:
    """Write the speed and the memory of a million lines."""
    found = load("2026-11-26-pipe")
    rows = []
    for name, title in (
        (
            "streamed",
            "`pellucid translate demo`, from standard input to standard output (float32)",
        ),
        ("whole", "from a file into a file"),
    ):
        one = found[name]
        memory = (one["mean_mib_second_fifth"], one["mean_mib_last_fifth"])
        rows.append((title, count(one["lines_per_second"]), ", ".join(map(count, memory))))
    peer = found["ctranslate2"]
    title = "CTranslate2, tokens to tokens, at its fastest (int8, two workers)"
    memory_of_peer = f"{count(peer['peak_megabytes'])} at its peak"
    rows.append((title, count(peer["lines_per_second"]), memory_of_peer))
    return table(
        "| | lines per second | memory, second fifth and last fifth of the time, MiB |",
        "| --- | ---: | --- |",
        rows,
    )


def serving_table() -> str:
    """Write what clients of the service wait, by their number."""
    rows = []
    for clients, one in load("2026-11-26-serve-load")["clients"].items():
        answers = ", ".join(count(one.get(kind, 0)) for kind in ("right", "wrong", "lost"))
        rows.append(
            (
                f"{clients}, ten minutes" if clients == "200" else clients,
                count(one["requests_per_second"]),
                f"{one['p50_ms']:.1f}",
                f"{one['p99_ms']:.1f}",
                answers,
                f"{one['livez_p99_ms']:.1f}",
            )
        )
    return table(
        "| clients | requests a second | median, ms | p99, ms | right, wrong, lost "
        "| `/livez` p99, ms |",
        "| ---: | ---: | ---: | ---: | --- | ---: |",
        rows,
    )


def abuse_table() -> str:
    """Write how fast the service answers a question about its health under abuse."""
    found = load("2026-11-26-serve-abuse")
    titles = {
        "slow": f"{found['slow']['clients']} slow clients",
        "raw": f"{count(found['raw']['requests'])} fuzzed requests",
        "schema_livez": "requests made from the schema",
    }
    rows = [
        (title, *(f"{found[name][f'livez_{one}_ms']:.1f}" for one in ("p50", "p99", "largest")))
        for name, title in titles.items()
    ]
    return table(
        "| meanwhile | `/livez` p50, ms | p99, ms | longest, ms |",
        "| --- | ---: | ---: | ---: |",
        rows,
    )


def beside_table() -> str:
    """Write what the same questions take in other tools that look inside."""
    rows = []
    for task in load("2026-11-29-beside")["tasks"]:
        cells: list[str] = []
        for tool in ("pellucid", "transformer_lens", "nnsight"):
            numbers = task["tools"][tool]
            cells += [str(numbers["statements"]), f"{1000 * numbers['seconds']:.3g}"]
        largest = max(one.get("difference", 0.0) for one in task["tools"].values())
        rows.append((task["title"], *cells, f"{largest:.0e}" if largest else "0"))
    return table(
        "| task | Pellucid: statements | ms | TransformerLens: statements | ms "
        "| nnsight: statements | ms | difference |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        rows,
    )
