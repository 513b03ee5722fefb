"""The peers of `benchmarks/serve.py`: LitServe, and plain FastAPI, each with timm's model and Pillow.

Usage, in the environment of benchmarks/peers.sh with litserve in it: serve_peers.py litserve|fastapi PORT MODEL
"""

import io
import sys

import litserve as ls
import peers_shim  # noqa: F401
import timm
import torch
from PIL import Image
from timm.data import create_transform, resolve_data_config


class Answering:
    """timm's model with its own transform."""

    def __init__(self, name: str, threads: int) -> None:
        torch.set_num_threads(threads)
        self.model = timm.create_model(name, pretrained=False, num_classes=1000).eval()
        self.transform = create_transform(**resolve_data_config({}, model=self.model))

    def decode(self, content: bytes) -> torch.Tensor:
        return self.transform(Image.open(io.BytesIO(content)).convert("RGB"))

    @torch.inference_mode()
    def classify(self, images: torch.Tensor) -> list[list[float]]:
        shares, classes = self.model(images).softmax(1).topk(5)
        return [[*map(float, share), *map(float, number)] for share, number in zip(shares, classes, strict=True)]


def run_fastapi(port: int, name: str) -> None:
    import uvicorn
    from fastapi import FastAPI, File, UploadFile

    answering, app = Answering(name, 2), FastAPI()

    @app.post("/v1/predict")
    def predict(images: UploadFile = File()):  # noqa: B008
        return answering.classify(answering.decode(images.file.read())[None])

    uvicorn.run(app, port=port, log_level="error")


def run_litserve(port: int) -> None:
    api = Api(max_batch_size=4, batch_timeout=0.004, api_path="/v1/predict")
    ls.LitServer(api, accelerator="cpu", workers_per_device=2, timeout=120).run(
        host="127.0.0.1", port=port, generate_client_file=False
    )


class Api(ls.LitAPI):
    """At the top of the module, since LitServe pickles it."""

    def setup(self, device):
        del device
        self.answering = Answering(sys.argv[3], 1)

    def decode_request(self, request):
        return self.answering.decode(request["images"].file.read())

    def batch(self, inputs):
        return torch.stack(list(inputs))

    def predict(self, batch):
        return self.answering.classify(batch)

    def unbatch(self, output):
        return output

    def encode_response(self, output):
        return {"top": output}


if __name__ == "__main__":
    kind, port, name = sys.argv[1:]
    if kind == "litserve":
        run_litserve(int(port))
    else:
        run_fastapi(int(port), name)
