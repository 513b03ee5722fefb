"""Texts and examples of the OpenAPI description; a test sends each example."""

from typing import Any

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAGUlEQVR42mNkYGhQYGDARCwMCgxYweCUAABobwJednxjlwAAAABJRU5ErkJggg=="
)
"""A PNG file of 8x8 pixels, in base64."""

DESCRIPTION = """
Classifies images. Send files as multipart/form-data, or base64 in JSON:

    curl -F images=@cat.jpg http://127.0.0.1:8000/v1/predict?top=3

Every error has the form `{"error": {"code": ..., "message": ...}}`. In a request with several images, a broken one has
an error in its result and the others are answered; the status is an error only if none could be answered.
"""

PREDICT_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {"images": {"type": "array", "items": {"type": "string", "format": "binary"}}},
                    "required": ["images"],
                }
            },
            "application/json": {
                "schema": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        "images": {
                            "type": "array",
                            "minItems": 1,
                            "items": {
                                "anyOf": [
                                    {"type": "string", "format": "byte"},
                                    {
                                        "type": "object",
                                        "additionalProperties": False,
                                        "properties": {
                                            "name": {"type": "string"},
                                            "data": {"type": "string", "format": "byte"},
                                        },
                                        "required": ["data"],
                                    },
                                ]
                            },
                        }
                    },
                    "required": ["images"],
                },
                "examples": {
                    "one image": {"value": {"images": [PIXEL]}},
                    "two images, with names": {
                        "value": {"images": [{"name": "a.png", "data": PIXEL}, {"name": "b.png", "data": PIXEL}]}
                    },
                },
            },
        },
    }
}
