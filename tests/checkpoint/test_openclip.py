"""OpenCLIP's image towers against its own arithmetic, written out with torch's modules, and sharded folders."""

import json

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor, nn

import vitrail
from tests.tiny import close
from vitrail import CheckpointError

DIM, HEADS, SIDE, PATCH, SHARED = 48, 4, 16, 4, 20


class Block(nn.Module):
    """A residual attention block of CLIP."""

    def __init__(self, scale: bool) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.attn = nn.MultiheadAttention(DIM, HEADS, batch_first=True)
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(DIM, 96), "c_proj": nn.Linear(96, DIM)})
        if scale:
            self.ls_1, self.ls_2 = (nn.ParameterDict({"gamma": nn.Parameter(torch.ones(DIM))}) for _ in range(2))

    def forward(self, x: Tensor, act) -> Tensor:
        gains = (self.ls_1["gamma"], self.ls_2["gamma"]) if hasattr(self, "ls_1") else (1.0, 1.0)
        y = self.ln_1(x)
        x = x + gains[0] * self.attn(y, y, y, need_weights=False)[0]
        return x + gains[1] * self.mlp["c_proj"](act(self.mlp["c_fc"](self.ln_2(x))))


class Visual(nn.Module):
    """The image tower."""

    def __init__(self, *, scale: bool = False, projection: bool = True) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, DIM, PATCH, PATCH, bias=False)
        self.class_embedding = nn.Parameter(torch.randn(DIM))
        self.positional_embedding = nn.Parameter(torch.randn((SIDE // PATCH) ** 2 + 1, DIM))
        self.ln_pre, self.ln_post = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.transformer = nn.ModuleDict({"resblocks": nn.ModuleList(Block(scale) for _ in range(2))})
        self.proj = nn.Parameter(torch.randn(DIM, SHARED)) if projection else None

    def forward(self, images: Tensor, act) -> Tensor:
        x = self.conv1(images).flatten(2).mT
        x = torch.cat([self.class_embedding.expand(len(x), 1, -1), x], dim=1) + self.positional_embedding
        x = self.ln_pre(x)
        for block in self.transformer["resblocks"]:
            x = block(x, act)
        x = self.ln_post(x[:, 0])
        return x if self.proj is None else x @ self.proj


def quick(x: Tensor) -> Tensor:
    return x * torch.sigmoid(1.702 * x)


def tower(**settings) -> Visual:
    torch.manual_seed(0)
    model = Visual(**settings).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def whole(model: Visual) -> dict[str, Tensor]:
    """The state dict of a model of both towers."""
    text = {"positional_embedding": torch.zeros(7, 32), "text_projection": torch.zeros(32, SHARED)}
    text |= {"transformer.resblocks.0.ln_1.weight": torch.ones(32), "logit_scale": torch.zeros(())}
    return {f"visual.{name}": value.clone() for name, value in model.state_dict().items()} | text


IMAGES = torch.randn(2, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("projection", [True, False])
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("gelu", ["quick", "erf"])
def test_an_image_tower_gives_what_clip_computes(projection, scale, gelu, tmp_path) -> None:
    model = tower(scale=scale, projection=projection)
    wanted = model(IMAGES, quick if gelu == "quick" else F.gelu)
    save_file(whole(model), tmp_path / "both.safetensors")
    save_file({name: value.clone() for name, value in model.state_dict().items()}, tmp_path / "image.safetensors")
    for name in ("both", "image"):
        loaded = vitrail.load(tmp_path / f"{name}.safetensors", num_heads=HEADS, gelu=gelu)
        close(loaded(IMAGES), wanted, 1e-5)
        assert loaded.config.projection_size == (SHARED if projection else None)
        assert loaded.info.preprocessing.mean == pytest.approx((0.48145466, 0.4578275, 0.40821073))


def test_a_folder_of_openclip_needs_no_answer(tmp_path) -> None:
    model = tower()
    torch.save(whole(model), tmp_path / "open_clip_pytorch_model.bin")
    vision = {"image_size": SIDE, "layers": 2, "width": DIM, "head_width": DIM // HEADS, "patch_size": PATCH}
    settings = {
        "model_cfg": {"embed_dim": SHARED, "quick_gelu": True, "vision_cfg": vision},
        "preprocess_cfg": {"mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25], "interpolation": "bicubic"},
    }
    (tmp_path / "open_clip_config.json").write_text(json.dumps(settings))
    loaded = vitrail.load(tmp_path, pickle=True)
    close(loaded(IMAGES), model(IMAGES, quick), 1e-5)
    assert loaded.info.preprocessing.std == (0.25, 0.25, 0.25)
    settings["model_cfg"]["vision_cfg"]["attentional_pool"] = True
    (tmp_path / "open_clip_config.json").write_text(json.dumps(settings))
    with pytest.raises(CheckpointError, match="settings of its image tower that are not read: attentional_pool"):
        vitrail.load(tmp_path, pickle=True)


def test_what_no_tensor_shows_is_asked_for(tmp_path) -> None:
    save_file(whole(tower()), tmp_path / "x.safetensors")
    with pytest.raises(CheckpointError, match=r"no published CLIP is 48 wide; give num_heads\."):
        vitrail.load(tmp_path / "x.safetensors", gelu="quick")
    with pytest.raises(CheckpointError, match=r"OpenAI's have quick, OpenCLIP's erf; give gelu\."):
        vitrail.load(tmp_path / "x.safetensors", num_heads=HEADS)


@pytest.mark.parametrize("file", ["model.safetensors", "pytorch_model.bin"])
def test_a_folder_of_shards_is_one_model(file, tmp_path) -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    config = transformers.ViTConfig(**sizes, patch_size=4, image_size=16, num_labels=5)
    torch.manual_seed(0)
    source = transformers.ViTForImageClassification(config).eval()
    source.save_pretrained(tmp_path, max_shard_size="20KB")
    index = tmp_path / "model.safetensors.index.json"
    shards = sorted(tmp_path.glob("model-*.safetensors"))
    assert len(shards) > 2
    if file == "pytorch_model.bin":
        from safetensors.torch import load_file

        places = json.loads(index.read_text())["weight_map"]
        for shard in shards:
            torch.save(load_file(shard), shard.with_suffix(".bin"))
            shard.unlink()
        places = {name: shard.replace(".safetensors", ".bin") for name, shard in places.items()}
        (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": places}))
        index.unlink()
        with pytest.raises(CheckpointError, match="import it once, on purpose"):
            vitrail.load(tmp_path)
    loaded = vitrail.load(tmp_path, pickle=True)
    close(loaded(IMAGES), source(IMAGES).logits, 1e-5)
    (tmp_path / shards[0].name).with_suffix(".bin" if file == "pytorch_model.bin" else ".safetensors").unlink()
    with pytest.raises(CheckpointError, match="which the folder does not hold; get it again"):
        vitrail.load(tmp_path, pickle=True)
