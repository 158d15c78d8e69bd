"""A server that joins its models where none has a pair of languages."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from libretranslatepy import LibreTranslateAPI
from relabeled import relabel
from served import Live

import pellucid
from pellucid.errors import InputError
from pellucid.serve.models import Models, load_models, name_models
from pellucid.translate.chain.chained import Chain

CAT = "The cat slept."
SOUP = "The <b>soup</b> was cold."


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> Models:
    folder = tmp_path_factory.mktemp("models")
    pairs = ("fr-en", "en-de", "de-it", "fr-es", "es-it")
    named = {pair: str(relabel(folder / pair, *pair.split("-"))) for pair in pairs}
    return load_models(named)


@pytest.fixture(scope="module")
def served(joined: Models) -> Iterator[Live]:
    with Live(joined) as server:
        yield server


@pytest.fixture(scope="module")
def chain(joined: Models) -> Chain:
    first, second, *_ = joined
    return pellucid.chain(first.translator, second.translator)


def post(server: Live, path: str, **body: object) -> httpx.Response:
    return httpx.post(f"{server.url}{path}", json=body, timeout=60)


def test_shortest_way_of_the_models_that_were_named_first_is_found(joined: Models) -> None:
    found = {
        (source, target): joined.find_chain(source, target)
        for source, target in [("fr", "it"), ("fra", "deu"), ("en", "it"), ("it", "fr")]
    }
    assert {pair: None if one is None else one.name for pair, one in found.items()} == {
        ("fr", "it"): "fr-es,es-it",
        ("fra", "deu"): "fr-en,en-de",
        ("en", "it"): "en-de,de-it",
        ("it", "fr"): None,
    }
    assert joined.find_chain("fr", "it") is found["fr", "it"]
    # A model that has the pair needs no other.
    assert joined.find_chain("fr", "en") is None


def test_libretranslate_lists_the_pairs_and_translates_them(served: Live, chain: Chain) -> None:
    listed = httpx.get(f"{served.url}/languages").json()
    targets = {one["code"]: one["targets"] for one in listed}
    assert targets["fr"] == ["de", "en", "es", "fr", "it"]
    assert targets["en"] == ["de", "en", "it"]
    assert targets["it"] == ["it"]
    answer = post(served, "/translate", q=CAT, source="fr", target="de", alternatives=2)
    assert answer.json()["translatedText"] == chain.translate(CAT, unknown="source-word").text
    assert len(answer.json()["alternatives"]) <= 2
    marked = post(served, "/translate", q=SOUP, source="fr", target="de", format="html").json()
    assert marked["translatedText"].count("<b>") == 1
    refused = post(served, "/translate", q=CAT, source="it", target="fr")
    assert (refused.status_code, refused.json()["error"]) == (
        400,
        "French (fr) is not available as a target language from Italian (it)",
    )


def test_translate_says_what_each_model_wrote(served: Live, chain: Chain) -> None:
    pair = {"source_language": "fr", "target_language": "de"}
    answer = post(served, "/v1/translate", texts=[CAT, ""], align=True, **pair).json()
    assert answer["model"] == "fr-en,en-de"
    for found, expected in zip(
        answer["translations"], chain.translate([CAT, ""], align=True), strict=True
    ):
        record = expected.to_dict(has_tokens=False)
        for one, model in zip(record["through"], ("fr-en", "en-de"), strict=True):
            one["model"] = model
        assert found | {"notes": found.get("notes", {})} == record
    one = post(served, "/v1/translate", texts=[CAT], n_best=2, beam=2, prefix="Le", **pair).json()
    hypotheses = one["translations"][0]["hypotheses"]
    assert all(one["text"].startswith("Le") for one in hypotheses)
    streamed = post(served, "/v1/translate", texts=[CAT], stream=True, **pair).text
    assert "event: end" in streamed
    assert '"through"' in streamed


def test_what_needs_one_model_is_refused(served: Live) -> None:
    pair = {"source_language": "fr", "target_language": "de"}
    for path, body in (
        ("/v1/score", {"pairs": [{"source": CAT, "target": CAT}]}),
        ("/v1/look", {"text": CAT}),
    ):
        answer = post(served, path, **body, **pair)
        assert answer.status_code == 422
        assert "There is no model from 'fr' to 'de'" in answer.json()["error"]
    for field, value in (
        ("changes", ["cut decoder.1.cross.0"]),
        ("align_head", "decoder.1"),
        ("words_by", "subwords"),
    ):
        align = {} if field == "changes" else {"align": True}
        answer = post(served, "/v1/translate", texts=[CAT], **{field: value}, **align, **pair)
        assert answer.status_code == 422, answer.text
        assert answer.json()["field"] == field
        assert "chain" in answer.json()["error"]


def test_named_chain_is_refused_with_what_to_type() -> None:
    with pytest.raises(InputError, match="write pellucid serve fr-en en-de"):
        name_models(["x=fr-en,en-de"])


def test_client_of_libretranslate_translates_through_a_pivot(served: Live) -> None:
    client = LibreTranslateAPI(served.url)
    assert client.translate(CAT, "fr", "de")
