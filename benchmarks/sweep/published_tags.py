"""timm's published files as bare state dicts, without an answer: what is told of each, or asked for.

Every tag of timm's list stands for a published file. Its tensors are taken as zeros of their full shapes, so that the
sizes are those of the file; what is told (heads, GELU, pooling, image size, pixels) must be what timm has, or be asked.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import timm
import torch
from of_timm import MODULES
from timm.models import get_pretrained_cfg
from verdicts import Verdict

from vitrail import VitrailError
from vitrail.base.tensors import Spec, TensorSource
from vitrail.checkpoint.contents import Contents
from vitrail.checkpoint.formats import timm as ours
from vitrail.checkpoint.formats.format import Weights

LIBRARY = "timm, published tags"


def names() -> list[str]:
    own = {name for module in MODULES for name in timm.list_models(module=module)}
    return [tag for tag in timm.list_pretrained() if tag.partition(".")[0] in own]


@cache
def _shapes(name: str, classes: int) -> dict[str, torch.Size]:
    with torch.device("meta"):
        model = timm.create_model(name, num_classes=classes)
    return {key: value.shape for key, value in model.state_dict().items()}


def verdicts(name: str, _: Path) -> Iterator[Verdict]:
    config = get_pretrained_cfg(name)
    try:
        shapes = _shapes(name.partition(".")[0], config.num_classes)
    except Exception as error:
        yield Verdict(LIBRARY, name, "bare", "unbuilt", str(error)[:100])
        return
    try:
        told = _read(shapes, {})
        known = _read(shapes, {"architecture": name})
    except VitrailError as error:
        yield Verdict(LIBRARY, name, "bare", _asked_or_refused(str(error)), str(error).splitlines()[0])
        return
    except Exception as error:
        yield Verdict(LIBRARY, name, "bare", "wrong", f"{type(error).__name__}: {error}")
        return
    yield Verdict(LIBRARY, name, "bare", *_compared(told, known, config))


def _read(shapes: dict[str, torch.Size], hints: dict[str, Any]) -> Contents:
    specs = {key: Spec(tuple(shape), torch.float32) for key, shape in shapes.items()}
    source = TensorSource(origin="the file", specs=specs, fetch=lambda key: torch.zeros(specs[key].shape))
    if not ours.recognises(set(specs)):
        raise VitrailError("the file is not of timm's layout")
    return ours.read(Weights(source=source, hints=hints))


def _asked_or_refused(sentence: str) -> str:
    return "asked" if "; give " in sentence else "refused"


def _compared(told: Contents, known: Contents, config: Any) -> tuple[str, str]:
    """Hold what is told without an answer to what the name answers, and pixels to timm's own."""
    if told.config != known.config:
        return "wrong", f"{told.config} and not {known.config}"
    for contents in (known, told):
        pixels = contents.preprocessing
        if pixels is None:
            if contents is known:
                return "wrong", f"its name does not tell its pixels: {contents.doubt}"
            return "asked", str(contents.doubt)
        mode = "squash" if pixels.geometry == "square" else "center"
        given = (pixels.mean, pixels.std, pixels.interpolation, pixels.crop_fraction, mode)
        wanted = (tuple(config.mean), tuple(config.std), config.interpolation, config.crop_pct, config.crop_mode)
        if given != wanted:
            return "wrong", f"{given} and not {wanted}"
    size = tuple(config.input_size[1:])
    if known.config.image_size != size:
        return "wrong", f"images of {known.config.image_size}, not {size}"
    return "exact", ""
