from pathlib import Path

import numpy as np
import pytest
import torch

from tests.data.pictures import dataset as listed
from tests.evaluation.featuring import extractor, images, model_of
from vitrail.base.errors import ConfigError, ImageError, InputError, WriteError
from vitrail.data.budget import Budget
from vitrail.evaluation import extractor as module
from vitrail.evaluation.features import Features

GOOD = np.zeros((5, 4, 3), dtype=np.uint8)


class Unusable:
    """Replaces a model's `features` where it must not be called."""

    def __call__(self, *_, **__):
        raise AssertionError("the model was called")


def test_stored_features_are_used_and_the_model_is_not_called(tmp_path: Path) -> None:
    model = model_of()
    first = extractor(model, cache=tmp_path)(images())
    model.features = Unusable()
    again = extractor(model, cache=tmp_path)(images())
    assert again.values.equal(first.values)
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(AssertionError, match="was called"):
        extractor(model, cache=tmp_path)(images(seed=5))


def test_without_a_cache_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    extractor(model_of())(images())
    assert list(tmp_path.iterdir()) == []


def test_damaged_features_are_computed_again_with_a_note(tmp_path: Path) -> None:
    notes: list[str] = []
    extract = extractor(model_of(), cache=tmp_path, note=notes.append)
    first = extract(images())
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    assert extract(images()).values.equal(first.values)
    assert len(notes) == 1
    assert "computed again" in notes[0]
    assert file.name in notes[0]
    extract(images())
    assert len(notes) == 1


def test_a_full_disk_does_not_end_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_):
        raise WriteError("the file could not be written: No space left on device.")

    notes: list[str] = []
    monkeypatch.setattr(module, "write_features", full)
    features = extractor(model_of(), cache=tmp_path, note=notes.append)(images())
    assert features.read.all()
    (note,) = notes
    assert "No space left on device" in note


def test_a_broken_image_is_named_unless_it_may_be_skipped(tmp_path: Path) -> None:
    data = listed([GOOD, b"no image", GOOD], [0, 1, 1])
    extract = extractor(model_of(), cache=tmp_path)
    with pytest.raises(ImageError, match="picture 1"):
        extract(data)
    assert extract(data, skip_broken=Budget(count=1)).read.tolist() == [True, False, True]
    with pytest.raises(InputError, match="picture 1"):  # from the disk too
        extract(data)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_features_that_are_not_finite_are_refused_and_not_stored(bad: float, tmp_path: Path) -> None:
    model = model_of()
    honest = model.features
    model.features = lambda seen: honest(seen).index_fill(0, torch.tensor([0]), bad)
    with pytest.raises(InputError, match=r"not finite for 3 of 11 images, such as .*0; .*`vitrail verify`"):
        extractor(model, batch=5, cache=tmp_path)(images())
    assert list(tmp_path.iterdir()) == []


def test_stored_features_that_are_not_finite_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Features(values=torch.full((11, 8), torch.nan), read=np.ones(11, bool))
    monkeypatch.setattr(module, "read_features", lambda *_, **__: broken)
    with pytest.raises(InputError, match="not finite for 11 of 11 images"):
        extractor(model_of(), cache=tmp_path)(images())


@pytest.mark.parametrize(("name", "value"), [("batch", 0), ("workers", -1)])
def test_wrong_settings_are_refused(name: str, value: int) -> None:
    with pytest.raises(ConfigError, match=f"`{name}` is {value}"):
        extractor(model_of(), **{name: value})
