"""The rest of the house asks a model what it is by its contract: never by its class, never by reaching into it."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "vitrail"
ROOMS = ("model", "checkpoint/formats")
"""Where the classes of models and the layouts of their weights are at home."""
CLASSES = {
    "Model",
    "ModelConfig",
    "ViT",
    "ViTConfig",
    "ResNet",
    "ResNetConfig",
    "AxialResNet",
    "AxialResNetConfig",
    "BackboneConfig",
    "Backbone",
}
"""No isinstance, issubclass or match on these elsewhere; the test below holds the list complete."""
REACHES = {"getattr", "hasattr", "setattr", "delattr"}
NOUNS = {"model", "network", "parallel", "config.model", "model.config", "contents.config", "vit", "resnet"}
"""What a model or its config is called: the end of the dotted name that a reach begins with."""
FILES = [
    path
    for path in sorted(SOURCE.rglob("*.py"))
    if not path.relative_to(SOURCE).as_posix().startswith(tuple(f"{room}/" for room in ROOMS))
]


def dotted(node: ast.expr) -> str:
    """Return a name such as `run.config.model`; calls and subscripts count as what they are called on."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    if isinstance(node, ast.Call | ast.Subscript):
        return dotted(node.func if isinstance(node, ast.Call) else node.value)
    return node.id if isinstance(node, ast.Name) else ""


def named_classes(node: ast.expr) -> set[str]:
    return {dotted(part).rpartition(".")[2] for part in ast.walk(node) if isinstance(part, ast.Name | ast.Attribute)}


def is_model(name: str) -> bool:
    return any(name == noun or name.endswith(f".{noun}") for noun in NOUNS)


def offences(text: str) -> list[str]:
    """List every place that asks a model for its class or reaches into it by name."""
    places = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            arguments = node.args
            if node.func.id in ("isinstance", "issubclass") and len(arguments) == 2:
                places += [(node.lineno, f"{node.func.id} {name}") for name in named_classes(arguments[1]) & CLASSES]
            if node.func.id in REACHES and arguments and is_model(dotted(arguments[0])):
                places.append((node.lineno, f"{node.func.id} of {dotted(arguments[0])}"))
        if isinstance(node, ast.MatchClass):
            places += [(node.lineno, f"case {name}") for name in named_classes(node.cls) & CLASSES]
        if isinstance(node, ast.Compare) and any(dotted(side) == "type" for side in [node.left, *node.comparators]):
            places += [(node.lineno, f"type is {name}") for name in named_classes(node) & CLASSES]
    return [f"line {line}: {what}" for line, what in sorted(places)]


@pytest.mark.parametrize("path", FILES, ids=[path.relative_to(SOURCE).as_posix() for path in FILES])
def test_no_file_outside_asks_a_model_for_its_class_or_reaches_into_it(path: Path) -> None:
    assert offences(path.read_text()) == []


def test_every_model_and_config_is_on_the_list() -> None:
    """A class of `model/` that derives from the contract, or is part of a config, is one of those not to ask for."""
    derived = set()
    for path in (SOURCE / "model").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and {dotted(base) for base in node.bases} & {"Model", "ModelConfig"}:
                derived.add(node.name)
    assert derived <= CLASSES
    assert {"ViT", "ViTConfig", "ResNet", "ResNetConfig"} <= derived


@pytest.mark.parametrize(
    ("text", "offence"),
    [
        ("isinstance(model, ViT)", "line 1: isinstance ViT"),
        ("x = 1\nif not isinstance(config, (int, model.ResNetConfig)): pass", "line 2: isinstance ResNetConfig"),
        ("isinstance(config, ViTConfig | None)", "line 1: isinstance ViTConfig"),
        ("getattr(model, 'labels', None)", "line 1: getattr of model"),
        ("hasattr(run.model.config, 'dim')", "line 1: hasattr of run.model.config"),
        ("setattr(self.model, name, 1)", "line 1: setattr of self.model"),
        ("match c:\n case ResNetConfig(): pass", "line 2: case ResNetConfig"),
        ("type(model) is ViT", "line 1: type is ViT"),
    ],
)
def test_such_places_are_found(text, offence) -> None:
    assert offences(text) == [offence]


@pytest.mark.parametrize(
    "text", ["isinstance(image, str)", "getattr(flags, name)", "getattr(torch, config.precision)", "model.config.kind"]
)
def test_other_places_are_not(text) -> None:
    assert offences(text) == []
