"""The page in Chromium, driven by tests/page/page.mjs; needs chromium, node, and `npm install` in tests/page."""

import io
import json
import os
import shutil
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import vitrail
from tests.serving.making import photo, save_model

FOLDER = Path(__file__).parents[1] / "page"
WANTED = os.environ.get("VITRAIL_PAGE_TESTS") == "1"
"""Set where a missing browser must fail, as in CI."""
HERE = shutil.which("chromium") and shutil.which("node") and (FOLDER / "node_modules").is_dir()


def write_images(folder: Path) -> None:
    """Write what the scenarios give to the page."""
    if not (folder / "good.png").exists():
        (folder / "good.png").write_bytes(photo(3, (120, 160)))
    (folder / "broken.png").write_bytes(photo()[:-200])
    (folder / "text.png").write_bytes(b"hello")
    header = b"IHDR" + (30_000).to_bytes(4, "big") * 2 + photo()[24:29]
    (folder / "huge.png").write_bytes(photo()[:12] + header + zlib.crc32(header).to_bytes(4, "big") + photo()[33:])
    file = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (700, 700, 3), dtype=np.uint8)).save(file, "BMP")
    (folder / "big.png").write_bytes(file.getvalue())


@pytest.mark.slow
@pytest.mark.skipif(not (HERE or WANTED), reason="needs chromium, node, and `npm install` in tests/page")
def test_the_page_in_a_browser(tmp_path) -> None:
    write_images(tmp_path)
    models = {"one": save_model(tmp_path / "one.safetensors"), "two": save_model(tmp_path / "two.safetensors", seed=3)}
    server = vitrail.serve(models, port=0, workers=1, max_body=1, note=str)
    words = ["node", str(FOLDER / "page.mjs"), server.url, str(tmp_path)]
    outcomes = []
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=FOLDER) as process:
        for line in process.stdout:
            if line.strip() == "stop":
                server.stop()
                process.stdin.write("stopped\n")
                process.stdin.flush()
            elif line.startswith("{"):
                outcomes.append(json.loads(line))
    server.stop()
    assert [outcome for outcome in outcomes if not outcome["ok"]] == []
    assert process.returncode == 0
    assert len(outcomes) >= 16
