"""Looking into a network needs little memory beside the network: one attention map at a time, in small batches."""

import subprocess
import sys
import weakref

import pytest
import torch

from tests.tiny import images_for, perturbed, vit_config
from vitrail import configure
from vitrail.analysis.gathering import choose_attention, gather, images_at_once

MEASURE = """
import logging, sys
import torch
from vitrail import create
from vitrail.analysis.gathering import choose_attention, gather
def status(key):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(key)) * 1024
torch.set_num_threads(1)
model = create("S/16", depth=int(sys.argv[1]), image_size=320, num_classes=3, seed=0).eval()
images = torch.randn(1, 3, 320, 320)
with torch.inference_mode():
    model(images)
open("/proc/self/clear_refs", "w").write("5")
before = status("VmHWM")
gather(model, [images], choose_attention(model.config))
print(status("VmHWM") - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc/self/clear_refs")
def test_memory_grows_with_one_map_and_not_with_the_blocks() -> None:
    """401 tokens and 6 heads: A takes 3.9 MB, so that 8 blocks of it and its softmax would be 93 MB."""
    done = subprocess.run([sys.executable, "-c", MEASURE, "8"], capture_output=True, text=True, check=True)
    layers, single = 9 * 401 * 384 * 4, 6 * 401**2 * 4
    assert int(done.stdout) < layers + 6 * single + 8 * 2**20


def test_the_layers_of_a_batch_are_gone_before_the_next(monkeypatch) -> None:
    config = vit_config()
    model, past = perturbed(config), []
    encode = model.encode

    def watched(*args, **settings):
        assert [each() for each in past] == [None] * len(past)
        encoded = encode(*args, **settings)
        past.append(weakref.ref(encoded))
        return encoded

    monkeypatch.setattr(model, "encode", watched)
    gather(model, list(images_for(config, batch=3).split(1)), choose_attention(config))
    assert len(past) == 3


def test_batches_are_small_where_maps_are_large() -> None:
    small, huge = configure("Ti/16", image_size=32), configure("H/14", image_size=518)
    assert images_at_once(small, 13, small.feature_width) == 32
    assert images_at_once(huge, 33, huge.feature_width) == 1


def test_one_batch_or_several_give_the_same_figures() -> None:
    config = vit_config()
    model, images = perturbed(config, by=0.5), images_for(config, batch=5)
    whole, parts = (gather(model, list(images.split(size)), choose_attention(config)) for size in (5, 2))
    torch.testing.assert_close(torch.cat(parts.attention, dim=2), torch.cat(whole.attention, dim=2))
    for layer in range(3):
        torch.testing.assert_close(torch.cat([part[layer] for part in parts.means]), whole.means[0][layer])
    torch.testing.assert_close(torch.cat(parts.pooled["class token"]), whole.pooled["class token"][0])
