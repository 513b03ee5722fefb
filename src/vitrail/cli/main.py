"""The command `vitrail`: finds the verb, calls it, and turns what Vitrail refuses into one sentence.

Exit codes: 0 done, 1 the work failed, 2 wrong usage or input, 130 stopped by Ctrl-C, 143 by SIGTERM, 129 by a terminal
that was closed.
"""

import errno
import sys
import textwrap
from importlib import import_module

from vitrail import __version__
from vitrail.base.errors import VitrailError, did_you_mean
from vitrail.cli.names import in_flags
from vitrail.cli.say import fail, show, spoken_logs
from vitrail.cli.stopped import signal_name, signal_number, stopped_by_signals
from vitrail.cli.streams import standard_streams, text_width

# Verb -> what it does, in a line. Its module is imported when it is called: `vitrail --help` never waits for torch.
VERBS = {
    "convert": "write a model in another format: Google, big_vision, timm, Hugging Face, torchvision or our own",
    "data": "inspect data: classes, sizes, broken files, duplicates, and leaks into the test split",
    "diff": "compare two models, whatever their formats: settings, and tensor by tensor",
    "engines": "measure how fast a model runs on this machine: torch, compiled, ONNX Runtime, OpenVINO",
    "evaluate": "measure a model on data: accuracy with intervals, classes, calibration; every prediction as CSV",
    "explain": "show what a model looked at on your images, and measure whether the maps can be trusted",
    "export": "write a model as one file that ONNX Runtime, OpenVINO or torch run, with preprocessing and names inside",
    "fewshot": "measure frozen features with a few images of each class: least squares, neighbours, linear probe",
    "finetune": "adapt a model to your images: try learning rates on a dev split, then train on all of them",
    "inspect": "look into models: filters, positions, attention, layers, and how much each part matters",
    "models": "list every model with its parameters, tokens and multiply-accumulates",
    "plan": "work out the memory, FLOPs and time of a training run before it starts",
    "predict": "classify images: one photo, or a whole folder into one file; resumable",
    "pretrain": "train a model on images without labels: one folder of photos, or several; resumable",
    "pull": "get a published model onto this machine: DINOv2, CLIP, AugReg, any repository or https address",
    "recipes": "list the recipes: the paper's runs, their cost and results",
    "serve": "serve a model over HTTP: an API with bounded queues and limits, and a page for browsers",
    "show": "show the contents of a file: config, parameters, labels, preprocessing, provenance, digest",
    "stress": "measure what breaks models: covered, shuffled, corrupted and attacked images, side by side",
    "studies": "list the studies: questions of the paper that can be asked again",
    "study": "ask a question of the paper again: a grid of runs on your data, beside the paper's answer; resumable",
    "train": "train a model on a folder of images, or any other data; resumable",
    "verify": "check that a file is whole, fits its own description, and has no NaN",
    "vtab": "fine-tune a model on the 19 tasks of VTAB-1k by the paper's rule, beside the paper's results",
}

_OF_PATHS = (
    *(errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ELOOP),
    *(errno.EISDIR, errno.ENOTDIR, errno.EINVAL, errno.EROFS),
)
"""System errors about paths that cannot be used: wrong input, not failed work."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    signals: list[int] = []
    with standard_streams(), spoken_logs():
        try:
            try:
                with stopped_by_signals(signals):
                    return _dispatch(words)
            finally:
                sys.stdout.flush()
        except VitrailError as error:
            return _fail(str(error), error.exit_code, debug)
        except KeyboardInterrupt as stop:
            return _stopped(signal_number(stop), debug)
        except OSError as error:
            return _fail(_system_error(error), 2 if error.errno in _OF_PATHS else 1, debug)
        except Exception as error:  # the last line of defence: the user never sees a traceback without requesting it
            if signals:  # a library that was being imported caught it, and lacks a part of itself now
                return _stopped(signals[0], debug)
            if _is_memory(error):
                return _fail("there is not enough memory for this; use a smaller model, image or batch.", 1, debug)
            return _fail(f"{type(error).__name__}: {error} (run with --debug for the traceback).", 1, debug)


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        show(_help())
        return 0
    verb, *rest = words
    if verb == "--version":
        show(f"vitrail {__version__}")
        return 0
    if verb not in VERBS:
        raise VitrailError(f"there is no command {verb!r}; `vitrail --help` lists them.{did_you_mean(verb, VERBS)}")
    module = import_module(f"vitrail.cli.{verb}")
    from vitrail.cli.pulling import pull_first
    from vitrail.cli.usage import parse

    arguments = parse(verb, module, rest)
    try:
        pull_first(arguments)
        code = module.run(arguments)
    except VitrailError as error:
        error.args = (in_flags(str(error), module.Arguments),)
        raise
    return code or 0


def _help() -> str:
    wrapper = textwrap.TextWrapper(text_width(), subsequent_indent=" " * 13, break_on_hyphens=False)
    lines = [wrapper.fill(f"  {verb:10} {summary}") for verb, summary in VERBS.items()]
    return "\n".join(
        [
            "usage: vitrail COMMAND [OPTIONS]",
            "",
            "Vitrail is the Vision Transformer as real software.",
            "",
            "commands:",
            *lines,
            "",
            "options:",
            "  --help     show this, or the options of a command: vitrail models --help",
            "  --version  show the version",
            "  --debug    show the traceback of an error",
        ]
    )


def _fail(sentence: str, code: int, debug: bool) -> int:
    if debug:
        import traceback

        traceback.print_exc()
    fail(sentence)
    return code


def _stopped(number: int, debug: bool) -> int:
    """Say which signal ended the command; the code is 128 and the signal, as shells count."""
    return _fail(f"stopped by {signal_name(number)}.", 128 + number, debug)


def _system_error(error: OSError) -> str:
    """Write what the system refuses, with the file that it is about."""
    where = f"{error.filename}: " if error.filename is not None else ""
    return f"{where}{error.strerror or error}."


def _is_memory(error: Exception) -> bool:
    """Return whether memory has run out, which torch reports as an error of its own."""
    return isinstance(error, MemoryError) or "allocate memory" in str(error) or "out of memory" in str(error)


if __name__ == "__main__":
    sys.exit(main())
