"""The command `vitrail`: finds the verb, calls it, and turns what Vitrail refuses into one sentence.

Exit codes: 0 done, 1 the work failed, 2 wrong usage or input, 130 stopped by Ctrl-C.
"""

import os
import sys
from importlib import import_module

from vitrail import __version__
from vitrail.base.errors import VitrailError, did_you_mean
from vitrail.base.printable import printable
from vitrail.cli.names import in_flags

# Verb -> what it does, in a line. Its module is imported when it is called: `vitrail --help` never waits for torch.
VERBS = {
    "convert": "write a model in another format: Google, big_vision, timm, Hugging Face, torchvision or our own",
    "data": "look at data: classes, sizes, broken files, duplicates, and leaks into the test",
    "diff": "compare two models, whatever their formats: settings, and tensor by tensor",
    "evaluate": "measure a model on data: accuracy with intervals, classes, calibration; every prediction as CSV",
    "fewshot": "measure frozen features with a few images of each class: least squares, neighbours, linear probe",
    "finetune": "adapt a model to your images: try learning rates on a dev split, then train on all of them",
    "models": "list every model with its parameters, tokens and multiply-accumulates",
    "plan": "work out the memory, FLOPs and time of a training run before it starts",
    "predict": "classify images: one photo, or a whole folder into one file; resumable",
    "recipes": "list the recipes: the paper's runs, their cost and results",
    "show": "show what a file holds: config, parameters, labels, preprocessing, provenance, digest",
    "train": "train a model on a folder of images, or any other data; resumable",
    "verify": "check that a file is whole, fits its own description, and has no NaN",
    "vtab": "fine-tune a model on the 19 tasks of VTAB-1k by the paper's rule, beside the paper's results",
}


def main(arguments: list[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    if sys.stdout is None:  # a shell's `>&-`
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123  (until the process ends)
    try:
        return _dispatch(words)
    except VitrailError as error:
        return _fail(str(error), error.exit_code, debug)
    except KeyboardInterrupt:
        return _fail("stopped by Ctrl-C.", 130, debug)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader of our output has seen enough
        return 0
    except Exception as error:  # the last line of defence: a person never sees a traceback unasked
        return _fail(f"{type(error).__name__}: {error} (run with --debug for the traceback).", 1, debug)


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(_help())
        return 0
    verb, *rest = words
    if verb == "--version":
        print(f"vitrail {__version__}")
        return 0
    if verb not in VERBS:
        raise VitrailError(f"there is no command {verb!r}; `vitrail --help` lists them.{did_you_mean(verb, VERBS)}")
    module = import_module(f"vitrail.cli.{verb}")
    from vitrail.cli.usage import parse

    arguments = parse(verb, module, rest)
    try:
        code = module.run(arguments)
    except VitrailError as error:
        error.args = (in_flags(str(error), module.Arguments),)
        raise
    sys.stdout.flush()
    return code or 0


def _help() -> str:
    lines = [f"  {verb:10} {summary}" for verb, summary in VERBS.items()]
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
    print("vitrail: " + "\n".join(map(printable, in_flags(sentence).split("\n"))), file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
