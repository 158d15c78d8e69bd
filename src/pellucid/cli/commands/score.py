"""``pellucid score``: the log-probability of given translations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pellucid.cli.ending import LINES_FAILED, say_error, warn
from pellucid.cli.lines.pair_files import SOURCE, TARGET, Pairs, pair_files
from pellucid.cli.lines.streams import (
    STANDARD,
    open_output,
    parallel_windows,
    to_json_line,
)
from pellucid.cli.options import (
    Device,
    Ensemble,
    From,
    Json,
    Model,
    ModelChanges,
    OutputFile,
    Overwrite,
    Threads,
    To,
    described,
)

if TYPE_CHECKING:
    from pellucid.translate.results import Scored


@described(
    source=SOURCE,
    target=TARGET,
    tokens=("", "Add each token and its log-probability."),
)
def score(
    model: Model,
    pairs: Pairs = None,
    source: str | None = None,
    target: str | None = None,
    tokens: bool = False,
    json: Json = False,
    source_language: From = None,
    to: To = None,
    change: ModelChanges = None,
    output_file: OutputFile = STANDARD,
    overwrite: Overwrite = False,
    ensemble: Ensemble = None,
    threads: Threads = None,
    device: Device = None,
) -> int:
    """Compute the log-probability of given translations: one natural logarithm a line.

    It is the sum over the target's tokens, the final </s> included. With --tokens the tokens
    and their log-probabilities follow on the same line, separated by tabs. A pair that cannot
    be scored gives an empty line and a sentence on standard error, and the exit code is 3.

    To score several translations of a line, repeat the line.
    """
    files = pair_files(pairs, source, target, model=model, command="score")
    windows = parallel_windows(files, damaged_in=files)
    write = _to_json if json else _to_line
    has_errors = False
    number = 0
    # Files are checked first: PyTorch and the model take seconds to load.
    with open_output(output_file, may_overwrite=overwrite) as output:
        from pellucid.languages.codes import direction
        from pellucid.text.language_tokens import CodeFaults, find_fault
        from pellucid.translate.translator import load

        translator = load(model, threads=threads, ensemble=tuple(ensemble or ()))
        if change:
            translator = translator.changed(change)
        codes = CodeFaults()
        to = direction(source_language, to)
        for sources, targets in windows:
            for scored in translator.score(sources, targets, to=to):
                if scored.error is not None:
                    has_errors = True
                    say_error(f"line {number + 1}: {scored.error}")
                # With --to the code of the language is put in, and cannot be wrong.
                if to is None:
                    codes.add(number, find_fault(translator.tokenizer, scored.source))
                output.write(write(number, scored, has_tokens=tokens))
                number += 1
            # Who reads a pipe gets these results while the next ones are computed.
            output.flush()
    if sentence := codes.sentence(translator.tokenizer, "--to LANGUAGE"):
        warn(sentence)
    return LINES_FAILED if has_errors else 0


def _to_line(_number: int, scored: Scored, *, has_tokens: bool) -> str:
    if scored.error is not None:
        return "\n"
    fields = [f"{scored.log_probability:.6f}"]
    if has_tokens:
        for token, value in zip(scored.tokens, scored.token_log_probabilities, strict=True):
            fields += [token, f"{value:.6f}"]
    return "\t".join(fields) + "\n"


def _to_json(number: int, scored: Scored, *, has_tokens: bool) -> str:
    return to_json_line({"line": number, **scored.to_dict(has_tokens=has_tokens)})
