"""Exported models, stored graphs, files of studies, and what a server reads: as `specimens.py`."""

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import mutations as m
import numpy as np
import onnx
import torch
from commands import STUDY
from specimens import Read, Specimen, picture
from stored import contents, write_photos

import vitrail
from vitrail.base.errors import InputError
from vitrail.model.contract import Model
from vitrail.runtime import stored_graph
from vitrail.runtime.card import KEY
from vitrail.runtime.digest import NO_DIGEST, signed
from vitrail.serving.bodies import uploads_of
from vitrail.serving.keys import read_keys
from vitrail.serving.refusals import Refusal
from vitrail.studies.lease import Lease
from vitrail.studies.plan import enter
from vitrail.studies.study import check_variants
from vitrail.studies.study_file import read_study

LABELS = ["ant", "bee", "cat"]
CLAIM = """[[claims]]
better = "some"
worse = "none"
"""
BOUNDARY = "multipart/form-data; boundary=here"
_photos = tempfile.TemporaryDirectory()  # a study knows its data by an absolute path
_DIGEST = re.compile(rb"vitrail-sha256-[0-9a-f]{64}")


def exported() -> list[Specimen]:
    """Everything that runtimes, studies and the server read."""
    return [*graphs(), *studies(), *requests()]


def _model() -> Model:
    model = vitrail.create("Ti/4", image_size=8, num_classes=3, dim=16, depth=1, num_heads=2, mlp_dim=16, seed=0)
    torch.nn.init.normal_(model.head.linear.weight)
    return model


def _in_fork(work: Callable[[], object]) -> None:
    """Do some work in another process: runtimes that have run do not outlive a fork."""
    process = os.fork()
    if not process:
        code = 1
        with contextlib.suppress(BaseException):
            work()
            code = 0
        os._exit(code)
    assert os.waitpid(process, 0)[1] == 0


