"""Requests that the description allows, and worse: none is answered with a fault of the server."""

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

import vitrail
from vitrail.serving.examples import PREDICT_BODY


@pytest.mark.slow
def test_no_request_finds_a_fault(tiny_file) -> None:
    lines: list[str] = []
    with vitrail.serve(tiny_file, port=0, workers=1, note=str, log=lines.append) as server:
        program = Path(sys.executable).parent / "schemathesis"
        checks = "not_a_server_error,response_schema_conformance,status_code_conformance,content_type_conformance"
        limits = ["--max-examples", "20", "--seed", "1", "--exclude-path", "/v1/reload"]
        words = [program, "run", f"{server.url}/openapi.json", "--checks", checks, *limits]
        result = subprocess.run(words, capture_output=True, text=True, check=False)
        examples = PREDICT_BODY["requestBody"]["content"]["application/json"]["examples"]
        for example in examples.values():
            assert httpx.post(f"{server.url}/v1/predict", json=example["value"], timeout=60).status_code == 200
    assert result.returncode == 0, result.stdout[-3000:]
    assert not any('"fault"' in line for line in lines)
