"""Record what LibreTranslate's clients send, and what the server answers.

``python tests/shared/libretranslate_clients.py`` writes ``tests/serve/clients.json``. Three clients
are real libraries. Weblate and Mastodon are programs of their own, so the requests of their
machine translation back ends are spelled out here.
"""

from __future__ import annotations

import base64
import json
import re
import socket
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx

HERE = Path(__file__).resolve().parent
RECORDINGS = HERE.parent / "serve" / "clients.json"
KEY = "a-key-that-no-one-needs"


def use_libretranslatepy(url: str) -> Any:
    from libretranslatepy import LibreTranslateAPI

    client = LibreTranslateAPI(url, api_key=KEY)
    text = client.translate("The dog ate it.", "en", "fr")
    return text, client.detect("The dog sees the cat and the cat sees the dog."), client.languages()


def use_libretranslate_aio(url: str) -> Any:
    from libretranslate_aio import LibreTranslate

    with LibreTranslate(url, api_key=KEY) as client, tempfile.TemporaryDirectory() as folder:
        one = client.translate("The dog ate it.", "en", "fr", alternatives=2)
        several = client.translate(["A red house.", "The dog ate it."], "auto", "fr")
        marked = client.translate("<p>A <b>red</b> house.</p>", "en", "fr", format="html")
        path = Path(folder) / "letter.txt"
        path.write_text("The dog ate it.\nA red house.\n", encoding="utf-8")
        file = client.translate_file(path, "en", "fr")
        settings, languages = client.frontend_settings(), client.languages()
        return one, several, marked, file, settings, languages, client.health()


def use_deep_translator(url: str) -> Any:
    from deep_translator import LibreTranslator

    client = LibreTranslator(source="en", target="fr", api_key=KEY, custom_url=f"{url}/")
    return client.translate("The dog ate it."), client.translate_batch(["A red house.", "A cat."])


def use_as_weblate(url: str) -> Any:
    with httpx.Client(base_url=url, headers={"User-Agent": "Weblate/5.13"}) as client:
        languages = client.get("/languages").json()
        body = {"api_key": KEY, "q": ["A red house.", "The dog ate it."]}
        answer = client.post("/translate", json={**body, "source": "en", "target": "fr"})
        return [one["code"] for one in languages], answer.json()["translatedText"]


def use_as_mastodon(url: str) -> Any:
    headers = {"User-Agent": "http.rb/5.2.0 (Mastodon/4.4.0; +https://social.example/)"}
    with httpx.Client(base_url=url, headers=headers) as client:
        languages = client.get("/languages").json()
        body = {
            "q": ["<p>The <strong>dog</strong> sees the red house.</p>", "The cat sleeps."],
            "source": "auto",
            "target": "fr",
            "format": "html",
            "api_key": KEY,
        }
        answer = client.post("/translate", json=body).json()
        return (
            {one["code"]: [t for t in one["targets"] if t != one["code"]] for one in languages},
            answer["translatedText"],
            [one["language"] for one in answer["detectedLanguage"]],
        )


CLIENTS: Mapping[str, Callable[[str], Any]] = {
    "libretranslatepy": use_libretranslatepy,
    "libretranslate-aio": use_libretranslate_aio,
    "deep-translator": use_deep_translator,
    "Weblate": use_as_weblate,
    "Mastodon": use_as_mastodon,
}


class Tap:
    """Passes connections on to a server, and keeps what clients send."""

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.requests: list[bytes] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            client, _ = self._listening.accept()
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, client.makefile("rb") as sent:
            while head := self._read_head(sent):
                match = re.search(rb"(?i)content-length: *(\d+)", head)
                request = head + (sent.read(int(match[1])) if match else b"")
                self.requests.append(request)
                client.sendall(send_raw(self._target, request))

    @staticmethod
    def _read_head(sent: Any) -> bytes:
        head = b""
        while line := sent.readline():
            head += line
            if line == b"\r\n":
                return head
        return b""


def send_raw(target: tuple[str, int], request: bytes) -> bytes:
    """Send a request as it is, on a connection that ends with it, and return the answer."""
    host = f"{target[0]}:{target[1]}".encode()
    head, _, body = request.partition(b"\r\n\r\n")
    head = re.sub(rb"(?im)^host: [^\r]*", b"Host: " + host, head)
    head = re.sub(rb"(?im)^connection: [^\r]*\r\n", b"", head) + b"\r\nConnection: close"
    with socket.create_connection(target, timeout=30) as connection:
        connection.sendall(head + b"\r\n\r\n" + body)
        answer = b""
        while chunk := connection.recv(65_536):
            answer += chunk
    return answer


def parse_answer(answer: bytes) -> dict[str, Any]:
    """Take the status and the JSON of an answer; addresses of files differ each time."""
    head, _, body = answer.partition(b"\r\n\r\n")
    text = re.sub(
        r"http://[^/]+/download_file/[^.]+\.", "http://HOST/download_file/NAME.", body.decode()
    )
    return {"status": int(head.split()[1]), "body": json.loads(text)}


def record() -> None:
    from served import Live

    from pellucid.serve.models import load_models

    recordings = []
    with Live(load_models({"demo": "demo"})) as live:
        for name, use in CLIENTS.items():
            tap = Tap(live.host, live.port)
            use(tap.url)
            for request in tap.requests:
                answer = parse_answer(send_raw((live.host, live.port), request))
                text = request.decode("latin-1")
                text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:5000", text)
                encoded = base64.b64encode(text.encode("latin-1")).decode()
                recordings.append(
                    {"client": name, "request": text.split("\r\n")[0], "sent": encoded, **answer}
                )
    RECORDINGS.write_text(
        json.dumps(recordings, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    record()
