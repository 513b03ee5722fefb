"""Record checkpoints of training as mmpretrain and Lightning themselves write them, with the outputs of their models.

`trainers/` gets whole files where the program's own objects lie beside the weights (mmengine's Runner, Lightning's
Trainer), and `.npz` files with the weights in float16 and the text of the settings for further models of mmpretrain.
Run it in the environment that benchmarks/peers.sh makes, after

    pip install --no-deps lightning==2.6.6 torchmetrics==1.9.0 lightning-utilities==0.15.3 mmengine==0.10.7 \
        mmcv-lite==2.2.0 mmpretrain==1.2.0 addict yapf termcolor mat4py modelindex platformdirs importlib-metadata \
        zipp opencv-python-headless
    python tests/golden/record_trainers.py
"""

import mmpretrain_shim  # noqa: F401  leaves out parts of mmpretrain that do not import
import peers_shim  # noqa: F401  declares what torchvision's library would, so that it imports on a CPU

# isort: split
import copy
import shutil
import tempfile
from pathlib import Path

import lightning.pytorch as pl
import mmpretrain.models  # noqa: F401  registers them
import numpy as np
import timm
import torch
import transformers
from lightning.pytorch.callbacks import EMAWeightAveraging, ModelCheckpoint
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmengine.runner import Runner
from mmpretrain.registry import DATASETS, MODELS
from mmpretrain.structures import DataSample
from torch import nn

FOLDER = Path(__file__).parent / "trainers"
SIZES = ((16, 16), (8, 24))
CLASSES = ("ant", "bee", "cat", "dog", "elk")
ARCH = {"embed_dims": 16, "num_layers": 2, "num_heads": 4, "feedforward_channels": 32}
HEAD = {"type": "VisionTransformerClsHead", "num_classes": 5, "in_channels": 16}
LINEAR = {"type": "LinearClsHead", "num_classes": 5, "in_channels": 16}
COLOURS = {"num_classes": 5, "mean": [123.675, 116.28, 103.53], "std": [58.395, 57.12, 57.375], "to_rgb": True}
PIPELINE = [
    {"type": "LoadImageFromFile"},
    {"type": "ResizeEdge", "scale": 20, "edge": "short", "backend": "pillow", "interpolation": "bicubic"},
    {"type": "CenterCrop", "crop_size": 16},
    {"type": "PackInputs"},
]


def classifier(**changes) -> dict:
    """Settings of a small model of mmpretrain."""
    neck, head = changes.pop("neck", None), changes.pop("head", HEAD)
    backbone = {"type": "VisionTransformer", "arch": ARCH, "img_size": 16, "patch_size": 4} | changes
    return {"type": "ImageClassifier", "backbone": backbone, "neck": neck, "head": head}


MODELS_OF_MM = {
    "plain": classifier(),
    "layer_scale": classifier(layer_scale_init_value=0.1),
    "mean": classifier(out_type="avg_featmap", final_norm=False, head=LINEAR),
    "mean_by_neck": classifier(out_type="featmap", neck={"type": "GlobalAveragePooling"}, head=LINEAR),
    "distilled": classifier(type="DistilledVisionTransformer", head=HEAD | {"type": "DeiTClsHead"}),
    "clip": classifier(pre_norm=True, layer_cfgs={"act_cfg": {"type": "QuickGELU"}}),
    "epsilon": classifier(norm_cfg={"type": "LN", "eps": 1e-3}),
    "representation": classifier(head=HEAD | {"hidden_dim": 12}),
    "swiglu": classifier(layer_scale_init_value=0.1, layer_cfgs={"ffn_type": "swiglu_fused"}),
    "no_qkv_bias": classifier(qkv_bias=False),
}


@torch.no_grad()
def randomised(model: nn.Module) -> nn.Module:
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.add_(torch.empty_like(parameter).uniform_(-0.3, 0.3, generator=generator))
        parameter.copy_(parameter.half().float())
    return model.eval()


@torch.no_grad()
def answers(model: nn.Module, sizes=SIZES) -> dict[str, np.ndarray]:
    """Images and outputs at several sizes."""
    values = {}
    for height, width in sizes:
        images = torch.randn(2, 3, height, width, generator=torch.Generator().manual_seed(1)).half()
        features = model.extract_feat(images.float()) if hasattr(model, "extract_feat") else None
        outputs = model(images.float()) if features is None else model.head(features)
        values[f"images:{height}x{width}"] = images.numpy()
        values[f"outputs:{height}x{width}"] = outputs.numpy()
    return values


def record_models() -> None:
    for name, settings in MODELS_OF_MM.items():
        model = randomised(MODELS.build(copy.deepcopy(settings)))
        text = Config({"model": settings, "data_preprocessor": COLOURS, "test_pipeline": PIPELINE}).pretty_text
        weights = {f"weights:{key}": value.half().numpy() for key, value in model.state_dict().items()}
        np.savez_compressed(FOLDER / f"mm_{name}.npz", config=np.array(text), **weights, **answers(model))


