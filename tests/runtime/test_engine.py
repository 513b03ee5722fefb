from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.data.arrays import noise
from tests.data.pictures import photo
from tests.tiny import perturbed, resnet_config, vit_config
from vitrail import Classifier, Preprocessing
from vitrail.base.ranks import Ranks
from vitrail.evaluation.evaluation import EvaluationConfig, evaluate
from vitrail.evaluation.extractor import Extractor
from vitrail.evaluation.subset import choose
from vitrail.runtime.engine import Engine, TorchEngine, torch_engine

PIXELS = Preprocessing(image_size=(12, 16), mean=(0.4, 0.5, 0.6), std=(0.2, 0.25, 0.3))


class Means:
    """An engine of NumPy: the features are the means of the channels, and the head is a table."""

    preprocessing = Preprocessing(image_size=(6, 6))
    num_outputs, feature_width = 3, 3
    device, dtype, digest, concurrent = torch.device("cpu"), torch.float64, "means of channels", False
    head = np.array([[1.0, -1.0, 0.5], [0.0, 2.0, -1.0], [-0.5, 0.0, 1.0]])

    def features(self, pixels):
        return torch.from_numpy((pixels.numpy() / 127.5 - 1).mean((2, 3)))

    def logits(self, pixels):
        return torch.from_numpy(self.features(pixels).numpy() @ self.head)


def pixels_of(count: int) -> torch.Tensor:
    return torch.randint(0, 256, (count, 3, 12, 16), dtype=torch.uint8, generator=torch.Generator().manual_seed(3))


def by_hand(pixels: torch.Tensor) -> torch.Tensor:
    """Pixels as input, in NumPy."""
    made = (pixels.permute(0, 2, 3, 1).double().numpy() / 255 - PIXELS.mean) / PIXELS.std
    return torch.from_numpy(made.transpose(0, 3, 1, 2)).float()


@pytest.mark.parametrize("config", [vit_config(), resnet_config(image_size=(12, 16))], ids=["vit", "resnet"])
def test_logits_and_features_are_those_of_the_model_for_normalised_pixels(config) -> None:
    model, pixels = perturbed(config), pixels_of(3)
    engine = TorchEngine(model, PIXELS)
    with torch.no_grad():
        torch.testing.assert_close(engine.logits(pixels), model(by_hand(pixels)), atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(engine.features(pixels), model.features(by_hand(pixels)), atol=1e-5, rtol=1e-5)
    assert engine.features(pixels).shape == (3, engine.feature_width)
    assert engine.logits(pixels).shape == (3, engine.num_outputs)
    assert engine.logits(pixels).is_inference()


def test_a_model_in_half_precision_computes_in_half_precision() -> None:
    engine = TorchEngine(perturbed(vit_config()).bfloat16(), PIXELS)
    assert engine.dtype == engine.logits(pixels_of(2)).dtype == torch.bfloat16


def test_a_model_that_was_training_answers_as_one_that_was_not() -> None:
    model = perturbed(vit_config(dropout=0.5)).train()
    engine = TorchEngine(model, PIXELS)
    assert engine.logits(pixels_of(2)).equal(engine.logits(pixels_of(2)))


def test_the_digest_changes_with_weights_and_settings() -> None:
    model = perturbed(vit_config())
    engine = TorchEngine(model, PIXELS)
    first = engine.digest
    assert first == TorchEngine(perturbed(vit_config()), PIXELS).digest
    assert first != TorchEngine(perturbed(vit_config(gelu="erf")), PIXELS).digest
    with torch.no_grad():
        model.last_linear.bias[0] += 1e-6
    assert engine.digest != first


def test_a_model_without_preprocessing_gets_that_of_the_reference_release_with_a_note() -> None:
    engine, notes = torch_engine(perturbed(vit_config(channels=1)))
    assert engine.preprocessing == Preprocessing(image_size=(12, 16), mean=(0.5,), std=(0.5,))
    assert len(notes) == 1
    assert "12x16" in notes[0]
    assert "from -1 to 1" in notes[0]


def test_another_engine_can_be_evaluated() -> None:
    engine, data = Means(), noise(12, size=(6, 6), classes=3)
    assert isinstance(engine, Engine)
    made = evaluate(engine, data, choose(data, data.labels, 3), EvaluationConfig(resamples=100))
    pixels = np.stack([data.read(index) for index in range(12)]) / 127.5 - 1
    np.testing.assert_array_equal(made.answers.predicted, (pixels.mean((1, 2)) @ Means.head).argmax(1))


def test_another_engine_gives_features() -> None:
    engine, data = Means(), noise(5, size=(6, 6), classes=3)
    found = Extractor(engine=engine, preprocessing=engine.preprocessing, ranks=Ranks())(data)
    pixels = np.stack([data.read(index) for index in range(5)]) / 127.5 - 1
    np.testing.assert_allclose(found.values.numpy(), pixels.mean((1, 2)), atol=1e-6)


def test_another_engine_can_predict() -> None:
    image = photo(1, 6, 6)
    predicted = Classifier.of(Means(), labels=("ant", "bee", "wasp"), batch=2).predict([image] * 5, top=3)
    scores = np.exp((np.asarray(image) / 127.5 - 1).mean((0, 1)) @ Means.head)
    wanted = sorted(zip(("ant", "bee", "wasp"), scores / scores.sum(), strict=True), key=lambda pair: -pair[1])
    assert len(predicted) == 5
    assert [label for label, _ in predicted[4].top] == [label for label, _ in wanted]
    assert [share for _, share in predicted[4].top] == pytest.approx([share for _, share in wanted], abs=1e-6)


def test_each_batch_is_compiled_for_its_own_size_even_after_another(monkeypatch) -> None:
    settings = []
    monkeypatch.setattr(torch, "compile", lambda network, **given: settings.append(given) or network)
    engine = TorchEngine(perturbed(vit_config()), PIXELS)
    for batch in (1, 3):
        compiled = replace(engine, compiled_batch=batch)
        pixels = torch.zeros(2, 3, 12, 16, dtype=torch.uint8)
        torch.testing.assert_close(compiled.logits(pixels), engine.logits(pixels))
        compiled.features(pixels)
    assert [given["dynamic"] for given in settings] == [False] * 4  # else the second size is compiled for any size


def test_few_threads_take_a_share_of_a_large_batch_each(monkeypatch: pytest.MonkeyPatch) -> None:
    model, pixels, seen = perturbed(vit_config()), pixels_of(9), []
    whole = TorchEngine(model, PIXELS).logits(pixels)
    monkeypatch.setattr(
        model,
        "forward",
        lambda images: (seen.append((len(images), torch.get_num_threads())), type(model).forward(model, images))[1],
    )
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        logits = TorchEngine(model, PIXELS).logits(pixels)
        few = TorchEngine(model, PIXELS).logits(pixels[:7])
    finally:
        torch.set_num_threads(before)
    assert sorted(seen) == [(4, 1), (5, 1), (7, 2)]
    assert logits.is_inference()
    torch.testing.assert_close(logits, whole, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(few, whole[:7], atol=1e-6, rtol=1e-5)
