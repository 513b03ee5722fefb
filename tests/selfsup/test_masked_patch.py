"""Masked patch prediction as a learner: the pass beside NumPy, gradients, draws, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.reference import masked_patch as reference
from tests.reference.transformer import patchify
from tests.selfsup.making import learner_of, noise_batch, unlabelled_config
from vitrail.base.errors import ConfigError, GridError
from vitrail.data.transforms import normalise
from vitrail.model.backbone import BackboneConfig
from vitrail.model.build import build, configure
from vitrail.selfsup.masked_patch import MaskedPatchConfig, MaskedPatches


def _learner(**settings: object) -> MaskedPatches:
    config = unlabelled_config(MaskedPatchConfig(**settings))
    learner = learner_of(config, build(config.model, seed=2))
    assert isinstance(learner, MaskedPatches)
    return learner


@pytest.mark.parametrize("target", ["mean-colour", "patch"])
def test_the_loss_is_that_of_corrupted_embeddings_in_numpy(target: str) -> None:
    learner, batch = _learner(target=target), noise_batch()
    loss, _ = learner(batch)
    drawn = learner.draw(batch.images, batch.indices, batch.positions)
    pixels = normalise(batch.images, learner.task.preprocessing)
    kernel, bias = (learner.model.embedding.projection.get_parameter(name) for name in ("weight", "bias"))
    patches = patchify(pixels.numpy(), (2, 2)) @ kernel.detach().numpy().T + bias.detach().numpy()
    places = (drawn.masked.numpy(), drawn.replaced.numpy(), drawn.sources.numpy())
    embedded = reference.corrupt(patches, learner.mask.detach().numpy()[0], *places)
    with torch.no_grad():
        tokens = learner.model.encoder(learner.model.embedding.assemble(torch.from_numpy(embedded), (4, 4), None))
        outputs = learner.predictor(tokens).double().numpy()
    expected = []
    for image, chosen in enumerate(drawn.corrupted.numpy()):
        raw = patchify(batch.images.numpy(), (2, 2))[image].reshape(16, 3, 2, 2)
        if target == "mean-colour":
            codes = np.array([reference.classes(raw[patch], 1) for patch in chosen])
            expected.append(reference.colour_loss(outputs[image, chosen], codes, 3))
        else:
            wanted = patchify(pixels.numpy(), (2, 2))[image, chosen]
            expected.append(((outputs[image, chosen] - wanted) ** 2).mean())
    assert loss.item() == pytest.approx(np.mean(expected), abs=1e-5)


def test_everything_that_learns_gets_a_gradient() -> None:
    learner = _learner()
    learner(noise_batch())[0].backward()
    assert [name for name, weight in learner.named_parameters() if weight.grad is None] == []
    assert learner.mask.grad is not None
    assert learner.mask.grad.abs().sum() > 0


def test_outputs_of_patches_that_are_not_corrupted_do_not_count() -> None:
    """Their pixels change the loss only through the encoder: with none of it, not at all."""
    learner, batch = _learner(target="patch"), noise_batch()
    drawn = learner.draw(batch.images, batch.indices, batch.positions)
    hidden = torch.zeros(4, 16).scatter(1, drawn.corrupted, 1.0)
    shown = hidden.unflatten(1, (4, 4)).repeat_interleave(2, 1).repeat_interleave(2, 2)[:, None].bool()
    other = replace(batch, views=(torch.where(shown, batch.images, 255 - batch.images),))
    for block in learner.model.encoder.blocks:
        block.attention.out.weight.data.zero_()
    learner.model.embedding.projection.weight.data.zero_()
    with torch.no_grad():
        assert learner(other)[0].item() == learner(batch)[0].item()


def test_parts_of_a_batch_are_corrupted_as_the_whole() -> None:
    learner, batch = _learner(), noise_batch(6)
    with torch.no_grad():
        whole = learner(batch)[0]
        parts = torch.stack([learner(part)[0] for part in batch.split(2)]).mean()
    assert parts.item() == pytest.approx(whole.item(), abs=1e-6)
    assert learner.divisible


def test_a_picture_shows_what_is_hidden_and_keeps_the_rest() -> None:
    learner, batch = _learner(), noise_batch()
    shown = learner.reconstruct(batch.images, batch.indices)
    drawn = learner.draw(batch.images, batch.indices, torch.zeros_like(batch.indices))
    for image in range(4):
        for patch in range(16):
            row, column = 2 * (patch // 4), 2 * (patch % 4)
            cut = (image, slice(None), slice(row, row + 2), slice(column, column + 2))
            if patch in drawn.masked[image]:
                assert (shown.corrupted[cut] == 128).all()
            if patch not in drawn.corrupted[image]:
                assert torch.equal(shown.predicted[cut], batch.images[cut])
                assert torch.equal(shown.corrupted[cut], batch.images[cut])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"rate": 0.0}, "rate is 0.0, but must be between 0 and 1"),
        ({"rate": 1.0}, "rate is 1.0, but must be between 0 and 1"),
        ({"target": "mean-color"}, "target is 'mean-color', but must be one of .*Did you mean mean-colour"),
        ({"probe": "labels"}, "probe is 'labels', but must be one of auto, fewshot"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_settings_that_teach_nothing_are_refused(settings: dict, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        MaskedPatchConfig(**settings)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"backbone": BackboneConfig(blocks=(), width=8, norm_groups=8), "patch_size": (1, 1)}, "convolutions of a"),
        ({"pool": "attention"}, "pool is 'attention', whose weights learn nothing"),
        ({"norm_pooled": True}, "norm_pooled is True, whose weights"),
        ({"representation_size": 8}, "representation_size is 8, whose weights"),
        ({"patch_size": (8, 8)}, "a rate of 0.5 hides no patch of 1"),
    ],
)
def test_models_whose_patches_cannot_be_predicted_are_refused(changes: dict, said: str) -> None:
    config = unlabelled_config(MaskedPatchConfig())
    with pytest.raises(ConfigError, match=said):
        replace(config, model=replace(config.model, **changes))


def test_a_model_without_patches_is_refused() -> None:
    config = unlabelled_config(MaskedPatchConfig())
    with pytest.raises(ConfigError, match="has no patches to hide and predict"):
        replace(config, model=configure("R50x1", image_size=8, num_classes=0))


def test_a_grid_that_patches_do_not_fill_is_refused() -> None:
    config = unlabelled_config(MaskedPatchConfig())
    with pytest.raises(GridError, match="does not divide"):
        replace(config, model=replace(config.model, trim=True, patch_size=(3, 3)))
