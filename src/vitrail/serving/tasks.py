"""The work of a worker: decode one image, classify a batch, explain one answer. Knows nothing of processes or HTTP."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vitrail.analysis.methods import (
    MethodSettings,
    applicable,
    best_method,
    check_method,
    check_settings,
    heat_maps,
    is_signed,
    model_config,
    needs_class,
)
from vitrail.analysis.query import patch_attention
from vitrail.base.errors import ConfigError, ImageError, ImageFormatError, ImageSizeError
from vitrail.base.settings import to_dict
from vitrail.base.shapes import PixelBatch
from vitrail.data.pixels.decode import decode, to_channels
from vitrail.data.transforms import preprocess
from vitrail.prediction.answers import most_probable
from vitrail.prediction.classifier import Classifier
from vitrail.runtime.engine import TorchEngine
from vitrail.serving.frames import Head
from vitrail.serving.settings import ModelSource

FORMATS = "JPEG, PNG, WEBP, BMP, GIF or TIFF"
NOT_FINITE = "the model's scores for it are not finite"


@dataclass(frozen=True, kw_only=True, eq=False)
class Tasks:
    """Every model of the server, ready to answer."""

    classifiers: Mapping[str, Classifier]
    explainers: Mapping[str, Classifier]
    """The same models in torch, since explanations need what is inside; the same object where torch answers."""
    max_pixels: int

    @classmethod
    def load(cls, sources: Mapping[str, ModelSource], *, max_pixels: int) -> "Tasks":
        """Read the models, without computing anything: the process may be about to fork."""
        classifiers = {name: Classifier.load(source.path, **_reading(source)) for name, source in sources.items()}
        explainers = {name: _explainer(classifiers[name], source) for name, source in sources.items()}
        return cls(classifiers=classifiers, explainers=explainers, max_pixels=max_pixels)

    def probe(self, name: str) -> None:
        """Put one grey image through a model."""
        classifier = self.classifiers[name]
        height, width = classifier.preprocessing.image_size
        grey = torch.full((1, classifier.preprocessing.channels, height, width), 127, dtype=torch.uint8)
        if not classifier.scores(grey).isfinite().all():
            raise ConfigError(f"the model {name} answers with numbers that are not finite; `vitrail verify` checks it.")

    def describe(self, name: str) -> Head:
        """Return the facts about a model that clients and the server itself need."""
        classifier = self.classifiers[name]
        engine, inner, pixels = classifier.engine, self.explainers[name].engine, classifier.preprocessing
        config = model_config(inner)
        attends = config is not None and config.attention_shape[0] > 0
        return {
            "name": name,
            "digest": classifier.info.digest or engine.digest,
            "labels": list(classifier.labels),
            "named": list(classifier.labels) != [str(number) for number in range(len(classifier.labels))],
            "preprocessing": to_dict(pixels),
            "provenance": dict(classifier.info.provenance),
            "feature_width": engine.feature_width,
            "device": str(engine.device),
            "dtype": str(engine.dtype).removeprefix("torch."),
            "methods": list(applicable(inner)),
            "class_methods": [method for method in applicable(inner) if needs_class(method)],
            "default_method": best_method(inner)[0],
            "grid": list(config.grid) if config is not None and attends and config.grid is not None else None,
            "blocks": config.attention_shape[0] if config is not None else 0,
            "heads": config.attention_shape[1] if config is not None else 0,
            "notes": list(classifier.notes),
        }

    def prepare(self, name: str, encoded: bytes) -> tuple[Head, bytes]:
        """Decode an image and bring it to the model's size; or say what is wrong with it, in a sentence of ours."""
        preprocessing = self.classifiers[name].preprocessing
        try:
            whole = to_channels(decode(encoded, max_pixels=self.max_pixels), preprocessing.channels)
            pixels = preprocess(whole, preprocessing)
        except ImageFormatError:
            return {"wrong": [415, f"it is not a {FORMATS} image."]}, b""
        except ImageSizeError:
            return {"wrong": [413, f"it has more pixels than the {self.max_pixels:,} that are decoded."]}, b""
        except ImageError:  # without the decoder's own words, in which there may be addresses
            return {"wrong": [422, "it is broken or truncated, or has a form that is not read."]}, b""
        height, width = whole.shape[1:]
        window = preprocessing.window(height, width)
        return {"height": height, "width": width, "window": list(window)}, _bytes_of(pixels)

    def compute(self, name: str, pixels: PixelBatch, tops: list[int], features: list[int]) -> tuple[Head, bytes]:
        """Answer for a batch: the `tops[i]` most probable classes of image i, and the features of some images."""
        classifier = self.classifiers[name]
        answers = most_probable(classifier.scores(pixels), max(tops))
        head: Head = {
            "answers": [
                {"wrong": [422, f"{NOT_FINITE}."]} if isinstance(answer, ImageError) else {"top": answer[:top]}
                for answer, top in zip(answers, tops, strict=True)
            ]
        }
        if not features:
            return head, b""
        return head, _float_bytes(classifier.engine.features(pixels[features]))

    def explain(self, name: str, pixels: PixelBatch, asked: Head) -> tuple[Head, bytes]:
        """Answer for one image, with a map of what the model looked at."""
        classifier = self.classifiers[name]
        engine, top = self.explainers[name].engine, asked["top"]
        (answer,) = most_probable(classifier.scores(pixels), len(classifier.labels))
        if isinstance(answer, ImageError):
            return {"wrong": [422, f"{NOT_FINITE}."]}, b""
        method = asked["method"] if asked["method"] != "auto" else best_method(engine)[0]
        number = answer[0][0] if asked["class"] is None else asked["class"]
        settings = MethodSettings(layer=asked["layer"], head=asked["head"])
        try:
            check_method(method, engine)
            check_settings(settings, (method,), engine)
            maps = self._maps(engine, method, pixels, number, settings, asked["patch"])
        except ConfigError as error:
            return {"refused": str(error)}, b""
        head: Head = {
            "top": answer[:top],
            "map": {
                "method": method,
                "class": number if needs_class(method) else None,
                "patch": asked["patch"],
                "probability": dict(answer)[number],
                "signed": is_signed(method),
                "rows": maps.shape[1],
                "columns": maps.shape[2],
            },
        }
        features = _float_bytes(classifier.engine.features(pixels)) if asked["features"] else b""
        return head, _float_bytes(maps) + features

    def _maps(
        self, engine: Any, method: Any, pixels: PixelBatch, number: int, settings: MethodSettings, patch: int | None
    ) -> Tensor:
        if patch is None:
            return heat_maps(method, engine, pixels, torch.tensor([number]), settings).maps
        if method != "attention" or not isinstance(engine, TorchEngine):
            raise ConfigError(f"patch is {patch}, but only attention has a map of one patch; set explain=attention.")
        model = engine.model
        return patch_attention(model, engine.inputs(pixels), patch, block=settings.layer, head=settings.head)


