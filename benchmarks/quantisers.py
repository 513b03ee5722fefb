"""The two quantisers for int8 side by side: ONNX Runtime's and nncf, on one graph with the same calibration images.

    /tmp/peers/bin/python benchmarks/quantisers.py MODEL DATA [--images 2000] [--batch 8] [--rounds 8] [--out FILE.json]

MODEL is a trained file, or the name of a model with random weights (then only speed means something). Printed are the
seconds that each takes, the share of images of the test or val split of DATA that keep their first class, accuracy in
float32 and int8 with 95% intervals, and images in a second, interleaved (`contest.py`). ONNX Runtime's file is run in
both runtimes, nncf's in OpenVINO, which alone runs it. With `--agreement 99` both look for layers to leave in float32:
ours until so many first classes are kept, nncf by `quantize_with_accuracy_control` with the same measure.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from contest import machine, paired, race

import vitrail
from vitrail.base.scores import interval
from vitrail.data.pixels.decode import to_channels
from vitrail.data.transforms import preprocess
from vitrail.runtime.calibration import read_calibration
from vitrail.runtime.engine import Engine, torch_engine
from vitrail.runtime.onnxruntime_session import OnnxRuntimeSession
from vitrail.runtime.openvino_session import OpenVinoSession
from vitrail.runtime.quantise import Calibration, quantise
from vitrail.runtime.stored_graph import stored_graph

Run = Callable[[np.ndarray], np.ndarray]
"""Returns the logits of a batch."""


def read(data: str, engine: Engine, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return images of the test or val split as a graph takes them, and their classes."""
    splits = vitrail.data.open_splits(data)
    dataset = splits.get("test") or splits.get("val") or next(iter(splits.values()))
    drawn = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(0))[:count].numpy()
    dataset = dataset.take(drawn)
    how = engine.preprocessing
    pixels = [preprocess(to_channels(dataset.image(index), how.channels), how) for index in range(len(dataset))]
    return torch.stack(pixels).permute(0, 2, 3, 1).contiguous().numpy(), dataset.targets


def by_nncf(graph: Path, images: Calibration, agreement: float | None) -> object:
    """Return an OpenVINO model that nncf quantised."""
    import nncf
    import openvino

    model = openvino.Core().read_model(graph)
    shown = nncf.Dataset([images.shown[place : place + 1] for place in range(len(images.shown))])
    kind = nncf.ModelType.TRANSFORMER
    if agreement is None:
        return nncf.quantize(model, shown, subset_size=len(images.shown), model_type=kind)
    expected = OpenVinoSession(model, threads=torch.get_num_threads()).run(images.compared, ["logits"])[0].argmax(1)
    compared = nncf.Dataset([images.compared[place : place + 1] for place in range(len(images.compared))])

    def kept(compiled: object, items: object) -> float:
        answers = [int(compiled(item)["logits"].argmax()) for item in items]
        return float(np.mean(np.asarray(answers) == expected))

    return nncf.quantize_with_accuracy_control(
        model, shown, compared, kept, max_drop=1 - agreement, subset_size=len(images.shown), model_type=kind
    )


def session_run(session: object) -> Run:
    """Return the pass of a session."""
    return lambda images: session.run(images, ["logits"])[0]


def main() -> None:
    """Quantise with both, compare and time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--agreement", type=float, help="in percent; by default every layer is quantised")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    trained = Path(args.model).exists()
    model = vitrail.load(args.model) if trained else vitrail.create(args.model, gelu="erf", seed=0)
    engine, _ = torch_engine(model)
    threads = torch.get_num_threads()
    graph, _ = stored_graph(model, engine.preprocessing, print)
    assert isinstance(graph, Path), "the cache folder cannot be written"
    images = read_calibration(args.data, engine.preprocessing, "pixels")
    goal, seconds = None if args.agreement is None else args.agreement / 100, {}
    start = time.perf_counter()
    ours = quantise(graph.read_bytes(), images, agreement=goal or 0, threads=threads, note=print)
    seconds["onnxruntime"] = time.perf_counter() - start
    print(ours.summary(len(images.compared)))
    file = Path(graph).with_suffix(".int8.onnx")
    file.write_bytes(ours.content)
    start = time.perf_counter()
    theirs = by_nncf(graph, images, goal)
    seconds["nncf"] = time.perf_counter() - start
    runs = {
        "float32, ONNX Runtime": session_run(OnnxRuntimeSession(graph, threads=threads)),
        "float32, OpenVINO": session_run(OpenVinoSession(graph, threads=threads)),
        "ONNX Runtime's, in ONNX Runtime": session_run(OnnxRuntimeSession(file, threads=threads)),
        "ONNX Runtime's, in OpenVINO": session_run(OpenVinoSession(file, threads=threads, precision="int8")),
        "nncf's, in OpenVINO": session_run(OpenVinoSession(theirs, threads=threads, precision="int8")),
    }
    pixels, classes = read(args.data, engine, args.images)
    size = args.batch
    answers = {
        name: np.concatenate([run(pixels[place : place + size]) for place in range(0, len(pixels), size)]).argmax(1)
        for name, run in runs.items()
    }
    times = race({name: (lambda run=run: run(pixels[:size])) for name, run in runs.items()}, args.rounds)
    rows, first = [], next(iter(runs))
    print(f"seconds to quantise: {seconds}")
    for name in runs:
        kept, right = int((answers[name] == answers[first]).sum()), int((answers[name] == classes).sum())
        speed = paired(times[name], times["float32, OpenVINO"])
        row = {
            "name": name,
            "kept": kept / len(pixels),
            "kept_interval": interval(kept, len(pixels)),
            "accuracy": right / len(pixels),
            "accuracy_interval": interval(right, len(pixels)),
            "images_per_second": size / statistics.median(times[name]),
            "to_float32_openvino": [speed.median, speed.low, speed.high],
        }
        rows.append(row)
        low, high = row["accuracy_interval"]
        print(
            f"{name:34} keeps {row['kept']:.2%}; accuracy {row['accuracy']:.1%} ({low:.1%} to {high:.1%}); "
            f"{row['images_per_second']:.1f} images/s, {speed}",
            flush=True,
        )
    if args.out is not None:
        facts = {"model": args.model if not trained else model.config.summary, "images": len(pixels)}
        stored = machine() | facts | {"seconds": seconds, "left_in_float32": list(ours.kept), "rows": rows}
        args.out.write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
