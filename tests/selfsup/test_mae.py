"""The masked autoencoder beside transformers' own, NumPy, and what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.reference.transformer import patchify
from tests.selfsup.making import learner_of, noise_batch, unlabelled_config
from vitrail.base.errors import CheckpointError, ConfigError
from vitrail.model.build import build
from vitrail.model.encoder import Encoder
from vitrail.selfsup.decoder import patch_norm
from vitrail.selfsup.mae import DecoderConfig, MAEConfig, MaskedAutoencoder, visible_count
from vitrail.selfsup.mae_files import load_masked_autoencoder

SMALL = MAEConfig(decoder=DecoderConfig(dim=8, depth=1, num_heads=2, mlp_dim=16))


def _learner(config: MAEConfig = SMALL, **changes: object) -> MaskedAutoencoder:
    run = unlabelled_config(config)
    learner = learner_of(run, build(replace(run.model, **changes), seed=2))
    assert isinstance(learner, MaskedAutoencoder)
    return learner


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.ViTMAEConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        image_size=24,
        patch_size=4,
        decoder_hidden_size=16,
        decoder_num_hidden_layers=2,
        decoder_num_attention_heads=2,
        decoder_intermediate_size=24,
        norm_pix_loss=True,
        hidden_dropout_prob=0.0,
    )
    model = transformers.ViTMAEForPreTraining(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "pos_embed" not in name and "position" not in name:
                weight.add_(0.1 * torch.randn_like(weight))
    folder = tmp_path_factory.mktemp("mae")
    model.save_pretrained(folder)
    return model, folder


def test_masks_predictions_and_loss_are_those_of_transformers_for_the_same_noise(theirs) -> None:
    model, folder = theirs
    ours = load_masked_autoencoder(folder)
    generator = torch.Generator().manual_seed(3)
    images, noise = torch.randn(3, 3, 24, 24, generator=generator), torch.rand(3, 36, generator=generator)
    with torch.no_grad():
        expected = model(images, noise=noise)
        order = noise.argsort(dim=1)
        predicted = ours.predict(images, order)
        loss = ours.loss(images, order, predicted)
    removed = order[:, -predicted.shape[1] :]
    mask = torch.zeros(3, 36).scatter(1, removed, 1.0)
    assert torch.equal(mask, expected.mask)
    channels_last = predicted.unflatten(2, (3, 4, 4)).movedim(2, -1).flatten(2)
    rows = expected.logits[torch.arange(3)[:, None], removed]
    assert (channels_last - rows).abs().max() < 1e-5
    assert loss.item() == pytest.approx(expected.loss.item(), abs=1e-5)


def test_a_decoder_of_another_size_than_the_settings_say_is_refused_by_name(theirs, tmp_path: Path) -> None:
    _, folder = theirs
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    text = (tmp_path / "config.json").read_text().replace('"decoder_hidden_size": 16', '"decoder_hidden_size": 32')
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"the decoder in .* does not fit: .*embed.weight of \(16, 32\) for"):
        load_masked_autoencoder(tmp_path)


def test_normalised_pixels_and_the_loss_are_numpys() -> None:
    learner, batch = _learner(), noise_batch()
    order = learner.order(batch.images, batch.indices, batch.positions)
    inputs = torch.from_numpy(batch.images.numpy() / np.float32(127.5) - np.float32(1))
    with torch.no_grad():
        predicted = learner.predict(inputs, order).double().numpy()
        loss = learner(batch)[0].item()
    patches = patchify(inputs.double().numpy(), (2, 2))
    errors = []
    for image in range(4):
        for at, patch in enumerate(order[image, 4:].tolist()):
            pixels = patches[image, patch]
            wanted = (pixels - pixels.mean()) / np.sqrt(pixels.var(ddof=1) + 1e-6)
            errors.append(((predicted[image, at] - wanted) ** 2).mean())
    assert predicted.shape == (4, 12, 12)
    assert loss == pytest.approx(np.mean(errors), abs=1e-5)


def test_a_flat_patch_is_zero_after_its_norm() -> None:
    assert torch.equal(patch_norm(torch.full((1, 1, 12), 0.5)), torch.zeros(1, 1, 12))


@pytest.mark.parametrize(("patches", "kept"), [(196, 49), (64, 16), (49, 12), (36, 9)])
def test_a_quarter_of_the_patches_stays(patches: int, kept: int) -> None:
    assert visible_count(patches, 0.75) == kept


def test_the_encoder_never_sees_the_removed_pixels() -> None:
    learner, batch = _learner(), noise_batch()
    order = learner.order(batch.images, batch.indices, batch.positions)
    inputs = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    hidden = torch.zeros(4, 16).scatter(1, order[:, 4:], 1.0).unflatten(1, (4, 4))
    places = hidden.repeat_interleave(2, 1).repeat_interleave(2, 2)[:, None]
    with torch.no_grad():
        assert torch.equal(learner.predict(inputs + 9 * places, order), learner.predict(inputs, order))
        assert not torch.equal(learner.predict(inputs + 9 * (1 - places), order), learner.predict(inputs, order))


@pytest.mark.parametrize("changes", [{}, {"pool": "class-token", "class_token": True}, {"registers": 2}])
def test_everything_that_learns_gets_a_gradient(changes: dict) -> None:
    learner = _learner(**changes)
    learner(noise_batch())[0].backward()
    assert [name for name, weight in learner.named_parameters() if weight.grad is None] == []


def test_kernels_of_both_networks_are_matrices_and_blocks() -> None:
    learner = _learner()
    names = dict(learner.named_parameters())
    assert set(learner.matrices()) <= set(names)
    assert "decoder.encoder.blocks.0.attention.qkv.weight" in learner.matrices()
    assert len(learner.blocks()) == 3


def test_pictures_keep_what_was_visible() -> None:
    learner, batch = _learner(), noise_batch()
    shown = learner.reconstruct(batch.images, batch.indices)
    grey = (shown.corrupted == 128).all(1)
    assert 0.74 < grey.float().mean() < 0.77
    seen = ~grey[:, None].expand_as(batch.images)
    assert torch.equal(shown.predicted[seen], batch.images[seen])


@pytest.mark.parametrize(
    ("objective", "model", "said"),
    [
        (SMALL, {"positions": "relative"}, "belong to one full grid"),
        (SMALL, {"patch_size": (8, 8)}, "removes every one of 1 patches"),
        (MAEConfig(decoder=DecoderConfig(dim=10, num_heads=5)), {}, "the decoder does not fit: .*divides"),
        (MAEConfig(decoder=DecoderConfig(dim=16, num_heads=3)), {}, "the decoder does not fit: .*num_heads"),
    ],
)
def test_models_and_decoders_that_do_not_fit_are_refused(objective: MAEConfig, model: dict, said: str) -> None:
    config = unlabelled_config(SMALL)
    with pytest.raises(ConfigError, match=said):
        replace(config, objective=objective, model=replace(config.model, **model))


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_a_rate_that_removes_nothing_or_everything_is_refused(rate: float) -> None:
    with pytest.raises(ConfigError, match="must be between 0 and 1"):
        MAEConfig(rate=rate)


def test_the_last_block_of_the_decoder_is_that_of_an_encoder_cut_to_the_removed_patches() -> None:
    learner = _learner(replace(SMALL, decoder=replace(SMALL.decoder, depth=2)), pool="class-token", class_token=True)
    decoder = learner.decoder
    whole = Encoder(learner.config.decoder_of(learner.model.config))
    whole.load_state_dict(decoder.encoder.state_dict())
    tokens = torch.randn(3, 17, 8, generator=torch.Generator().manual_seed(1))
    last, first = decoder.encoder.blocks[-1], 5
    with torch.no_grad():
        cut = decoder.encoder.finish(last(decoder.encoder.blocks[0](tokens), first=first))
        torch.testing.assert_close(cut, whole(tokens)[:, first:], rtol=1e-5, atol=1e-6)


def test_the_norm_of_a_patch_is_numpys() -> None:
    pixels = np.random.default_rng(0).normal(size=(2, 3, 12))
    expected = (pixels - pixels.mean(2, keepdims=True)) / np.sqrt(pixels.var(2, ddof=1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(patch_norm(torch.from_numpy(pixels)).numpy(), expected, rtol=1e-12)
    small = pixels * 1e-3  # where epsilon weighs as much as the variance
    expected = (small - small.mean(2, keepdims=True)) / np.sqrt(small.var(2, ddof=1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(patch_norm(torch.from_numpy(small)).numpy(), expected, rtol=1e-12)
