"""Published names in place of paths, by small stand-ins in the published layout: fine-tuning, few-shot, evaluation."""

import json

import pytest

import vitrail
from tests.data.pictures import encoded, photo
from tests.published.stand_ins import pretend_pulled
from tests.tiny import perturbed, vit_config
from vitrail.cli.main import main

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.usefixtures("unchecked")

PIXELS = {  # of facebook/dinov2-small, for smaller images
    "image_processor_type": "BitImageProcessor",
    "do_resize": True,
    "size": {"shortest_edge": 32},
    "do_center_crop": True,
    "crop_size": {"height": 28, "width": 28},
    "resample": 3,
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [0.485, 0.456, 0.406],
    "image_std": [0.229, 0.224, 0.225],
}


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """A folder of eight photos of two classes; the working folder is beside it."""
    monkeypatch.chdir(tmp_path)
    for number in range(8):
        file = tmp_path / "photos" / ("train", "test")[number // 4] / ("ant", "bee")[number % 2] / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(encoded(photo(number, 30, 20)))
    return tmp_path / "photos"


@pytest.fixture
def dinov2(tmp_path):
    """`dinov2-S/14` with two narrow blocks, as transformers writes it."""
    config = transformers.Dinov2Config(
        hidden_size=48, num_hidden_layers=2, num_attention_heads=6, mlp_ratio=2, image_size=70, patch_size=14
    )
    folder = tmp_path / "published"
    transformers.Dinov2Model(config).save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(PIXELS))
    pretend_pulled("dinov2-S/14", folder)
    return folder


@pytest.mark.slow
@pytest.mark.usefixtures("dinov2")
def test_a_published_backbone_is_fine_tuned_and_the_result_predicts(photos, capsys) -> None:
    words = ["--quick", "--steps", "2", "--batch", "4", "--json"]
    assert main(["finetune", str(photos), "--from", "dinov2-S/14", *words]) == 0
    run = photos.parent / "runs" / "photos-from-dinov2-S-14"
    model = vitrail.load(run / "model.safetensors")
    assert model.config.dim == 48
    assert model.info.preprocessing.mean == (0.485, 0.456, 0.406)
    assert model.info.labels == ("ant", "bee")
    assert json.loads((run / "config.json").read_text())["start"]["path"] == "dinov2-S/14"
    capsys.readouterr()
    assert main(["finetune", "--resume", str(run), "--json"]) == 0  # which finds the model by its name again


@pytest.mark.slow
def test_an_image_tower_of_clip_is_fine_tuned_without_its_projection(photos, tmp_path) -> None:
    config = transformers.CLIPVisionConfig(
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=6,
        intermediate_size=96,
        image_size=32,
        patch_size=8,
        projection_dim=20,
    )
    transformers.CLIPVisionModelWithProjection(config).save_pretrained(tmp_path / "clip")
    words = ["--quick", "--steps", "2", "--batch", "4", "--json"]
    assert (
        main(["finetune", str(photos), "--from", str(tmp_path / "clip"), "--out", str(tmp_path / "run"), *words]) == 0
    )
    model = vitrail.load(tmp_path / "run" / "model.safetensors")
    assert (model.config.projection_size, model.config.num_classes) == (None, 2)
    assert model.info.preprocessing.mean == (0.48145466, 0.4578275, 0.40821073)


@pytest.mark.usefixtures("dinov2")
def test_a_published_backbone_gives_features_and_refuses_to_be_evaluated(photos, capsys) -> None:
    assert main(["fewshot", "dinov2-s/14", str(photos), "--shots", "1", "--seeds", "1", "--no-cache", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["model"] == "dinov2-s/14"
    assert main(["evaluate", "dinov2-S/14", str(photos)]) == 2
    assert "dinov2-S/14 has no head, so it answers nothing; fine-tune it first." in capsys.readouterr().err
    assert main(["predict", "dinov2-S/14", str(photos)]) == 2
    assert "has no classes, only a representation" in capsys.readouterr().err


def test_the_numbers_are_those_of_the_library_that_published_it(dinov2) -> None:
    import torch

    model = vitrail.load("dinov2-S/14")
    images = torch.randn(2, 3, 28, 28)
    theirs = transformers.Dinov2Model.from_pretrained(dinov2).eval()
    with torch.no_grad():
        expected = theirs(images).last_hidden_state[:, 0]
    torch.testing.assert_close(model.features(images).detach(), expected, rtol=0, atol=1e-5)


def test_what_a_published_file_does_not_tell_is_in_the_catalogue(tmp_path) -> None:
    config = vitrail.configure("R50x1", num_classes=3, blocks=(1, 1, 1, 1), image_size=64)
    file = vitrail.save(vitrail.build(config, seed=0), tmp_path / "BiT-M-R50x1-ILSVRC2012.npz", to="google")
    pretend_pulled("bit-M-R50x1-in1k", file)
    pretend_pulled("bit-M-R50x1", file)
    assert vitrail.load("bit-M-R50x1-in1k").info.preprocessing.image_size == (480, 480)
    assert vitrail.load("bit-M-R50x1").info.preprocessing.image_size == (224, 224)
    assert vitrail.load("bit-M-R50x1-in1k", image_size=96).info.preprocessing.image_size == (96, 96)


def test_files_that_went_away_are_not_here_any_more(tmp_path, capsys) -> None:
    file = vitrail.save(perturbed(vit_config()), tmp_path / "m.safetensors")
    pretend_pulled("vit-B/16", file)
    whole = file.read_bytes()
    assert main(["verify", "vit-B/16"]) == 0
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert main(["verify", "vit-B/16"]) == 1
    assert "m.safetensors changed after the download" in capsys.readouterr().out
    file.write_bytes(whole[:-1])
    assert main(["verify", "vit-B/16"]) == 2
    assert "vit-B/16 is published, but not on this machine" in capsys.readouterr().err


def test_a_head_of_zeros_is_refused_with_a_word(photos, capsys) -> None:
    """As the first files for ImageNet-21k have it; a model in memory is measured with a note."""
    import torch

    model = perturbed(vit_config(num_classes=2, image_size=(16, 16)))
    with torch.no_grad():
        model.head.linear.weight.zero_()
        model.head.linear.bias.zero_()
    file = vitrail.save(model, photos.parent / "zero.npz", to="google")
    assert main(["evaluate", str(file), str(photos), "--labels", "ant,bee"]) == 2
    assert "zero.npz has a head of zeros, so every class gets the same score" in capsys.readouterr().err
