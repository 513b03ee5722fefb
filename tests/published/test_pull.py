"""Downloads from a server that cuts, lies, waits and changes its mind."""

import hashlib
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.published.server import send, serving, status
from vitrail.base.errors import ConfigError, InputError, NetworkError, VitrailError, WriteError
from vitrail.base.progress import silent
from vitrail.published import download
from vitrail.published.cache import Cache
from vitrail.published.download import Patience
from vitrail.published.entry import Published
from vitrail.published.find import find_published
from vitrail.published.pull import fetch, source_of
from vitrail.published.record import Record
from vitrail.published.source import Source
from vitrail.published.web import check_redirect

BODY = bytes(range(256)) * 12_000  # 3 MB, in a dozen pieces
SHA = hashlib.sha256(BODY).hexdigest()


def pulled(
    address: str, cache: Cache, patience: Patience, *, entry: Published | None = None, renew: bool = False, notes=None
) -> Record:
    source = replace(source_of(address), entry=entry)
    note = (notes if notes is not None else []).append
    return fetch(source, cache, renew=renew, patience=patience, progress=silent, note=note)[0]


def published(address: str, **facts) -> Published:
    return Published(
        name="tiny", source=address, licence="MIT", data="nothing", image_size=8, pixels="google", num_heads=1, **facts
    )


def files(cache: Cache) -> list[str]:
    return sorted(path.name for path in cache.folder.rglob("*") if path.is_file() and path.parent.name != "digests")


def test_a_file_is_downloaded_once_and_its_name_stands_for_it(cache, patience) -> None:
    with serving(lambda request, _: send(request, BODY)) as server:
        address = server.at("models/tiny.npz")
        first, again = pulled(address, cache, patience), pulled(address, cache, patience)
        assert len(server.requests) == 1
    assert first == again
    assert first.path.read_bytes() == BODY
    assert first.files["tiny.npz"].sha256 == SHA
    assert first.files["tiny.npz"].size == len(BODY)
    assert files(cache) == ["pulled.json", "tiny.npz"]
    place = find_published(address)
    assert place is not None
    assert place.path == first.path


def test_a_name_that_is_not_here_names_the_command_that_gets_it() -> None:
    with pytest.raises(
        InputError, match=r"dinov2-S/14 is published, but not on this machine; .*`vitrail pull dinov2-S/14`"
    ):
        find_published("dinov2-s/14")
    assert find_published("runs/one/model.safetensors") is None


