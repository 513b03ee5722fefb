"""The examples of docs/models.md run."""

import re
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "models.md"


def test_the_example_of_a_gradient_at_an_attention_map_runs() -> None:
    [example] = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)
    names: dict = {}
    exec(compile(example, str(GUIDE), "exec"), names)  # noqa: S102
    assert names["encoded"].attention[11].grad.shape == (1, 1, 17, 17)
