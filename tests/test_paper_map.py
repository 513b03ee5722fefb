import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROWS = re.findall(
    r"^\| (.+?) \| .+? \| `(vitrail\.[\w.]+)` \| `(tests/[\w./]+)` \|$", (ROOT / "docs/paper-map.md").read_text(), re.M
)


def test_every_row_of_the_map_is_read() -> None:
    lines = [line for line in (ROOT / "docs/paper-map.md").read_text().splitlines() if line.startswith("| ")]
    assert len(ROWS) == len(lines) - 1 > 20


@pytest.mark.parametrize(("code", "test"), [(code, test) for _, code, test in ROWS])
def test_what_the_map_names_exists(code: str, test: str) -> None:
    parts = code.split(".")
    found: object = None
    for end in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            found = getattr(found, part)
        break
    assert found is not None
    assert (ROOT / test).is_file()
