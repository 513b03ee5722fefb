"""What people call a model."""

from pathlib import Path


def model_name(path: str) -> str:
    """Return the name of a model's run folder, or of its file."""
    file = Path(path)
    return file.resolve().parent.name if file.name == "model.safetensors" else file.stem