def _reading(source: ModelSource) -> dict[str, Any]:
    """Return the keywords of a model; a compiled one, which pads to its batch, takes images singly on a CPU."""
    compiles = source.reading.get("engine") in ("compiled", "auto")
    on_cpu = source.reading.get("device") == "cpu" or not torch.cuda.is_available()
    return source.reading | ({"batch": 1} if compiles and on_cpu else {})


def _explainer(classifier: Classifier, source: ModelSource) -> Classifier:
    """Return what explains the answers of a classifier: itself, or the same weights in torch."""
    if isinstance(classifier.engine, TorchEngine) or source.reading.get("engine") is None:
        return classifier
    reading = {
        name: value
        for name, value in source.reading.items()
        if name not in ("engine", "precision", "calibrate", "merge_tokens")
    }
    return Classifier.load(source.path, **reading)


def batch_of(payload: bytes | bytearray, count: int, classifier: Classifier) -> PixelBatch:
    """Return the pixels of a message, as decoders lay them out: the channels of a pixel side by side."""
    height, width = classifier.preprocessing.image_size
    flat = torch.frombuffer(payload, dtype=torch.uint8)
    return flat.view(count, height, width, classifier.preprocessing.channels).permute(0, 3, 1, 2)


def _bytes_of(pixels: Tensor) -> bytes:
    return np.ascontiguousarray(pixels.permute(1, 2, 0).numpy()).tobytes()


def _float_bytes(values: Tensor) -> bytes:
    return np.ascontiguousarray(values.detach().float().cpu().numpy(), dtype="<f4").tobytes()