@DATASETS.register_module()
class Noise(torch.utils.data.Dataset):
    """Four images of noise."""

    metainfo = {"classes": CLASSES}  # noqa: RUF012

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> dict:
        sample = DataSample()
        sample.set_gt_label(index)
        generator = torch.Generator().manual_seed(index)
        return {
            "inputs": torch.randint(0, 255, (3, 16, 16), dtype=torch.uint8, generator=generator),
            "data_samples": sample,
        }


def record_runs(folder: Path) -> None:
    """Train for two steps with mmengine's Runner, without and with an average of the weights."""
    for name, hooks in {"mm_run": [], "mm_run_averaged": [{"type": "EMAHook", "momentum": 0.3}]}.items():
        settings = {
            "model": classifier(),
            "data_preprocessor": COLOURS,
            "test_pipeline": PIPELINE,
            "work_dir": str(folder / name),
            "default_scope": "mmpretrain",
            "train_dataloader": {
                "batch_size": 2,
                "num_workers": 0,
                "dataset": {"type": "Noise"},
                "sampler": {"type": "DefaultSampler", "shuffle": True},
            },
            "train_cfg": {"by_epoch": True, "max_epochs": 1},
            "optim_wrapper": {"type": "OptimWrapper", "optimizer": {"type": "SGD", "lr": 0.5}},
            "param_scheduler": [{"type": "LinearLR", "start_factor": 0.1, "begin": 0, "end": 1}],
            "custom_hooks": hooks,
            "log_level": "ERROR",
            "randomness": {"seed": 0},
        }
        Runner.from_cfg(Config(settings)).train()
        shutil.copy(folder / name / "epoch_1.pth", FOLDER / f"{name}.pth")
        model = MODELS.build(classifier())
        model.load_state_dict(torch.load(FOLDER / f"{name}.pth", weights_only=False)["state_dict"])
        np.savez_compressed(FOLDER / f"{name}.outputs.npz", **answers(model.eval()))


class Lit(pl.LightningModule):
    """A module as people write them: a model of a library under a name, hyperparameters, a loss with weights."""

    def __init__(self, kind: str = "timm", name: str = "model", lr: float = 0.5) -> None:
        super().__init__()
        self.save_hyperparameters()
        sizes = {"image_size": 16, "patch_size": 4}
        if kind == "timm":
            model = timm.models.VisionTransformer(
                img_size=16, patch_size=4, embed_dim=16, depth=2, num_heads=4, mlp_ratio=2, num_classes=5
            )
        else:
            config = transformers.ViTConfig(
                hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=32, num_labels=5, **sizes
            )
            model = transformers.ViTForImageClassification(config)
        setattr(self, name, model)
        self.lr = lr
        self.criterion = nn.CrossEntropyLoss(weight=torch.ones(5))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        outputs = getattr(self, self.hparams.name)(images)
        return outputs if isinstance(outputs, torch.Tensor) else outputs.logits

    def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        loss = self.criterion(self(batch[0]), batch[1])
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=self.lr)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)}


def record_lightning(folder: Path) -> None:
    cases = {
        "lightning": (Lit(), []),
        "lightning_averaged": (Lit(name="net"), [EMAWeightAveraging(decay=0.5)]),
        "lightning_transformers": (Lit(kind="transformers"), []),
    }
    data = torch.utils.data.TensorDataset(torch.randn(4, 3, 16, 16), torch.arange(4))
    for name, (module, callbacks) in cases.items():
        saver = ModelCheckpoint(dirpath=folder / name, monitor="loss", save_last=True)
        trainer = pl.Trainer(
            max_epochs=1,
            accelerator="cpu",
            devices=1,
            logger=False,
            enable_progress_bar=False,
            callbacks=[saver, *callbacks],
            log_every_n_steps=1,
        )
        trainer.fit(module, torch.utils.data.DataLoader(data, batch_size=2))
        shutil.copy(saver.last_model_path, FOLDER / f"{name}.ckpt")
        fresh = Lit(**module.hparams)
        fresh.load_state_dict(torch.load(FOLDER / f"{name}.ckpt", weights_only=False)["state_dict"])
        np.savez_compressed(FOLDER / f"{name}.outputs.npz", **answers(fresh.eval(), SIZES[:1]))


if __name__ == "__main__":
    torch.manual_seed(0)
    init_default_scope("mmpretrain")
    FOLDER.mkdir(exist_ok=True)
    record_models()
    with tempfile.TemporaryDirectory() as folder:
        record_runs(Path(folder))
        record_lightning(Path(folder))
    print(sum(file.stat().st_size for file in FOLDER.iterdir()) // 1024, "KiB")
