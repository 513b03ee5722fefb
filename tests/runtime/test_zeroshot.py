"""CLIP's classes by texts, against transformers' CLIPModel."""

import numpy as np
import pytest
import torch

import vitrail
from tests.checkpoint.test_families import TEXT
from tests.tiny import close, perturbed, vit_config
from vitrail.base.errors import ConfigError, InputError
from vitrail.cli.main import main
from vitrail.runtime.engine import torch_engine
from vitrail.runtime.zeroshot import ZeroShotEngine, read_text_embeddings

transformers = pytest.importorskip("transformers")

VISION = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "patch_size": 4,
    "image_size": 16,
}
NAMES = ["ant", "bee", "cat"]
CLIP_MEAN, CLIP_STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


@pytest.fixture
def clip(tmp_path):
    """A tiny CLIP with random weights, its folder, the tokens of three texts, and the file of their embeddings."""
    config = transformers.CLIPConfig(
        text_config=TEXT, vision_config=VISION, projection_dim=24, logit_scale_init_value=3.0
    )
    model = transformers.CLIPModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim:
                parameter += 0.1 * torch.randn_like(parameter)
    model.save_pretrained(tmp_path / "clip")
    tokens = torch.tensor([[1, 5, 7, 2], [1, 9, 9, 2], [1, 3, 8, 2]])
    with torch.no_grad():
        pixels = torch.zeros(1, 3, 16, 16)
        embeddings = model(input_ids=tokens, pixel_values=pixels).text_embeds * 3.5  # any length
    file = tmp_path / "texts.npz"
    np.savez(file, embeddings=embeddings.numpy(), names=np.array(NAMES), scale=model.logit_scale.exp().item())
    return model, tmp_path / "clip", tokens, file


def test_logits_are_those_of_clip(clip) -> None:
    model, folder, tokens, file = clip
    engine, _ = torch_engine(vitrail.load(folder))
    zero = ZeroShotEngine(engine, read_text_embeddings(file))
    pixels = torch.randint(0, 256, (4, 3, 16, 16), dtype=torch.uint8)
    mean, std = (torch.tensor(values)[:, None, None] for values in (CLIP_MEAN, CLIP_STD))
    with torch.no_grad():
        expected = model(input_ids=tokens, pixel_values=(pixels / 255 - mean) / std).logits_per_image
    close(zero.logits(pixels), expected, tolerance=1e-5)
    assert zero.num_outputs == 3
    assert zero.digest != engine.digest


def test_predict_and_evaluate_answer_with_texts(clip, tmp_path) -> None:
    _, folder, _, file = clip
    pixels = np.random.default_rng(0).integers(0, 256, (6, 16, 16, 3), dtype=np.uint8)
    answers = vitrail.predict(str(folder), list(pixels), text_embeddings=file, top=3)
    assert {name for name, _ in answers[0].top} == set(NAMES)
    assert sum(probability for _, probability in answers[0].top) == pytest.approx(1.0)
    labels = np.array([NAMES.index(answer.top[0][0]) for answer in answers])
    np.savez(tmp_path / "photos.npz", x=pixels, y=labels, class_names=np.array(NAMES))
    page = tmp_path / "page.html"
    score = vitrail.evaluate(folder, tmp_path / "photos.npz", text_embeddings=file, resamples=100, html=page)
    assert score.accuracy == 1.0
    assert "ant" in page.read_text()


def test_a_model_without_a_projection_is_refused(clip, tmp_path, capsys) -> None:
    _, folder, _, file = clip
    plain = vitrail.save(perturbed(vit_config(image_size=(16, 16), num_classes=2)), tmp_path / "plain.safetensors")
    assert main(["predict", str(plain), str(plain), "--text-embeddings", str(file)]) == 2
    assert "has no projection into the space of texts, so --text-embeddings do not fit it" in capsys.readouterr().err
    assert main(["evaluate", str(plain), "sample", "--text-embeddings", str(file)]) == 2
    assert "has no projection into the space of texts" in capsys.readouterr().err
    assert main(["evaluate", str(folder), "sample"]) == 2
    assert (
        "has no head, so it answers nothing; fine-tune it first, or give --text-embeddings" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"embeddings": np.ones((3, 24))}, "but embeddings and names are needed"),
        ({"embeddings": np.ones((2, 24)), "names": np.array(NAMES)}, "3 names were given for 2 embeddings"),
        ({"embeddings": np.ones((3, 24)), "names": np.array(["ant", "ant", "bee"])}, "have the same name"),
        ({"embeddings": np.zeros((3, 24)), "names": np.array(NAMES)}, "is all zeros"),
        ({"embeddings": np.full((3, 24), np.nan), "names": np.array(NAMES)}, "not finite"),
        ({"embeddings": np.ones(3), "names": np.array(NAMES)}, r"of the shape \(3,\)"),
        ({"embeddings": np.ones((3, 24)), "names": np.arange(3)}, "a list of text is needed"),
        ({"embeddings": np.ones((3, 24)), "names": np.array(NAMES), "scale": -1.0}, "must be above 0"),
        ({"embeddings": np.ones((3, 24)), "names": np.array(NAMES), "scale": np.ones(2)}, "one number is needed"),
        ({"embeddings": np.array([None]), "names": np.array(NAMES)}, "plain numbers or text are needed"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_embeddings_are_one_sentence(tmp_path, arrays, sentence) -> None:
    np.savez(tmp_path / "texts.npz", **arrays)
    with pytest.raises(InputError, match=sentence):
        read_text_embeddings(tmp_path / "texts.npz")


def test_embeddings_of_another_width_and_labels_beside_them_are_refused(clip, tmp_path) -> None:
    _, folder, _, file = clip
    np.savez(tmp_path / "wide.npz", embeddings=np.ones((3, 32)), names=np.array(NAMES))
    photo = np.zeros((16, 16, 3), np.uint8)
    with pytest.raises(InputError, match=r"have 32 numbers each, but .* projects images to 24"):
        vitrail.predict(str(folder), photo, text_embeddings=tmp_path / "wide.npz")
    with pytest.raises(ConfigError, match="so `labels` have nothing to name"):
        vitrail.predict(str(folder), photo, text_embeddings=file, labels=NAMES)
    (tmp_path / "bad.npz").write_bytes(b"PK" + bytes(50))
    with pytest.raises(InputError, match=r"is damaged or not an .npz file"):
        read_text_embeddings(tmp_path / "bad.npz")
