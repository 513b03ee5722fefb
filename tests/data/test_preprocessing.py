import json

import numpy as np
import pytest
import torch

import vitrail
from tests.data.pictures import encoded, photo
from tests.tiny import perturbed, vit_config
from vitrail import ConfigError, ImageError, InputError, Preprocessing
from vitrail.base.settings import from_dict, to_dict
from vitrail.data.preprocessing import PRESETS, preset


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_survives_json(name) -> None:
    chosen = preset(name, image_size=(384, 256))
    assert from_dict(Preprocessing, json.loads(json.dumps(to_dict(chosen)))) == chosen


@pytest.mark.parametrize(
    ("name", "size", "side"), [("timm", 224, 248), ("timm", 384, 384), ("torchvision", 224, 256), ("google", 224, 224)]
)
def test_the_short_side_is_the_one_that_the_library_resizes_to(name, size, side) -> None:
    assert preset(name, image_size=(size, size)).resized(300, 500)[0] == side


def test_a_crop_of_224_from_242_rounds_to_242() -> None:
    assert Preprocessing(geometry="crop", crop_fraction=224 / 242).resized(300, 300) == (242, 242)


def test_torchvision_has_imagenets_pixels_and_the_others_one_half() -> None:
    assert preset("torchvision").mean == (0.485, 0.456, 0.406)
    assert {preset(name).mean for name in ("google", "timm", "huggingface")} == {(0.5, 0.5, 0.5)}


def test_other_channels_get_one_half_each() -> None:
    assert preset("torchvision", channels=1).std == (0.5,)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"geometry": "round"}, "geometry is 'round'"),
        ({"interpolation": "bicubik"}, "Did you mean bicubic"),
        ({"crop_fraction": 0.0}, "crop_fraction is 0.0"),
        ({"mean": (0.5,)}, "mean has 1 channels and std has 3"),
        ({"std": (0.5, 0.0, 0.5)}, "above 0"),
        ({"mean": (0.5, float("nan"), 0.5)}, "finite"),
        ({"image_size": (0, 224)}, "at least 1 pixel"),
    ],
)
def test_what_no_image_can_go_through_is_refused(changes, message) -> None:
    with pytest.raises(ConfigError, match=message):
        Preprocessing(**changes)


@pytest.mark.usefixtures("unchecked")
def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(ConfigError, match="there is no preprocessing 'keras'"):
        preset("keras")


def test_any_image_becomes_what_the_model_takes(tmp_path) -> None:
    how = Preprocessing(image_size=(12, 16), antialias=True, mean=(0.4, 0.5, 0.6), std=(0.2, 0.25, 0.3))
    image = photo(0, 16, 12)  # of the model's size: test_transforms.py has the others
    image.save(tmp_path / "photo.png")
    wanted = ((np.asarray(image) / 255 - how.mean) / how.std).transpose(2, 0, 1)[None]
    last = np.asarray(image)
    first = torch.from_numpy(last.copy()).permute(2, 0, 1)
    ways = [tmp_path / "photo.png", str(tmp_path / "photo.png"), encoded(image), image, last, first, first.numpy()]
    for given in ways:
        made = how(given)
        assert made.dtype == torch.float32
        np.testing.assert_allclose(made.numpy(), wanted, atol=1e-5)
    assert torch.equal(how(ways), how(image).expand(len(ways), -1, -1, -1))


def test_a_model_of_one_channel_gets_one_channel() -> None:
    assert Preprocessing(image_size=(8, 8), mean=(0.5,), std=(0.5,))(photo(1)).shape == (1, 1, 8, 8)


def test_the_image_that_cannot_be_read_is_named(tmp_path) -> None:
    with pytest.raises(ImageError, match=r"lost\.png: there is no such file"):
        Preprocessing()([photo(0), tmp_path / "lost.png"])
    with pytest.raises(ImageError, match=r"image 1: "):
        Preprocessing()([photo(0), b"no image"])
    with pytest.raises(InputError, match="images is empty"):
        Preprocessing()([])


def test_a_saved_model_prepares_its_own_input(tmp_path) -> None:
    how = Preprocessing(image_size=(12, 16))
    saved = vitrail.save(perturbed(vit_config()), tmp_path / "model.safetensors", preprocessing=how)
    model = vitrail.load(saved)
    assert model(model.info.preprocessing(photo(2))).shape == (1, 7)
