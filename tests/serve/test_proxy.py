"""Behind a proxy, under a path, and inside another ASGI server."""

from __future__ import annotations

import asyncio
import os
import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from served import Live
from starlette.applications import Starlette
from starlette.routing import Mount

from pellucid.errors import InputError
from pellucid.serve.answers.responses import from_error
from pellucid.serve.connection.server import socket_address
from pellucid.serve.models import Models
from pellucid.serve.service import Service
from pellucid.serve.settings import Settings

FORWARDED = {
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "translate.example.org",
    "X-Forwarded-Prefix": "/mt",
}


@pytest.fixture(scope="module")
def behind(models: Models) -> Iterator[Live]:
    """A server that a proxy on this machine serves under /mt."""
    settings = Settings(
        trusted_proxies=("127.0.0.0/8", "unix"),
        path_prefix="/mt",
        allowed_hosts=("translate.example.org",),
    )
    with Live(models, settings) as server:
        yield server


def translate_file(live: Live, headers: dict[str, str], name: str = "a.txt", path: str = "") -> str:
    answer = live.client.post(
        f"{path}/translate_file",
        data={"source": "en", "target": "fr"},
        files={"file": (name, b"The cat is red.")},
        headers=headers,
    )
    assert answer.status_code == 200, answer.text
    return str(answer.json()["translatedFileUrl"])


def test_link_behind_a_trusted_proxy_is_the_address_of_the_client(behind: Live) -> None:
    start = "https://translate.example.org/mt/download_file/"
    assert translate_file(behind, FORWARDED).startswith(start)
    # Each proxy adds its own value at the end.
    several = {**FORWARDED, "X-Forwarded-Proto": "http, https"}
    assert translate_file(behind, several).startswith(start)
    odd = {"X-Forwarded-Proto": "javascript", "X-Forwarded-Prefix": "//evil.example/<"}
    link = translate_file(behind, odd)
    assert link.startswith(f"{behind.url}/mt/download_file/")
    assert behind.client.get(link).text == "Le chat est rouge."


def test_link_without_a_trusted_proxy_ignores_what_clients_say(live: Live) -> None:
    assert translate_file(live, FORWARDED).startswith(f"{live.url}/download_file/")


def test_forwarded_host_must_be_allowed_like_any_other(behind: Live) -> None:
    for headers in ({"X-Forwarded-Host": "evil.example"}, {"Host": "evil.example", **FORWARDED}):
        assert behind.get("/livez", headers).status_code == 421
    own = {**FORWARDED, "Origin": "https://translate.example.org"}
    assert behind.post("/v1/translate", {"texts": ["A cat."]}, headers=own).status_code == 200


@pytest.mark.parametrize("name", ["été.txt", "猫 & chat?.txt", "a%2Fb.txt", "ß.html"])
def test_link_of_any_name_can_be_fetched_by_any_client(live: Live, name: str) -> None:
    link = translate_file(live, {}, name)
    assert link.isascii()
    with urllib.request.urlopen(link, timeout=20) as answer:
        assert answer.read() == b"Le chat est rouge."
        answer.headers["Content-Disposition"].encode("ascii")


def test_prefix_is_left_out_of_paths_and_the_page_asks_below_it(behind: Live) -> None:
    assert behind.get("/mt/livez").status_code == behind.get("/livez").status_code == 200
    assert behind.get("/mtlivez").status_code == 404
    assert behind.post("/mt/v1/translate", {"texts": ["A cat."]}).status_code == 200
    assert translate_file(behind, {}, path="/mt").startswith(f"{behind.url}/mt/")
    moved = behind.get("/mt")
    assert (moved.status_code, moved.headers["Location"]) == (307, "/mt/")
    page = behind.get("/mt/").text
    assert 'post("v1/look"' in page
    assert '"/v1/' not in page


@pytest.mark.parametrize(
    ("field", "wrong", "setting"),
    [("path_prefix", one, "path_prefix") for one in ("mt", "/mt/", "//x")]
    + [("trusted_proxies", one, "trust_proxy") for one in ("proxy", "10.0.0.1/8", "")],
)
def test_settings_of_a_proxy_that_are_wrong_are_refused(
    field: str, wrong: str, setting: str
) -> None:
    value: Any = wrong if field == "path_prefix" else (wrong,)
    with pytest.raises(InputError, match=rf"but is '{wrong}'\. Change serve\.{setting}\.$"):
        Settings(**{field: value})


