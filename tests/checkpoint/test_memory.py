import subprocess
import sys

import pytest

import vitrail
from tests.tiny import vit_config

MEASURE = """
import sys, logging
import vitrail.checkpoint.files
logging.disable()
def status(key):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(key)) * 1024
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
model = vitrail.load(sys.argv[1])
assert all(parameter.isfinite().all() for parameter in model.parameters())
print(status("VmHWM") - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is measured in /proc")
@pytest.mark.parametrize("to", ["vitrail", "timm", "huggingface", "google"])
def test_loading_holds_little_more_than_the_file(to, tmp_path) -> None:
    config = vit_config(dim=512, depth=24, num_heads=8, mlp_dim=2048, image_size=(16, 16))
    path = tmp_path / {"google": "x.npz", "huggingface": "x"}.get(to, "x.safetensors")
    vitrail.save(vitrail.build(config, seed=0), path, to=to)
    size = (path / "model.safetensors" if path.is_dir() else path).stat().st_size
    assert size > 300e6
    done = subprocess.run([sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 1.2 * size
