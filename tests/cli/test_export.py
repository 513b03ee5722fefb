"""The flags of `vitrail export` that are read before anything is opened."""

import pytest

from vitrail import ConfigError
from vitrail.cli import export, predict
from vitrail.cli.engine_flags import engine_choice
from vitrail.cli.usage import parse


@pytest.mark.parametrize(("words", "blocks"), [([], None), (["all"], "all"), (["0", "11"], [0, 11]), (["-1"], [-1])])
def test_blocks_of_attention_are_all_or_numbers(words, blocks) -> None:
    flags = ["--attention", *words] if words else []
    arguments = parse("export", export, ["model.safetensors", "model.onnx", *flags])
    assert export.blocks_of(arguments.attention) == blocks


@pytest.mark.parametrize("words", [["none"], ["all", "1"], ["1.5"]])
def test_what_is_no_block_is_refused(words) -> None:
    arguments = parse("export", export, ["model.safetensors", "model.onnx", "--attention", *words])
    with pytest.raises(ConfigError, match=f"`attention` is '{' '.join(words)}', but must be all, or numbers of blocks"):
        export.blocks_of(arguments.attention)


def test_the_flags_of_an_engine_become_a_choice() -> None:
    words = ["--engine", "openvino", "--precision", "int8", "--calibrate", "photos", "--merge-tokens", "8"]
    choice = engine_choice(parse("predict", predict, ["model.safetensors", "a.jpg", *words]))
    assert (choice.engine, choice.precision, choice.calibrate, choice.merge_tokens) == ("openvino", "int8", "photos", 8)
    with pytest.raises(ConfigError, match="`calibrate` is for int8 alone"):
        engine_choice(parse("predict", predict, ["model.safetensors", "a.jpg", "--calibrate", "photos"]))
