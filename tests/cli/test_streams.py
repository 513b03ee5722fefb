"""A command beside streams that are closed, full, left by their reader, or short of letters, and on a terminal."""

import errno
import io
import json
import os
import pty
import re
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import vitrail
from tests.prediction.making import saved_model, saved_photos
from vitrail.base import printable
from vitrail.cli import progress
from vitrail.cli.main import main
from vitrail.cli.streams import Stream, standard_streams

pytestmark = pytest.mark.usefixtures("unchecked")
ESCAPE = re.compile(r"\x1b")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return saved_model(tmp_path)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return saved_photos(tmp_path / "photos", [f"{number}.png" for number in range(3)])


@contextmanager
def stream_without_reader() -> Iterator[io.TextIOWrapper]:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", buffering=1) as stream:
        yield stream


def on_terminal(words: list[str], **environment: str) -> tuple[int, str]:
    """Run a command on a pseudo-terminal for all three streams, and return its code and what the terminal got."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(environment, TERM="xterm-256color")
        os.execv(sys.executable, [sys.executable, "-m", "vitrail", *words])  # noqa: S606
    screen = bytearray()
    while True:
        assert select.select([terminal], [], [], 60)[0], "the command hangs"
        try:
            screen += os.read(terminal, 65536)
        except OSError:  # the command has ended
            break
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), screen.decode()


VERBS = {
    "predict": ["{model}", "{photos}", "--out", "{out}.csv"],
    "evaluate": ["{model}", "{data}", "--csv", "{out}.csv", "--bootstrap", "100"],
    "data": ["{data}", "--sheet", "{out}.html"],
    "fewshot": ["{model}", "{data}", "--no-cache", "--shots", "1", "--plot", "{out}.svg"],
}


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("verb", VERBS)
def test_the_output_is_written_and_the_code_is_honest_when_the_reader_of_stderr_has_left(
    verb: str, terminal: bool, model: Path, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.0)
    data = saved_photos(tmp_path / "data", [f"{split}/{label}/{n}.png" for split in ("train", "test")
                                            for label in ("ant", "bee") for n in range(2)])  # fmt: skip
    places = {"model": model, "photos": photos, "data": data, "out": tmp_path / "out"}
    with stream_without_reader() as stream:
        if terminal:
            monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
        monkeypatch.setattr(sys, "stderr", stream)
        words = [word.format(**places) for word in VERBS[verb]]
        assert main([verb, *words]) == 0
        assert list(tmp_path.glob("out.*"))
        assert main([verb, *words, "--nonsense"]) == 2


def test_a_disk_that_is_full_under_stdout_is_one_sentence_and_code_1(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    with Path("/dev/full").open("w") as full, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", full)
        assert main(["--help"]) == 1
    assert capsys.readouterr().err == "vitrail: stdout could not be written: No space left on device.\n"


@pytest.mark.parametrize("words", ["--help", "predict nowhere - <&-", "nonsense"])
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_change_no_exit_code(words: str, closed: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m vitrail {words} {closed}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == (0 if words == "--help" else 2)
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


def test_a_file_never_takes_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    program = (
        "import os, sys; from vitrail.cli.streams import standard_streams\n"
        f"with standard_streams(), open({str(tmp_path / 'x')!r}, 'w') as file: os._exit(file.fileno())"
    )
    done = subprocess.run(["bash", "-c", f'{sys.executable} -c "$0" <&- >&- 2>&-', program], check=False)
    assert done.returncode > 2


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_letters_that_an_encoding_lacks_are_escaped(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    with standard_streams():
        print("été 猫 \udcff", flush=True)
    expected = "été 猫 \udcff\n".encode(encoding, "backslashreplace")
    assert raw.getvalue() == expected


def test_class_names_are_the_same_without_utf8(tmp_path: Path) -> None:
    data = saved_photos(tmp_path / "étés", [f"{name}/{n}.png" for name in ("猫", "hôtel") for n in range(2)])
    environment = os.environ | {
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONIOENCODING": "ascii",
        "PYTHONCOERCECLOCALE": "0",
    }
    code = (
        "import json, sys, vitrail\n"
        "data = vitrail.data.open(sys.argv[1])\n"
        "print(sys.getfilesystemencoding(), json.dumps([data.labels, data.name(0)]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, data], env=environment, capture_output=True, text=True, check=True
    )
    expected = vitrail.data.open(data)
    encoding, _, found = done.stdout.partition(" ")
    assert encoding == "ascii"
    assert json.loads(found) == [list(expected.labels), expected.name(0)]


@pytest.mark.parametrize("words", [["models", "--bogus"], ["plan"], ["nonsense"], ["predict", "nowhere", "x.jpg"]])
def test_a_usage_error_on_a_terminal_is_one_plain_line(words: list[str]) -> None:
    code, screen = on_terminal(words)
    assert code == 2
    assert len(screen.strip().splitlines()) == 1
    assert screen.startswith("vitrail: ")
    assert not ESCAPE.search(screen)


@pytest.mark.parametrize("columns", ["1", "2", "9", "10000000"])
def test_help_and_tables_end_at_any_width(columns: str, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    with pytest.raises(SystemExit):
        main(["predict", "--help"])
    assert "--out" in capsys.readouterr().out
    with monkeypatch.context() as patch:
        patch.setattr(sys.stdout, "isatty", lambda: True)
        assert main(["models", "B/16"]) == 0
    assert "B/16" in capsys.readouterr().out


def test_escape_sequences_in_names_do_not_reach_the_terminal(tmp_path: Path, capsys) -> None:
    name = "a\x1b]0;owned\x07\x1b[31m"
    data = saved_photos(tmp_path / name, [f"{split}/{label}{name}/{n}.png" for split in ("train", "test")
                                          for label in ("ant", "bee") for n in range(2)])  # fmt: skip
    (data / "train" / f"ant{name}" / "broken\x1b[2J.png").write_bytes(b"no image")
    quick = ["--steps", "1", "--batch", "2", "--model", "Ti/16", "--image-size", "16", "--threads", "1"]
    out = tmp_path / f"run{name}"
    assert main(["data", str(data)]) == 0
    assert main(["train", str(data), *quick, "--skip-broken", "5", "--out", str(out)]) == 0
    assert main(["show", str(out / "model.safetensors")]) == 0
    assert main(["verify", str(out / "model.safetensors")]) == 0
    assert main(["convert", str(out / "model.safetensors"), str(tmp_path / f"{name}.npz"), "--to", "google",
                 "--lossy"]) == 0  # fmt: skip
    assert main(["predict", str(out / "model.safetensors"), str(data)]) == 0
    captured = capsys.readouterr()
    for text in (captured.out, captured.err):
        assert "\\x1b]0;owned\\x07" in text
        assert not ESCAPE.search(text)


def test_numbers_and_paths_without_an_end_are_shortened(capsys) -> None:
    assert main(["models", "--num-classes", "9" * 300]) == 2
    assert main(["predict", "nowhere" * 10_000, "x.jpg"]) == 2
    assert main(["plan", "B/16", "--epochs", "9" * 5000 + "x"]) == 2
    for line in capsys.readouterr().err.splitlines():
        assert len(line) < 400
    assert len(str(vitrail.InputError("words of a path " * 10**6))) < 2 * printable.LONGEST


@pytest.mark.parametrize("verb", ["convert", "data", "diff", "evaluate", "predict", "show", "train", "finetune"])
def test_an_empty_word_is_refused(verb: str, capsys) -> None:
    places = {"convert": 2, "diff": 2, "evaluate": 2, "predict": 2}
    assert main([verb, *[""] * places.get(verb, 1)]) == 2
    assert "is empty" in capsys.readouterr().err


def test_a_terminal_that_is_gone_stops_nothing() -> None:
    class Gone(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError(errno.EIO, "Input/output error")

    for matters in (False, True):
        stream = Stream(Gone(), matters=matters)
        stream.write("x")
        stream.flush()
        assert stream.left
