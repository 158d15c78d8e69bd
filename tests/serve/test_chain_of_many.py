"""Chains through a model of many languages: in Python, on the command line, as a service."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from libretranslatepy import LibreTranslateAPI
from relabeled import relabel
from served import Live
from small_fairseq import write_model

import pellucid
from pellucid import convert, load
from pellucid.errors import InputError
from pellucid.serve.models import Models, load_models
from pellucid.translate.chain.chained import Chain
from pellucid.translate.chain.legs import find_middles
from pellucid.translate.results import ModelLanguages

CAT = "the cat sleeps here"
SHORT: dict[str, Any] = {"max_length": 12}
Run = Callable[..., Any]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """NLLB reads and writes de, en, fr, zh; mBART-50 has 52; the others have one pair each."""
    folder = tmp_path_factory.mktemp("models")
    for family in ("nllb", "mbart"):
        write_model(folder / f"their-{family}", family, "narrow")
        convert(folder / f"their-{family}", folder / family)
    pairs = {pair: str(relabel(folder / pair, *pair.split("-"))) for pair in ("fr-br", "oc-fr")}
    return {"nllb": str(folder / "nllb"), **pairs, "mbart": str(folder / "mbart")}


@pytest.fixture(scope="module")
def models(folders: dict[str, str]) -> Models:
    return load_models(folders)


def test_each_model_is_told_its_part_of_the_way(folders: dict[str, str]) -> None:
    after = pellucid.chain(folders["oc-fr"], folders["nllb"])
    assert after.legs(":zh") == (None, "fr:zh")
    found = after.translate(CAT, to="zh", **SHORT)
    first, second = found.through
    assert (
        second.translation
        == load(folders["nllb"])
        .translate(first.translation, source_language="fr", to="zh", **SHORT)
        .text
    )
    before = pellucid.chain(folders["nllb"], folders["fr-br"])
    assert before.legs("en:") == ("en:fra_Latn", None)
    found = before.translate(CAT, source_language="English", **SHORT)
    expected = load(folders["nllb"]).translate(CAT, source_language="en", to="fr", **SHORT)
    assert found.through[0].translation == expected.text
    streamed = before.stream(CAT, source_language="en", **SHORT)
    assert "".join(streamed) == found.text


def test_languages_that_no_model_has_or_needs_are_refused(folders: dict[str, str]) -> None:
    before = pellucid.chain(folders["nllb"], folders["fr-br"])
    after = pellucid.chain(folders["oc-fr"], folders["nllb"])
    for chain, how, words in (
        (before, {}, "Give source_language"),
        (before, {"source_language": "Klingon"}, "source language must be one that"),
        (before, {"source_language": "en", "to": "fr"}, "this model has none"),
        (after, {"source_language": "oc"}, "and cannot guess which are meant"),
        (after, {"source_language": "en", "to": "de"}, "source language must be oc"),
    ):
        with pytest.raises(InputError) as refused:
            chain.translate(CAT, **how)
        assert words in str(refused.value).replace("--from LANGUAGE", "source_language"), how
    both = pellucid.chain(folders["nllb"], folders["mbart"])
    for chain, how, words in (
        (both, {"source_language": "zh-Hant"}, "cannot guess which are meant"),
        (both, {"to": "ka"}, "cannot guess which are meant"),
        (both, {"source_language": "ka", "to": "ka"}, "source language must be one that"),
        (both, {"source_language": "English", "to": "ka"}, "Leave nllb out"),
        (both, {"source_language": "zh-Hant", "to": "en"}, "Leave mbart out"),
        (after, {"source_language": "oc", "to": "fr"}, "Leave nllb out"),
    ):
        with pytest.raises(InputError, match=words):
            chain.translate(CAT, **how)


def test_the_command_joins_two_models_of_many_languages_in_english(
    folders: dict[str, str], run_here: Run
) -> None:
    name = f"{folders['nllb']},{folders['mbart']}"
    given = ("--from", "zh-Hant", "--to", "Georgian", "--set", "decoding.max_length=12", "--json")
    made = run_here("translate", name, *given, stdin=f"{CAT}\n")
    assert made.returncode == 0, made.stderr
    (found,) = [json.loads(line) for line in made.stdout.splitlines()]
    middle = load(folders["nllb"]).translate(CAT, source_language="zh-Hant", to="en", **SHORT)
    assert found["through"][0]["translation"] == middle.text
    last = load(folders["mbart"]).translate(middle.text, source_language="en", to="ka", **SHORT)
    assert found["translation"] == last.text
    refused = run_here("translate", name, "--from", "en", "--to", "ka", stdin=f"{CAT}\n")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.count("error:") == 1


def test_models_without_a_common_language_are_not_joined(folders: dict[str, str]) -> None:
    class Other:
        tokenizer = load(folders["mbart"]).tokenizer
        languages = ModelLanguages("", "", ("ka_GE", "sw_KE"))

    with pytest.raises(InputError, match="none in common"):
        find_middles([load(folders["nllb"]), Other()], ["a", "b"])  # type: ignore[list-item]


def test_the_command_translates_through_a_model_of_many_languages(
    folders: dict[str, str], run_here: Run
) -> None:
    name = f"{folders['oc-fr']},{folders['nllb']}"
    made = run_here("translate", name, "--to", "German", "--from", "oc", stdin=f"{CAT}\n")
    assert made.returncode == 0, made.stderr
    expected = pellucid.chain(folders["oc-fr"], folders["nllb"]).translate(CAT, to="de")
    assert made.stdout == f"{expected.text}\n"
    single = run_here(
        "translate", folders["nllb"], "--from", "fr", "--to", "de", "--json", stdin=f"{CAT}\n"
    )
    assert single.returncode == 0
    assert '"through"' not in single.stdout
    missing = run_here("translate", name, stdin=f"{CAT}\n")
    assert missing.returncode == 2
    assert missing.stderr.count("error:") == 1


def test_the_shortest_way_leads_through_english_where_several_languages_meet(
    models: Models,
) -> None:
    ways = {
        pair: None if (one := models.find_chain(*pair)) is None else (one.name, one.translator)
        for pair in [("en", "br"), ("oc", "de"), ("oc", "br"), ("zh-Hant", "ka"), ("en", "de")]
    }
    assert {pair: None if way is None else way[0] for pair, way in ways.items()} == {
        ("en", "br"): "nllb,fr-br",
        ("oc", "de"): "oc-fr,nllb",
        ("oc", "br"): "oc-fr,fr-br",
        # mBART-50 has Chinese in the other script, and both have German, English, French.
        ("zh-Hant", "ka"): "nllb,mbart",
        ("en", "de"): None,
    }
    assert ways["zh-Hant", "ka"] is not None
    chain = ways["zh-Hant", "ka"][1]
    assert isinstance(chain, Chain)
    assert chain.middles == ("eng_Latn",)


@pytest.fixture(scope="module")
def served(models: Models) -> Iterator[Live]:
    with Live(models) as server:
        yield server


def test_the_service_offers_pairs_through_a_common_language(
    served: Live, folders: dict[str, str]
) -> None:
    listed = {one["code"]: one["targets"] for one in served.get("/languages").json()}
    assert "br" in listed["en"]
    assert "ka" in listed["oc"]
    chain = pellucid.chain(folders["nllb"], folders["fr-br"])
    expected = chain.translate(CAT, source_language="en", unknown="source-word")
    asked = {"q": CAT, "source": "en", "target": "br"}
    assert served.post("/translate", asked).json()["translatedText"] == expected.text
    body = {"texts": CAT, "source_language": "en", "target_language": "br"}
    (answer,) = served.post("/v1/translate", body).json()["translations"]
    assert [one["model"] for one in answer["through"]] == ["nllb", "fr-br"]
    html = served.post("/translate", {**asked, "q": f"<p>{CAT}</p>", "format": "html"}).json()
    assert html["translatedText"].startswith("<p>")


@pytest.fixture
def started(start: Callable[..., Any]) -> Callable[..., str]:
    """Start ``pellucid serve`` as a process of its own; give its address."""

    def serve(*names: str) -> str:
        command = [sys.executable, "-m", "pellucid", "serve", *names, "--port", "0"]
        process = start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = process.stdout.readline().decode()
        assert line.startswith("Serving at http://"), line
        return str(line.split()[-1])

    return serve


def test_libretranslates_own_client_translates_pairs_and_through_a_pivot(
    folders: dict[str, str], started: Callable[..., str]
) -> None:
    url = started(*(f"{name}={folder}" for name, folder in folders.items() if name != "mbart"))
    client = LibreTranslateAPI(f"{url}/")
    listed = {one["code"]: one["targets"] for one in client.languages()}
    assert {"de", "en", "fr", "br"} <= {*listed["en"]}
    direct = load(folders["nllb"]).translate(
        CAT, source_language="en", to="de", unknown="source-word"
    )
    assert client.translate(CAT, "en", "de") == direct.text
    chain = pellucid.chain(folders["nllb"], folders["fr-br"])
    pivot = chain.translate(CAT, source_language="en", unknown="source-word")
    assert client.translate(CAT, "en", "br") == pivot.text
    (best, *_) = client.detect("The weather is nice today, and they are all happy.")
    assert best["language"] == "en"
    with pytest.raises(Exception, match="400"):
        client.translate(CAT, "br", "de")
    assert httpx.get(f"{url}/health", timeout=60).status_code == 200
