"""Every study by its name."""

from pathlib import Path

from vitrail.base.errors import InputError, did_you_mean
from vitrail.studies import architecture, scale, training
from vitrail.studies.study import Study
from vitrail.studies.study_file import read_study

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        architecture.POSITIONS,
        architecture.POOLING,
        architecture.SHAPE,
        training.OPTIMISER,
        scale.DATA_SIZE,
        scale.SCALING,
        scale.RESOLUTION,
        scale.TRANSFER,
        scale.SPEED,
        architecture.AXIAL,
        architecture.MIXERS,
        training.MASKING,
        training.RECIPE,
    )
}


def find_study(name: str | Path | Study) -> Study:
    """Return a study by its name, or from a TOML file."""
    if isinstance(name, Study):
        return name
    if str(name) in STUDIES:
        return STUDIES[str(name)]
    path = Path(name)
    if path.suffix == ".toml":
        if not path.is_file():
            raise InputError(f"there is no file {path}; a study is a name of `vitrail studies`, or a TOML file.")
        return read_study(path)
    near = did_you_mean(str(name), STUDIES)
    raise InputError(f"there is no study {str(name)!r}; `vitrail studies` lists them, and a TOML file is one.{near}")
