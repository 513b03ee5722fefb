"""The output of `vitrail VERB --help`: the verb's docstring, and every field with its unit, meaning and default."""

import argparse
import ast
import inspect
import textwrap
from collections.abc import Sequence
from dataclasses import MISSING
from types import ModuleType

from vitrail.cli.streams import text_width
from vitrail.cli.usage import Field


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Argparse's layout, but names with hyphens stay whole."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


def help_text(verb: str, module: ModuleType, declared: Sequence[Field]) -> str:
    """Return the whole text, as wide as the terminal."""
    width = text_width() - 2
    positionals = [field for field in declared if field.positional]
    parser = argparse.ArgumentParser(
        usage=" ".join([f"vitrail {verb} [OPTIONS]", *(field.metavar for field in positionals)]),
        description=_paragraphs(inspect.getdoc(module) or "", width),
        formatter_class=lambda prog: Formatter(prog, max_help_position=24, width=width),
        add_help=False,
    )
    meanings = field_docs(module.Arguments)
    options = parser.add_argument_group("options")
    options.add_argument("-h", "--help", action="store_true", help="show this")
    for field in declared:
        text = f"{meanings.get(field.dest, '')} {_ending(field)}".strip().replace("%", "%%")
        if field.positional:
            parser.add_argument(field.dest, metavar=field.metavar, help=text)
        elif field.kind is bool:
            options.add_argument(field.name, action="store_true", help=text)
        else:
            options.add_argument(field.name, metavar=field.metavar, help=text)
    return parser.format_help().rstrip()


def field_docs(arguments: type) -> dict[str, str]:
    """Return the docstrings below the fields of a dataclass and of those it extends; Python itself forgets them."""
    docs: dict[str, str] = {}
    for owner in reversed(arguments.__mro__[:-1]):
        body = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
        assert isinstance(body, ast.ClassDef)  # noqa: S101 - the source of a class
        for field, below in zip(body.body, body.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
                docs[field.target.id] = " ".join(str(ast.literal_eval(below.value)).split())
    return docs


def _ending(field: Field) -> str:
    if field.default_text:
        return f"(default: {field.default_text})"
    if field.default is MISSING:
        return "(required)"
    return "" if field.kind is bool else f"(default: {field.default})"


def _paragraphs(text: str, width: int) -> str:
    """Fill paragraphs; each example keeps a line of its own."""
    parts = [part for part in text.split("\n\n") if part.strip()]
    return "\n\n".join(
        part if part.startswith("Example") else textwrap.fill(part, width, break_on_hyphens=False) for part in parts
    )