def test_a_file_of_the_same_name_comes_first(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dinov2-S").mkdir()
    (tmp_path / "dinov2-S" / "14").write_bytes(b"weights")
    assert find_published("dinov2-S/14") is None


def test_cut_connections_are_resumed_where_they_ended(cache, patience, waits) -> None:
    notes: list[str] = []
    cuts = {0: 1_000_000, 1: 500_000, 2: None}
    with serving(lambda request, number: send(request, BODY, cut=cuts[number])) as server:
        record = pulled(server.at("tiny.npz"), cache, patience, notes=notes)
        assert server.ranges == [None, "bytes=1000000-", "bytes=1500000-"]
        assert all(headers.get("if-range") == '"one"' for _, headers in server.requests[1:])
    assert record.path.read_bytes() == BODY
    assert waits == [1.0, 1.0]  # bytes came between the failures
    assert "the connection was cut; trying again in 1 s" in notes[0]


def test_another_process_resumes_an_interrupted_download(cache, patience) -> None:
    with serving(lambda request, number: send(request, BODY, cut=700_000 if number == 0 else 0)) as server:
        address = server.at("tiny.npz")
        with pytest.raises(NetworkError, match=r"cut; 700,000 bytes are kept, and the same command resumes"):
            pulled(address, cache, patience)
        assert len(server.requests) == 3
        assert files(cache) == ["tiny.npz.part", "tiny.npz.part.json"]
        assert [row.received for row in cache.unfinished()] == [700_000]
        with pytest.raises(InputError, match="not on this machine"):
            find_published(address)
    port = server.port
    with serving(lambda request, _: send(request, BODY)) as server:
        moved = cache.home(source_of(address)).rename(cache.home(source_of(server.at("tiny.npz"))))
        tag = moved / "tiny.npz.part.json"
        tag.write_text(tag.read_text().replace(str(port), str(server.port)))
        assert pulled(server.at("tiny.npz"), cache, patience).files["tiny.npz"].sha256 == SHA
        assert server.ranges == ["bytes=700000-"]


def test_a_file_that_changed_between_two_tries_is_downloaded_from_its_beginning(cache, patience) -> None:
    other = BODY[::-1]

    def answer(request, number: int) -> None:
        send(request, BODY, cut=900_000) if number == 0 else send(request, other, etag='"two"')

    with serving(answer) as server:
        record = pulled(server.at("tiny.npz"), cache, patience)
        assert server.ranges == [None, "bytes=900000-"]
    assert record.path.read_bytes() == other


@pytest.mark.parametrize(("etag", "ranges"), [(None, True), ('W/"weak"', True), ('"one"', False)])
def test_bytes_without_a_name_or_a_server_without_ranges_begin_again(cache, patience, etag, ranges) -> None:
    with serving(lambda request, n: send(request, BODY, etag=etag, ranges=ranges, cut=None if n else 99_999)) as server:
        assert pulled(server.at("tiny.npz"), cache, patience).files["tiny.npz"].sha256 == SHA
        assert len(server.requests) == 2


def test_a_part_that_is_longer_than_the_file_begins_again(cache, patience) -> None:
    with serving(lambda request, _: send(request, BODY)) as server:
        source = source_of(server.at("tiny.npz"))
        home = cache.home(source)
        home.mkdir(parents=True)
        (home / "tiny.npz.part").write_bytes(BODY + b"more")
        (home / "tiny.npz.part.json").write_text(json.dumps({"address": source.place, "validator": '"one"'}))
        assert pulled(source.place, cache, patience).path.read_bytes() == BODY
        assert server.ranges == [f"bytes={len(BODY) + 4}-", None]


def test_a_wrong_length_is_refused_before_a_byte_is_taken(cache, patience) -> None:
    with (
        serving(lambda request, _: send(request, BODY)) as server,
        pytest.raises(NetworkError, match=r"has 3,072,000 bytes, but 5 were published; it is not taken"),
    ):
        pulled(server.at("tiny.npz"), cache, patience, entry=published(server.at("tiny.npz"), size=5))
    assert files(cache) == []


def test_a_wrong_digest_is_refused_and_nothing_stays(cache, patience) -> None:
    with serving(lambda request, _: send(request, BODY)) as server:
        with pytest.raises(NetworkError, match=rf"SHA-256 {SHA[:16]}, but 0123456789abcdef was published"):
            pulled(
                server.at("a.npz"), cache, patience, entry=published(server.at("a.npz"), sha256="0123456789abcdef" * 4)
            )
        assert files(cache) == []
        good = published(server.at("a.npz"), sha256=SHA[:8], size=len(BODY))
        assert pulled(server.at("a.npz"), cache, patience, entry=good).licence == "MIT"


def test_the_digest_of_the_first_download_is_held_also_after_a_removal(cache, patience) -> None:
    body = [BODY]
    with serving(lambda request, _: send(request, body[0], etag=None)) as server:
        address = server.at("tiny.npz")
        pulled(address, cache, patience)
        assert cache.remove(source_of(address), note=print) == len(BODY)
        assert files(cache) == []
        body[0] = BODY[::-1]
        with pytest.raises(NetworkError, match=r"when it was first pulled here: .* give `renew=True`"):
            pulled(address, cache, patience)
        assert pulled(address, cache, patience, renew=True).path.read_bytes() == BODY[::-1]
        assert pulled(address, cache, patience).path.read_bytes() == BODY[::-1]


def test_redirects_are_followed_and_loops_are_not(cache, patience) -> None:
    def answer(request, _: int) -> None:
        match request.path:
            case "/moved.npz":
                status(request, 302, Location="/tiny.npz")
            case "/loop.npz":
                status(request, 302, Location="/loop.npz?again")
            case "/loop.npz?again":
                status(request, 307, Location="/loop.npz")
            case "/plain.npz":
                status(request, 301, Location="http://example.org/tiny.npz")
            case "/file.npz":
                status(request, 301, Location="file:///etc/passwd")
            case _:
                send(request, BODY)

    with serving(answer) as server:
        assert pulled(server.at("moved.npz"), cache, patience).files["moved.npz"].sha256 == SHA
        for path, sentence in (
            ("loop.npz", "leads from one address to the next without an end"),
            ("plain.npz", r"leads elsewhere: http://example.org/tiny.npz is not encrypted"),
            ("file.npz", r"leads elsewhere|leads from one"),
        ):
            with pytest.raises(NetworkError, match=sentence):
                pulled(server.at(path), cache, patience)


def test_https_never_becomes_http() -> None:
    with pytest.raises(NetworkError, match=r"leads from https to http://127.0.0.1/a.npz, which is not encrypted"):
        check_redirect("https://example.org/a.npz", "http://127.0.0.1/a.npz")
    with pytest.raises(ConfigError, match=r"http://example.org/a.npz is not encrypted, .* give an https address"):
        source_of("http://example.org/a.npz")


@pytest.mark.parametrize(
    ("code", "sentence"),
    [(404, "has no such file"), (403, "refuses access"), (401, "asks for a login"), (451, r"refuses.*HTTP 451")],
)
def test_a_refusal_is_one_sentence_at_once(cache, patience, waits, code, sentence) -> None:
    with serving(lambda request, _: status(request, code)) as server:
        with pytest.raises(NetworkError, match=rf"127.0.0.1 {sentence}"):
            pulled(server.at("tiny.npz"), cache, patience)
        assert len(server.requests) == 1
    assert waits == []


def test_a_busy_server_is_given_the_time_that_it_asks_for(cache, patience, waits) -> None:
    def answer(request, number: int) -> None:
        if number == 0:
            status(request, 429, Retry_After="7")
        elif number == 1:
            status(request, 503)
        else:
            send(request, BODY)

    with serving(answer) as server:
        assert pulled(server.at("tiny.npz"), cache, patience).files["tiny.npz"].sha256 == SHA
    assert waits == [7.0, 2.0]


def test_a_server_that_asks_for_hours_is_not_waited_for(cache, patience, waits) -> None:
    with (
        serving(lambda request, _: status(request, 429, Retry_After="7200")) as server,
        pytest.raises(NetworkError, match=r"asks to come back later \(HTTP 429\), in 7,200 seconds"),
    ):
        pulled(server.at("tiny.npz"), cache, patience)
    with serving(lambda request, _: status(request, 500)) as server:
        with pytest.raises(NetworkError, match=r"is out of order \(HTTP 500\); try again later"):
            pulled(server.at("tiny.npz"), cache, patience)
        assert len(server.requests) == 3
    assert waits == [1.0, 2.0]


def test_a_server_that_falls_silent_is_left_and_asked_again(cache, patience) -> None:
    def answer(request, number: int) -> None:
        if number == 0:
            time.sleep(0.8)  # longer than the timeout, before a word
        elif number == 1:
            send(request, BODY, cut=400_000)
        else:
            send(request, BODY)

    notes: list[str] = []
    with serving(answer) as server:
        assert pulled(server.at("tiny.npz"), cache, patience, notes=notes).files["tiny.npz"].sha256 == SHA
    assert len(notes) == 2


def test_bytes_that_stop_coming_count_as_a_cut(cache, patience) -> None:
    def answer(request, number: int) -> None:
        if number:
            send(request, BODY)
            return
        request.send_response(200)
        request.send_header("Content-Length", str(len(BODY)))
        request.send_header("ETag", '"one"')
        request.end_headers()
        request.wfile.write(BODY[:300_000])
        request.wfile.flush()
        time.sleep(0.8)
        request.close_connection = True

    notes: list[str] = []
    with serving(answer) as server:
        assert pulled(server.at("tiny.npz"), cache, patience, notes=notes).files["tiny.npz"].sha256 == SHA
        assert server.ranges[1] is not None
    assert "no bytes came in time" in notes[0]


@pytest.mark.parametrize(
    ("headers", "sentence"),
    [
        ({"Content_Type": "text/html; charset=utf-8"}, "answers with a web page"),
        ({"Content_Encoding": "gzip"}, "sends the file compressed"),
    ],
)
def test_what_is_not_the_file_is_refused(cache, patience, headers, sentence) -> None:
    with (
        serving(lambda request, _: send(request, BODY, **headers)) as server,
        pytest.raises(NetworkError, match=sentence),
    ):
        pulled(server.at("tiny.npz"), cache, patience)


def test_a_length_must_be_known_and_not_zero(cache, patience) -> None:
    def endless(request, _: int) -> None:
        request.send_response(200)
        request.end_headers()
        request.wfile.write(BODY[:100])
        request.close_connection = True

    def chunked(request, number: int) -> None:
        request.send_response(200)
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        request.wfile.write(b"%x\r\n" % len(BODY) + BODY + (b"\r\n0\r\n\r\n" if number else b""))
        request.close_connection = True

    with serving(endless) as server, pytest.raises(NetworkError, match="how long the file is"):
        pulled(server.at("tiny.npz"), cache, patience)
    with serving(lambda request, _: send(request, b"")) as server, pytest.raises(NetworkError, match="is empty"):
        pulled(server.at("tiny.npz"), cache, patience)
    with serving(chunked) as server:  # whose end is marked, so that the first answer is known to be cut
        assert pulled(server.at("tiny.npz"), cache, patience).files["tiny.npz"].sha256 == SHA
        assert len(server.requests) == 2


def test_a_file_beyond_the_bound_is_refused(cache, patience, monkeypatch) -> None:
    monkeypatch.setenv("VITRAIL_LIMIT_DOWNLOAD_BYTES", "1000")
    with (
        serving(lambda request, _: send(request, BODY)) as server,
        pytest.raises(NetworkError, match="VITRAIL_LIMIT_DOWNLOAD_BYTES"),
    ):
        pulled(server.at("tiny.npz"), cache, patience)


def test_without_a_server_the_sentence_comes_at_once(cache, patience, waits) -> None:
    with serving(lambda *_: None) as server:
        address = server.at("tiny.npz")
    with pytest.raises(NetworkError, match=r"127.0.0.1 cannot be reached \(Connection refused\); try again later"):
        pulled(address, cache, patience)
    with pytest.raises(NetworkError, match=r"nowhere.invalid cannot be found: there is no network, or no such host"):
        pulled("https://nowhere.invalid/tiny.npz", cache, patience)
    assert waits == []


def test_a_disk_without_room_is_refused_before_the_download(cache, patience, monkeypatch) -> None:
    monkeypatch.setattr(download, "ROOM", 2**62)
    with (
        serving(lambda request, _: send(request, BODY)) as server,
        pytest.raises(WriteError, match=r"takes 2.93 MiB, but .* free; make room"),
    ):
        pulled(server.at("tiny.npz"), cache, patience)


def test_a_disk_that_fills_up_meanwhile_keeps_what_came_and_resumes(cache, patience) -> None:
    with serving(lambda request, _: send(request, BODY)) as server:
        address = server.at("tiny.npz")
        script = (  # the system itself refuses to write beyond a megabyte
            "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (10**6, 10**6))\n"
            f"from vitrail.cli.main import main; raise SystemExit(main(['pull', {address!r}]))"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1
        assert "could not be written: File too large; make room, and the same command resumes." in done.stderr
        assert "Traceback" not in done.stderr
        assert pulled(address, cache, patience).path.read_bytes() == BODY
        assert server.ranges[-1] == "bytes=1000000-"


def test_of_two_processes_one_downloads_and_the_other_waits_for_it() -> None:
    def answer(request, _: int) -> None:
        time.sleep(1.0)
        send(request, BODY)

    with serving(answer) as server:
        command = [sys.executable, "-m", "vitrail", "pull", server.at("tiny.npz"), "--json"]
        both = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)
            for _ in range(2)
        ]
        outcomes = [process.communicate(timeout=60) for process in both]
        assert [process.returncode for process in both] == [0, 0]
        assert len(server.requests) == 1
    models = [json.loads(out)["models"][0] for out, _ in outcomes]
    assert sorted(model["fresh"] for model in models) == [False, True]
    assert models[0]["path"] == models[1]["path"]
    assert Path(models[0]["path"]).read_bytes() == BODY
    assert any("another process is working on" in err for _, err in outcomes)


@pytest.mark.parametrize(
    "text", ["https://", "https:///a.npz", "https://a b/c", "https://[::1/x", "hf:only", "hf:a/b/c"]
)
def test_addresses_that_are_none_are_refused(text) -> None:
    with pytest.raises(VitrailError):
        source_of(text)


def test_the_folder_of_a_model_stays_in_the_cache(cache) -> None:
    for place in (
        "https://h/../../x",
        "https://h/..",
        "https://h/%2e%2e%2f%2e%2e%2fx.npz",
        f"https://h/{'x' * 4000}.npz",
    ):
        source = Source(name=place, place=place)
        home = cache.home(source)
        assert home.parent == cache.folder / "pulled"
        assert (home / source.file).parent == home
        assert len(home.name) < 100
        assert len(source.file) <= 100


def test_a_record_that_was_left_half_written_is_removed(tmp_path) -> None:
    cache, source = Cache(folder=tmp_path), source_of("https://example.org/tiny.safetensors")
    with cache.locked(source, note=print):
        pass
    left, kept = cache.home(source) / ".pulled.json.x7.part", cache.home(source) / "tiny.safetensors.part"
    left.touch()
    kept.touch()
    with cache.locked(source, note=print):
        assert not left.exists()
        assert kept.exists()
