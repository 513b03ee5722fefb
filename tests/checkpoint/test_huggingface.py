"""Against `transformers` itself: its files in, ours out, the same numbers."""

import json

import pytest
import torch

import vitrail
from tests.checkpoint.making import made, same_weights
from tests.tiny import close, images_for, vit_config
from vitrail import CheckpointError
from vitrail.checkpoint.assembly import assemble
from vitrail.checkpoint.files import read

transformers = pytest.importorskip("transformers")

SIZES = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 48,
    "patch_size": 8,
    "num_labels": 5,
}
SHAPES = {"square": 24, "wide": [16, 24]}


def theirs(kind: str = "ViTForImageClassification", **settings):
    torch.manual_seed(0)
    config = transformers.ViTConfig(**{**SIZES, "image_size": 24, **settings})
    model = getattr(transformers, kind)(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def images_like(size) -> torch.Tensor:
    height, width = (size, size) if isinstance(size, int) else size
    return torch.randn(2, 3, height, width, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("size", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("act", ["gelu", "gelu_pytorch_tanh"])
@pytest.mark.parametrize("eps", [1e-12, 1e-3])
def test_logits_are_those_of_transformers(size, act, eps, tmp_path) -> None:
    source = theirs(image_size=size, hidden_act=act, layer_norm_eps=eps)
    source.save_pretrained(tmp_path)
    model = vitrail.load(tmp_path)
    close(model(images_like(size)), source(images_like(size)).logits, 1e-5)
    assert (model.config.norm_eps, model.config.num_heads) == (eps, 3)
    assert model.config.position_resize == "huggingface"
    assert model.info.labels is None


def test_the_names_in_memory_are_read_too(tmp_path) -> None:
    source = theirs()
    state = source.state_dict()
    assert any("attention.q_proj" in name for name in state)
    torch.save(state, tmp_path / "x.pth")
    model = vitrail.load(tmp_path / "x.pth", pickle=True, num_heads=3)
    close(model(images_like(24)), source(images_like(24)).logits, 1e-5)


def test_a_base_model_gives_its_pooler_output(tmp_path) -> None:
    source = theirs("ViTModel")
    source.save_pretrained(tmp_path)
    model = vitrail.load(tmp_path)
    assert (model.config.num_classes, model.config.representation_size) == (0, 24)
    close(model(images_like(24)), source(images_like(24)).pooler_output, 1e-5)


@pytest.mark.parametrize("size", [(16, 16), (12, 16)])
@pytest.mark.parametrize("gelu", ["erf", "tanh"])
def test_transformers_loads_what_we_write(size, gelu, tmp_path) -> None:
    config = vit_config(image_size=size, gelu=gelu)
    model = made(config)
    labels = [f"kind {number}" for number in range(7)]
    vitrail.save(model, tmp_path / "x", to="huggingface", labels=labels)
    loaded, report = transformers.ViTForImageClassification.from_pretrained(tmp_path / "x", output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    assert not report["mismatched_keys"]
    images = images_for(config)
    close(loaded.eval()(images).logits, model(images), 1e-5)
    assert [loaded.config.id2label[number] for number in range(7)] == labels


def test_transformers_loads_a_model_without_classes(tmp_path) -> None:
    config = vit_config(num_classes=0, representation_size=12, gelu="erf")
    model = made(config)
    vitrail.save(model, tmp_path / "x", to="huggingface")
    loaded = transformers.ViTModel.from_pretrained(tmp_path / "x").eval()
    images = images_for(config)
    close(loaded(images).pooler_output, model(images), 1e-5)


def test_the_image_processor_reads_our_preprocessing(tmp_path) -> None:
    pixels = vitrail.Preprocessing(
        image_size=(12, 16), interpolation="bicubic", antialias=True, mean=(0.1, 0.2, 0.3), std=(0.4, 0.5, 0.6)
    )
    vitrail.save(made(vit_config()), tmp_path / "x", to="huggingface", preprocessing=pixels)
    written = json.loads((tmp_path / "x" / "preprocessor_config.json").read_text())
    assert written["size"] == {"height": 12, "width": 16}
    assert (written["resample"], written["image_mean"], written["image_std"]) == (3, [0.1, 0.2, 0.3], [0.4, 0.5, 0.6])
    assert vitrail.load(tmp_path / "x").info.preprocessing == pixels
    processor = transformers.ViTImageProcessorPil.from_pretrained(tmp_path / "x")
    assert (processor.size["height"], processor.size["width"]) == (12, 16)
    assert (tuple(processor.image_mean), tuple(processor.image_std)) == (pixels.mean, pixels.std)
    assert (processor.resample, processor.rescale_factor) == (3, pytest.approx(1 / 255))


def test_a_round_trip_through_transformers_keeps_every_bit(tmp_path) -> None:
    model = made(vit_config(gelu="erf"))
    vitrail.save(model, tmp_path / "ours", to="huggingface")
    transformers.ViTForImageClassification.from_pretrained(tmp_path / "ours").save_pretrained(tmp_path / "theirs")
    same_weights(model, vitrail.load(tmp_path / "theirs"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "beit"}, "of the type 'beit', which has relative positions inside attention; those that are"),
        ({"model_type": "nobody"}, "of the type 'nobody'; those that are read: vit, deit"),
        ({"pooler_act": "relu"}, r"activation 'relu' in its pooler \(pooler_act\); only tanh is read"),
        ({"architectures": ["ViTForMaskedImageModeling"]}, "has a decoder of pixels"),
        ({"hidden_act": "relu"}, "activation 'relu'"),
        ({"num_attention_heads": 5}, "not divisible by num_heads 5"),
    ],
)
def test_other_models_are_refused_by_name(changes, message, tmp_path) -> None:
    theirs().save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(CheckpointError, match=message):
        vitrail.load(tmp_path)


def test_weights_without_their_config_are_told_by_their_tensors(tmp_path) -> None:
    source = theirs()
    source.save_pretrained(tmp_path)
    (tmp_path / "config.json").unlink()
    model = vitrail.load(tmp_path / "model.safetensors", num_heads=3)
    close(model(images_like(24)), source(images_like(24)).logits, 1e-5)


def test_another_image_size_gives_what_transformers_interpolates(tmp_path) -> None:
    source = theirs(image_size=24)
    source.save_pretrained(tmp_path)
    images = images_like((32, 48))
    wanted = source(images, interpolate_pos_encoding=True).logits
    close(vitrail.load(tmp_path, image_size=(32, 48))(images), wanted, 1e-5)


def test_a_processor_that_does_not_normalise_leaves_pixels_from_0_to_1(tmp_path) -> None:
    vitrail.save(made(vit_config()), tmp_path / "x", to="huggingface")
    path = tmp_path / "x" / "preprocessor_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"do_normalize": False}))
    pixels = vitrail.load(tmp_path / "x").info.preprocessing
    assert (pixels.mean, pixels.std) == ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


def test_memory_that_was_given_back_is_read_again(tmp_path) -> None:
    """q, k and v of several pages each are stacked into a copy, and their own pages dropped."""
    model = made(vit_config(dim=128, num_heads=2))
    vitrail.save(model, tmp_path / "x", to="huggingface")
    contents = read(tmp_path / "x")
    name = "encoder.blocks.1.attention.qkv.weight"
    for _ in range(2):
        assert torch.equal(contents.tensors[name], model.state_dict()[name])
    same_weights(model, assemble(contents))
