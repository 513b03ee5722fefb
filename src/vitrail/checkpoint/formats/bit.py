"""BiT's ResNets, in Google's `.npz` and in timm's state dict."""

from pathlib import Path
from typing import Any

from vitrail.base.files import atomic_write
from vitrail.checkpoint.archive import write_archive
from vitrail.checkpoint.contents import Contents
from vitrail.checkpoint.formats.abilities import Abilities
from vitrail.checkpoint.formats.folder import setting, write_state
from vitrail.checkpoint.formats.format import Format, Weights
from vitrail.checkpoint.formats.timm_settings import from_config, read_labels
from vitrail.checkpoint.infer import ask_pixels, tell_stages
from vitrail.checkpoint.layout import (
    KERNEL_1X1_HWIO,
    KERNEL_1X1_OIHW,
    KERNEL_HWIO,
    Entry,
    Layout,
    named,
    read_layout,
    write_layout,
)
from vitrail.data.preprocessing import preset
from vitrail.model.resnet import ResNetConfig

_COMMON: dict[str, Any] = {"norm_groups": 32, "norm_eps": 1e-5, "standardisation": "sqrt-var-eps"}
_GOOGLE_NUMERICS = {**_COMMON, "standardisation_eps": 1e-10}
_TIMM_NUMERICS = {**_COMMON, "standardisation_eps": 1e-8}

_ROOT = "resnet/root_block/standardized_conv2d/kernel"
_CONV = "standardized_conv2d/kernel"


def recognises_google(names: set[str]) -> bool:
    """Return whether a file is one of Google's BiT `.npz`."""
    return _ROOT in names


def recognises_timm(names: set[str]) -> bool:
    """Return whether a state dict is a pre-activation ResNet of timm."""
    return {"stem.conv.weight", "stages.0.blocks.0.conv1.weight"} <= names


def read_google(weights: Weights) -> Contents:
    """Read Google's `.npz`."""
    source = weights.source
    _, _, channels, width = source.shape(_ROOT, 4)
    head = "resnet/head/conv2d/kernel"
    config = ResNetConfig(
        blocks=tell_stages(source, r"resnet/block(\d+)/unit(\d+)/"),
        width=width,
        channels=channels,
        num_classes=source.shape(head, 4)[3] if head in source else 0,
        image_size=weights.hints.get("image_size", (224, 224)),
        **_GOOGLE_NUMERICS,
    )
    tensors = read_layout(google_layout(config.blocks), source, config, "the BiT ResNet that its tensors describe")
    pixels = preset("google", image_size=config.image_size, channels=channels)
    return Contents(format="google", config=config, tensors=tensors, preprocessing=pixels)


def read_timm(weights: Weights) -> Contents:
    """Read timm's state dict, with the `config.json` beside it if there is one."""
    source, settings = weights.source, weights.settings
    size = setting(settings, "pretrained_cfg", dict, {}).get("input_size")
    known = tuple(size[1:]) if isinstance(size, list) and len(size) == 3 else (224, 224)
    width, channels, _, _ = source.shape("stem.conv.weight", 4)
    config = ResNetConfig(
        blocks=tell_stages(source, r"stages\.(\d+)\.blocks\.(\d+)\."),
        width=width,
        channels=channels,
        num_classes=source.shape("head.fc.weight", 4)[0] if "head.fc.weight" in source else 0,
        image_size=weights.hints.get("image_size", known),
        **_TIMM_NUMERICS,
    )
    tensors = read_layout(timm_layout(config.blocks), source, config, "the timm ResNet that its tensors describe")
    published = setting(settings, "pretrained_cfg", dict, {})
    stated = published.get("mean") is not None
    return Contents(
        format="timm",
        config=config,
        tensors=tensors,
        labels=read_labels(settings.get("label_names"), config.num_classes),
        preprocessing=from_config(published, config.image_size, channels) if stated else None,
        doubt=None if stated else ask_pixels(source.origin, "timm's ResNets differ in how they crop"),
    )


def write_google(contents: Contents, path: Path) -> Contents:
    """Write Google's `.npz`."""
    assert isinstance(contents.config, ResNetConfig)  # noqa: S101 - the format holds no others
    with atomic_write(path) as file:
        write_archive(file, write_layout(google_layout(contents.config.blocks), contents.tensors))
    return contents


def write_timm(contents: Contents, path: Path) -> Contents:
    """Write timm's state dict."""
    assert isinstance(contents.config, ResNetConfig)  # noqa: S101 - the format holds no others
    write_state(write_layout(timm_layout(contents.config.blocks), contents.tensors), path, contents)
    return contents


def google_layout(blocks: tuple[int, ...]) -> Layout:
    """List every tensor of Google's file, whose stages and units count from 1 and whose convolutions are a, b, c."""
    table = [
        Entry("root.weight", (_ROOT,), KERNEL_HWIO),
        *_google_norm("norm", "resnet/group_norm"),
        Entry("linear.weight", ("resnet/head/conv2d/kernel",), KERNEL_1X1_HWIO),
        Entry("linear.bias", ("resnet/head/conv2d/bias",)),
    ]
    for stage, units in enumerate(blocks):
        for unit in range(units):
            ours, theirs = f"stages.{stage}.{unit}", f"resnet/block{stage + 1}/unit{unit + 1:02d}"
            table.append(Entry(f"{ours}.shortcut.weight", (f"{theirs}/a/proj/{_CONV}",), KERNEL_HWIO))
            for number, letter in enumerate("abc", start=1):
                table.append(Entry(f"{ours}.conv{number}.weight", (f"{theirs}/{letter}/{_CONV}",), KERNEL_HWIO))
                table += _google_norm(f"{ours}.norm{number}", f"{theirs}/{letter}/group_norm")
    return table


def timm_layout(blocks: tuple[int, ...]) -> Layout:
    """List every tensor of timm's state dict."""
    table = [
        *named("root", "stem.conv", parts=("weight",)),
        *named("norm", "norm"),
        Entry("linear.weight", ("head.fc.weight",), KERNEL_1X1_OIHW),
        Entry("linear.bias", ("head.fc.bias",)),
    ]
    for stage, units in enumerate(blocks):
        for unit in range(units):
            ours, theirs = f"stages.{stage}.{unit}", f"stages.{stage}.blocks.{unit}"
            table += named(f"{ours}.shortcut", f"{theirs}.downsample.conv", parts=("weight",))
            for number in (1, 2, 3):
                table += named(f"{ours}.conv{number}", f"{theirs}.conv{number}", parts=("weight",))
                table += named(f"{ours}.norm{number}", f"{theirs}.norm{number}")
    return table


def _google_norm(ours: str, theirs: str) -> Layout:
    return [Entry(f"{ours}.weight", (f"{theirs}/gamma",)), Entry(f"{ours}.bias", (f"{theirs}/beta",))]


GOOGLE = Format(
    name="google",
    suffixes=(".npz",),
    abilities=Abilities(library="Google's BiT", kinds=("resnet",), numerics=_GOOGLE_NUMERICS),
    recognises=recognises_google,
    read=read_google,
    write=write_google,
)
TIMM = Format(
    name="timm",
    suffixes=(".safetensors",),
    abilities=Abilities(library="timm's BiT", kinds=("resnet",), numerics=_TIMM_NUMERICS),
    recognises=recognises_timm,
    read=read_timm,
    write=write_timm,
)
