"""Models as others publish them, and what `vitrail pull` writes down about them: as `specimens.py`."""

import io
import json
import os
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any

import mutations as m
import numpy as np
import torch
from safetensors.torch import load_file, save
from specimens import Read, Specimen
from stored import checkpoint, contents
from torch import Tensor

import vitrail
from vitrail.published.cache import RECORD, Cache
from vitrail.published.download import Download, Patience
from vitrail.published.find import find_published
from vitrail.published.pull import source_of
from vitrail.published.record import Record, facts_of, read_digests, write_record
from vitrail.runtime.zeroshot import read_text_embeddings

DIM, SIDE, PATCH = 16, 16, 4
HINTS = {"num_heads": 2, "gelu": "erf", "norm_eps": 1e-6, "pool": "class-token"}
ADDRESS = "https://example.org/tiny.safetensors"
INSIDE = m.any_of(m.zipped({"data.pkl": m.pickled}))


def released() -> list[Specimen]:
    """Everything that comes with a published model."""
    return [*towers(), *shards(), *trained(), *texts(), *records()]


def towers() -> list[Specimen]:
    """Image towers of OpenCLIP: a file, and a folder with its settings."""
    tower = _tower()
    vision = {"image_size": SIDE, "layers": 1, "width": DIM, "head_width": DIM // 2, "patch_size": PATCH}
    settings = {
        "model_cfg": {"embed_dim": 8, "quick_gelu": True, "vision_cfg": vision},
        "preprocess_cfg": {"mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25], "interpolation": "bicubic"},
    }
    whole = {f"visual.{name}": value for name, value in tower.items()} | {"logit_scale": torch.zeros(())}
    folder = {
        "open_clip_config.json": json.dumps(settings).encode(),
        "open_clip_model.safetensors": save(whole),
    }
    read = checkpoint("x", num_heads=2, gelu="quick")
    header = m.any_of(m.safetensors(sign=False))
    return [
        Specimen(name="openclip", files={"x": save(tower)}, mutate=header, read=read),
        *(
            Specimen(
                name=f"openclip {first}",
                files={first: folder[first]} | folder,
                mutate=m.json_file if first.endswith("json") else header,
                read=checkpoint(""),
            )
            for first in folder
        ),
    ]


def _tower() -> dict[str, Tensor]:
    shapes: dict[str, tuple[int, ...]] = {
        "conv1.weight": (DIM, 3, PATCH, PATCH),
        "class_embedding": (DIM,),
        "positional_embedding": ((SIDE // PATCH) ** 2 + 1, DIM),
        "proj": (DIM, 8),
    }
    block: dict[str, tuple[int, ...]] = {"ln_1": (DIM,), "ln_2": (DIM,), "attn.out_proj": (DIM, DIM)}
    block |= {"mlp.c_fc": (32, DIM), "mlp.c_proj": (DIM, 32)}
    norms: dict[str, tuple[int, ...]] = {"ln_pre": (DIM,), "ln_post": (DIM,)}
    for name, shape in (norms | {f"transformer.resblocks.0.{key}": value for key, value in block.items()}).items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    shapes |= {
        f"transformer.resblocks.0.attn.in_proj_{part}": (48, *rest) for part, rest in (("weight", (DIM,)), ("bias", ()))
    }
    return {name: torch.full(shape, 0.1) for name, shape in shapes.items()}


def _model() -> Any:
    sizes = {
        "dim": DIM,
        "depth": 1,
        "num_heads": 2,
        "mlp_dim": 16,
        "patch_size": (PATCH,) * 2,
        "image_size": (SIDE,) * 2,
    }
    model = vitrail.build(vitrail.ViTConfig(**sizes, num_classes=3, gelu="erf"), seed=0)
    torch.nn.init.normal_(model.head.linear.weight)
    return model


def shards() -> list[Specimen]:
    """A model of transformers in two files with an index, as safetensors and as torch's files."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        vitrail.save(
            _model(), folder / "hf", to="huggingface", preprocessing=vitrail.Preprocessing(image_size=(SIDE, SIDE))
        )
        weights = load_file(folder / "hf" / "model.safetensors")
        beside = {file: data for file, data in contents(folder / "hf").items() if file.endswith("json")}
    names = sorted(weights)
    halves = {f"model-0000{half + 1}-of-00002": names[half::2] for half in range(2)}
    found = []
    for suffix, index, pack, change in (
        ("safetensors", "model.safetensors.index.json", save, m.any_of(m.safetensors(sign=False))),
        ("bin", "pytorch_model.bin.index.json", torch_bytes, INSIDE),
    ):
        files = {f"{half}.{suffix}": pack({key: weights[key] for key in keys}) for half, keys in halves.items()}
        places = {key: f"{half}.{suffix}" for half, keys in halves.items() for key in keys}
        files[index] = json.dumps({"metadata": {"total_size": 1}, "weight_map": places}).encode()
        read = checkpoint("", pickle=suffix == "bin", num_heads=2)
        for first in (index, next(iter(files))):
            mutate = m.json_file if first == index else change
            found.append(
                Specimen(
                    name=f"shards {suffix} {'index' if first == index else 'file'}",
                    files={first: files[first]} | files | beside,
                    mutate=mutate,
                    read=read,
                )
            )
    return found


def torch_bytes(value: Any, *, zipped: bool = True) -> bytes:
    """What torch.save writes."""
    file = io.BytesIO()
    torch.save(value, file, _use_new_zipfile_serialization=zipped)
    return file.getvalue()


def trained() -> list[Specimen]:
    """Checkpoints of training, as programs write them, in both of torch's layouts."""
    with tempfile.TemporaryDirectory() as name:
        vitrail.save(_model(), Path(name) / "x.safetensors", to="timm")
        state = load_file(Path(name) / "x.safetensors")
    optimizer = {"state": {0: {"exp_avg": torch.zeros(3), "step": torch.tensor(1.0)}}, "param_groups": [{"lr": 0.1}]}
    below = {f"module.backbone.{key}": value for key, value in state.items()}
    programs: dict[str, Any] = {
        "dino": {"student": below, "teacher": below, "optimizer": optimizer, "args": Namespace(lr=np.float64(0.1))},
        "mae": {"model": state | {"mask_token": torch.zeros(1, 1, DIM)}, "args": Namespace(mask_ratio=0.75)},
        "timm": {"arch": "vit_x", "state_dict": state, "state_dict_ema": state, "args": Namespace(gp=None, mean=None)},
        "lightning": {
            "pytorch-lightning_version": "2.0",
            "state_dict": {f"model.{key}": value for key, value in state.items()},
            "hyper_parameters": {"lr": 0.1},
        },
        "compiled": {f"_orig_mod.{key}": value for key, value in state.items()},
    }
    return [
        Specimen(
            name=f"training {program}{'' if zipped else ' older'}",
            files={"x": torch_bytes(value, zipped=zipped)},
            mutate=INSIDE if zipped else m.any_of(m.pickled),
            read=checkpoint(pickle=True, **HINTS),
        )
        for program, value in programs.items()
        for zipped in (True, False)
    ]


def texts() -> list[Specimen]:
    """Embeddings of texts, which become classes."""
    file = io.BytesIO()
    vectors = np.random.default_rng(0).normal(size=(3, 8)).astype(np.float32)
    np.savez(file, embeddings=vectors, names=np.array(["ant", "bee", "cat"]), scale=np.float32(90.0))
    change = m.any_of(m.zipped({".npy": m.npy}))
    return [Specimen(name="zero-shot npz", files={"x.npz": file.getvalue()}, mutate=change, read=_texts)]


def _texts(folder: Path) -> str:
    texts = read_text_embeddings(folder / "x.npz")
    whole = texts.directions.isfinite().all() and len(texts.names) == len(texts.vectors)
    return "" if whole else "embeddings that are not finite, or without names"


def records() -> list[Specimen]:
    """The cache of pulled models: what was pulled, the digests of its source, what was received of a download."""
    with tempfile.TemporaryDirectory() as name:
        cache, source = Cache(folder=Path(name)), source_of(ADDRESS)
        home = cache.home(source)
        home.mkdir(parents=True)
        vitrail.save(_model(), home / source.file)
        facts = {source.file: facts_of(home / source.file)}
        record = Record(name=source.name, place=source.place, folder=str(home), main=source.file, files=facts)
        write_record(record, home / RECORD)
        digests = cache.digests(source).relative_to(name)
        tag = (home / f"{source.file}.part.json").relative_to(name)
        files = {path: data.replace(f"{name}/".encode(), b"") for path, data in contents(Path(name)).items()}
    files |= {
        str(digests): json.dumps({source.file: facts[source.file].sha256}).encode(),
        str(tag): json.dumps({"address": ADDRESS, "validator": '"one"', "name": ADDRESS}).encode(),
        str(tag).removesuffix(".json"): b"half of it",
    }
    first = next(file for file in files if file.endswith(RECORD))
    readers: dict[str, Read] = {first: _pulled, str(digests): _digests, str(tag): _part}
    return [
        Specimen(
            name=f"cache {Path(file).name[-12:]}", files={file: files[file]} | files, mutate=m.json_file, read=read
        )
        for file, read in readers.items()
    ]


def _pulled(folder: Path) -> str:
    """List the cache and load what lies there; a model of another size than was recorded is not taken."""
    before = os.environ.get("VITRAIL_CACHE"), Path.cwd()
    os.environ["VITRAIL_CACHE"] = str(folder)
    os.chdir(folder)
    try:
        cache = Cache.usual()
        sizes = [record.size for record in cache.records()]
        cache.unfinished()
        place = find_published(ADDRESS)
        assert place is not None
        vitrail.load(ADDRESS)
        return "" if place.record.whole() and all(size >= 0 for size in sizes) else "a record of other files"
    finally:
        os.chdir(before[1])
        os.environ.pop("VITRAIL_CACHE")
        if before[0] is not None:
            os.environ["VITRAIL_CACHE"] = before[0]


def _digests(folder: Path) -> str:
    table = read_digests(next((folder / "digests").iterdir()))
    return "" if all(isinstance(value, str) for value in table.values()) else "digests that are not text"


def _part(folder: Path) -> str:
    """Open what was received: it is taken with the server's name for it, and else begun again."""
    home = next((folder / "pulled").iterdir())
    path = home / source_of(ADDRESS).file
    Cache(folder=folder).unfinished()
    download = Download(ADDRESS, path, title="tiny", patience=Patience(), note=lambda _: None)
    with download._opened():
        whole = download.received in (0, 10) and (download.validator is not None or not download.received)
    return "" if whole else f"{download.received} bytes of 10 that are there"
