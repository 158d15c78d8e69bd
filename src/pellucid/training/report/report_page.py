"""The report of a run: one page without network or script, and one picture."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from pellucid.files import write_bytes, write_text
from pellucid.page.plain_page import html_page
from pellucid.terminal.text import count_of
from pellucid.training.console.summary import describe_seconds
from pellucid.training.report.curves import (
    STYLE,
    CurvePanel,
    panels_of,
    render_png,
    render_svg,
    short_number,
)
from pellucid.training.report.run_history import RunHistory, SampleTranslation, read_run, speeds

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
        "token_cut",
        "subword_samples",
        "both_directions_steps",
        "averaging",
        "max_steps",
        "patience",
    ),
}
"""Settings of a recipe to show with the results; the whole recipe is at the end."""


def write_report(run: Path) -> None:
    """Write ``report.html`` and ``report.png`` about a run from the files in its folder.

    The page is one file without script or network. Whatever is missing, damaged or not a number is
    left out. Equal files give equal bytes.

    Args:
        run: the run folder.

    Raises:
        OutputError: the folder cannot be written to.
    """
    history = read_run(run)
    write_bytes(run / "report.png", render_png(panels_of(history), _outcome(history)))
    write_text(run / "report.html", render_page(history))


def render_page(history: RunHistory) -> str:
    """Make the whole report as one page of HTML."""
    title = f"Training report: {_directions(history) or history.name}"
    sections = [
        f"<p>{_text(_outcome(history))}</p>",
        _tiles(history),
        _curves(history, panels_of(history)),
        _samples(history),
        _events(history),
        _facts(history),
        _command(history),
        _numbers(history),
    ]
    return html_page(_plain(title), *filter(None, sections), style=STYLE)


def _outcome(history: RunHistory) -> str:
    """Summarize the run in one sentence."""
    done = f"{count_of(history.last_step, 'step')} in {describe_seconds(history.seconds)}"
    if history.best is None:
        return f"Not validated yet; {done}."
    best = history.best
    return f"Best validation BLEU {best['bleu']:.1f} at step {int(best['step']):,}; {done}."


def _directions(history: RunHistory) -> str:
    source, target = (
        _setting(history, "data", f"{side}_language") for side in ("source", "target")
    )
    return f"{source} → {target}" if source and target else ""


def _tiles(history: RunHistory) -> str:
    best = history.best or {}
    speed = sorted(value for _, value in speeds(history))
    tokens = [line["target_tokens"] for line in history.train]
    tiles = {
        "best BLEU": f"{best['bleu']:.1f}" if best else "–",
        "its chrF": f"{best['chrf']:.1f}" if best else "–",
        "its loss": f"{best['loss']:.3f}" if best else "–",
        "steps": f"{history.last_step:,}",
        "time": describe_seconds(history.seconds),
        "tokens/s (median)": short_number(speed[len(speed) // 2]) if speed else "–",
        _tokens_until(history): f"{tokens[-1]:,.0f}" if tokens and tokens[-1] >= 0 else "–",
        "parameters": f"{sum(history.parameters.values()):,}" if history.parameters else "–",
    }
    items = "".join(
        f"<div><dt>{_text(name)}</dt><dd>{_text(value)}</dd></div>\n"
        for name, value in tiles.items()
    )
    return f'<dl class="tiles">\n{items}</dl>'


def _tokens_until(history: RunHistory) -> str:
    """Name the count: the log has it only for the steps that it reports."""
    logged = int(history.train[-1]["step"]) if history.train else history.last_step
    until = "" if logged == history.last_step else f" until step {logged:,}"
    return f"target tokens seen{until}"


def _curves(history: RunHistory, panels: Iterable[CurvePanel]) -> str:
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
    if history.best is not None:
        note = f"The dashed line marks the best validation. {note}"
    return (
        f'<section>\n<h2>Curves</h2>\n<div class="curves">\n{"".join(figures)}\n</div>\n'
        f'<p class="note">{note}<a href="#numbers">The numbers behind the curves</a> are at the '
        "end.</p>\n</section>"
    )


def _samples(history: RunHistory) -> str:
    """Show each sample's first, middle and last translation."""
    by_source: dict[str, list[SampleTranslation]] = {}
    for sample in history.samples:
        by_source.setdefault(sample.source, []).append(sample)
    if not by_source:
        return ""
    best = None if history.best is None else history.best["step"]
    blocks = []
    for samples in list(by_source.values())[:MOST_SOURCES]:
        chosen = sorted({0, (len(samples) - 1) // 2, len(samples) - 1})
        rows = [
            ("source", samples[-1].source, "source"),
            ("reference", samples[-1].reference, "target"),
        ]
        for index in chosen:
            step = samples[index].step
            mark = " (best)" if step == best else ""
            rows.append((f"step {step:,}{mark}", samples[index].translation, "target"))
        items = "".join(
            f'<dt>{_text(name)}</dt><dd dir="auto"{_language(history, side)}>'
            f"{_text(text) or '–'}</dd>\n"
            for name, text, side in rows
        )
        blocks.append(f'<div class="sample"><dl>\n{items}</dl></div>')
    return f"<section>\n<h2>Translations</h2>\n{''.join(blocks)}\n</section>"


def _events(history: RunHistory) -> str:
    if not history.events:
        return ""
    shown = history.events[-MOST_EVENTS:]
    earlier = len(history.events) - len(shown)
    items = "".join(f"<li>{_text(event)}</li>\n" for event in shown)
    note = f'<p class="note">{earlier:,} earlier ones are in log.txt.</p>\n' if earlier else ""
    return f"<section>\n<h2>What happened</h2>\n{note}<ul>\n{items}</ul>\n</section>"


def _facts(history: RunHistory) -> str:
    """Show machine, data, model and settings as tables."""
    manifest = history.manifest
    machine = {
        "machine": _words(manifest.get("machine")),
        "versions": _words(manifest.get("library")),
        "model saved": _words(manifest.get("created")),
    }
    data = {
        "languages": _directions(history),
        "training text": _files(history, "train"),
        "validation text": _files(history, "validation"),
        # The counts of the text are packed, for the model and not for a reader.
        **{key: _words(value) for key, value in _entries(manifest, "data") if key != "text"},
    }
    parts = {f"{part} parameters": f"{size:,}" for part, size in history.parameters.items() if size}
    model = parts | {key: _words(_setting(history, "model", key)) for key in SETTINGS["model"]}
    # The manifest holds the values of settings left to the machine.
    used = dict(_entries(manifest, "training")) | dict(history.course)
    training = {"started from": _words(_setting(history, "start", "model"))} | {
        key: _words(used.get(key, _setting(history, "training", key)))
        for key in SETTINGS["training"]
    }
    saved = {
        key: _words(value)
        for section in ("training", "metrics", "durations")
        for key, value in _entries(manifest, section)
        if key not in training and key not in history.course
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


def _command(history: RunHistory) -> str:
    again = shlex.join(
        ["pellucid", "train", f"{history.name}/recipe.toml", "-o", f"{history.name}-again"]
    )
    folder = _setting(history, "data", "folder")
    here = f" (here it was <code>{_text(folder)}</code>)" if folder else ""
    values = "FOLDER"
    start = _setting(history, "start", "model")
    if start:
        values = "FOLDER --set start.model=MODEL"
        here += f", and MODEL the model to start from (<code>{_text(start)}</code>)"
    recipe = ""
    if history.recipe_toml:
        recipe = (
            "<details>\n<summary>The whole recipe (recipe.toml)</summary>\n"
            f"<pre>{_text(history.recipe_toml)}</pre>\n</details>\n"
        )
    return (
        "<section>\n<h2>Train it again</h2>\n"
        f"<pre>{_text(again)} --set data.folder={values}</pre>\n"
        f"<p>FOLDER is where the text files are{here}. The recipe in the run folder holds all "
        f"the rest. {_same(history)}</p>\n{recipe}</section>"
    )


def _same(history: RunHistory) -> str:
    """Say what training again gives: with a time limit, that depends on the machine."""
    minutes = _setting(history, "training", "max_minutes")
    if not isinstance(minutes, (int, float)) or minutes <= 0:
        return (
            "The same kind of machine, number of threads and versions give the same model, bit for "
            "bit."
        )
    # Without a value, a key of the recipe is left out: the repeat has no limit of time.
    course = {"max_minutes": "", "max_steps": history.last_step, **history.course}
    changes = " ".join(f"--set training.{key}={value}" for key, value in course.items())
    return (
        f"This run had a limit of {minutes:g} minutes and was planned for this machine: a repeat "
        "makes as many steps as its own machine can in that time, and gives another model. For "
        f"about the same course on every machine, add <code>{_text(changes)}</code>."
    )


def _numbers(history: RunHistory) -> str:
    speed = dict(speeds(history))
    validation = [
        (
            f"{line['step']:,.0f}",
            _clock(line),
            _fixed(line["loss"], 4),
            _fixed(line["bleu"], 2),
            _fixed(line["chrf"], 2),
        )
        for line in history.validation
    ]
    train = [
        (
            f"{line['step']:,.0f}",
            short_number(line["epoch"]),
            _clock(line),
            _fixed(line["loss"], 4),
            short_number(line["learning_rate"]),
            short_number(line["gradient_norm"]),
            short_number(speed.get(int(line["step"]), math.nan)),
        )
        for line in history.train
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


def _setting(history: RunHistory, section: str, key: str) -> Any:
    return history.recipe.get(section, {}).get(key, "")


def _entries(manifest: Mapping[str, Any], section: str) -> list[tuple[str, Any]]:
    values = manifest.get(section)
    return list(values.items()) if isinstance(values, dict) else []


def _files(history: RunHistory, split: str) -> str:
    names: list[object] = []
    for text in _setting(history, "data", split) or ():
        names += text if isinstance(text, list) else [text]
    return ", ".join(map(str, names))


def _words(value: Any) -> str:
    """Write a value from a file in words; None as an empty text."""
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


def _language(history: RunHistory, side: str) -> str:
    language = str(_setting(history, "data", f"{side}_language"))
    return f' lang="{language}"' if _LANGUAGE.fullmatch(language) else ""


def _text(value: object) -> str:
    """Escape text for a page: no markup, no control characters, valid UTF-8."""
    return escape(_plain(value))


def _plain(value: object) -> str:
    plain = str(value).encode("utf-8", errors="replace").decode("utf-8")
    return _CONTROL.sub("\ufffd", plain)
