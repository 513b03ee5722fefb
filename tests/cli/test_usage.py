import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Annotated, Any, Literal

import pytest

from vitrail.cli.flags import Positional, Switch, flag
from vitrail.cli.main import VERBS
from vitrail.cli.usage import UsageError, parse, read_fields
from vitrail.cli.usage_help import field_docs

pytestmark = pytest.mark.usefixtures("unchecked")  # no tensors here


@dataclass(frozen=True, kw_only=True)
class Shared:
    seed: int = 0
    """Everything random
    follows from it."""


@dataclass(frozen=True, kw_only=True)
class Arguments(Shared):
    """Flags of `vitrail try`."""

    data: Annotated[str, Positional, flag("DATA")]
    """What to open."""
    more: Annotated[tuple[str, ...], Positional, flag("[MORE ...]", "none")] = ()
    rate: Annotated[float | None, flag("FLOAT", "chosen, up to 50%")] = None
    """The learning rate."""
    kind: Literal["red", "blue"] = "red"
    """The colour."""
    sizes: Annotated[tuple[int, ...], flag("INT [...]", "none")] = ()
    """The sizes."""
    source: Annotated[str | None, flag("MODEL", "none", name="from")] = None
    """Where to start."""
    image_size: str = "224"
    """Pixels."""
    json: Switch = False
    """Write JSON."""


MODULE = ModuleType("try", "Try it.\n\nA longer text.\n\nExample: vitrail try DATA\nExample: vitrail try DATA --json")
MODULE.Arguments = Arguments  # type: ignore[attr-defined]


def read(*words: str) -> Any:
    return parse("try", MODULE, words)


def refused(*words: str) -> str:
    with pytest.raises(UsageError) as error:
        read(*words)
    return str(error.value)


def test_what_is_left_out_has_its_default() -> None:
    assert read("here") == Arguments(data="here")


def test_words_become_what_the_types_say() -> None:
    found = read("here", "--rate", "1e-3", "--kind=blue", "--from", "x", "--image-size", "384", "--json", "--seed", "7")
    assert found == Arguments(data="here", rate=1e-3, kind="blue", source="x", image_size="384", json=True, seed=7)


def test_a_tuple_takes_several_words_and_may_be_repeated() -> None:
    assert read("here", "--sizes", "1", "2", "--json").sizes == (1, 2)
    assert read("here", "--sizes", "1", "--json", "--sizes", "2", "3").sizes == (1, 2, 3)


def test_positionals_and_flags_may_be_mixed() -> None:
    found = read("--json", "here", "a", "--seed", "1", "b")
    assert (found.data, found.more, found.json, found.seed) == ("here", ("a", "b"), True, 1)


@pytest.mark.parametrize("word", ["-1", "-0.5", "-1e-3", "-.5", "-inf"])
def test_a_negative_number_is_a_value(word: str) -> None:
    assert read("here", "--rate", word).rate == float(word)
    assert read("here", f"--rate={word}").rate == float(word)


def test_behind_two_dashes_nothing_is_a_flag() -> None:
    found = read("--json", "--", "--seed", "-x.jpg", "--help")
    assert (found.data, found.more, found.seed) == ("--seed", ("-x.jpg", "--help"), 0)
    assert read("-").data == "-"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "DATA is missing."),
        (["here", "--seed", "x"], "--seed is given 'x', but takes INT."),
        (["here", "--seed", "9" * 5000], "but takes INT."),
        (["here", "--rate", "fast"], "--rate is given 'fast', but takes FLOAT."),
        (["here", "--sizes", "1", "two"], "--sizes is given 'two', but takes INT [...]."),
        (["here", "--kind", "green"], "--kind is given 'green', but takes one of blue, red."),
        (["here", "--seed"], "--seed takes INT, but is given nothing."),
        (["here", "--seed", "--json"], "--seed takes INT, but is given nothing."),
        (["here", "--sizes"], "--sizes takes INT [...], but is given nothing."),
        (["here", "--json=1"], "--json takes no value."),
        (["here", "--bogus"], "there is no flag --bogus."),
        (["here", "-x"], "there is no flag -x."),
        (["here", "--see", "1"], "there is no flag --see."),
    ],
)
def test_what_is_wrong_is_one_line_that_names_the_flag_and_the_word(words: list[str], sentence: str) -> None:
    told = refused(*words)
    assert sentence in told
    assert "`vitrail try --help` lists what it takes." in told
    assert "\n" not in told


def test_an_unknown_flag_comes_with_the_nearest() -> None:
    assert refused("here", "--sede=1").endswith("Did you mean --seed?")
    assert "Did you mean --image-size" in refused("here", "--image_size", "1")


def test_a_word_too_many_is_named() -> None:
    module = ModuleType("one")
    module.Arguments = dataclass(frozen=True, kw_only=True)(  # type: ignore[attr-defined]
        type("Arguments", (), {"__annotations__": {"file": Annotated[str, Positional, flag("FILE")]}})
    )
    with pytest.raises(UsageError, match="it takes FILE, but is also given 'b'"):
        parse("one", module, ["a", "b"])


def test_help_has_units_meanings_defaults_and_examples(capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit) as stop:
        read("here", "--help")
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith("usage: vitrail try [OPTIONS] DATA [MORE ...]\n\nTry it.\n\nA longer text.\n")
    assert "Example: vitrail try DATA\nExample: vitrail try DATA --json\n" in text
    flat = " ".join(text.split())
    for part in (
        "DATA What to open. (required)",
        "[MORE ...] (default: none)",
        "--rate FLOAT The learning rate. (default: chosen, up to 50%)",
        "--kind red|blue The colour. (default: red)",
        "--sizes INT [...] The sizes. (default: none)",
        "--from MODEL Where to start. (default: none)",
        "--image-size STR Pixels. (default: 224)",
        "--seed INT Everything random follows from it. (default: 0)",
        "--json Write JSON.",
    ):
        assert part in flat


def test_a_type_that_no_flag_can_be_is_refused() -> None:
    with pytest.raises(TypeError, match="no flag can be"):
        read_fields(dataclass(type("Arguments", (), {"__annotations__": {"where": dict}})))


@pytest.mark.parametrize("verb", VERBS)
def test_every_flag_of_every_verb_is_described(verb: str) -> None:
    arguments = import_module(f"vitrail.cli.{verb}").Arguments
    meanings = field_docs(arguments)
    for field in read_fields(arguments):
        assert meanings[field.dest].endswith("."), field.dest


def test_help_of_a_light_verb_imports_neither_torch_nor_rich() -> None:
    code = (
        "import sys\nfrom vitrail.cli.main import main\n"
        "try: main(['predict', '--help'])\nexcept SystemExit: print({'torch', 'rich'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_every_positional_has_a_plain_name() -> None:
    fields = [field for verb in VERBS for field in read_fields(import_module(f"vitrail.cli.{verb}").Arguments)]
    positionals = {field.name for field in fields if field.positional}
    assert not {name for name in positionals if set(name) & set("[]= ")}
    assert "MODEL" in positionals
