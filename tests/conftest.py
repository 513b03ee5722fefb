"""One thread and one seed for every test; compiled tests stand aside while the shape checks are on."""

import os
import signal

import jaxtyping
import pytest
import torch
from hypothesis import settings

from vitrail.base.processor import settle

settings.register_profile("vitrail", deadline=None, derandomize=True, max_examples=25, print_blob=False)
settings.load_profile("vitrail")


def pytest_configure() -> None:
    settle()  # AMX that traps would end a worker; the commands that tests start inherit the limit
    torch.set_num_threads(1)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell leaves it to what runs in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # as nohup does
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # for the commands that tests start


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--jaxtyping-packages", default=None):
        return
    skip = pytest.mark.skip(reason="torch.compile and torch.export do not trace the shape checks")
    for item in items:
        if item.get_closest_marker("compiled"):
            item.add_marker(skip)


@pytest.fixture(autouse=True)
def _one_seed() -> None:
    torch.manual_seed(0)


@pytest.fixture
def two_threads():
    """Two threads, for one test."""
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


@pytest.fixture
def unchecked():
    """No shape checks for one test: bad input comes from people who run without them, and must still be refused."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
