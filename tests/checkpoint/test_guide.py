"""Every example of docs/checkpoints.md runs, in order."""

import logging
import re
from pathlib import Path

from vitrail.cli.main import main

GUIDE = Path(__file__).parents[2] / "docs" / "checkpoints.md"
EXAMPLES = re.findall(r"```(python|console)\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)


def test_the_guide_has_examples_of_both_kinds() -> None:
    assert {kind for kind, _ in EXAMPLES} == {"python", "console"}


def test_the_examples_run_in_order(tmp_path, monkeypatch, capsys, caplog) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    codes = []
    with caplog.at_level(logging.ERROR):
        for kind, text in EXAMPLES:
            if kind == "python":
                exec(compile(text, str(GUIDE), "exec"), names)  # noqa: S102
            else:
                codes += [main(line.removeprefix("$ vitrail ").split()) for line in text.splitlines()]
    output = capsys.readouterr()
    assert codes == [0, 0, 0, 0, 0], output.err
    assert names["model"].config.image_size == (224, 320)
    assert names["model"].config.num_classes == 10
    shown = re.search(r'model\.info\.notes\n# \((".*?")\)\n', GUIDE.read_text(), flags=re.DOTALL)
    notes = shown[1].replace("\n#  ", " ")
    import vitrail

    told = vitrail.load("insects.safetensors", num_classes=10, image_size=(224, 320)).info.notes
    assert ", ".join(f'"{note}"' for note in told) == notes
