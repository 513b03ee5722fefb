import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import vitrail
from tests.data.arrays import dataset as in_memory
from tests.data.making import picture, tree
from tests.data.pictures import dataset as listed
from tests.evaluation.featuring import PIXELS, images, model_of
from vitrail.base.errors import CheckpointError, WriteError
from vitrail.base.ranks import Ranks
from vitrail.evaluation.feature_files import (
    default_folder,
    feature_key,
    features_file,
    images_digest,
    read_features,
    write_features,
)
from vitrail.evaluation.features import Features
from vitrail.runtime.engine import TorchEngine

KEY = "a" * 64


def key(model=None, data=None, pixels=PIXELS) -> str:
    return feature_key(TorchEngine(model or model_of(), PIXELS), data or images(), pixels, Ranks())


def test_the_same_model_images_and_preprocessing_have_the_same_key() -> None:
    assert key() == key()
    assert len(key()) == 64


def test_anything_that_changes_features_changes_the_key() -> None:
    model, data = model_of(), images()
    with torch.no_grad():
        model.encoder.blocks[0].norm1.bias[3] += 1e-6
    array = np.stack(data.pictures.images)
    array[10, 0, 0, 0] ^= 1
    edited = in_memory(list(array), data.targets)
    others = [
        key(model),
        key(model_of(gelu="erf")),  # the same weights, other numerics
        key(data=edited),
        key(data=data.take([1, 0, *range(2, 11)])),
        key(data=data.take(range(10))),
        key(pixels=replace(PIXELS, antialias=True)),
    ]
    assert len({key(), *others}) == 7


def test_names_and_classes_do_not_change_the_key() -> None:
    data = images()
    assert key(data=replace(data, targets=data.targets[::-1].copy(), where="elsewhere")) == key(data=data)


def test_a_model_has_one_key_in_whatever_format_it_was_stored(tmp_path: Path) -> None:
    model = vitrail.create("S/16", image_size=32, num_classes=3, dim=24, num_heads=2, mlp_dim=32, depth=1, seed=0)
    own = vitrail.save(model, tmp_path / "own.safetensors")
    keys = {key(vitrail.load(own)), key(vitrail.load(vitrail.save(vitrail.load(own), tmp_path / "again.safetensors")))}
    assert keys == {key(model)}


def test_an_edited_file_has_another_digest_even_with_its_old_size_and_time(tmp_path: Path) -> None:
    folder = tree(tmp_path / "photos", [f"{label}/{number}.png" for label in "ab" for number in range(4)])
    before = images_digest(vitrail.data.open(folder), Ranks())
    file = folder / "b" / "2.png"
    times = file.stat()
    old, new = file.read_bytes(), picture(77)
    file.write_bytes(new + bytes(len(old) - len(new)) if len(new) < len(old) else new[: len(old)])
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert file.stat().st_size == times.st_size
    assert file.stat().st_mtime_ns == times.st_mtime_ns
    assert images_digest(vitrail.data.open(folder), Ranks()) != before


def test_ranks_read_their_share_and_find_the_same_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    data = images(7)
    alone = images_digest(data, Ranks())
    shares: list[torch.Tensor] = []
    monkeypatch.setattr(Ranks, "sum", lambda _, tensor: shares.append(tensor.clone()) or tensor)
    images_digest(data, Ranks(rank=0, world=2))
    monkeypatch.setattr(Ranks, "sum", lambda _, tensor: tensor.add_(shares[0]))
    assert images_digest(data, Ranks(rank=1, world=2)) == alone


def test_an_image_that_cannot_be_read_is_another_one_than_after_its_repair() -> None:
    good = np.zeros((4, 4, 3), dtype=np.uint8)
    unread = images_digest(listed(["no permission", good], [0, 1]), Ranks())
    assert unread != images_digest(listed([good, good], [0, 1]), Ranks())


def features(count: int = 5) -> Features:
    values = torch.randn(count, 32, generator=torch.Generator().manual_seed(1))
    return Features(values=values, read=np.arange(count) % 2 == 0)


def test_what_was_written_is_read_again_bit_by_bit(tmp_path: Path) -> None:
    write_features(tmp_path / "new" / "folder", KEY, features())
    stored = read_features(tmp_path / "new" / "folder", KEY, images=5, width=32)
    assert stored is not None
    assert stored.values.equal(features().values)
    assert (stored.read == features().read).all()
    assert read_features(tmp_path, KEY, images=5, width=32) is None


@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_one_flipped_bit_is_noticed_wherever_it_is(tmp_path_factory, place: float, bit: int) -> None:
    folder = tmp_path_factory.mktemp("cache")
    write_features(folder, KEY, features())
    path = features_file(folder, KEY)
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 1 << bit
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="damaged"):
        read_features(folder, KEY, images=5, width=32)


def test_a_file_of_other_images_is_not_taken(tmp_path: Path) -> None:
    write_features(tmp_path, KEY, features())
    with pytest.raises(CheckpointError, match="it holds"):
        read_features(tmp_path, KEY, images=6, width=32)
    features_file(tmp_path, KEY).rename(features_file(tmp_path, "b" * 64))
    with pytest.raises(CheckpointError, match="damaged"):
        read_features(tmp_path, "b" * 64, images=5, width=32)


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(WriteError, match="could not be made"):
        write_features(tmp_path / "file" / "cache", KEY, features())


def test_the_usual_folder_is_where_the_system_keeps_such_things(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "vitrail" / "features"
    for unusable in ("", "relative"):  # which the specification says to ignore
        monkeypatch.setenv("XDG_CACHE_HOME", unusable)
        assert default_folder() == Path.home() / ".cache" / "vitrail" / "features"
