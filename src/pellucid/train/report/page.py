"""The report of a run: one page that needs no network and no script, and one picture."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from pellucid.files import write_bytes, write_text
from pellucid.train.console.summary import describe_seconds
from pellucid.train.report.figures import (
    Panel,
    panels_of,
    render_png,
    render_svg,
    short_number,
)
from pellucid.train.report.reading import RunRecords, Sample, read_run, speeds
from pellucid.train.report.style import style_sheet

__all__ = ["render_page", "write_report"]

MOST_ROWS = 60
MOST_EVENTS = 200
MOST_SOURCES = 20
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")

SETTINGS: Mapping[str, Sequence[str]] = {
    "model": (
        "architecture",
        "d_model",
        "d_ff",
        "num_heads",
        "num_encoder_layers",
        "num_decoder_layers",
        "norm",
        "activation",
        "positions",
        "tied_embeddings",
    ),
    "training": (
        "seed",
        "precision",
        "processes",
        "max_tokens_per_batch",
        "accumulate",
        "optimizer",
        "learning_rate",
        "warmup_steps",
        "schedule",
        "label_smoothing",
        "dropout",
        "r_drop",
        "subword_samples",
        "both_directions_steps",
        "averaging",
        "max_steps",
        "patience",
    ),
}
"""What of a recipe is shown beside the results; the whole recipe stands at the end."""


def write_report(run: Path) -> None:
    """Write ``report.html`` and ``report.png`` about a run from what its folder holds.

    The page is one file without script or network. Whatever is missing, damaged or not a number
    is left out; a run of the same records gives the same bytes.

    Args:
        run: the run folder.

    Raises:
        OutputError: the folder cannot take them.
    """
    records = read_run(run)
    write_bytes(run / "report.png", render_png(panels_of(records), _outcome(records)))
    write_text(run / "report.html", render_page(records))


def render_page(records: RunRecords) -> str:
    """The whole report as one page of HTML."""
    title = f"Training report: {_directions(records) or records.name}"
    sections = [
        f"<header>\n<h1>{_text(title)}</h1>\n<p>{_text(_outcome(records))}</p>\n</header>\n<main>",
        _tiles(records),
        _curves(records, panels_of(records)),
        _samples(records),
        _events(records),
        _facts(records),
        _command(records),
        _numbers(records),
    ]
    body = "\n".join(section for section in sections if section)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(title)}</title>\n<style>{style_sheet()}</style>\n</head>\n<body>\n"
        f"{body}\n</main>\n</body>\n</html>\n"
    )


def _outcome(records: RunRecords) -> str:
    """The run in one sentence."""
    done = f"{records.last_step:,} steps in {describe_seconds(records.seconds)}"
    if records.best is None:
        return f"Not validated yet; {done}."
    best = records.best
    return f"Best validation BLEU {best['bleu']:.1f} at step {int(best['step']):,}; {done}."


def _directions(records: RunRecords) -> str:
    source, target = (_setting(records, "data", f"{side}_language") for side in _SIDES)
    return f"{source} → {target}" if source and target else ""


_SIDES = ("source", "target")


def _tiles(records: RunRecords) -> str:
    best = records.best or {}
    speed = sorted(value for _, value in speeds(records))
    tokens = [line["target_tokens"] for line in records.train]
    tiles = {
        "best BLEU": f"{best['bleu']:.1f}" if best else "–",
        "its chrF": f"{best['chrf']:.1f}" if best else "–",
        "its loss": f"{best['loss']:.3f}" if best else "–",
        "steps": f"{records.last_step:,}",
        "time": describe_seconds(records.seconds),
        "tokens/s (median)": short_number(speed[len(speed) // 2]) if speed else "–",
        _tokens_until(records): f"{tokens[-1]:,.0f}" if tokens and tokens[-1] >= 0 else "–",
        "parameters": f"{sum(records.parameters.values()):,}" if records.parameters else "–",
    }
    items = "".join(
        f"<div><dt>{_text(name)}</dt><dd>{_text(value)}</dd></div>\n"
        for name, value in tiles.items()
    )
    return f'<dl class="tiles">\n{items}</dl>'


def _tokens_until(records: RunRecords) -> str:
    """Name the count, which the log has of its own steps alone."""
    logged = int(records.train[-1]["step"]) if records.train else records.last_step
    until = "" if logged == records.last_step else f" until step {logged:,}"
    return f"target tokens seen{until}"


def _curves(records: RunRecords, panels: Iterable[Panel]) -> str:
    figures = []
    for panel in panels:
        left_out = ""
        if panel.num_left_out:
            left_out = f" <small>({panel.num_left_out:,} not finite, left out)</small>"
        figures.append(
            f"<figure>\n<figcaption>{_text(panel.title)}{left_out}</figcaption>\n"
            f"{render_svg(panel)}\n</figure>"
        )
    note = "Training loss is unsmoothed. Intervals with a validation are left out of the speed. "
    if records.best is not None:
        note = f"The dashed line marks the best validation. {note}"
    return (
        f'<section>\n<h2>Curves</h2>\n<div class="curves">\n{"".join(figures)}\n</div>\n'
        f'<p class="note">{note}<a href="#numbers">The numbers behind the curves</a> are at the '
        "end.</p>\n</section>"
    )


def _samples(records: RunRecords) -> str:
    """What became of each sample: its first, middle and last translation."""
    by_source: dict[str, list[Sample]] = {}
    for sample in records.samples:
        by_source.setdefault(sample.source, []).append(sample)
    if not by_source:
        return ""
    best = None if records.best is None else records.best["step"]
    blocks = []
    for said in list(by_source.values())[:MOST_SOURCES]:
        chosen = sorted({0, (len(said) - 1) // 2, len(said) - 1})
        rows = [
            ("source", said[-1].source, "source"),
            ("reference", said[-1].reference, "target"),
        ]
        for index in chosen:
            step = said[index].step
            mark = " (best)" if step == best else ""
            rows.append((f"step {step:,}{mark}", said[index].translation, "target"))
        items = "".join(
            f'<dt>{_text(name)}</dt><dd dir="auto"{_language(records, side)}>'
            f"{_text(text) or '–'}</dd>\n"
            for name, text, side in rows
        )
        blocks.append(f'<div class="sample"><dl>\n{items}</dl></div>')
    return f"<section>\n<h2>Translations</h2>\n{''.join(blocks)}\n</section>"


def _events(records: RunRecords) -> str:
    if not records.events:
        return ""
    shown = records.events[-MOST_EVENTS:]
    earlier = len(records.events) - len(shown)
    items = "".join(f"<li>{_text(event)}</li>\n" for event in shown)
    note = f'<p class="note">{earlier:,} earlier ones are in log.txt.</p>\n' if earlier else ""
    return f"<section>\n<h2>What happened</h2>\n{note}<ul>\n{items}</ul>\n</section>"


def _facts(records: RunRecords) -> str:
    """Machine, data, model and settings as tables."""
    manifest = records.manifest
    machine = {
        "machine": _words(manifest.get("machine")),
        "versions": _words(manifest.get("library")),
        "model saved": _words(manifest.get("created")),
    }
    data = {
        "languages": _directions(records),
        "training text": _files(records, "train"),
        "validation text": _files(records, "validation"),
        **{key: _words(value) for key, value in _entries(manifest, "data")},
    }
    parts = {f"{part} parameters": f"{size:,}" for part, size in records.parameters.items() if size}
    model = parts | {key: _words(_setting(records, "model", key)) for key in SETTINGS["model"]}
    used = dict(_entries(manifest, "training"))  # of what a recipe leaves to the machine
    training = {"started from": _words(_setting(records, "start", "model"))} | {
        key: _words(used.get(key, _setting(records, "training", key)))
        for key in SETTINGS["training"]
    }
    saved = {
        key: _words(value)
        for section in ("training", "metrics", "durations")
        for key, value in _entries(manifest, section)
        if key not in training
    }
    tables = "".join(
        _fact_table(caption, rows)
        for caption, rows in (
            ("Machine", machine),
            ("Data", data),
            ("Model", model),
            ("Training", training),
            ("The model that was kept", saved),
        )
    )
    if not tables:
        return ""
    return f'<section>\n<h2>Facts</h2>\n<div class="facts">\n{tables}</div>\n</section>'


def _command(records: RunRecords) -> str:
    again = shlex.join(
        ["pellucid", "train", f"{records.name}/recipe.toml", "--out", f"{records.name}-again"]
    )
    folder = _setting(records, "data", "folder")
    was = f" (here it was <code>{_text(folder)}</code>)" if folder else ""
    told, start = "FOLDER", _setting(records, "start", "model")
    if start:
        told = "FOLDER --set start.model=MODEL"
        was += f", and MODEL the model to start from (<code>{_text(start)}</code>)"
    recipe = ""
    if records.recipe_toml:
        recipe = (
            "<details>\n<summary>The whole recipe (recipe.toml)</summary>\n"
            f"<pre>{_text(records.recipe_toml)}</pre>\n</details>\n"
        )
    return (
        "<section>\n<h2>Train it again</h2>\n"
        f"<pre>{_text(again)} --set data.folder={told}</pre>\n"
        f"<p>FOLDER is where the text files are{was}. The recipe in the run folder says everything "
        "else. The same kind of machine, number of threads and versions give the same model to the "
        f"bit.</p>\n{recipe}</section>"
    )


def _numbers(records: RunRecords) -> str:
    speed = dict(speeds(records))
    validation = [
        (
            f"{line['step']:,.0f}",
            _clock(line),
            _fixed(line["loss"], 4),
            _fixed(line["bleu"], 2),
            _fixed(line["chrf"], 2),
        )
        for line in records.validation
    ]
    train = [
        (
            f"{line['step']:,.0f}",
            short_number(line["epoch"]),
            _clock(line),
            _fixed(line["loss"], 4),
            short_number(line["learning_rate"]),
            short_number(line["gradient_norm"]),
            short_number(speed.get(int(line["step"]), _NAN)),
        )
        for line in records.train
    ]
    tables = [
        _number_table("Validation", ("step", "time", "loss", "BLEU", "chrF"), validation),
        _number_table(
            "Training",
            ("step", "epoch", "time", "loss", "learning rate", "gradient norm", "tokens/s"),
            train,
        ),
    ]
    return f'<section id="numbers">\n<h2>Numbers</h2>\n{"".join(tables)}</section>'


_NAN = float("nan")


def _number_table(name: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    stride = max(1, -(-len(rows) // MOST_ROWS))
    shown = list(rows[stride - 1 :: stride])
    if rows and shown[-1] is not rows[-1]:
        shown.append(rows[-1])
    caption = f"{name}, {len(rows):,} records"
    if stride > 1:
        caption += f", one of {stride} shown (all are in metrics.jsonl)"
    head = "".join(f'<th scope="col" class="number">{_text(cell)}</th>' for cell in header)
    body = "".join(
        "<tr>" + "".join(f'<td class="number">{_text(cell)}</td>' for cell in row) + "</tr>\n"
        for row in shown
    )
    return (
        f'<details>\n<summary>{name}</summary>\n<div class="scroll" tabindex="0" role="region" '
        f'aria-label="{name}"><table>\n<caption>{caption}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n</details>\n"
    )


def _fact_table(caption: str, rows: Mapping[str, str]) -> str:
    body = "".join(
        f'<tr><th scope="row">{_text(name.replace("_", " "))}</th><td>{_text(value)}</td></tr>\n'
        for name, value in rows.items()
        if value
    )
    return f"<table>\n<caption>{caption}</caption>\n{body}</table>\n" if body else ""


def _setting(records: RunRecords, section: str, key: str) -> Any:
    return records.recipe.get(section, {}).get(key, "")


def _entries(manifest: Mapping[str, Any], section: str) -> list[tuple[str, Any]]:
    values = manifest.get(section)
    return list(values.items()) if isinstance(values, dict) else []


def _files(records: RunRecords, split: str) -> str:
    names = [
        name
        for key in (f"{split}_source", f"{split}_target", split)
        for name in _setting(records, "data", key) or ()
    ]
    return ", ".join(str(name) for name in names)


def _words(value: Any) -> str:
    """A value of a file in words; nothing for nothing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return short_number(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_words(item)}" for key, item in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(_words(item) for item in value) or "none"
    return str(value)


def _clock(line: Mapping[str, float]) -> str:
    return f"{line['seconds'] / 60:,.1f} min" if line["seconds"] >= 0 else "–"


def _fixed(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if abs(value) < 1e7 else short_number(value)


def _language(records: RunRecords, side: str) -> str:
    language = str(_setting(records, "data", f"{side}_language"))
    return f' lang="{language}"' if _LANGUAGE.fullmatch(language) else ""


def _text(value: object) -> str:
    """Text for a page: nothing in it is markup, and nothing in it cannot be written."""
    plain = str(value).encode("utf-8", errors="replace").decode("utf-8")
    return escape(_CONTROL.sub("\ufffd", plain))
