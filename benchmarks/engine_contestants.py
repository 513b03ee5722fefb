"""One contestant of `engines.py` in a process of its own: makes a network, then times passes when it is told to.

    python engine_contestants.py KIND NAME FOLDER THREADS

KIND is one of `CONTESTANTS`, NAME a model such as S/16, FOLDER has the files that `engines.py` made. Each line on stdin
is `BATCH PASSES`; the answer on stdout is JSON: the seconds of one pass, and the most memory so far.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

TIMM = {"B/16": "vit_base_patch16_224", "S/16": "vit_small_patch16_224", "Ti/16": "vit_tiny_patch16_224"}
SHAPES = {
    "B/16": {},
    "S/16": {"hidden_size": 384, "num_attention_heads": 6, "intermediate_size": 1536},
    "Ti/16": {"hidden_size": 192, "num_attention_heads": 3, "intermediate_size": 768},
}
Pass = Callable[[int], object]
"""Sends a batch of so many images through a network."""


def ours(kind: str, name: str, folder: Path, threads: int) -> Pass:
    """An engine of Vitrail, as `vitrail.predict` makes it; graphs are those of FOLDER."""
    import torch

    from vitrail.base.memory import keep_freed_memory

    keep_freed_memory()  # as `vitrail predict` does
    torch.set_num_threads(threads)
    if kind.partition(" ")[0] in ("onnxruntime", "openvino"):
        from vitrail.runtime.onnxruntime_session import OnnxRuntimeSession
        from vitrail.runtime.openvino_session import OpenVinoSession

        engine, _, precision = kind.partition(" ")
        path = folder / f"vitrail-{'int8' if precision else 'float32'}.onnx"
        session: Any = {"onnxruntime": OnnxRuntimeSession, "openvino": OpenVinoSession}[engine](path, threads=threads)
        return lambda batch: session.run(pixels(batch), ["logits"])
    from dataclasses import replace

    import vitrail
    from vitrail.runtime.engine import torch_engine

    model = vitrail.create(name, gelu="erf", seed=0)
    engine, _ = torch_engine(model)
    if kind.startswith("native"):
        from vitrail.runtime.choice import EngineChoice
        from vitrail.runtime.make import make_engine

        native = make_engine(engine, EngineChoice(engine="native", precision="int8" if "int8" in kind else "float32"))
        return lambda batch: native.logits(torch.from_numpy(pixels(batch)).permute(0, 3, 1, 2))
    if kind == "torch":
        return lambda batch: engine.logits(torch.from_numpy(pixels(batch)).permute(0, 3, 1, 2))
    engines: dict[int, Any] = {}

    def compiled(batch: int) -> object:
        engines.setdefault(batch, replace(engine, compiled_batch=batch))
        return engines[batch].logits(torch.from_numpy(pixels(batch)).permute(0, 3, 1, 2))

    return compiled


def torch_peer(kind: str, name: str, _: Path, threads: int) -> Pass:
    """A model of timm or Hugging Face in torch, eager or compiled and frozen."""
    import torch
    import torch._inductor.config

    torch.set_num_threads(threads)
    model = timm_model(name) if kind.startswith("timm") else huggingface_model(name)
    if kind.endswith("compiled"):
        torch._inductor.config.freezing = True
        model = torch.compile(model, dynamic=False)

    def run(batch: int) -> object:
        with torch.no_grad():
            return model(torch.from_numpy(inputs(batch)))

    return run


def graph_peer(kind: str, _: str, folder: Path, threads: int) -> Pass:
    """The graph that torch.onnx makes of timm's model, in another runtime."""
    if kind == "timm onnxruntime":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(folder / "timm.onnx", options, providers=["CPUExecutionProvider"])
        return lambda batch: session.run(None, {"images": inputs(batch)})
    import openvino

    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
    file = folder / ("timm-int8.xml" if kind.endswith("int8") else "timm.onnx")
    request = openvino.Core().compile_model(file, "CPU", settings).create_infer_request()
    return lambda batch: request.infer([inputs(batch)])


def timm_model(name: str) -> Any:
    """Return timm's model of a name, in evaluation mode."""
    import peers_shim  # noqa: F401  (must come before timm)
    import timm

    return timm.create_model(TIMM[name]).eval()


def huggingface_model(name: str) -> Any:
    """Return Hugging Face's model of a name, in evaluation mode, that gives logits."""
    import peers_shim  # noqa: F401
    import torch
    from transformers import ViTConfig, ViTForImageClassification

    class Logits(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = ViTForImageClassification(ViTConfig(num_labels=1000, **SHAPES[name]))

        def forward(self, images: Any) -> Any:
            return self.model(images).logits

    return Logits().eval()


CONTESTANTS: dict[str, Callable[[str, str, Path, int], Pass]] = {
    **{f"vitrail {kind}": ours for kind in ("torch", "compiled", "native", "onnxruntime", "openvino")},
    **{f"vitrail {kind} int8": ours for kind in ("native", "onnxruntime", "openvino")},
    **dict.fromkeys(("timm", "timm compiled", "Hugging Face", "Hugging Face compiled"), torch_peer),
    **dict.fromkeys(("timm onnxruntime", "timm openvino", "timm openvino int8"), graph_peer),
}
_RANDOM: dict[tuple[str, int], np.ndarray] = {}


def pixels(batch: int) -> np.ndarray:
    """Return images as our graphs take them."""
    if ("pixels", batch) not in _RANDOM:
        noise = np.random.default_rng(0).integers(0, 256, (batch, 224, 224, 3), dtype=np.uint8)
        _RANDOM["pixels", batch] = noise
    return _RANDOM["pixels", batch]


def inputs(batch: int) -> np.ndarray:
    """Return images as the peers take them: normalised."""
    if ("inputs", batch) not in _RANDOM:
        planes = pixels(batch).transpose(0, 3, 1, 2).astype(np.float32) / 127.5 - 1
        _RANDOM["inputs", batch] = np.ascontiguousarray(planes)
    return _RANDOM["inputs", batch]


def main() -> None:
    """Make the network, and time passes until stdin ends."""
    kind, name, folder, threads = sys.argv[1:]
    run = CONTESTANTS[kind](kind.removeprefix("vitrail "), name, Path(folder), int(threads))
    for line in sys.stdin:
        batch, passes = map(int, line.split())
        start = time.perf_counter()
        for _ in range(passes):
            run(batch)
        seconds = (time.perf_counter() - start) / passes
        status = Path("/proc/self/status").read_text().splitlines()
        memory = next(int(row.split()[1]) * 1024 for row in status if row.startswith("VmHWM:"))
        print(json.dumps({"seconds": seconds, "memory": memory}), flush=True)


if __name__ == "__main__":
    main()