def graphs() -> list[Specimen]:
    """Models as ONNX and for OpenVINO, those of other tools, and the graph that an engine stores."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def write() -> None:
            pixels = vitrail.Preprocessing(image_size=(8, 8))
            vitrail.save(_model(), folder / "model.safetensors", labels=LABELS, preprocessing=pixels)
            for out, raw in (("x.onnx", False), ("x.xml", False), ("raw.onnx", True)):
                vitrail.export(folder / "model.safetensors", folder / out, raw=raw, threads=1, note=str)
            os.environ["VITRAIL_CACHE"] = str(folder)
            _predict(folder, "model.safetensors", engine="onnxruntime")

        _in_fork(write)
        files = contents(folder)
    model = onnx.load_from_string(files["raw.onnx"])
    del model.metadata_props[:]
    xml, weights = files["x.xml"], files["x.bin"]
    stored = next(file for file in files if file.startswith("graphs/"))
    kept = {stored: files[stored], "model.safetensors": files["model.safetensors"]}
    return [
        Specimen(
            name="onnx",
            files={"x.onnx": files["x.onnx"]},
            mutate=m.any_of(m.fields(1)),
            read=classified("x.onnx"),
            signed=True,
        ),
        Specimen(name="onnx resigned", files={"x.onnx": files["x.onnx"]}, mutate=_onnx, read=classified("x.onnx")),
        Specimen(
            name="onnx of others",
            files={"x.onnx": model.SerializeToString()},
            mutate=m.any_of(m.fields(1)),
            read=classified("x.onnx", architecture="timm"),
        ),
        Specimen(
            name="openvino",
            files={"x.xml": xml, "x.bin": weights},
            mutate=m.any_of(m.fields(1)),
            read=classified("x.xml"),
            signed=True,
        ),
        Specimen(
            name="openvino weights",
            files={"x.bin": weights, "x.xml": xml},
            mutate=m.any_of(m.fields(4)),
            read=classified("x.xml"),
            signed=True,
        ),
        Specimen(
            name="openvino resigned",
            files={"x.xml": xml, "x.bin": weights},
            mutate=lambda data, chance: _signed(_xml(data, chance), weights),
            read=classified("x.xml"),
        ),
        Specimen(name="stored graph", files=kept, mutate=m.any_of(m.fields(1)), read=_same_answers),
    ]


def _predict(folder: Path, name: str, **settings: str) -> dict[str, float]:
    """Classify an image, and return the probability of each class."""
    pixels = np.arange(8 * 8 * 3, dtype=np.uint8).reshape(8, 8, 3)
    answer = vitrail.predict(folder / name, pixels, top=3, threads=1, device="cpu", note=str, **settings)  # type: ignore[call-overload]
    return dict(answer.top)


def classified(name: str, **settings: str) -> Read:
    """Classify an image with a graph: probabilities are finite and of three classes at most."""

    def read(folder: Path) -> str:
        answer = _predict(folder, name, **settings)
        whole = all(0 <= value <= 1 for value in answer.values()) and sum(answer.values()) < 1.01
        return "" if whole and answer else f"the probabilities {answer}"

    return read


def _same_answers(folder: Path) -> str:
    """Classify with the graph that is stored; one that would be made again, in seconds, counts as refused."""
    os.environ["VITRAIL_CACHE"] = str(folder)
    stored_graph.make_program = _refuse_program
    ours, theirs = (_predict(folder, "model.safetensors", engine=engine) for engine in ("onnxruntime", "torch"))
    near = all(abs(theirs[label] - value) < 1e-3 for label, value in ours.items())
    return "" if near else f"{ours}, not {theirs}"


def _refuse_program(_: object) -> NoReturn:
    raise InputError("the stored graph is damaged, and is made again.")


def _signed(content: bytes, *others: bytes) -> bytes:
    """Put the digest of an exported file right."""
    return signed([_DIGEST.sub(NO_DIGEST.encode(), content), *others])[0]


def _onnx(data: bytes, chance: m.Chance) -> bytes:
    """Change the facts, a number or a name of the graph, or any byte; with a right digest."""
    if chance.random() < 0.3:
        return _signed(m.any_of(m.fields(1))(data, chance))
    model = onnx.load_from_string(data)
    if chance.random() < 0.6:
        (facts,) = (entry for entry in model.metadata_props if entry.key == KEY)
        facts.value = m.json_file(facts.value.encode(), chance).decode(errors="replace")
    else:
        node = chance.choice(model.graph.node)
        match chance.randrange(4):
            case 0:
                node.op_type = chance.choice(("Add", "Loop", "MatMul", "Reshape", "Tile", "Expand", "Nowhere", ""))
            case 1:
                node.input[:] = [chance.choice(("", "image", node.output[0], *node.input)) for _ in node.input]
            case 2:
                weights = chance.choice(model.graph.initializer)
                weights.dims[:] = [chance.choice((0, 1, 2**31, 2**40, -1)) for _ in weights.dims]
            case 3:
                model.graph.output[0].name = chance.choice(("logits", "", "x", node.output[0]))
    return _signed(model.SerializeToString())


def _xml(data: bytes, chance: m.Chance) -> bytes:
    """Change an attribute of the graph, or its facts, which are JSON in XML."""
    places = list(re.finditer(rb'="([^"]*)"', data))
    place = chance.choice(places)
    value = chance.choice((b"", b"-1", b"0", b"%d" % 2**31, b"%d" % 2**63, b"x" * 3000, b"f16", b"&#0;", b"1,2"))
    begin, end = place.span(1)
    return m.raw(data, chance) if chance.random() < 0.3 else data[:begin] + value + data[end:]


def studies() -> list[Specimen]:
    """A study of one's own, the plan of its folder, a cell, and a claim; the whole folder, resumed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_photos(Path(_photos.name), broken=False)
        (folder / "x.toml").write_text(STUDY + CLAIM)
        with contextlib.chdir(folder):
            _study()
        claim = Lease(folder=folder / "claims").take()
        assert claim is not None
        files = contents(folder)
    plan, cell, held = "out/study.json", "out/cells/some-0/cell.json", f"claims/{claim.name}"
    return [
        Specimen(name="study toml", files={"x.toml": files["x.toml"]}, mutate=_toml, read=_variants),
        Specimen(
            name="study plan",
            files={"study.json": files[plan]},
            mutate=m.json_file,
            read=lambda at: str(enter(at) and ""),
        ),
        Specimen(name="study claim", files={held: files[held]}, mutate=m.json_file, read=_claimed),
        *(
            Specimen(
                name=f"study resumed {Path(file).name}",
                files={file: files[file]} | files,
                mutate=change,
                read=_resumed,
                slow=True,
            )
            for file, change in ((plan, m.json_file), (cell, m.json_file), ("x.toml", _toml))
        ),
    ]


