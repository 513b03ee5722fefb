"""Every initial value of every model, as the reference release sets it: one list, read top-down.

The first pattern that a parameter's name matches decides. Dense kernels are Xavier-uniform; convolution kernels,
the patch projection and the representation layer LeCun-normal; the class token and the last layer start at zero: a
new model gives every class the same score.
"""

import math
from collections.abc import Callable
from fnmatch import fnmatchcase

import torch
from torch import Generator, Tensor, nn

from vitrail.model.contract import Model
from vitrail.model.grouped import Grouping
from vitrail.model.positions import SinCos2d, sincos_2d
from vitrail.model.rotary import Rotary

Fill = Callable[[Tensor, Generator | None], object]


def zeros(tensor: Tensor, _: Generator | None) -> None:
    """Fill with 0."""
    nn.init.zeros_(tensor)


def ones(tensor: Tensor, _: Generator | None) -> None:
    """Fill with 1."""
    nn.init.ones_(tensor)


def normal(deviation: float) -> Fill:
    """Fill from N(0, deviation^2)."""
    return lambda tensor, generator: nn.init.normal_(tensor, std=deviation, generator=generator)


def xavier_uniform(tensor: Tensor, generator: Generator | None) -> None:
    """Fill from U(-a, a) with a^2 = 6 / (inputs + outputs)."""
    nn.init.xavier_uniform_(tensor, generator=generator)


def stacked_xavier_uniform(parts: int) -> Fill:
    """Fill each of the matrices stacked in a fused kernel by itself: their fan-out is D, not the stack's."""

    def fill(tensor: Tensor, generator: Generator | None) -> None:
        for part in tensor.chunk(parts):
            nn.init.xavier_uniform_(part, generator=generator)

    return fill


def lecun_normal(tensor: Tensor, generator: Generator | None) -> None:
    """Fill from a normal cut off at two deviations, with variance 1 / inputs after the cut."""
    deviation = math.sqrt(1 / tensor[0].numel()) / 0.87962566103423978
    nn.init.trunc_normal_(tensor, std=deviation, a=-2 * deviation, b=2 * deviation, generator=generator)


def plain(tensor: Tensor, generator: Generator | None) -> None:
    """Fill matrices and kernels LeCun-normal, and vectors with 0."""
    if tensor.ndim > 1:
        lecun_normal(tensor, generator)
    else:
        nn.init.zeros_(tensor)


INITIAL_VALUES: tuple[tuple[str, Fill], ...] = (
    # Vision Transformer
    ("embedding.projection.weight", lecun_normal),
    ("embedding.class_token", zeros),
    ("embedding.distillation_token", normal(0.02)),
    ("embedding.registers", normal(0.02)),
    ("*.scale?", ones),  # LayerScale: the value of the settings takes its place
    ("*positions.*", normal(0.02)),
    ("*.offsets", normal(0.02)),  # relative positions
    ("*.qkv.weight", stacked_xavier_uniform(3)),
    ("*.attention.out.weight", xavier_uniform),
    ("*.attention.hidden.weight", xavier_uniform),  # the MLP over patches, as that over channels
    ("*.attention.hidden.bias", normal(1e-6)),
    ("*.attention.depthwise.weight", lecun_normal),
    ("*.mlp.*.weight", xavier_uniform),
    ("*.mlp.*.bias", normal(1e-6)),
    ("head.pool.probe", xavier_uniform),
    ("head.pool.query.weight", xavier_uniform),
    ("head.pool.key_value.weight", stacked_xavier_uniform(2)),
    ("head.pool.out.weight", xavier_uniform),
    ("head.representation.weight", lecun_normal),
    ("head.projection.weight", lecun_normal),
    ("head.linear.weight", zeros),
    # The ResNet of a hybrid: each unit starts as its shortcut
    ("backbone.stages.*.norm3.weight", zeros),
    ("backbone.*conv*.weight", lecun_normal),
    # BiT's ResNet, with or without axial attention
    ("stages.*.out.weight", xavier_uniform),
    ("root.weight", lecun_normal),
    ("stages.*.conv*.weight", lecun_normal),
    ("stages.*.shortcut.weight", lecun_normal),
    ("linear.weight", zeros),
    # Norms and the other biases, everywhere
    ("*norm*.weight", ones),
    ("*.bias", zeros),
    # Whatever else a new kind of model has
    ("*", plain),
)


def rule(name: str) -> Fill:
    """Return the rule for a parameter."""
    return next(fill for pattern, fill in INITIAL_VALUES if fnmatchcase(name, pattern))


@torch.no_grad()
def initialise(model: Model, *, head_bias: float, generator: Generator | None = None) -> None:
    """Set every parameter, and the fixed tables, of a model."""
    constants = model.constants()
    for name, parameter in model.named_parameters():
        rule(name)(parameter, generator)
        if name in constants:
            parameter.fill_(constants[name])
        if model.is_head(name):
            parameter.fill_(head_bias if name.endswith("bias") else 0.0)
    fill_fixed_tables(model)


@torch.no_grad()
def fill_fixed_tables(model: nn.Module) -> None:
    """Compute the fixed tables of a model, which no file stores."""
    for module in model.modules():
        if isinstance(module, SinCos2d):
            module.table.copy_(sincos_2d(module.dim, module.grid, class_entry=module.class_entry))
        if isinstance(module, Grouping):
            for name, table in module.compute(module.grid).items():
                module.get_buffer(name).copy_(table)
        if isinstance(module, Rotary):
            module.table.copy_(module.compute(module.grid))
