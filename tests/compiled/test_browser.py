"""The page that runs an exported model, in Chromium; needs chromium, node, and `npm install` in tests/page."""

import functools
import http.server
import json
import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

import vitrail
from tests.compiled.test_export import CROP, saved
from tests.data.pictures import photo
from tests.tiny import vit_config
from vitrail import ConfigError

FOLDER = Path(__file__).parents[1] / "page"
WANTED = os.environ.get("VITRAIL_PAGE_TESTS") == "1"
"""Set where a missing browser must fail, as in CI."""
HERE = shutil.which("chromium") and shutil.which("node") and (FOLDER / "node_modules" / "onnxruntime-web").is_dir()
pytestmark = [pytest.mark.compiled, pytest.mark.filterwarnings("ignore")]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A plain file server that logs nothing."""

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.mark.slow
@pytest.mark.skipif(not (HERE or WANTED), reason="needs chromium, node, and `npm install` in tests/page")
@pytest.mark.parametrize("channels", [3, 1])
def test_the_page_shows_the_labels_of_predict(channels, tmp_path: Path) -> None:
    model, site = saved(tmp_path, vit_config(channels=channels), **CROP), tmp_path / "site"
    result = vitrail.export(model, tmp_path / "model.onnx", page=site)
    assert "npm install" in result.notes[-1]
    (site / "node_modules").symlink_to(FOLDER / "node_modules")
    images = [tmp_path / name for name in ("dropped.png", "turned.jpg", "clear.png", "grey.png")]
    photo(3).save(images[0])
    turned = photo(4).resize((90, 50))
    exif = turned.getexif()
    exif[0x0112] = 6
    turned.save(images[1], quality=95, exif=exif)
    clear = photo(5).convert("RGBA")
    clear.putalpha(photo(6).convert("L").resize(clear.size))
    clear.save(images[2])
    photo(7).convert("L").save(images[3])
    (tmp_path / "text.png").write_bytes(b"hello")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        words = ["node", "exported.mjs", f"http://127.0.0.1:{server.server_port}/", *map(str, images)]
        done = subprocess.run(
            [*words, str(tmp_path / "text.png")], cwd=FOLDER, capture_output=True, text=True, check=False, timeout=300
        )
        server.shutdown()
    assert done.returncode == 0, done.stderr
    *outcomes, last = map(json.loads, done.stdout.splitlines())
    assert last == {"strangers": []}
    for image, outcome in zip(images, outcomes, strict=False):
        expected = vitrail.predict(model, image, top=5).top
        assert [label for label, _ in outcome["rows"]] == [label for label, _ in expected], image
        for (_, share), (_, probability) in zip(outcome["rows"], expected, strict=True):
            assert float(share.rstrip("%")) / 100 == pytest.approx(probability, abs=0.01)
    assert outcomes[-1]["message"] == "text.png is not an image that this browser reads."


def test_a_page_that_could_not_run_the_file_is_refused(tmp_path: Path) -> None:
    for out, config, settings, words in (
        ("model.xml", vit_config(), {}, "a page runs ONNX files, but .* ends in .xml; end it in .onnx"),
        ("model.onnx", vit_config(), {"raw": True}, "which `raw` does not take"),
        ("model.onnx", vit_config(num_classes=0), {}, "only a representation; leave out `page`"),
    ):
        with pytest.raises(ConfigError, match=words):
            vitrail.export(saved(tmp_path, config), tmp_path / out, page=tmp_path / "site", **settings)
        assert not (tmp_path / "site").exists()