def _study() -> vitrail.StudyResult:
    return vitrail.study("x.toml", _photos.name, steps=1, seeds=1, out="out", threads=1, device="cpu", note=str)


def _toml(data: bytes, chance: m.Chance) -> bytes:
    """Change a number, a name or a line; now and then nest it deep."""
    match chance.randrange(6):
        case 0:
            return data + b"x = " + b"[" * chance.choice((10, 1000, 100_000))
        case 1:
            return re.sub(rb"\d+\.\d+", b"9" * chance.choice((20, 400, 5000)), data, count=1)
        case 2:
            value = chance.choice((b"nan", b"inf", b"-1", b"1e308", b'""', b"[]", b"{}", b"true", b"1979-05-27"))
            return re.sub(rb"(?<= = )[^\n}]+", value, data, count=chance.choice((1, 2, 3, 9)))
        case 3:
            return data.replace(b"some", chance.choice((b"none", b'"a b"', b'"../x"', b'""', b'"\\u0000"')))
    return m.lines(data, chance)


def _variants(folder: Path) -> str:
    study = read_study(folder / "x.toml")
    variants = study.variants(None, [])  # type: ignore[arg-type]
    check_variants(study, variants)
    return "" if variants else "no variants"


def _claimed(folder: Path) -> str:
    Lease(folder=folder / "claims").take()
    return ""


def _resumed(folder: Path) -> str:
    """Resume a finished study; its cells are those of its variants, with figures that are finite."""
    with contextlib.chdir(folder):
        result = _study()
    names = {variant.name for variant in result.variants}
    finite = all(np.isfinite(value) for cell in result.cells for value in cell.figures.values())
    right = all(cell.variant in names and cell.seed == 0 for cell in result.cells)
    known = all(0 <= cell.figures.get("accuracy", 0) <= 1 for cell in result.cells)
    return "" if finite and right and known else f"the cells {result.cells}"


def requests() -> list[Specimen]:
    """The bodies of requests, and the file of keys."""
    parts = b"".join(
        b'--here\r\nContent-Disposition: form-data; name="file"; filename="%d.png"\r\n\r\n' % n + picture(n) + b"\r\n"
        for n in range(2)
    )
    body = json.dumps({"images": ["aGVsbG8=", {"name": "cat.png", "data": "data:image/png;base64,aGVsbG8="}]}).encode()
    return [
        Specimen(
            name="request json", files={"x": body}, mutate=m.json_file, read=lambda at: _uploads(at, "application/json")
        ),
        Specimen(
            name="request multipart",
            files={"x": parts + b"--here--\r\n"},
            mutate=m.any_of(m.lines),
            read=lambda at: _uploads(at, BOUNDARY),
        ),
        Specimen(
            name="request type",
            files={"x": BOUNDARY.encode(), "body": parts + b"--here--\r\n"},
            mutate=m.raw,
            read=lambda at: _uploads(at, (at / "x").read_bytes().decode("latin-1"), "body"),
        ),
        Specimen(
            name="keys",
            files={"x": b"0123456789abcdef0123\nfedcba98765432100123\n"},
            mutate=m.any_of(m.lines),
            read=lambda at: str(read_keys(str(at / "x"), str) and ""),
        ),
    ]


def _uploads(folder: Path, kind: str, name: str = "x") -> str:
    """Take a body apart; at most 16 images with names that are not endless."""
    try:
        uploads = uploads_of(kind, (folder / name).read_bytes(), 16)
    except Refusal as refusal:
        raise InputError(refusal.sentence) from None
    return "" if len(uploads) <= 16 and all(len(one.name) <= 200 for one in uploads) else "too many uploads"
