import asyncio
import json
import re
import zlib

import pytest

from tests.serving.making import KEY, in_base64, parts, photo


def bomb() -> bytes:
    """A PNG of 30,000 x 30,000 pixels in its header."""
    header = b"IHDR" + (30_000).to_bytes(4, "big") * 2 + photo()[24:29]
    return photo()[:12] + header + zlib.crc32(header).to_bytes(4, "big") + photo()[33:]


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"hello", 415, "not_an_image"),
        (b"", 415, "not_an_image"),
        (photo()[:-30], 422, "broken_image"),
        (bomb(), 413, "too_large"),
    ],
    ids=["text", "empty", "cut", "bomb"],
)
def test_an_image_that_cannot_be_read_has_a_status_and_a_reason(bench, content, status, code) -> None:
    async def scenario(client, _):
        return await client.post("/v1/predict", files=parts(content))

    answer = bench.run(scenario)
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == code
    assert answer.json()["results"][0]["error"]["status"] == status
    assert not re.search(r"0x|Traceback|Error|\.py", answer.text)


def test_a_body_that_is_too_large_is_refused(bench) -> None:
    async def scenario(client, _):
        async def chunks():
            for _ in range(20):
                yield bytes(2**17)

        whole = await client.post("/v1/predict", content=bytes(2**20 + 1), headers={"content-type": "application/json"})
        streamed = await client.post("/v1/predict", content=chunks(), headers={"content-type": "application/json"})
        return whole, streamed

    for answer in bench.run(scenario, max_body=1):
        assert answer.status_code == 413
        assert answer.json()["error"]["code"] == "body_too_large"


def test_too_many_images_are_refused(bench) -> None:
    async def scenario(client, _):
        body = {"images": [in_base64(photo())] * 3}
        return await client.post("/v1/predict", files=parts(*[photo()] * 3)), await client.post(
            "/v1/predict", json=body
        )

    for answer in bench.run(scenario, max_images=2):
        assert answer.status_code == 413
        assert answer.json()["error"]["code"] == "too_many_images"


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 422),
        (b"[" * 100_000, "application/json", 422),
        (b'{"images": "x"}', "application/json", 422),
        (b'{"images": []}', "application/json", 422),
        (b'{"images": [], "url": "http://127.0.0.1/"}', "application/json", 422),
        (b'{"images": [7]}', "application/json", 422),
        (b'{"images": ["%%"]}', "application/json", 422),
        (b"--x\r\n\r\nhalf", "multipart/form-data; boundary=x", 422),
        (b"", "multipart/form-data", 422),
        (b"", "multipart/form-data; boundary=x", 422),
        (b"x", "text/plain", 415),
        (b"x", "", 415),
    ],
)
def test_bodies_that_are_not_understood(bench, body, kind, status) -> None:
    async def scenario(client, _):
        return await client.post("/v1/predict", content=body, headers={"content-type": kind})

    answer = bench.run(scenario)
    assert answer.status_code == status
    assert set(answer.json()["error"]) >= {"code", "message"}


@pytest.mark.parametrize(
    "query",
    [
        "top=0",
        "top=x",
        "explain=magic",
        "explain=grad-cam",
        "explain=auto&class=yak",
        "class=ant",
        "patch=1",
        "explain=attention&patch=12",
        "explain=attention&layer=2",
        "explain=attention&head=4",
        "explain=rollout&patch=1",
        "explain=rollout&layer=0",
        "top=" + "9" * 400,
    ],
)
def test_settings_that_the_model_does_not_have(bench, query) -> None:
    async def scenario(client, _):
        return await client.post(f"/v1/predict?{query}", files=parts(photo()))

    answer = bench.run(scenario)
    assert answer.status_code == 422
    assert answer.json()["error"]["message"]


