"""The main job on the built-in corpus: train, evaluate, translate, look inside."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from rich.console import Console

from pellucid.config import Recipe, load_recipe
from pellucid.corpora import (
    DEFAULT_COUNTS,
    Example,
    SplitName,
    baseline_accuracies,
    majority_gender,
    make_split,
    seed_examples,
    write_examples,
)
from pellucid.errors import make_printable
from pellucid.files import new_folder, write_text
from pellucid.inside.show.model_page import model_page
from pellucid.inside.show.terminal import draw_row
from pellucid.inside.traces import Trace
from pellucid.lessons.walks.for_page import lessons_for
from pellucid.machine.hardware import describe_machine
from pellucid.page.plain_page import html_page, html_table
from pellucid.terminal.text import styled_output
from pellucid.text.reading.lines import read_lines
from pellucid.text.tokenizers.whole_words import JOINER
from pellucid.training.loop import train
from pellucid.training.run.folder import RunFolder
from pellucid.translate.results import Translation
from pellucid.translate.translator import Translator, load
from pellucid.wording.other_names import explain_call

# The splits to test on, and what each asks of the model.
TESTS: Mapping[SplitName, str] = {
    "validation": "new sentences; the best model was chosen on these",
    "test": "new sentences",
    "compositional": "pairs of words that training never has together",
    "pronoun": "minimal pairs: another predicate, another antecedent",
}


@dataclass(frozen=True)
class SplitResult:
    """The number of sentences of a split that are translated exactly.

    Attributes:
        name: the split.
        num_examples: number of its sentences.
        num_right: number translated exactly.
        num_pairs_right: number of minimal pairs with both right; None for a split without pairs.
    """

    name: str
    num_examples: int
    num_right: int
    num_pairs_right: int | None = None

    @property
    def exact_match(self) -> float:
        """The share translated exactly."""
        return self.num_right / max(1, self.num_examples)

    @property
    def pairs_exact_match(self) -> float:
        """The share of minimal pairs with both translated exactly."""
        return 2 * (self.num_pairs_right or 0) / max(1, self.num_examples)


@dataclass(frozen=True)
class _Findings:
    """The results to show: scores, baselines, and sentences with translations and traces."""

    results: Sequence[SplitResult]
    baselines: Mapping[str, float]
    examples: Sequence[Example]
    translations: Sequence[Translation]
    traces: Sequence[Trace]


def run_demo(out: Path, *, recipe_file: Path, changes: Sequence[str] = ()) -> None:
    """Train on the built-in corpus, or show what an earlier call trained.

    Args:
        out: the run folder, which also gets the corpus, a report and a page.
        recipe_file: the recipe ``tiny-en-fr``.
        changes: ``section.key=value``, as for training.

    Raises:
        InputError: the folder holds something else.
        KeyboardInterrupt: Ctrl-C; what was learned is saved.
    """
    started = time.monotonic()
    recipe = load_recipe(recipe_file, changes)
    run = RunFolder(out, recipe)
    console = Console(stderr=True, markup=False, emoji=False)
    steps = recipe.training.max_steps
    is_recurrent = recipe.model.is_recurrent
    kind = "recurrent model" if is_recurrent else "Transformer"
    console.print(
        f"Pellucid will write an English-French corpus into {out / 'corpus'}, train a small "
        f"{kind} on it ({steps:,} steps, a matter of minutes; the first ones show of how many), "
        "test it, and look at what it attends to. Ctrl-C keeps what was learned; the same command "
        "resumes.",
        highlight=False,
    )
    with run.locked(), run.created():
        _write_corpus(out / "corpus", seed=recipe.training.seed)
    summary = train(recipe, out, recipe_folder=out)
    translator = load(out)
    findings = _test(translator, out / "corpus", seed=recipe.training.seed)
    _show(findings)
    _write_results(out, recipe, findings, summary.seconds)
    _write_page(out, findings, translator)
    minutes = (time.monotonic() - started) / 60
    training_minutes = summary.seconds / 60
    pages = [f"{out / 'demo.html'} (results)", f"{out / 'look.html'} (attention)"]
    report = out / "report.html"
    if report.is_file():  # Its curves need Matplotlib, an extra; training says so if it is missing.
        pages.append(f"{report} (training)")
    console.print(
        f"\nDone in {minutes:.1f} minutes ({training_minutes:.1f} of training). The model is in "
        f"{out / 'bundle'}; open {', '.join(pages[:-1])} and {pages[-1]}.\n"
        f'Try: echo "The soup was next to the car and it was too salty." | '
        f"pellucid translate {out}",
        highlight=False,
    )


def evaluate_split(
    translator: Translator, name: str, pairs: Sequence[tuple[str, str]]
) -> SplitResult:
    """Count the sentences that are translated exactly."""
    translations = translator.translate([source for source, _ in pairs])
    is_right = [
        translation.text == target
        for translation, (_, target) in zip(translations, pairs, strict=True)
    ]
    pairs_right = None
    if name == "pronoun":
        pairs_right = sum(map(all, zip(is_right[::2], is_right[1::2], strict=True)))
    return SplitResult(name, len(pairs), sum(is_right), pairs_right)


def _write_corpus(folder: Path, *, seed: int) -> None:
    """Write all splits, unless an earlier call did."""
    if folder.is_dir():
        return
    with new_folder(folder) as part:
        for name in DEFAULT_COUNTS:
            write_examples(part, name, make_split(name, seed=seed))


def _test(translator: Translator, corpus: Path, *, seed: int) -> _Findings:
    """Evaluate the test splits, and look at the example sentences."""
    results = []
    for name in TESTS:
        sides = [read_lines(corpus / f"{name}.{side}") for side in ("en", "fr")]
        results.append(evaluate_split(translator, name, list(zip(*sides, strict=True))))
    majority = majority_gender(make_split("train", seed=seed, count=5000))
    baselines = baseline_accuracies(make_split("pronoun", seed=seed), majority=majority)
    examples = seed_examples()
    sources = [example.source for example in examples]
    traces = [trace for (trace,) in translator.look_at_each(sources)]
    return _Findings(results, baselines, examples, translator.translate(sources), traces)


_IN_TRAINING = "all ten are in the training text, again and again"


def _show(findings: _Findings) -> None:
    write = sys.stdout.write
    write("\nTranslated exactly:\n")
    for name, result in zip(TESTS, findings.results, strict=True):
        write(f"  {name:14s} {result.exact_match:6.1%}  {TESTS[name]}\n")
        if result.num_pairs_right is not None:
            write(f"  {'both of a pair':14s} {result.pairs_exact_match:6.1%}\n")
    write("Gender of the pronoun by a rule of thumb, on the pronoun test:\n")
    for rule, share in findings.baselines.items():
        write(f"  {rule:16s} {share:6.1%}\n")
    write(f"\nSentences of texts on attention ({_IN_TRAINING}):\n")
    for example, translation in zip(findings.examples, findings.translations, strict=True):
        is_right = translation.text == example.target
        note = "" if is_right else f"   (should be: {example.target})"
        write(f"  {example.source}\n    {translation.text}{note}\n")
    sys.stdout.flush()
    _show_pronoun(findings)


def _show_pronoun(findings: _Findings) -> None:
    """Draw the decoder row that writes the pronoun of the first sentence that has one."""
    index = next(i for i, example in enumerate(findings.examples) if example.pronouns)
    trace = findings.traces[index]
    if not _is_shown(trace, "cross"):
        return
    row = row_of_piece(trace, findings.examples[index].pronouns[0].target)
    if row is None:
        return
    console = Console(file=styled_output(), highlight=False, markup=False, emoji=False)
    source = findings.translations[index].source
    console.print(f"\nCross-attention weights, in percent, for: {source}")
    for line in draw_row(trace, row):
        console.print(line)


def _is_shown(trace: Trace, kind: str) -> bool:
    """Tell whether a trace holds weights of a kind of attention; recurrent models lack some."""
    return any(name.endswith(f".{kind}.weights") for name in trace.arrays)


def row_of_piece(trace: Trace, piece: int) -> int | None:
    """Find the decoder row that predicts the beginning of a word, words counted from 0."""
    tokens = trace.predicted_tokens
    if any(token.startswith("▁") for token in tokens):
        starts = [row for row, token in enumerate(tokens) if token.startswith("▁")]
    else:
        starts = [row for row, token in enumerate(tokens) if not token.startswith((JOINER, "</"))]
    return starts[piece] if piece < len(starts) else None


def _write_results(out: Path, recipe: Recipe, findings: _Findings, seconds: float) -> None:
    rows: list[tuple[str, str, str, str]] = []
    for name, result in zip(TESTS, findings.results, strict=True):
        rows.append((name, TESTS[name], f"{result.num_examples}", f"{result.exact_match:.1%}"))
        if result.num_pairs_right is not None:
            num_pairs = result.num_examples // 2
            share = result.pairs_exact_match
            rows.append((f"{name}, pairs", "both of a pair", f"{num_pairs}", f"{share:.1%}"))
    sentences = zip(findings.examples, findings.translations, strict=True)
    page = html_page(
        "A translator of the built-in corpus",
        f"<p>{seconds / 60:.1f} minutes of training, {recipe.training.max_steps:,} steps. "
        f"{describe_machine()}.</p>",
        "<h2>Translated exactly</h2>",
        html_table(("split", "what it asks", "sentences", "exact"), rows),
        "<h2>Rules of thumb on the pronoun test</h2>",
        "<p>How often each gives the pronoun the right French gender.</p>",
        html_table(
            ("rule", "right"),
            [(rule, f"{share:.1%}") for rule, share in findings.baselines.items()],
        ),
        "<h2>Sentences of texts on attention</h2>",
        f"<p>The model knows them: {_IN_TRAINING}.</p>",
        html_table(
            ("English", "the model", "the corpus"),
            [(example.source, found.text, example.target) for example, found in sentences],
        ),
        f"<p>Made by <code>pellucid demo -o {escape(make_printable(str(out)))}</code>, seed "
        f"{recipe.training.seed}.</p>",
    )
    write_text(out / "demo.html", page)


def _write_page(out: Path, findings: _Findings, translator: Translator) -> None:
    """Write the page that runs the new model, opened at the first example."""
    bundle = translator.bundle
    if not _is_shown(findings.traces[0], "cross"):
        page = html_page(
            "What the model attends to",
            "<p>This model has no attention: its decoder reads one vector of fixed length.</p>",
            f'<p class="note">Model {bundle.model_hash}.</p>',
        )
        write_text(out / "look.html", page)
        return
    # A sentence of the training text says little about others, so the page says which these are.
    remarks = [f"The page opens at one of ten example sentences; {_IN_TRAINING}. Type others."]
    lessons, reason = lessons_for(bundle)
    page = model_page(
        bundle,
        findings.traces[0],
        findings.translations[0].source,
        lessons=lessons,
        without_lessons=reason,
        name=str(bundle.folder),
        remarks=remarks,
    )
    write_text(out / "look.html", page)


explain_call(__name__)
