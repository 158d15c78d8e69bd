"""``pellucid vectors``: the vectors of a corpus at one place of a model."""

from __future__ import annotations

from pellucid.cli.ending import LINES_FAILED, say_error
from pellucid.cli.lines.pair_files import OWN_TARGET, SOURCE, Pairs, pair_files
from pellucid.cli.lines.streams import read_columns
from pellucid.cli.options import (
    Device,
    From,
    Model,
    ModelChanges,
    Threads,
    To,
    check_utf8,
    described,
)
from pellucid.cli.outputs import OverwriteFiles, choose_outputs
from pellucid.errors import InputError
from pellucid.terminal.progress import ProgressLine


@described(
    source=SOURCE,
    target=OWN_TARGET,
    at=(
        "PLACE",
        "The vectors: an array such as encoder.1.feed_forward.norm or decoder.1.cross.key, that "
        "of one head, encoder.0.self.3.value, or a layer, encoder.1.",
    ),
    words=(
        "WORD",
        "Only the vectors of this word: of the source, or of what decoder rows predict. May be "
        "repeated.",
    ),
    output=(
        "FILE",
        "The .npz or .parquet file to write; -.npz is standard output.",
        {"name": "-o --output"},
    ),
)
def vectors(
    model: Model,
    pairs: Pairs = None,
    source: str | None = None,
    target: str | None = None,
    at: str | None = None,
    words: list[str] | None = None,
    change: ModelChanges = None,
    source_language: From = None,
    to: To = None,
    output: list[str] | None = None,
    overwrite: OverwriteFiles = False,
    threads: Threads = None,
    device: Device = None,
) -> int:
    """Collect the vectors of many lines at one place of a model.

    A file has one vector for each token, or for each of --words, and its line, position and word.
    Lines of one length run together, through the half of the model that the place needs. Without
    targets, decoder rows are those of the model's own translations, found greedily.

    An interrupted command continues when it is given again.
    """
    files = pair_files(pairs, source, target, model=model, command="vectors", needs_target=False)
    outputs = choose_outputs(output, ("npz", "parquet"), overwrite=overwrite)
    if at is None or len(outputs.files) != 1:
        one = "-o -.npz, which says the form" if output == ["-"] else "one -o FILE"
        missing = "--at PLACE" if at is None else one
        raise InputError(f"vectors needs a place, and one file to write into. Give {missing}.")
    (path,) = outputs.files
    for word in (at, *(words or ())):
        check_utf8("--at and --words", word)
    columns = read_columns(files)

    from pellucid.bundle import load_bundle, resolve_model
    from pellucid.inside.studies.corpus_vectors import vectors as collect_vectors
    from pellucid.machine.devices import device_in_use
    from pellucid.machine.hardware import set_threads

    set_threads(threads)
    bundle = load_bundle(resolve_model(model), device_in_use())
    with ProgressLine(bar="short") as line:
        found = collect_vectors(
            bundle,
            columns["--source"],
            columns.get("--target"),
            at=at,
            output=path,
            words=words or (),
            changes=change,
            overwrite=overwrite,
            source_language=source_language,
            to=to,
            on_step=lambda what, done, total: line.show(f"{done} of {total}: {what}"),
        )
    left_out = found.about["left_out"]
    for sentence in left_out:
        say_error(sentence)
    return LINES_FAILED if left_out else 0