def test_a_full_queue_is_told_at_once_with_the_time_to_wait(bench) -> None:
    bench.member.pause = 0.2

    async def scenario(client, service):
        many = [client.post("/v1/predict", files=parts(photo(seed))) for seed in range(12)]
        answers = await asyncio.gather(*many)
        return answers, service.fleet.pending

    answers, pending = bench.run(scenario, max_queue=4, max_images=4)
    refused = [answer for answer in answers if answer.status_code == 429]
    assert len(refused) == 8
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
    assert {answer.json()["error"]["code"] for answer in refused} == {"queue_full"}
    assert sum(answer.status_code == 200 for answer in answers) == 4
    assert pending == 0


def test_a_queue_is_short_in_time_and_requests_with_many_images_do_not_count_for_all_of_them(bench) -> None:
    bench.member.pause = 0.1

    async def scenario(client, service):
        service.fleet.backlog.seconds["compute"] = 0.4
        large = asyncio.ensure_future(client.post("/v1/predict", files=parts(*map(photo, range(12)))))
        await asyncio.sleep(0.02)  # 11 images wait, for some 4 seconds, but one of them only before the next request
        small = [asyncio.ensure_future(client.post("/v1/predict", files=parts(photo(seed)))) for seed in range(3)]
        await asyncio.sleep(0.02)
        refused = await client.post("/v1/predict", files=parts(photo()))
        return refused, [(await answer).status_code for answer in (large, *small)]

    refused, statuses = bench.run(scenario, workers=1, max_wait=1.0)
    assert statuses == [200, 200, 200, 429]
    assert refused.status_code == 429
    assert refused.json()["error"]["code"] == "too_busy"
    assert refused.headers["retry-after"] == "1"


def test_what_would_be_late_is_refused_and_what_is_late_is_not_computed(bench) -> None:
    bench.member.pause = 0.1

    async def scenario(client, service):
        late = await client.post(
            "/v1/predict", files=parts(*map(photo, range(6))), headers={"x-request-timeout": "0.15"}
        )
        await asyncio.sleep(0.5)
        service.fleet.backlog.seconds["compute"] = 100.0
        service.fleet.submit([])
        busy = asyncio.ensure_future(client.post("/v1/predict", files=parts(*map(photo, range(6)))))
        await asyncio.sleep(0.05)
        refused = await client.post("/v1/predict", files=parts(photo()))
        busy.cancel()
        return late, refused

    late, refused = bench.run(scenario, workers=1)
    assert late.status_code == 503
    assert late.json()["error"]["code"] == "too_slow"
    assert "retry-after" in late.headers
    started = [call for call in bench.member.calls if call.get("do") in ("prepare", "compute")]
    assert len(started) < 6  # of 6 to decode and 2 batches of the first request, with the second's
    assert refused.status_code == 429
    assert refused.json()["error"]["code"] == "too_busy"


def test_work_of_a_client_that_has_gone_is_not_computed(bench) -> None:
    bench.member.pause = 0.05

    async def scenario(client, service):
        app = client._transport.app
        boundary = b"--x\r\nContent-Disposition: form-data; name=images; filename=a.png\r\n\r\n"
        body = boundary + (b"\r\n" + boundary).join(photo(seed) for seed in range(10)) + b"\r\n--x--\r\n"
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive():
            if messages:
                return messages.pop(0)
            await asyncio.sleep(0.06)
            return {"type": "http.disconnect"}

        sent = []

        async def send(message):
            sent.append(message)

        headers = [(b"host", b"localhost"), (b"content-type", b"multipart/form-data; boundary=x")]
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/v1/predict",
            "raw_path": b"/v1/predict",
            "query_string": b"",
            "headers": headers,
            "scheme": "http",
            "server": ("localhost", 80),
            "client": ("127.0.0.1", 1),
            "http_version": "1.1",
        }
        await app(scope, receive, send)
        await asyncio.sleep(0.3)
        return sent, service.fleet.pending

    sent, pending = bench.run(scenario, workers=1)
    assert sent == []
    assert pending == 0
    assert len(bench.member.calls) <= 3
    assert '"status": 499' in bench.lines[-1]


