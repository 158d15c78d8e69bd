"""LibreTranslate's clients: their recorded requests, and the libraries themselves."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from libretranslate_clients import (
    CLIENTS,
    KEY,
    RECORDINGS,
    parse_answer,
    send_raw,
    use_as_mastodon,
    use_as_weblate,
    use_deep_translator,
    use_libretranslate_aio,
    use_libretranslatepy,
)
from served import ROUTES, Live
from zip_documents import FIRST, make_zip, read_zip

from pellucid.documents.formats import ENDINGS, FORMATS
from pellucid.serve.answers.responses import Problem
from pellucid.serve.compat.language_pairs import Detector, Languages, to_code
from pellucid.serve.compat.uploads import FileStore
from pellucid.serve.models import Models
from pellucid.serve.operations import Need
from pellucid.serve.settings import Keys, Settings, hash_key

DOG = "Le chien l'a mangé."
HOUSE = "Une maison rouge."
RECORDED = json.loads(RECORDINGS.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def locked(models: Models) -> Iterator[Live]:
    """A server with a key, which may be in the query."""
    keys = Keys([hash_key(KEY)])
    with Live(models, Settings(keys=keys, keys_in_query=True)) as server:
        yield server


@pytest.mark.parametrize("number", range(len(RECORDED)))
@pytest.mark.parametrize("has_key", [False, True])
def test_recorded_request_gets_the_recorded_answer(
    live: Live, locked: Live, number: int, has_key: bool
) -> None:
    recorded = RECORDED[number]
    server = locked if has_key else live
    answer = parse_answer(send_raw((server.host, server.port), base64.b64decode(recorded["sent"])))
    expected = recorded["body"]
    if "/frontend/settings" in recorded["request"]:
        expected |= {"apiKeys": has_key, "keyRequired": has_key}
    assert answer == {"status": recorded["status"], "body": expected}


def test_recordings_are_of_five_clients() -> None:
    assert {recorded["client"] for recorded in RECORDED} == set(CLIENTS)
    assert len(CLIENTS) == 5


def test_libretranslatepy_works(locked: Live) -> None:
    text, detected, languages = use_libretranslatepy(locked.url)
    assert text == DOG
    assert detected[0]["language"] == "en"
    assert [one["code"] for one in languages] == ["en", "fr"]


def test_libretranslate_aio_works(locked: Live) -> None:
    one, several, marked, file, settings, languages, is_healthy = use_libretranslate_aio(locked.url)
    assert one.translated_text == DOG
    assert len(one.alternatives) == 2
    assert DOG not in one.alternatives
    assert several.translated_text == [HOUSE, DOG]
    assert {found.language for found in several.detected_language} == {"en"}
    assert marked.translated_text == "<p>Une maison <b>rouge</b>.</p>"
    # Fetched without a key, as browsers and clients do.
    fetched = locked.client.get(file.translated_file_url)
    assert fetched.text == f"{DOG}\n{HOUSE}\n"
    assert "attachment" in fetched.headers["Content-Disposition"]
    assert settings.key_required
    assert languages[0].targets == ["en", "fr"]
    assert is_healthy


def test_deep_translator_works(locked: Live, live: Live) -> None:
    for server in (locked, live):
        assert use_deep_translator(server.url) == (DOG, [HOUSE, "Un chat."])


def test_weblate_and_mastodon_work(locked: Live) -> None:
    assert use_as_weblate(locked.url) == (["en", "fr"], [HOUSE, DOG])
    targets, texts, sources = use_as_mastodon(locked.url)
    assert targets == {"en": ["fr"], "fr": []}
    assert texts[0] == "<p>Le <strong>chien</strong> voit la maison rouge.</p>"
    assert sources == ["en", "en"]


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({}, 400, "missing q parameter"),
        ({"q": "", "source": "en", "target": "fr"}, 400, "missing q parameter"),
        ({"q": [], "source": "en", "target": "fr"}, 400, "missing q parameter"),
        ({"q": "A", "target": "fr"}, 400, "missing source parameter"),
        ({"q": "A", "source": "en"}, 400, "missing target parameter"),
        ({"q": "A", "source": "de", "target": "fr"}, 400, "de is not supported"),
        ({"q": "A", "source": "en", "target": "pb"}, 400, "pb is not supported"),
        ({"q": "A", "source": "fr", "target": "en"}, 400, "English (en) is not available as a"),
        ({"q": "A", "source": "en", "target": "fr", "format": "pdf"}, 400, "pdf format is not"),
        ({"q": "a" * 20_001, "source": "en", "target": "fr"}, 400, "exceeds text limit (20000)"),
        ({"q": ["a"] * 257, "source": "en", "target": "fr"}, 400, "exceeds text limit (256)"),
        ({"q": "A", "source": "en", "target": "fr", "alternatives": 10_000}, 400, "exceeds limit"),
        ({"q": "A", "source": "en", "target": "fr", "alternatives": "x"}, 400, "a number"),
        ({"q": "A", "source": "en", "target": "fr", "alternatives": -1}, 400, "exceeds limit"),
        ({"q": {"a": 1}, "source": "en", "target": "fr"}, 400, "a text or a list"),
        ({"q": ["a", 1], "source": "en", "target": "fr"}, 400, "a text or a list"),
    ],
)
def test_translate_errors_are_worded_as_clients_expect(
    live: Live, body: Any, status: int, words: str
) -> None:
    answer = live.post("/translate", body)
    assert answer.status_code == status
    assert set(answer.json()) == {"error", "code"}
    assert words in answer.json()["error"]


def test_every_route_with_a_key_in_the_body_refuses_others(locked: Live) -> None:
    body = {"q": "The dog ate it.", "s": "x", "source": "en", "target": "fr"}
    for (method, path), need in ROUTES.items():
        if need is not Need.KEY_IN_BODY:
            continue
        for wrong in ({}, {"api_key": "wrong"}, {"api_key": 7}, {"api_key": [KEY]}):
            for form in ("json", "data"):
                answer = locked.client.request(method, path, **{form: {**body, **wrong}})
                if form == "data" and wrong == {"api_key": [KEY]}:
                    continue  # a form has no lists: this is the key itself
                assert answer.status_code == 403, (path, wrong, form)
        answer = locked.client.request(method, path, json={**body, "api_key": KEY})
        expected = {"/translate": 200, "/detect": 200, "/suggest": 403, "/translate_file": 400}
        assert answer.status_code == expected[path]
        headers = {"Authorization": f"Bearer {KEY}"}
        answer = locked.client.request(method, path, json=body, headers=headers)
        assert answer.status_code == expected[path]


def test_key_in_a_query_needs_permission(models: Models) -> None:
    with Live(models, Settings(keys=Keys([hash_key(KEY)]))) as server:
        answer = server.client.post(
            "/translate", params={"q": "A", "source": "en", "target": "fr", "api_key": KEY}
        )
        assert answer.status_code == 403
        assert "query" in answer.json()["error"]


@pytest.mark.parametrize("form", ["text", "html"])
def test_translate_keeps_a_word_that_the_model_does_not_know(live: Live, form: str) -> None:
    text = "The kitten ate it."
    body = {"source": "en", "target": "fr", "format": form}
    one = live.post("/translate", {**body, "q": text}).json()["translatedText"]
    several = live.post("/translate", {**body, "q": [text, text]}).json()["translatedText"]
    assert one == "Le kitten l'a mangé."
    assert several == [one, one]


def test_translate_into_the_same_language_changes_nothing(live: Live) -> None:
    body = {"q": ["<b>Bonjour</b>", ""], "source": "fr", "target": "fr", "format": "html"}
    assert live.post("/translate", body).json() == {"translatedText": body["q"]}


def test_translate_auto_of_another_language_has_low_confidence(live: Live) -> None:
    body = {"q": "Der Hund hat das Haus gesehen und schläft jetzt.", "source": "auto"}
    answer = live.post("/translate", {**body, "target": "fr"}).json()
    assert answer["detectedLanguage"]["language"] == "en"
    assert answer["detectedLanguage"]["confidence"] < 5


def test_detect_without_letters_is_not_sure(live: Live) -> None:
    assert live.post("/detect", {"q": "12 + 3"}).json()[0]["confidence"] == 0


def test_spec_is_the_description(live: Live) -> None:
    assert live.get("/spec").json() == live.get("/openapi.json").json()


@pytest.mark.parametrize(
    ("name", "content", "status", "words"),
    [
        ("a.pdf", b"%PDF", 400, "format not supported"),
        ("a", b"x", 400, "format not supported"),
        ("a.pdf", b"%PDF-1.7", 400, "convert it to .docx or .odt"),
        ("a.docx", b"PK\x03\x04", 400, "must be a whole zip archive"),
        ("a.txt", b"\xff\xfe\x00", 400, "UTF-8"),
        ("a.txt", b"", 200, ""),
        ("a.po", b'msgid "A cat."\nmsgstr ""\n', 200, "_fr.po"),
        ("a.md", b"# A *cat*\n", 200, "_fr.md"),
        ("a.json", b'{"a": ', 400, "JSON must be well-formed"),
        ("../../etc/a.txt", b"A cat.", 200, "a_fr.txt"),
        ('q"uo\r\nte.html', b"<p>A cat.</p>", 200, "_fr.html"),
    ],
)
def test_translate_file_takes_documents_and_refuses_others(
    live: Live, name: str, content: bytes, status: int, words: str
) -> None:
    answer = live.client.post(
        "/translate_file", data={"source": "en", "target": "fr"}, files={"file": (name, content)}
    )
    assert answer.status_code == status
    assert words in answer.text
    if status == 200:
        fetched = live.client.get(answer.json()["translatedFileUrl"])
        assert fetched.status_code == 200
        assert "\n" not in fetched.headers["Content-Disposition"]
        assert "etc" not in fetched.headers["Content-Disposition"]
        if name == "a.po":
            assert fetched.text == '#, fuzzy\nmsgid "A cat."\nmsgstr "Un chat."\n'


LONG = "the cat " * 400
"""A sentence that is too long for the model."""


def test_translated_file_names_what_to_look_at_and_the_language_that_was_found(live: Live) -> None:
    def send(name: str, content: str, source: str = "en") -> tuple[dict[str, Any], str]:
        data = {"source": source, "target": "fr"}
        answer = live.client.post("/translate_file", data=data, files={"file": (name, content)})
        assert answer.status_code == 200, answer.text
        found = answer.json()
        return found, live.client.get(found["translatedFileUrl"]).content.decode()

    found, text = send("a.json", json.dumps({"a": "A cat.", "long": LONG}))
    assert json.loads(text) == {"a": "Un chat.", "long": LONG}
    (unsure,) = found["unsure"]
    assert (unsure["line"], unsure["key"]) == (1, "long")
    found, text = send("a.txt", f"A cat.\n{LONG}\nA cat.\n")
    assert text == f"Un chat.\n{LONG}\nUn chat.\n"
    assert [one["line"] for one in found["unsure"]] == [2]
    found, text = send("a.json", '{"a": "The dog sees the cat and the cat sees the dog."}', "auto")
    assert found["detectedLanguage"]["language"] == "en"
    assert "chien" in text
    many = json.dumps({str(number): "A cat." for number in range(3000)})
    assert send("a.json", many)[1].count("Un chat.") == 3000
    assert send("a.json", '\ufeff{"a": "A cat."}')[1] == '\ufeff{"a": "Un chat."}'


IN_FORMATS = {
    "po": 'msgid "§"\nmsgstr ""\n',
    "srt": "1\n00:00:01,000 --> 00:00:02,000\n§\n",
    "vtt": "WEBVTT\n\n00:01.000 --> 00:02.000\n§\n",
    "xliff": '<xliff version="1.2"><file source-language="en" target-language="fr"><body>'
    '<trans-unit id="1"><source>§</source></trans-unit></body></file></xliff>',
    "tmx": '<tmx><body><tu><tuv xml:lang="en"><seg>§</seg></tuv></tu></body></tmx>',
    "android": '<resources><string name="a">§</string></resources>',
    "resx": '<root><data name="a"><value>§</value></data></root>',
    "qt": "<TS><context><message><source>§</source><translation/></message></context></TS>",
    "fluent": "a = §\n",
    "markdown": "# §\n\n```\ncode\n```\n",
    "html": "<p>§</p>",
    "json": '{"a": "§"}',
    "xcstrings": '{\n  "strings" : {\n    "§" : {\n\n    }\n  }\n}\n',
    "yaml": "a: §\n",
    "properties": "a = §\n",
    "strings": '"a" = "§";\n',
    "csv": "id,text\n1,§\n",
    "tsv": "id\ttext\n1\t§\n",
}


def test_every_format_goes_through_a_client_and_keeps_its_form(
    locked: Live, tmp_path: Path
) -> None:
    from libretranslate_aio import LibreTranslate

    assert {*IN_FORMATS, *FIRST} == {*FORMATS}
    with LibreTranslate(locked.url, api_key=KEY) as client:
        formats = client.frontend_settings().supported_files_format
        assert formats == [".txt", *ENDINGS]
        for ending, one in ENDINGS.items():
            path = tmp_path / f"a{ending}"
            if one.is_zip:
                path.write_bytes(make_zip(one.name, "A red house."))
                found = client.translate_file(path, "en", "fr").translated_file_url
                parts = read_zip(locked.client.get(found).content)
                assert parts == read_zip(make_zip(one.name, HOUSE))
                continue
            form = IN_FORMATS[one.name]
            document = form.replace("§", "A red house.")
            path.write_text(document, encoding="utf-8")
            found = client.translate_file(path, "en", "fr").translated_file_url
            fetched = locked.client.get(found)
            assert fetched.headers["Content-Type"].startswith(one.media_type)
            assert found.endswith(f"a_fr{ending}")
            target = f'<target state="needs-review-translation">{HOUSE}</target>'
            variant = f'<tuv xml:lang="fr"><seg>{HOUSE}</seg></tuv>'
            unit = f'{{ "state" : "needs_review", "value" : "{HOUSE}" }}'
            localized = f'"localizations" : {{ "fr" : {{ "stringUnit" : {unit} }} }}'
            expected = {
                "xcstrings": document.replace(" {\n\n    }", f" {{\n      {localized}\n    }}"),
                "qt": document.replace(
                    "<translation/>", f'<translation type="unfinished">{HOUSE}</translation>'
                ),
                "po": f'#, fuzzy\nmsgid "A red house."\nmsgstr "{HOUSE}"\n',
                "xliff": document.replace("</source>", f"</source>{target}"),
                "tmx": document.replace("</tuv>", f"</tuv>{variant}"),
            }
            assert fetched.content.decode() == expected.get(one.name, form.replace("§", HOUSE))


def test_download_of_what_is_not_there_gives_404(live: Live) -> None:
    for name in ("x", "..%2f..%2fetc%2fpasswd", "%00", "a" * 3000):
        assert live.get(f"/download_file/{name}").status_code == 404


def test_files_are_dropped_if_they_are_too_many() -> None:
    store = FileStore(most_bytes=10)
    first = store.add("a", b"12345", "text/plain")
    second = store.add("b", b"1234567", "text/plain")
    with pytest.raises(Problem):
        store.get(first)
    assert store.get(second).content == b"1234567"


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("fra", "fr"), ("fr_FR", "fr"), ("EN", "en"), ("zh", "zh-Hans"), ("zt", "zh-Hant"),
        ("pb", "pt-BR"), ("pt-br", "pt-BR"), ("zh-TW", "zh-Hant"), ("zh_HK", "zh-Hant"),
        ("cmn_Hant", "zh-Hant"), ("zh_TW", "zh-Hant"), ("zh-SG", "zh-Hans"), ("por_PT", "pt"),
         ("zh_Hans", "zh-Hans"), ("deu", "de"), ("tlh", "tlh"),
    ],
)  # fmt: skip
def test_codes_of_models_and_clients_meet(given: str, code: str) -> None:
    assert to_code(given) == code


def test_a_language_of_two_scripts_is_reached_in_both() -> None:
    several = SimpleNamespace(
        sources=("en",),
        targets=("cmn_Hans", "cmn_Hant", "srp_Cyrl", "srp_Latn"),
        is_for_several=True,
        is_for_all=False,
        code_of=lambda source, target: target,
    )
    languages = Languages([several])  # type: ignore[arg-type]
    found = {}
    for code in ("zh", "zh-TW", "zt", "sr", "sr-Latn", "sr@latin", "srp_Cyrl"):
        pair = languages.find("en", languages.check(code))
        assert pair is not None
        found[code] = pair.to
    assert found == {
        "zh": "cmn_Hans",
        "zh-TW": "cmn_Hant",
        "zt": "cmn_Hant",
        "sr": "srp_Cyrl",
        "sr-Latn": "srp_Latn",
        "sr@latin": "srp_Latn",
        "srp_Cyrl": "srp_Cyrl",
    }


def test_languages_of_a_model_without_languages_are_none(models: Models) -> None:
    (model,) = models
    languages = Languages(Models([model]))
    assert languages.default == ("en", "fr")
    route = languages.find("en", "fr")
    assert route is not None
    assert route.to is None


def test_detector_tells_languages_apart() -> None:
    detector = Detector(["en", "fr", "de"])
    for text, code in (
        ("The dog sees the cat in the garden.", "en"),
        ("Le chien voit le chat dans le jardin.", "fr"),
        ("Der Hund sieht die Katze im Garten.", "de"),
    ):
        best = detector.detect(text)[0]
        assert best["language"] == code
        assert best["confidence"] > 50
