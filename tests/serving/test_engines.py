import socket

import numpy as np
import pytest
import torch

import vitrail
from tests.serving.making import photo
from vitrail.serving import worker
from vitrail.serving.frames import receive, send
from vitrail.serving.settings import ModelSource
from vitrail.serving.tasks import Tasks, batch_of


@pytest.mark.parametrize("engine", ["torch", pytest.param("onnxruntime", marks=pytest.mark.slow)])
def test_any_engine_answers_and_torch_explains(tiny_file, engine) -> None:
    tasks = Tasks.load({"m": ModelSource(path=str(tiny_file), reading={"engine": engine})}, max_pixels=10**6)
    assert "gradient-attention" in tasks.describe("m")["methods"]
    facts, content = tasks.prepare("m", photo())
    pixels = batch_of(bytearray(content), 1, tasks.classifiers["m"])
    head, features = tasks.compute("m", pixels, [7], [0])
    wanted = vitrail.predict(tiny_file, [photo()], top=7)[0].top
    assert [number for number, _ in head["answers"][0]["top"]] == [
        list(tasks.describe("m")["labels"]).index(label) for label, _ in wanted
    ]
    np.testing.assert_allclose(
        [share for _, share in head["answers"][0]["top"]], [share for _, share in wanted], atol=1e-5
    )
    assert len(features) == 4 * 32
    asked = {"top": 2, "features": False, "method": "auto", "class": None, "layer": -1, "head": None, "patch": None}
    head, _ = tasks.explain("m", pixels, asked)
    assert head["map"]["method"] == "occlusion"
    assert facts["height"] == 30


@pytest.mark.parametrize(("engine", "batch"), [("compiled", 1), ("auto", 1), ("openvino", 4), (None, 4)])
def test_what_pads_to_its_batch_takes_images_singly(monkeypatch, engine, batch) -> None:
    seen: list[dict] = []

    def load(_, **reading):
        seen.append(reading)
        raise ImportError

    monkeypatch.setattr("vitrail.serving.tasks.Classifier.load", load)
    with pytest.raises(ImportError):
        Tasks.load({"m": ModelSource(path="m", reading={"engine": engine, "batch": 4, "device": "cpu"})}, max_pixels=1)
    assert seen == [{"engine": engine, "batch": batch, "device": "cpu"}]


def test_other_runtimes_are_loaded_with_the_threads_of_the_worker(tiny_file, monkeypatch) -> None:
    seen: list[int] = []
    load = Tasks.load
    monkeypatch.setattr(Tasks, "load", lambda *a, **k: (seen.append(torch.get_num_threads()), load(*a, **k))[1])
    monkeypatch.setattr(worker.signal, "signal", lambda *_: None)
    threads = torch.get_num_threads()
    ours, theirs = socket.socketpair()
    head = {"models": {"m": {"path": str(tiny_file), "reading": {}}}, "threads": threads + 1, "max_pixels": 10**6}
    try:
        with ours:
            send(ours, {"do": "begin"})
            ours.shutdown(socket.SHUT_WR)
            assert worker.serve(theirs, head, None) == 0
            assert "m" in receive(ours)[0]["models"]
    finally:
        torch.set_num_threads(threads)
    assert seen == [threads + 1]


@pytest.mark.parametrize(
    ("path", "reading", "threads", "forked"),
    [
        ("m.safetensors", {}, 4, True),
        ("m.safetensors", {"engine": "openvino"}, 1, False),
        ("m.safetensors", {"device": "cuda"}, 1, False),
        ("m.onnx", {}, 1, True),
        ("m.onnx", {}, 2, False),
        ("m.xml", {}, 2, False),
    ],
)
def test_what_has_threads_of_its_own_is_loaded_after_the_fork(path, reading, threads, forked) -> None:
    head = {"models": {"m": {"path": path, "reading": reading}}, "threads": threads}
    assert worker.forks_loaded(head) is forked
