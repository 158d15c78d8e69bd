"""Refusals say in a sentence and in fields what is wrong, and never in another library's words."""

from __future__ import annotations

import re
from typing import Any

import pytest
from served import Live

from pellucid.serve.answers.responses import CODES
from pellucid.serve.models import Models
from pellucid.serve.settings import Keys, Limits, Settings, hash_key

TRANSLATE = "/v1/translate"
TEXT = {"texts": "A cat."}
PAIR = {"source": "A cat.", "target": "Un chat."}


@pytest.mark.parametrize(
    ("path", "body", "code", "field", "index"),
    [
        (TRANSLATE, {}, "missing", "texts", None),
        (TRANSLATE, {"texts": 7}, "wrong_type", "texts", None),
        (TRANSLATE, {"texts": ["a", None]}, "wrong_type", "texts", 1),
        (TRANSLATE, {"texts": ["a"] * 257}, "out_of_bounds", "texts", None),
        (TRANSLATE, {"texts": ["a", "b", "c" * 20_001]}, "out_of_bounds", "texts", 2),
        (TRANSLATE, TEXT | {"beam": 17}, "out_of_bounds", "beam", None),
        (TRANSLATE, TEXT | {"beam": 2.5}, "wrong_type", "beam", None),
        (TRANSLATE, TEXT | {"beam": True}, "wrong_type", "beam", None),
        (TRANSLATE, TEXT | {"n_best": 3}, "invalid", "n_best", None),
        (TRANSLATE, TEXT | {"sample": True, "beam": 2}, "invalid", "beam", None),
        (TRANSLATE, TEXT | {"temperature": 0}, "out_of_bounds", "temperature", None),
        (TRANSLATE, TEXT | {"stopping": "soon"}, "invalid", "stopping", None),
        (TRANSLATE, TEXT | {"bean": 2}, "unknown_field", "bean", None),
        (TRANSLATE, TEXT | {"to": "fr"}, "unknown_field", "to", None),
        (TRANSLATE, TEXT | {"model": "demmo"}, "unknown_model", "model", None),
        (TRANSLATE, TEXT | {"target_language": "de"}, "unknown_model", "target_language", None),
        (TRANSLATE, TEXT | {"changes": ["cut it"]}, "invalid", "changes", None),
        (TRANSLATE, TEXT | {"align_head": "decoder.1"}, "not_together", "align_head", None),
        (TRANSLATE, TEXT | {"align": True, "align_head": "x.1"}, "invalid", "align_head", None),
        (TRANSLATE, TEXT | {"stream": True, "align": True}, "not_together", "align", None),
        (TRANSLATE, TEXT | {"format": "html", "tokens": True}, "not_together", "tokens", None),
        (TRANSLATE, TEXT | {"glossary": [{"source": "a"}]}, "missing", "glossary.target", 0),
        ("/v1/score", {"pairs": [PAIR, {"source": 1}]}, "wrong_type", "pairs.source", 1),
        ("/v1/align", {"pairs": [PAIR], "head": "encoder.0"}, "invalid", "head", None),
        ("/v1/align", {"pairs": [PAIR], "head": "decoder.9"}, "invalid", "head", None),
        ("/v1/look", {"text": "a", "heads": ["decoder.7"]}, "invalid", "heads", None),
        ("/v1/look", {"text": "a\nb"}, "invalid", "text", None),
        ("/v1/look", {"text": "a", "target_ids": [10**6]}, "invalid", "target_ids", None),
        ("/v1/change", {"text": "A cat."}, "missing", "changes", None),
        ("/v1/change", {"text": "A cat.", "changes": []}, "out_of_bounds", "changes", None),
    ],
)
def test_refusal_names_its_kind_the_field_and_the_entry(
    live: Live, path: str, body: Any, code: str, field: str, index: int | None
) -> None:
    answer = live.post(path, body)
    assert answer.status_code == 422, answer.text
    found = answer.json()
    assert (found["code"], found["field"], found.get("index")) == (code, field, index)
    assert found["code"] in CODES
    # Two sentences, which say what is, and none of pydantic's words.
    assert not re.search(r"\bshould\b|[Ii]nput|valid |Value error", found["error"]), found["error"]
    assert found["error"].endswith((".", "?"))


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"source_language": "de"}, "There is no model from 'de'. Known are: "),
        ({"target_language": "de"}, "There is no model to 'de'. Known are: "),
    ],
)
def test_language_without_a_model_is_named_and_no_other(
    live: Live, wanted: dict[str, str], said: str
) -> None:
    assert live.post(TRANSLATE, TEXT | wanted).json()["error"].startswith(said)


def test_refusals_without_a_field_have_a_code(models: Models, live: Live) -> None:
    def code(answer: Any, status: int) -> str:
        assert answer.status_code == status
        assert set(answer.json()) == {"error", "code"}
        found: str = answer.json()["code"]
        assert found in CODES
        return found

    assert code(live.client.post(TRANSLATE, content=b"{}"), 415) == "media_type"
    plain = {"Content-Type": "text/plain"}
    assert code(live.client.post(TRANSLATE, content=b"{}", headers=plain), 415) == "media_type"
    json_type = {"Content-Type": "application/json; charset=utf-8"}
    assert code(live.client.post(TRANSLATE, content=b"{", headers=json_type), 422) == "invalid"
    assert code(live.client.post(TRANSLATE, content=b"", headers=json_type), 422) == "missing"
    assert code(live.get("/nothing"), 404) == "not_found"
    assert code(live.client.put(TRANSLATE), 405) == "method_not_allowed"
    assert code(live.get("/livez", {"Host": "evil.example"}), 421) == "wrong_host"
    # LibreTranslate's clients read `error` alone.
    assert code(live.post("/translate", {"q": "a"}), 400) == "bad_request"
    locked = Settings(keys=Keys([hash_key("k")]), limits=Limits(body_bytes=1024))
    with Live(models, locked) as server:
        assert code(server.post(TRANSLATE, TEXT), 401) == "unauthorized"
        key = {"Authorization": "Bearer k"}
        large = server.post(TRANSLATE, {"texts": "a" * 2000}, headers=key)
        assert code(large, 413) == "too_large"


def test_old_address_of_the_stream_says_the_new_form(live: Live) -> None:
    answer = live.post("/v1/stream", {"text": "A cat."})
    assert answer.status_code == 404
    assert '/v1/translate with "stream": true' in answer.json()["error"]


@pytest.mark.parametrize("given", ["7f3a-b.c_D", "", "a b", "x" * 65, "é", 'a"b'])
def test_every_answer_has_the_number_of_its_request(live: Live, given: str) -> None:
    headers = {"X-Request-Id": given.encode()}
    for path in ("/livez", "/nothing"):
        found = live.client.get(path, headers=headers).headers["X-Request-Id"]
        if given == "7f3a-b.c_D":
            assert found == given
        else:
            assert re.fullmatch(r"[0-9a-f]{16}", found)
            assert found != given
