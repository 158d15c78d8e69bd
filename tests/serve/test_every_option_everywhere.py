"""Each decoding option on each way to a translation: it is used, or refused by its name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from served import Live
from small_words import make_words_bundle

import pellucid
from pellucid.cli.bulk.work import Work
from pellucid.config import DecodingConfig
from pellucid.errors import PellucidError
from pellucid.serve.models import load_models
from pellucid.translate.translator import Translator

Options = dict[str, Any]
Texts = tuple[str, ...]
Run = Callable[..., Any]


class RefusedError(Exception):
    """A sentence that refuses what was asked for."""


# With random weights each option changes the translation of at least one of them.
LINES = ("good oven the", "it see The pizza", "and Let's", "and the and The")

# What an option needs beside it to have an effect, and a value other than its default.
FIELDS: dict[str, tuple[Options, Any]] = {
    "beam": ({}, 4),
    "n_best": ({"beam": 4}, 3),
    "length_penalty": ({"beam": 6, "alpha": 2.0}, "none"),
    "alpha": ({"beam": 6}, 6.0),
    "stopping": ({"beam": 2, "alpha": 6.0}, "heuristic"),
    "diverse_groups": ({"beam": 6, "diversity": 3.0}, 2),
    "diversity": ({"beam": 4, "diverse_groups": 2}, 0.0),
    "sample": ({}, True),
    "temperature": ({"sample": True}, 3.0),
    "top_k": ({"sample": True, "temperature": 3.0}, 1),
    "top_p": ({"sample": True, "temperature": 3.0}, 0.1),
    "epsilon": ({"sample": True, "temperature": 3.0}, 0.3),
    "seed": ({"sample": True, "temperature": 3.0}, 5),
    "max_length_ratio": ({"max_length_offset": 1}, 0.3),
    "max_length_offset": ({"max_length_ratio": 0.1}, 2),
    "max_length": ({}, 4),
    "min_length": ({}, 9),
    "min_length_ratio": ({}, 3.0),
    "no_repeat_ngram": ({}, 1),
    "repetition_penalty": ({}, 5.0),
    "forbidden_tokens": ({}, [[12, 12]]),
    "alternatives": ({"beam": 4, "n_best": 4}, True),
    "precision": ({"precision": "float32"}, "int8"),
    "strict": ({}, True),
}


REFUSALS = (PellucidError, TypeError, RefusedError)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_words_bundle(tmp_path_factory.mktemp("model") / "m", seed=4, d_model=40)


@pytest.fixture(scope="module")
def translator(model: Path) -> Translator:
    return pellucid.load(model)


@pytest.fixture(scope="module")
def server(model: Path) -> Iterator[Live]:
    with Live(load_models({"m": str(model)})) as server:
        yield server


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


# Gives the texts of all hypotheses, or raises.
Way = Callable[..., Texts]


def by_function(translator: Translator, line: str, options: Options, **_: Any) -> Texts:
    return tuple(one.text for one in translator.translate(line, **options).hypotheses)


def by_stream(translator: Translator, line: str, options: Options, **_: Any) -> Texts:
    return ("".join(translator.stream(line, **options)),)


def by_look(translator: Translator, line: str, options: Options, **_: Any) -> Texts:
    traces = next(translator.look_at_each([line], **options))
    return tuple(translator.tokenizer.decode_target(trace.predicted_ids) for trace in traces)


def by_one_look(translator: Translator, line: str, options: Options, **_: Any) -> Texts:
    trace = translator.look(line, **options)
    return (translator.tokenizer.decode_target(trace.predicted_ids),)


def by_evaluation(translator: Translator, line: str, options: Options, **_: Any) -> Texts:
    found = pellucid.evaluate(translator, source=[line], reference=["La pizza"], **options)
    return tuple(one.text for one in found.translations[0].hypotheses)


def by_pair(translator: Translator, line: str, options: Options, **_: Any) -> Texts:
    pair = translator.pair(line, **options)
    return (translator.tokenizer.decode_target(pair.target_ids),)


def by_slow_change(translator: Translator, line: str, options: Options, **_: Any) -> Texts:
    def same(x: Any) -> Any:
        return x

    from pellucid.inside import Replace

    changed = translator.changed(Replace({"encoder.0.feed_forward.norm": same}))
    return tuple(one.text for one in changed.translate(line, **options).hypotheses)


def by_score(translator: Translator, line: str, options: Options, **_: Any) -> Texts:
    return (str(translator.score(line, "La pizza", **options).log_probability),)


def _command(run: Run, *words: str, options: Options, stdin: str = "") -> str:
    settings = [
        word
        for name, value in options.items()
        for word in ("--set", f"decoding.{name}={json.dumps(value)}")
    ]
    done = run(*words, *settings, stdin=stdin)
    if done.returncode:
        raise RefusedError(done.stderr)
    output: str = done.stdout
    return output


def by_command(model: Path, line: str, options: Options, run: Run, **_: Any) -> Texts:
    said = _command(run, "translate", str(model), "--json", options=options, stdin=f"{line}\n")
    return tuple(one["text"] for one in json.loads(said)["hypotheses"])


def _without_source(text: str, line: str) -> str:
    """A document keeps its text where the translation is empty."""
    return "" if text == line else text


def by_document(
    model: Path, line: str, options: Options, run: Run, folder: Path, **_: Any
) -> Texts:
    page, out = folder / "page.md", folder / "out.md"
    page.write_text(f"{line}\n")
    words = ("translate", str(model), "-i", str(page), "-o", str(out), "--overwrite")
    _command(run, *words, options=options)
    return (_without_source(out.read_text().removesuffix("\n"), line),)


def by_bulk(model: Path, line: str, options: Options, run: Run, folder: Path, **_: Any) -> Texts:
    shard = folder / "in.txt"
    shard.write_text(f"{line}\n")
    tasks: list[Options] = []

    def begin(task: Options, *_: Any, **__: Any) -> int:
        tasks.append(task)
        return 0

    with pytest.MonkeyPatch.context() as patch:
        # A worker in this process, for the job that the command would begin.
        patch.setattr("pellucid.cli.bulk.bulk_jobs.begin", begin)
        words = ("bulk", "run", str(model), str(shard), "-o", str(folder / "job"), "--json")
        _command(run, *words, options=options)
    written, _failures = Work(tasks[0], 1).answer((0, str(shard), 1, [], None), line.encode())
    return tuple(one["text"] for one in json.loads(written)["hypotheses"])


def _post(server: Live, path: str, body: Options) -> Any:
    answer = server.post(path, body, headers={"Accept": "application/json"})
    if answer.status_code != 200:
        raise RefusedError(answer.text)
    return answer


def by_service(server: Live, line: str, options: Options, **_: Any) -> Texts:
    (found,) = _post(server, "/v1/translate", {"texts": line, **options}).json()["translations"]
    return tuple(one["text"] for one in found["hypotheses"])


def by_events(server: Live, line: str, options: Options, **_: Any) -> Texts:
    said = _post(server, "/v1/translate", {"texts": line, "stream": True, **options}).text
    end = said.rpartition("data: ")[2]
    return (json.loads(end)["translation"],)


def by_html(server: Live, line: str, options: Options, **_: Any) -> Texts:
    body = {"texts": f"<p>{line}</p>", "format": "html", **options}
    (found,) = _post(server, "/v1/translate", body).json()["translations"]
    text = unescape(found["translation"].removeprefix("<p>").removesuffix("</p>"))
    return (_without_source(text, line),)


def by_service_look(
    server: Live, translator: Translator, line: str, options: Options, **_: Any
) -> Texts:
    trace = _post(server, "/v1/look", {"text": line, **options}).json()
    return (translator.tokenizer.decode_target(trace["predicted_ids"]),)


def by_service_score(server: Live, line: str, options: Options, **_: Any) -> Texts:
    pairs = [{"source": line, "target": "La pizza"}]
    return (_post(server, "/v1/score", {"pairs": pairs, **options}).text,)


def by_service_align(server: Live, line: str, options: Options, **_: Any) -> Texts:
    pairs = [{"source": line, "target": "La pizza"}]
    return (_post(server, "/v1/align", {"pairs": pairs, **options}).text,)


def by_service_change(server: Live, line: str, options: Options, **_: Any) -> Texts:
    body = {"text": line, "changes": ["cut encoder.0.self.0"], **options}
    return (_post(server, "/v1/change", body).json()["before"]["text"],)


def by_other_clients(server: Live, line: str, options: Options, **_: Any) -> Texts:
    body = {"q": line, "source": "auto", "target": "fr", **options}
    return (_post(server, "/translate", body).json()["translatedText"],)


@pytest.fixture(scope="module")
def effects(translator: Translator) -> dict[str, tuple[str, Texts]]:
    """A line that each option changes, and the translations under it."""
    found = {}
    for name, (beside, value) in FIELDS.items():
        for line in LINES:
            expected = by_function(translator, line, {**beside, name: value})
            if expected != by_function(translator, line, beside):
                found[name] = line, expected
                break
    # Only the batch decides whether it changes bits.
    found["strict"] = LINES[0], by_function(translator, LINES[0], {})
    return found


WAYS: dict[str, Way] = {
    name.removeprefix("by_"): way for name, way in list(globals().items()) if name[:3] == "by_"
}


def test_every_option_is_placed(effects: dict[str, tuple[str, Texts]]) -> None:
    assert FIELDS.keys() == DecodingConfig.model_fields.keys() == effects.keys()


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("way", WAYS)
def test_an_option_is_used_or_refused_by_its_name(
    way: str,
    name: str,
    model: Path,
    translator: Translator,
    server: Live,
    effects: dict[str, tuple[str, Texts]],
    folder: Path,
    run_here: Run,
) -> None:
    beside, value = FIELDS[name]
    options = {**beside, name: value}
    given = {"model": model, "translator": translator, "server": server}
    given |= {"run": run_here, "folder": folder}

    def go(line: str, options: Options) -> Texts:
        return WAYS[way](**given, line=line, options=options)

    line, expected = effects[name]
    try:
        found = go(line, options)
    except REFUSALS as error:
        if re.search(as_written(name), str(error)):
            return
        # What it needs beside it is refused.
        with pytest.raises(REFUSALS, match=as_written(name)):
            go(line, {name: value})
        return
    assert found == expected


def as_written(name: str) -> str:
    """A pattern for the name of an option, in Python or as one of the command."""
    return name.replace("_", "[-_]")