def test_keys_are_needed_everywhere_but_for_health_and_the_page(bench) -> None:
    async def scenario(client, _):
        without = [await client.get(path) for path in ("/v1/model", "/v1/labels", "/metrics", "/v1/models", "/nothing")]
        wrong = await client.get("/v1/model", headers={"authorization": "Bearer x"})
        right = await client.get("/v1/model", headers={"authorization": f"Bearer {KEY}"})
        other = await client.get("/v1/model", headers={"x-api-key": KEY})
        strange = await client.get("/v1/model", headers={"authorization": "Bearer \xe9".encode("latin-1")})
        free = [await client.get(path) for path in ("/healthz", "/readyz", "/", "/docs", "/openapi.json")]
        return [*without, wrong, strange], [right, other, *free]

    refused, answered = bench.run(scenario, keys=(b"another-key-of-32-letters-in-all", KEY.encode()))
    assert {answer.status_code for answer in refused} == {401}
    assert all(answer.headers["www-authenticate"] == "Bearer" for answer in refused)
    assert {answer.status_code for answer in answered} == {200}


def test_other_sites_and_other_names_are_refused(bench) -> None:
    async def scenario(client, _):
        answers = [
            await client.post("/v1/predict", files=parts(photo()), headers={"origin": "https://evil.example"}),
            await client.get("/v1/model", headers={"host": "evil.example"}),
            await client.post("/v1/reload"),
        ]
        same = await client.post("/v1/predict", files=parts(photo()), headers={"origin": "http://localhost"})
        preflight = await client.options(
            "/v1/predict", headers={"origin": "https://evil.example", "access-control-request-method": "POST"}
        )
        return answers, same, preflight

    refused, same, preflight = bench.run(scenario)
    assert [answer.status_code for answer in refused] == [403, 403, 403]
    assert same.status_code == 200
    assert "access-control-allow-origin" not in preflight.headers


def test_cors_is_for_the_origins_that_were_given(bench) -> None:
    async def scenario(client, _):
        friend = {"origin": "https://friend.example", "access-control-request-method": "POST"}
        return (
            await client.options("/v1/predict", headers=friend),
            await client.post("/v1/predict", files=parts(photo()), headers={"origin": "https://friend.example"}),
            await client.post("/v1/predict", files=parts(photo()), headers={"origin": "https://evil.example"}),
        )

    preflight, friend, evil = bench.run(scenario, cors=("https://friend.example",))
    assert preflight.headers["access-control-allow-origin"] == "https://friend.example"
    assert friend.status_code == 200
    assert evil.status_code == 403


def test_logs_are_json_lines_without_contents(bench) -> None:
    async def scenario(client, _):
        await client.post("/v1/predict", files=[("images", ("secret-name.png", photo(), "image/png"))])
        await client.get("/secret-path?secret-query")

    bench.run(scenario)
    events = [json.loads(line) for line in bench.lines]
    assert [(event["path"], event["status"]) for event in events] == [("/v1/predict", 200), ("other", 404)]
    assert events[0]["images"] == 1
    assert "secret" not in "".join(bench.lines)


def test_a_fault_of_ours_has_no_text_in_the_answer(bench, monkeypatch) -> None:
    async def scenario(client, service):
        def broken(*_):
            raise RuntimeError("secret")

        monkeypatch.setattr(service, "model", broken)
        return await client.get("/v1/model")

    answer = bench.run(scenario)
    assert answer.status_code == 500
    assert "secret" not in answer.text + "".join(bench.lines)
    assert '"kind": "RuntimeError"' in "".join(bench.lines)


def test_bodies_of_all_requests_together_are_bounded(bench) -> None:
    async def scenario(client, service):
        service.budget.used = service.budget.most - 100
        full = await client.post("/v1/predict", files=parts(photo()))
        service.budget.used = 0
        await client.post("/v1/predict", files=parts(photo()))
        await client.post("/v1/predict", content=b"{", headers={"content-type": "application/json"})
        return full, service.budget.used

    full, used = bench.run(scenario)
    assert full.status_code == 503
    assert used == 0
