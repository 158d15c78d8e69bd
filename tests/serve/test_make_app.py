"""The service inside another server: `pellucid.serve.make_app`."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

import pellucid.serve
from pellucid.errors import PellucidError
from pellucid.serve import make_app
from pellucid.serve.settings import make_key

ADDRESS = "http://127.0.0.1:5000"


def test_app_translates_and_ends_with_its_server() -> None:
    app = make_app({"small": "demo"})
    with TestClient(app, base_url=ADDRESS) as client:
        answer = client.post("/v1/translate", json={"texts": "The dog ate it."}).json()
        assert answer["model"] == "small"
        assert answer["translations"][0]["translation"] == "Le chien l'a mangé."
    assert not app.scheduler.is_alive


def test_app_can_be_mounted_under_a_path() -> None:
    app = make_app("demo")
    outer = Starlette(routes=[Mount("/mt", app=app)])
    client = TestClient(outer, base_url=ADDRESS)
    try:
        answer = client.post("/mt/v1/translate", json={"texts": "A cat."})
        assert answer.json()["translations"][0]["translation"] == "Un chat."
    finally:
        app.stop()


def test_app_takes_what_the_command_takes(tmp_path: Path) -> None:
    key = make_key(tmp_path / "keys", "one")
    app = make_app(
        "demo",
        key_file=tmp_path / "keys",
        allow_host=["translate.example.org"],
        limits={"texts": 2, "beam": 4},
    )
    with TestClient(app, base_url="http://translate.example.org") as client:
        body: dict[str, Any] = {"texts": ["A cat."] * 3}
        assert client.post("/v1/translate", json=body).status_code == 401
        headers = {"Authorization": f"Bearer {key}"}
        refused = client.post("/v1/translate", json=body, headers=headers)
        assert "at most 2 entries, but has 3" in refused.json()["error"]
        limits = client.get("/v1/models", headers=headers).json()["limits"]
        assert (limits["texts"], limits["beam"]) == (2, 4)


@pytest.mark.parametrize(
    ("models", "options", "words"),
    [
        (None, {}, "models must be"),
        ({}, {}, "models must be"),
        (["demo"], {}, "make_app('demo')"),
        ("nowhere", {}, "nowhere"),
        ("demo", {"limits": {"text": 3}}, "Did you mean 'texts'?"),
        ("demo", {"limits": {"beam": 0}}, "beam"),
        ("demo", {"path_prefix": "mt/"}, "prefix"),
        ("demo", {"key_file": "/nowhere/keys"}, "keys"),
    ],
)
def test_app_refuses_wrong_arguments_in_a_sentence(
    models: Any, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(PellucidError) as refused:
        make_app(models, **options)
    assert words in str(refused.value)


@pytest.mark.parametrize("value", [None, 3, b"x", ["a"], object(), "no such thing", -1.5])
@pytest.mark.parametrize("name", inspect.signature(make_app).parameters)
def test_wrong_argument_is_named(name: str, value: Any) -> None:
    given: dict[str, Any] = {"models": "demo", name: value}
    sentence = name
    try:
        make_app(given.pop("models"), **given)
    except PellucidError as error:
        sentence = str(error)
    named = (name, name.replace("_", " "), "no such thing", "proxy", "model", "'a'")
    assert any(one in sentence for one in named), sentence


def test_make_app_is_the_only_name() -> None:
    assert pellucid.serve.__all__ == ["make_app"]
    assert "make_app" in dir(pellucid.serve)
    with pytest.raises(AttributeError, match="no attribute 'Service'"):
        _ = pellucid.serve.Service
