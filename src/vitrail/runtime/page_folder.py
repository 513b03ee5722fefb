"""A folder with a page that runs an exported model in a browser, without a server of its own."""

import os
from importlib.resources import files
from pathlib import Path

from vitrail.base.errors import ConfigError
from vitrail.base.files import write_whole
from vitrail.base.outputs import Kind, check_folder

PARTS = ("index.html", "classify.mjs", "package.json")
MODEL = "model.onnx"
FOLDER = Kind(name="a folder of a page", holds=lambda path: (path / "classify.mjs").is_file())


def check_page(folder: str | os.PathLike[str], out: Path, *, raw: bool, classes: int, force: bool) -> Path:
    """Return the folder of a page that may be written; refuse one for a file that it could not run."""
    if out.suffix.lower() != ".onnx":
        raise ConfigError(f"a page runs ONNX files, but {out} ends in {out.suffix}; end it in .onnx.")
    if raw:
        raise ConfigError("a page gives whole images to the model, which `raw` does not take; leave one of them out.")
    if not classes:
        raise ConfigError("a page shows classes, but the model has only a representation; leave out `page`.")
    return check_folder(folder, FOLDER, PARTS[0], force=force)


def write_page(folder: Path, out: Path) -> str:
    """Write the page with a copy of the exported file, and return a sentence about how to open it."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        write_whole(folder / part, files("vitrail.runtime").joinpath("page", part).read_bytes())
    write_whole(folder / MODEL, out.read_bytes())
    return (
        f"the page is in {folder}; run `npm install` there once, then `python -m http.server` in it, and open "
        "http://localhost:8000."
    )