def test_only_listed_proxies_are_trusted() -> None:
    settings = Settings(trusted_proxies=("10.0.0.0/8", "::1"))
    for client, is_trusted in (
        (("10.1.2.3", 5), True),
        (("::ffff:10.1.2.3", 5), True),
        (("::1", 5), True),
        (("11.0.0.1", 5), False),
        (("nonsense", 5), False),
        (None, False),
    ):
        assert settings.trusts(client) is is_trusted
    assert Settings(trusted_proxies=("unix",)).trusts(None)
    assert not Settings().trusts(("127.0.0.1", 5))


def test_address_of_any_socket_is_announced(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        assert socket_address(listening) == f"unix:{path}"
    if os.uname().sysname == "Linux":
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(f"\0{path}")
            assert socket_address(listening) == f"unix:@{path}"
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        assert socket_address(listening) == f"http://127.0.0.1:{port}"


def test_sentence_keeps_what_the_client_sent_and_hides_paths_of_the_server() -> None:
    for kept in ("'../../x/y'", "'/etc/pass/wd'", "../../x/y", '"see /a/b/c"'):
        assert kept in from_error(InputError(f"There is no {kept} here.")).sentence
    hidden = from_error(InputError("The server's /srv/models/en was replaced, and C:\\a\\b too."))
    assert hidden.sentence.count("a file of the server") == 2


async def call(app: Any, scope: dict[str, Any], *sent: dict[str, Any]) -> list[dict[str, Any]]:
    """Call an ASGI application with the least that the standard asks for."""
    received: list[dict[str, Any]] = []
    messages = iter(sent)

    async def receive() -> dict[str, Any]:
        for message in messages:
            return message
        return await asyncio.Future()

    async def send(message: dict[str, Any]) -> None:
        received.append(message)

    await asyncio.wait_for(app(scope, receive, send), 20)
    return received


def http_scope(path: str, method: str = "POST", **more: Any) -> dict[str, Any]:
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method}
    scope |= {"scheme": "http", "path": path, "query_string": b"", "headers": headers}
    return scope | more


def test_app_is_a_plain_asgi_application_with_a_lifespan(models: Models) -> None:
    service = Service(models, Settings())
    body = {"type": "http.request", "body": b'{"texts": ["The dog ate it."]}'}

    async def test() -> None:
        may_end = asyncio.Event()
        events: list[str] = []

        async def receive() -> dict[str, Any]:
            if events:
                await may_end.wait()
            return {"type": "lifespan.shutdown" if events else "lifespan.startup"}

        async def send(message: dict[str, Any]) -> None:
            events.append(message["type"])

        living = asyncio.create_task(service.app({"type": "lifespan"}, receive, send))  # type: ignore[arg-type]
        while not events:
            await asyncio.sleep(0.01)
        answer = await call(service.app, http_scope("/v1/translate"), body)
        assert answer[0]["status"] == 200
        assert "chien" in answer[1]["body"].decode()
        asked = await call(service.app, {"type": "websocket"}, {"type": "websocket.connect"})
        assert [one["type"] for one in asked] == ["websocket.close"]
        may_end.set()
        await living
        assert events == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
        assert not service.scheduler.is_alive

    asyncio.run(test())


def test_app_mounted_under_a_path_answers_and_notices_clients_that_leave(models: Models) -> None:
    service = Service(models, Settings())
    mounted = Starlette(routes=[Mount("/translate", app=service.app)])
    costly = b'{"texts": ["%s"], "beam": 16, "min_length": 250, "max_length": 256}' % (b"a\\n" * 40)

    async def test() -> None:
        body = {"type": "http.request", "body": b'{"texts": ["The dog ate it."]}'}
        answer = await call(mounted, http_scope("/translate/v1/translate"), body)
        assert answer[0]["status"] == 200
        page = await call(mounted, http_scope("/translate", "GET"))
        assert page[0]["status"] == 307
        gone = await call(
            mounted,
            http_scope("/translate/v1/translate"),
            {"type": "http.request", "body": costly},
            {"type": "http.disconnect"},
        )
        assert gone == []
        await asyncio.to_thread(service.stop)

    asyncio.run(test())
    figure = service.metrics.registry.get_sample_value
    assert figure("pellucid_computations") == 0
    assert figure("pellucid_clients_gone_total") == 1
