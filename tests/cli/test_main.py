import contextlib
import os
import re
import signal
import subprocess
import sys
import time

import pytest
import torch

import vitrail
from vitrail.base.files import atomic_write
from vitrail.cli import main as cli
from vitrail.cli import stopped
from vitrail.cli.main import VERBS, main

pytestmark = pytest.mark.usefixtures("unchecked")  # no tensors here, and the checks refuse 7 where 7.0 is meant


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "vitrail", *words], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
def test_help_lists_every_command(words, capsys) -> None:
    assert main(words) == 0
    output = capsys.readouterr()
    assert output.err == ""
    for verb, summary in VERBS.items():
        assert f"  {verb} " in output.out
        assert summary in " ".join(output.out.split())
    for flag in ("--help", "--version", "--debug"):
        assert flag in output.out


@pytest.mark.parametrize("verb", VERBS)
def test_every_command_has_its_own_help(verb, capsys) -> None:
    with pytest.raises(SystemExit) as stop:
        main([verb, "--help"])
    assert stop.value.code in (0, None)
    assert "--json" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--help"], *([verb, "--help"] for verb in VERBS)])
def test_help_fits_the_terminal(words, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with contextlib.suppress(SystemExit):
        main(words)
    lines = capsys.readouterr().out.splitlines()
    wide = [line for line in lines if len(line) > 80 and not line.startswith("Example: ")]  # which are for copying
    assert [line for line in wide if not re.match(r"  --[a-z]+ [a-z|-]+$", line)] == []  # a list of choices is a word


def test_no_help_imports_torch() -> None:
    words = [["--help"], ["--version"], ["nonsense"], *([verb, "--help"] for verb in VERBS)]
    code = (
        "import sys, contextlib; from vitrail.cli.main import main\n"
        f"for words in {words}:\n"
        "    with contextlib.suppress(SystemExit): main(words)\n"
        "print([name for name in ('torch', 'numpy', 'rich', 'PIL') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_module_runs_as_a_command() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, f"vitrail {vitrail.__version__}", "")


def test_a_refusal_is_one_sentence_on_stderr_and_exit_code_2() -> None:
    done = run("models", "B16")
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stderr.startswith("vitrail: there is no model 'B16'")
    assert "Did you mean B/16" in done.stderr


def test_debug_shows_the_traceback_and_the_sentence() -> None:
    done = run("models", "B16", "--debug")
    assert done.returncode == 2
    assert "Traceback (most recent call last)" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("vitrail: there is no model 'B16'")


def test_an_unknown_command_is_refused_with_the_nearest(capsys) -> None:
    assert main(["model"]) == 2
    error = capsys.readouterr().err
    assert error == "vitrail: there is no command 'model'; `vitrail --help` lists them. Did you mean models?\n"


@pytest.mark.parametrize(("flags", "traceback"), [([], False), (["--debug"], True)])
def test_a_failure_of_our_own_is_one_line_and_exit_code_1(flags, traceback, monkeypatch, capsys) -> None:
    def fail(*_):
        raise ZeroDivisionError("nothing to share")

    monkeypatch.setattr(cli, "_dispatch", fail)
    assert main(["models", *flags]) == 1
    error = capsys.readouterr().err
    assert ("Traceback" in error) is traceback
    assert error.splitlines()[-1].startswith("vitrail: ZeroDivisionError: nothing to share")


def test_ctrl_c_is_exit_code_130(monkeypatch, capsys) -> None:
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_dispatch", stop)
    assert main(["models"]) == 130
    assert capsys.readouterr().err == "vitrail: stopped by Ctrl-C.\n"


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_that_an_import_swallowed_ends_a_command_all_the_same(name, code, monkeypatch, capsys) -> None:
    def work(*_):
        with contextlib.suppress(BaseException):  # as torch does while it imports numpy
            os.kill(os.getpid(), getattr(signal, name))
            time.sleep(10)
        raise AttributeError("module 'numpy' has no attribute 'matrix'")

    monkeypatch.setattr(cli, "_dispatch", work)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    assert main(["models"]) == code
    assert capsys.readouterr().err == f"vitrail: stopped by {'Ctrl-C' if name == 'SIGINT' else name}.\n"
    assert {number: signal.getsignal(number) for number in handlers} == handlers


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_ends_a_command_as_ctrl_c_does(name, code, monkeypatch, capsys, tmp_path) -> None:
    number, path = getattr(signal, name), tmp_path / "x.csv"

    def work(*_):
        with atomic_write(path) as file:
            file.write(b"half")
            os.kill(os.getpid(), number)
            time.sleep(10)

    monkeypatch.setattr(cli, "_dispatch", work)
    before = signal.signal(number, signal.SIG_DFL)
    try:
        assert main(["models"]) == code
        assert signal.getsignal(number) is signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN)  # as nohup does
        monkeypatch.setattr(cli, "_dispatch", lambda _: os.kill(os.getpid(), number) or 0)
        assert main(["models"]) == 0
    finally:
        signal.signal(number, before)
    assert capsys.readouterr().err == f"vitrail: stopped by {name}.\n"
    assert not list(tmp_path.iterdir())


STUCK = """
import hashlib
import vitrail.cli.main as cli, vitrail.cli.stopped as stopped
stopped.PATIENCE = 0.5
def stuck(_):
    print("stuck", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)  # a library that keeps Python from its signals
cli._dispatch = stuck
raise SystemExit(cli.main(["models"]))
"""


def test_a_command_inside_a_library_ends_too() -> None:
    with subprocess.Popen([sys.executable, "-c", STUCK], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"stuck\n"
        time.sleep(0.3)  # until it is inside
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 143


def test_a_worker_that_is_ended_does_not_end_its_parent(monkeypatch) -> None:
    monkeypatch.setattr(stopped, "PATIENCE", 0.1)

    def work(*_):
        child = os.fork()
        if not child:
            signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
            time.sleep(30)
        time.sleep(0.2)
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
        time.sleep(0.5)
        return 0

    monkeypatch.setattr(cli, "_dispatch", work)
    assert main(["models"]) == 0


def test_a_closed_pipe_is_no_error() -> None:
    command = f"{sys.executable} -m vitrail models --json | head -n 1"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "{\n", "")


@pytest.mark.parametrize("words", [["models", "--bogus"], ["plan"], ["plan", "B/16", "--batch", "many"]])
def test_wrong_usage_is_one_line_and_exit_code_2(words, capsys) -> None:
    assert main(words) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert len(output.err.strip().splitlines()) == 1
    assert output.err.startswith("vitrail: ")


def test_a_word_that_is_not_a_setting_is_not_turned_into_a_flag(tmp_path, capsys) -> None:
    assert main(["train", str(tmp_path / "nowhere")]) == 2
    assert "give a folder, a file, or 'sample'." in capsys.readouterr().err
    torch.save({"weight": torch.zeros(1)}, tmp_path / "x.pth")
    assert main(["show", str(tmp_path / "x.pth")]) == 2
    assert (
        "with `vitrail convert`, or allow it with --pickle; either way only tensors are read."
        in capsys.readouterr().err
    )
