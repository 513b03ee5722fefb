"""Compare two models, whatever their formats: settings, and tensor by tensor the largest difference.

Exit code 0 says that they are the same within the tolerance, 1 that they differ.

Example: vitrail diff B_16.npz b16.safetensors
"""

from dataclasses import dataclass
from typing import Annotated, Any

from vitrail.base.tensors import shape_text
from vitrail.checkpoint.contents import Contents
from vitrail.checkpoint.store import describe
from vitrail.cli.model_file import FileFlags, open_file
from vitrail.cli.report import Positional, Switch, flag, print_json, print_table, value_text


@dataclass(frozen=True, kw_only=True)
class Arguments(FileFlags):
    """Flags of `vitrail diff`."""

    first: Annotated[str, Positional, flag("FIRST")]
    """A file or folder of weights, of any format."""
    second: Annotated[str, Positional, flag("SECOND")]
    """Another one."""
    tolerance: float = 0.0
    """The largest difference of a weight that still counts as none."""
    pickle: Switch = False
    """Let torch's pickled files be opened, of which only tensors are read."""
    json: Switch = False
    """Write JSON to stdout."""


def run(arguments: Arguments) -> int:
    """Compare, print, and return 1 if there is a difference."""
    first, second = (
        open_file(path, arguments, pickle=arguments.pickle) for path in (arguments.first, arguments.second)
    )
    settings = _settings(first, second)
    tensors = _tensors(first, second, arguments.tolerance)
    compared = sum(name in second.tensors for name in first.tensors)
    same = not settings and not tensors
    if arguments.json:
        print_json({"same": same, "compared": compared, "settings": settings, "tensors": tensors})
        return int(not same)
    rows = [(row["name"], value_text(row["first"]), value_text(row["second"])) for row in settings + tensors]
    notes = [f"{compared} tensors are in both; {len(tensors)} differ, and {len(settings)} settings."]
    title = f"Differences of {arguments.first} (first) and {arguments.second} (second)"
    print_table(title, ("", "first", "second"), rows, notes=notes)
    return int(not same)


def _settings(first: Contents, second: Contents) -> list[dict[str, Any]]:
    """List the settings that differ; where weights come from is not what they are."""
    ours, theirs = (_flat({**describe(contents), "provenance": {}}) for contents in (first, second))
    return [
        {"name": name, "first": ours.get(name), "second": theirs.get(name)}
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    ]


def _flat(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, inner in value.items():
        flat |= _flat(inner, f"{prefix}{name}.") if isinstance(inner, dict) else {f"{prefix}{name}": inner}
    return flat


def _tensors(first: Contents, second: Contents, tolerance: float) -> list[dict[str, Any]]:
    """List the tensors that differ, one pair in memory at a time."""
    rows: list[dict[str, Any]] = []
    for name in [*first.tensors, *(name for name in second.tensors if name not in first.tensors)]:
        shapes = [contents.tensors.shapes.get(name) for contents in (first, second)]
        if shapes[0] != shapes[1] or None in shapes:
            texts = ["none" if shape is None else shape_text(shape) for shape in shapes]
            rows.append({"name": name, "first": texts[0], "second": texts[1], "largest_difference": None})
            continue
        ours, theirs = first.tensors[name].double(), second.tensors[name].double()
        differs = (ours != theirs) & ~(ours.isnan() & theirs.isnan())
        if not differs.any():
            continue
        gap = (ours - theirs)[differs].abs()
        largest = gap.max().item()
        if not largest <= tolerance:
            at = int(differs.double().mul((ours - theirs).abs().nan_to_num(float("inf"))).argmax())
            row = {"first": ours.flatten()[at].item(), "second": theirs.flatten()[at].item()}
            rows.append({"name": name, **row, "largest_difference": largest})
    return rows
