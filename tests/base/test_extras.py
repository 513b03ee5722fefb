import subprocess
import sys

import pytest

from vitrail.base.errors import ConfigError
from vitrail.base.extras import require

PROGRAM = """
import sys
sys.addaudithook(lambda event, values: sys.exit(event) if event in ("socket.connect", "socket.getaddrinfo") else None)
from vitrail.base.extras import require
for package in ("openvino", "openvino.tools.ovc"):
    require(package, extra="openvino", purpose="a test")
print(sys.modules["openvino_telemetry"])
"""


def test_a_missing_package_is_named_with_the_command_that_installs_it() -> None:
    with pytest.raises(ConfigError, match=r"drawing needs no_such_package.*pip install 'vitrail\[drawing\]'"):
        require("no_such_package.part", extra="drawing", purpose="drawing")


@pytest.mark.slow
def test_runtimes_report_nothing_over_the_network() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["None"]
