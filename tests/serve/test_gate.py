"""The door: who may enter, how much a request may be, and what is written about it."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import logging
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from served import ROUTES, Live

from pellucid.errors import DataError, InputError
from pellucid.serve.models import Models, name_models
from pellucid.serve.operations import Need
from pellucid.serve.settings import Keys, Limits, Settings, hash_key, make_key

KEY, WRONG = "correct-horse-battery-staple", "not-the-key"
SECRET = "Xylophones"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")


@pytest.fixture(scope="module")
def locked(models: Models) -> Iterator[Live]:
    """A server with one key and short limits."""
    limits = Limits(body_bytes=2048, header_seconds=0.6, body_seconds=0.6, idle_seconds=1)
    settings = Settings(
        keys=Keys([hash_key("another"), hash_key(KEY)]),
        limits=limits,
        allowed_hosts=("translate.example.org",),
        allowed_origins=("https://app.example.org",),
    )
    with Live(models, settings) as server:
        yield server


def bearer(key: str | None) -> dict[str, str]:
    return {} if key is None else {"Authorization": f"Bearer {key}"}


def test_every_route_of_the_application_is_listed(live: Live) -> None:
    found = {(one.method, one.path): one.need for one in live.service.operations}
    assert found == ROUTES


@pytest.mark.parametrize(("method", "key"), list(itertools.product(METHODS, (None, WRONG, KEY))))
def test_every_route_and_method_is_denied_without_the_right_key(
    locked: Live, method: str, key: str | None
) -> None:
    for path in sorted({path for _, path in ROUTES} | {"/nothing", "/v1/translate/"}):
        need = ROUTES.get(("GET" if method == "HEAD" else method, path))
        answer = locked.client.request(method, path, headers=bearer(key))
        if need is None:
            known = any(path == other for _, other in ROUTES)
            assert answer.status_code == (405 if known else 404), path
            assert ("Allow" in answer.headers) == known
        elif key != KEY and need is Need.KEY:
            assert answer.status_code == 401, path
            assert answer.headers["WWW-Authenticate"] == "Bearer"
        else:
            assert answer.status_code != 401, path
            assert answer.status_code < 500, path


def test_only_facts_are_open(live: Live) -> None:
    opened = {one.path for one in live.service.operations if one.need is Need.NOTHING}
    assert opened == {
        *("/", "/livez", "/readyz", "/openapi.json", "/spec", "/docs"),
        *("/languages", "/frontend/settings", "/health", "/download_file/{name}"),
    }


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("localhost:5000", 200),
        ("[::1]:80", 200),
        ("192.168.7.3", 200),
        ("Translate.Example.ORG", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("evil.example@localhost", 421),
        ("localhost:99999", 421),
        ("", 421),
    ],
)
def test_host_must_name_the_server(locked: Live, host: str, status: int) -> None:
    assert locked.get("/livez", {"Host": host}).status_code == status


def test_pages_of_other_origins_are_refused_unless_listed(locked: Live) -> None:
    body = {"texts": ["A cat."]}
    for origin in ("https://evil.example", "null", "https://app.example.org.evil.example"):
        answer = locked.post("/v1/translate", body, headers=bearer(KEY) | {"Origin": origin})
        assert answer.status_code == 403
        assert "access-control-allow-origin" not in answer.headers
    listed = {"Origin": "https://app.example.org"}
    asked = locked.client.options("/v1/translate", headers=listed)
    assert asked.status_code == 204
    assert asked.headers["access-control-allow-origin"] == listed["Origin"]
    answer = locked.post("/v1/translate", body, headers=bearer(KEY) | listed)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == listed["Origin"]
    own = {"Origin": locked.url}
    assert locked.post("/v1/translate", body, headers=bearer(KEY) | own).status_code == 200


@pytest.mark.parametrize("is_chunked", [False, True])
def test_body_larger_than_the_limit_gives_413(locked: Live, is_chunked: bool) -> None:
    content = json.dumps({"texts": ["a" * 4000]}).encode()
    chunks = iter([content[:1000], content[1000:]])
    answer = locked.client.post(
        "/v1/translate", content=chunks if is_chunked else content, headers=bearer(KEY)
    )
    assert answer.status_code == 413
    assert "2,048" in answer.json()["error"]


def exchange(server: Live, *parts: bytes, pause: float = 0.0) -> bytes:
    """Send bytes as they are, and read until the server closes the connection."""
    with socket.create_connection((server.host, server.port), timeout=20) as connection:
        for part in parts:
            connection.sendall(part)
            time.sleep(pause)
        received = b""
        while chunk := connection.recv(65_536):
            received += chunk
        return received


HEAD = f"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n".encode()


def test_head_that_does_not_end_is_cut_off(locked: Live) -> None:
    assert b" 408 " in exchange(locked, HEAD)
    assert b" 408 " in exchange(locked, b"")


def test_body_that_does_not_end_is_cut_off(locked: Live) -> None:
    assert b" 408 " in exchange(locked, HEAD + b"Content-Length: 50\r\n\r\n{")


def test_head_that_is_too_large_is_cut_off(locked: Live) -> None:
    answer = exchange(locked, HEAD + b"X: " + b"a" * 70_000)
    assert b" 431 " in answer


@pytest.mark.parametrize("rest", [b"", b" " * 60_000, b"\r\n\r\n"])
def test_head_that_is_too_large_is_refused_however_it_arrives(locked: Live, rest: bytes) -> None:
    head = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 70_000 + rest
    assert b" 431 " in exchange(locked, head)
    assert locked.get("/livez").status_code == 200


def test_head_of_a_second_request_in_one_piece_is_measured_too(locked: Live) -> None:
    first = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
    second = first[:-2] + b"X: " + b"a" * 70_000 + b"\r\n\r\n"
    answer = exchange(locked, first + second)
    assert answer.count(b" 200 ") == 1
    assert b" 431 " in answer


@pytest.mark.parametrize("other", [b"localhost", b"127.0.0.1", b"evil.example"])
def test_two_host_headers_are_refused(locked: Live, other: bytes) -> None:
    head = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nhost: " + other + b"\r\n\r\n"
    assert exchange(locked, head).startswith(b"HTTP/1.1 400 ")


UNREAD = {
    "404": (b"POST /nowhere", b"Content-Length: 100000000", 404),
    "405": (b"PUT /v1/translate", b"Content-Length: 100000000", 405),
    "421": (b"POST /v1/translate", b"Host: evil.example\r\nContent-Length: 1000", 421),
    "401": (b"POST /v1/translate", b"Content-Length: 1000", 401),
    "403": (b"POST /v1/translate", b"Origin: http://evil.example\r\nContent-Length: 1000", 403),
    "chunked": (b"POST /nowhere", b"Transfer-Encoding: chunked", 404),
    "GET": (b"GET /livez", b"Content-Length: 1000000", 200),
}


@pytest.mark.parametrize("name", UNREAD)
def test_unread_body_cannot_hold_a_connection(locked: Live, name: str) -> None:
    line, fields, status = UNREAD[name]
    host = b"" if b"Host:" in fields else b"Host: localhost\r\n"
    with socket.create_connection((locked.host, locked.port), timeout=20) as connection:
        connection.sendall(line + b" HTTP/1.1\r\n" + host + fields + b"\r\n\r\n")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 %d " % status)
        began = time.monotonic()
        with contextlib.suppress(OSError):  # a reset or a broken pipe
            while time.monotonic() < began + 10:
                connection.sendall(b"1\r\na\r\n" if name == "chunked" else b"a")
                time.sleep(0.05)
        assert time.monotonic() < began + 5


def test_unread_body_is_bound_by_its_size(locked: Live) -> None:
    head = b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n"
    with socket.create_connection((locked.host, locked.port), timeout=20) as connection:
        connection.sendall(head)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 404 ")
        sent = 0
        with contextlib.suppress(OSError):  # a reset or a broken pipe
            while sent < 50_000_000:
                connection.sendall(b"a" * 10_000)
                sent += 10_000
        assert sent < 20_000_000


def test_connection_stays_open_after_a_refusal_whose_body_came(live: Live) -> None:
    client = http.client.HTTPConnection(live.host, live.port, timeout=20)
    for _ in range(2):
        client.request("POST", "/nowhere", b"a" * 1000)
        answer = client.getresponse()
        assert (answer.status, answer.read()[:9]) == (404, b'{"error":')
        sock = client.sock
        time.sleep(1.2)
    client.request("GET", "/livez")
    assert client.getresponse().status == 200
    assert client.sock is sock


def test_idle_connection_is_closed(locked: Live) -> None:
    answer = exchange(locked, b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert answer.count(b"HTTP/1.1 200") == 1


@pytest.mark.parametrize(
    "raw",
    [
        b"\x00\x01\x02\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /livez HTTP/9.9\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/score HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"CONNECT localhost:443 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
        b"Connection: Upgrade, close\r\n\r\n",
    ],
)
def test_raw_nonsense_gets_no_5xx_and_the_server_lives(locked: Live, raw: bytes) -> None:
    answer = exchange(locked, raw)
    assert not re.search(rb"HTTP/1.1 5\d\d", answer), answer
    assert locked.get("/livez").status_code == 200


def test_client_that_leaves_is_counted_and_its_work_dropped(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    (model,) = live.service.models
    calls: list[list[str]] = []
    translate = model.translator.translate

    def slow(texts: list[str], **options: Any) -> Any:
        calls.append(list(texts))
        time.sleep(0.4)
        return translate(texts, **options)

    monkeypatch.setattr(model.translator, "translate", slow)
    before = live.figure("pellucid_clients_gone_total")
    clients = [http.client.HTTPConnection(live.host, live.port, timeout=20) for _ in range(2)]
    for number, client in enumerate(clients):
        body = json.dumps({"texts": [f"cat {number}"], "beam": 1 + number})
        client.request("POST", "/v1/translate", body, {"Content-Type": "application/json"})
        time.sleep(0.1)
    clients[1].close()
    assert clients[0].getresponse().status == 200
    deadline = time.monotonic() + 10
    while live.figure("pellucid_clients_gone_total") == before and time.monotonic() < deadline:
        time.sleep(0.02)
    assert live.figure("pellucid_clients_gone_total") == before + 1
    assert live.figure("pellucid_queue_requests") == 0
    assert calls == [["cat 0"]]


def test_logs_and_metrics_hold_no_text_no_key_and_no_address(
    locked: Live, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, "pellucid.serve")
    monkeypatch.setattr(logging.getLogger("pellucid.serve"), "propagate", True)
    body = {"texts": [SECRET]}
    locked.post("/v1/translate", body, headers=bearer(KEY))
    locked.post(f"/v1/translate?api_key={KEY}", body, headers=bearer(WRONG))
    locked.post("/v1/translate", {SECRET: SECRET}, headers=bearer(KEY))
    locked.get(f"/{SECRET}")
    (model,) = locked.service.models

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(model.translator, "translate", fail)
    answer = locked.post("/v1/translate", body, headers=bearer(KEY))
    assert answer.status_code == 500
    figures = locked.client.get("/metrics", headers=bearer(KEY)).text
    deadline = time.monotonic() + 10
    while "failed" not in caplog.text and time.monotonic() < deadline:
        time.sleep(0.02)
    own = [record.getMessage() for record in caplog.records if record.name == "pellucid.serve"]
    assert any("/v1/translate 200" in line for line in own)
    assert any("RuntimeError" in line for line in own)
    for text in (*own, figures, answer.text):
        for hidden in (SECRET, KEY, WRONG, "127.0.0.1", "Traceback", str(Path.cwd())):
            assert hidden not in text


def test_keys_are_made_hashed_and_read(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    first, second = make_key(path, "web site"), make_key(path, "")
    text = path.read_text()
    assert first not in text
    assert "web site" in text
    assert path.stat().st_mode & 0o077 == 0
    keys = Keys.read(path)
    assert keys.accept(first)
    assert keys.accept(second)
    assert not any(map(keys.accept, ("", None, first[:-1], first + " ", hash_key(first).hex())))


@pytest.mark.parametrize("text", ["", "# nothing\n\n", f"{KEY}\n", "0" * 63 + "\n"])
def test_keys_file_without_hashes_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys"
    path.write_text(text)
    with pytest.raises(DataError) as refused:
        Keys.read(path)
    assert KEY not in str(refused.value)


def test_key_is_added_to_a_file_without_a_last_line_end(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"{'7'.zfill(64)}  first")
    key = make_key(path, "second")
    assert Keys.read(path).accept(key)
    assert path.read_text().count("\n") == 2
    # What an earlier version glued together is noticed.
    path.write_text(f"{'7'.zfill(64)}  first{hash_key(key).hex()}  second\n")
    with pytest.raises(DataError, match="no other"):
        Keys.read(path)


def test_keys_file_of_another_editor_is_read(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_bytes(f"\ufeff{hash_key(KEY).hex()}  first\r\n  # a note\r\n".encode())
    assert Keys.read(path).accept(KEY)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org"])
def test_public_address_needs_keys_or_an_explicit_wish(host: str) -> None:
    with pytest.raises(InputError, match="Give key_file=FILE, or public_no_auth to let"):
        Settings(host=host).check_public(is_public=False)
    Settings(host=host).check_public(is_public=True)
    Settings(host=host, keys=Keys([hash_key(KEY)])).check_public(is_public=False)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.3.0.9"])
def test_loopback_address_needs_no_keys(host: str) -> None:
    Settings(host=host).check_public(is_public=False)


def test_names_of_models_come_from_folders_or_are_given(tmp_path: Path) -> None:
    assert name_models(["demo", "big=runs/x", "runs/en-fr/bundle"]) == {
        "demo": "demo",
        "big": "runs/x",
        "en-fr": "runs/en-fr/bundle",
    }
    with pytest.raises(InputError, match="NAME=MODEL"):
        name_models(["a/x", "b/x"])
    with pytest.raises(InputError, match="NAME=MODEL"):
        name_models(["a b=demo"])
