import numpy as np
import pytest
import torch

from tests.data.pictures import dataset as listed
from tests.evaluation.featuring import PIXELS, extractor, images, model_of
from tests.tiny import close, hybrid_config, perturbed, resnet_config, vit_config
from vitrail.base.ranks import Ranks
from vitrail.data.budget import Budget
from vitrail.data.loader import evaluation_batches
from vitrail.data.preprocessing import Preprocessing
from vitrail.data.transforms import normalise, preprocess
from vitrail.evaluation.features import extract, feature_preprocessing
from vitrail.model.contract import Model
from vitrail.model.info import ModelInfo
from vitrail.runtime.engine import TorchEngine, torch_engine


def own_of(model: Model) -> Preprocessing:
    return torch_engine(model)[0].preprocessing


def network_input(dataset, pixels: Preprocessing) -> torch.Tensor:
    pixel_batch = [preprocess(dataset.image(index), pixels) for index in range(len(dataset))]
    return normalise(torch.stack(pixel_batch), pixels)


@pytest.mark.parametrize(
    "model",
    [
        perturbed(vit_config()),
        perturbed(vit_config(representation_size=24)),
        perturbed(vit_config(pool="mean", class_token=False)),
        perturbed(vit_config(pool="attention")),
        perturbed(hybrid_config()),
        perturbed(resnet_config()),
    ],
    ids=["class token", "tanh layer", "mean", "attention", "hybrid", "resnet"],
)
def test_features_are_the_input_of_the_last_linear_layer_in_the_order_of_the_data(model: Model) -> None:
    pixels, data = Preprocessing(image_size=model.config.image_size), images()
    features = extractor(model, preprocessing=pixels, batch=4)(data)
    last = model.linear if hasattr(model, "linear") else model.head.linear
    assert features.values.dtype == torch.float32
    assert features.values.shape == (len(data), model.config.feature_width) == (len(data), last.in_features)
    with torch.no_grad():
        close(last(features.values), model(network_input(data, pixels)), 1e-4)
    assert features.read.all()


def test_the_tanh_of_the_representation_layer_is_in_the_features() -> None:
    features = extractor(model_of(representation_size=24))(images())
    assert features.values.abs().max() < 1


@pytest.mark.parametrize("batch", [1, 4, 64])
def test_the_size_of_the_batch_makes_no_difference(batch: int) -> None:
    model, data = model_of(), images()
    close(extractor(model, batch=batch)(data).values, extractor(model, batch=11)(data).values, 1e-5)


@pytest.mark.parametrize("world", [2, 3])
def test_every_image_is_computed_by_exactly_one_rank(world: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ranks, "sum", lambda _, tensor: tensor)  # so that each rank shows its own share
    model, data = model_of(), images(10)
    extractors = [extractor(model, ranks=Ranks(rank=rank, world=world), batch=3) for rank in range(world)]
    parts = [one(data, skip_broken=Budget(count=10)) for one in extractors]
    assert (np.stack([part.read for part in parts]).sum(0) == 1).all()
    close(sum(part.values for part in parts), extractor(model)(data).values, 1e-5)


def test_a_model_in_half_precision_gives_features_in_float32() -> None:
    model = model_of().bfloat16()
    features = extractor(model)(images())
    assert features.values.dtype == torch.float32
    close(features.values, extractor(model.float())(images()).values, 0.15)


def test_a_batch_of_broken_images_alone_is_passed_over() -> None:
    good = np.zeros((5, 4, 3), dtype=np.uint8)
    data = listed([b"broken", b"broken", good], [0, 1, 1])
    batches = evaluation_batches(data, PIXELS, batch=2, skip_broken=Budget(count=2))
    features = extract(TorchEngine(model_of(), PIXELS), batches, 3, Ranks())
    assert features.read.tolist() == [False, False, True]
    assert not features.values[:2].any()


@pytest.mark.parametrize(("side", "short"), [(224, 256), (384, 439), (96, 110), (512, 585)])
def test_images_are_resized_and_cropped_in_the_papers_proportion(side: int, short: int) -> None:
    model = model_of(image_size=(side, side), patch_size=(side // 8, side // 8))
    pixels = feature_preprocessing(own_of(model))
    assert pixels.resized(1000, 2000) == (short, 2 * short)
    assert pixels.image_size == (side, side)
    assert (pixels.mean, pixels.std) == ((0.5,) * 3, (0.5,) * 3)  # [-1, 1]


@pytest.mark.parametrize("side", [28, 32, 64])
def test_small_models_see_whole_images_as_they_are(side: int) -> None:
    model = model_of(image_size=(side, side), patch_size=(side, side), channels=1)
    pixels = feature_preprocessing(own_of(model))
    picture = torch.randint(0, 256, (1, side, side), dtype=torch.uint8)
    assert preprocess(picture, pixels).equal(picture)


def test_mean_and_deviation_are_the_models_own_and_its_file_may_decide_everything() -> None:
    model = model_of(image_size=(96, 96), patch_size=(96, 96))
    own = Preprocessing(image_size=(96, 96), interpolation="bicubic", mean=(0.1,) * 3, std=(0.2,) * 3)
    model.info = ModelInfo(preprocessing=own)
    pixels = feature_preprocessing(own_of(model))
    assert (pixels.mean, pixels.std, pixels.geometry) == ((0.1,) * 3, (0.2,) * 3, "crop")
    assert feature_preprocessing(own_of(model), "model") == own


def test_a_resnet_gets_images_of_the_size_that_its_file_says() -> None:
    model = perturbed(resnet_config())
    model.info = ModelInfo(preprocessing=Preprocessing(image_size=(112, 112)))
    assert feature_preprocessing(own_of(model)).image_size == (112, 112)
    assert feature_preprocessing(own_of(model)).resized(500, 500) == (128, 128)
