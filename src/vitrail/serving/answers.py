"""The JSON of answers: what is written, and its types for the OpenAPI description."""

from typing import Any

from pydantic import BaseModel, Field

from vitrail.serving.frames import Head
from vitrail.serving.jobs import Options, Outcome
from vitrail.serving.refusals import CODES


class Class(BaseModel):
    """One class with its probability."""

    label: str = Field(examples=["cat"])
    index: int = Field(examples=[3])
    probability: float = Field(ge=0, le=1, examples=[0.97])


class Map(BaseModel):
    """What the model looked at, over the part of the image that it sees."""

    method: str = Field(examples=["gradient-attention"])
    label: str | None = Field(description="The class that is explained; null where the method knows no classes.")
    patch: int | None = Field(description="The patch whose attention this is; null for the whole image's.")
    probability: float
    signed: bool = Field(description="Whether values below 0 speak against the class.")
    window: list[float] = Field(description="Top, left, height and width of what the model sees, as shares.")
    values: list[list[float]] = Field(description="Rows from top to bottom.")


class Problem(BaseModel):
    """What is wrong, as a word and a sentence."""

    code: str = Field(examples=["not_an_image"])
    message: str
    status: int | None = Field(default=None, description="The status this image would have had alone.")


class Result(BaseModel):
    """What became of one image: `top`, or `error`."""

    name: str = Field(examples=["cat.jpg"])
    width: int | None = None
    height: int | None = None
    top: list[Class] | None = Field(default=None, description="The most probable classes, the first one first.")
    features: list[float] | None = Field(default=None, description="The input of the model's last layer.")
    explanation: Map | None = None
    error: Problem | None = None


class Served(BaseModel):
    """Which model answered."""

    name: str
    digest: str = Field(description="SHA-256 of the model's file.")


class Timings(BaseModel):
    """Where the time went."""

    decode_ms: float
    compute_ms: float
    total_ms: float
    batch: int = Field(description="Images that went through the model together.")


class Answer(BaseModel):
    """The answer for a request; in the order of its images."""

    model: Served
    results: list[Result]
    timings: Timings
    error: Problem | None = Field(default=None, description="Where no image could be answered.")


class Failure(BaseModel):
    """Every answer that is an error."""

    error: Problem


class ModelFacts(BaseModel):
    """A model, as the server knows it."""

    name: str
    digest: str
    labels: list[str]
    named: bool = Field(description="Whether the labels are names; otherwise they are numbers.")
    preprocessing: dict[str, Any]
    provenance: dict[str, Any]
    feature_width: int
    device: str
    dtype: str
    methods: list[str] = Field(description="The methods of explanations that this model has.")
    class_methods: list[str] = Field(description="Those of them that explain a class; the others know no classes.")
    default_method: str
    grid: list[int] | None = Field(description="Rows and columns of patches; null without attention.")
    blocks: int
    heads: int
    notes: list[str]


class Labels(BaseModel):
    """The names of a model's classes, in the order of its outputs."""

    labels: list[str]


class ModelNames(BaseModel):
    """The models of the server; the first one is the default."""

    models: list[str]


def result_of(name: str, outcome: Outcome, model: Head, options: Options) -> dict[str, Any]:
    """Write what became of one image."""
    if "wrong" in outcome:
        status, sentence = outcome["wrong"]
        return {"name": name, "error": {"code": CODES[status], "message": sentence, "status": status}}
    labels = model["labels"]
    result: dict[str, Any] = {
        "name": name,
        "width": outcome["width"],
        "height": outcome["height"],
        "top": [
            {"label": labels[number], "index": number, "probability": probability}
            for number, probability in outcome["top"]
        ],
    }
    if options.features:
        result["features"] = [float(f"{value:.7g}") for value in outcome["features"].tolist()]
    if options.explain is not None:
        heat = outcome["map"]
        result["explanation"] = {
            "method": heat["method"],
            "label": None if heat["class"] is None else labels[heat["class"]],
            "patch": heat["patch"],
            "probability": heat["probability"],
            "signed": heat["signed"],
            "window": outcome["window"],
            "values": [[float(f"{value:.6g}") for value in row] for row in heat["values"].tolist()],
        }
    return result
