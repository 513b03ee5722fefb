"""The settings of a model: a family of frozen dataclasses, one for each kind, and how weights move within a kind."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

from torch import Tensor

from vitrail.base.errors import ConfigError
from vitrail.base.settings import Tagged, from_dict
from vitrail.model.patches import Size


@dataclass(frozen=True, kw_only=True)
class ModelConfig(Tagged, ABC):
    """The settings of a model: a family of frozen dataclasses, one for each kind."""

    image_size: Size = (224, 224)
    """Height and width, in pixels, of the images that preprocessing makes."""
    channels: int = 3
    """Channels C of the images."""
    num_classes: int = 1000
    """Outputs K of the last linear layer; 0 leaves that layer out."""
    head_bias: float = 0.0
    """Initial bias of the last layer: 0 for softmax; about -log(classes) for sigmoid loss."""
    noun: ClassVar[str] = "model of another kind"
    """The name of this kind of model, after "a"."""
    fixed: ClassVar[tuple[str, ...]] = ("channels",)
    """Fields that weights depend on: a change makes another model."""
    module: ClassVar[Any]
    """The subclass of `Model` that these settings build; it sets this itself."""
    any_size: ClassVar[bool] = False
    """Whether the network takes images of any size as they are."""

    @property
    @abstractmethod
    def feature_width(self) -> int:
        """How many numbers the last linear layer sees."""

    @property
    def text_width(self) -> int | None:
        """How many numbers the space has that features share with texts; None where there is no such space."""
        return None

    @property
    @abstractmethod
    def summary(self) -> str:
        """The model in a few words."""

    @property
    def slug(self) -> str:
        """The model as part of a folder's name."""
        return self.kind

    @property
    def num_blocks(self) -> int:
        """How many blocks, or units of stages, the network has at least."""
        return 0

    @property
    def sequence(self) -> int:
        """How many tokens an image becomes; 0 where there are none."""
        return 0

    @property
    def grid(self) -> Size | None:
        """Rows and columns of patches; None where the model has none."""
        return None

    @property
    def cell_size(self) -> Size | None:
        """Height and width of a patch in pixels of the image; None where the model has no patches."""
        return None

    @property
    def feature_grid(self) -> Size | None:
        """Rows and columns of the last feature map of convolutions; None where there is none."""
        return None

    @property
    def num_prefix(self) -> int:
        """How many tokens stand before those of the patches."""
        return 0

    @property
    def attention_shape(self) -> Size:
        """How many blocks have attention maps, and how many heads each; (0, 0) for a model without attention."""
        return 0, 0

    @property
    def draws(self) -> bool:
        """Whether a training pass draws random numbers."""
        return False

    def adapted(self, *, num_classes: int, image_size: Size | None = None) -> "ModelConfig":
        """Return the model for another task: one linear layer on top, positions for another size, nothing dropped."""
        return replace(self, num_classes=num_classes, head_bias=0.0, image_size=image_size or self.image_size)

    def for_pretraining(self, *, dropout: float) -> "ModelConfig":  # noqa: ARG002 - for kinds that have it
        """Return the model as the paper pre-trains it (Table 3), with its head and dropout where it has them."""
        return self

    def regularised_like(self, other: "ModelConfig") -> "ModelConfig":
        """Return the model with the head and the dropout of another."""
        return replace(self, head_bias=other.head_bias)

    def shrunk(self, image_size: Size) -> "ModelConfig":
        """Return a model of the same kind, small enough for a step to take no time."""
        return replace(self, image_size=image_size)

    def changes_to(self, other: "ModelConfig") -> dict[str, Any]:
        """Return the settings in which another model of the same kind differs, with its values."""
        if type(other) is not type(self):
            raise ConfigError(
                f"the weights are those of a {self.noun}, but `model.kind` is {other.kind!r}; leave it out, or begin "
                "with other weights."
            )
        pairs = {field.name: (getattr(self, field.name), getattr(other, field.name)) for field in fields(self)}
        return {name: new for name, (old, new) in pairs.items() if new != old}

    def clashes(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return this model's own values of the fixed fields that `changes` would alter."""
        own = {name: getattr(self, name) for name in self.fixed if name in changes}
        return {name: value for name, value in own.items() if value != changes[name]}

    def move(self, old: "ModelConfig", names: Iterable[str]) -> "Move":  # noqa: ARG002 - for kinds that resize
        """Return how tensors of these names move here from a model of the same kind."""
        return Move(new_head=self.num_classes != old.num_classes)

    def check_patches(self, *, drop: float, sizes: Sequence[Size]) -> None:  # noqa: ARG002 - for kinds with patches
        """Refuse training with dropped patches or images of other sizes, where the model cannot do it."""
        if drop:
            raise ConfigError(f"a model of the kind {self.kind!r} has no patches to drop; leave drop_patches at 0.")

    def check_tokens(self, image_size: Size) -> Size:  # noqa: ARG002 - for kinds with patches
        """Return the grid of patches of an image, or refuse a model whose patches cannot be hidden and predicted."""
        raise ConfigError(f"a {self.noun} has no patches to hide and predict; choose a Vision Transformer.")


@dataclass(frozen=True, kw_only=True)
class Move:
    """How the weights of a model become those of another of the same kind: another task, another size of images."""

    resized: Mapping[str, Callable[[Tensor], Tensor]] = field(default_factory=dict)
    """Tensors that change their shape, by name."""
    dropped: tuple[str, ...] = ()
    """Prefixes of the names of tensors that are left behind."""
    new_head: bool = False
    """Whether the last linear layer starts again at zero."""
    notes: tuple[str, ...] = ()
    """What the user should know about the move, a sentence each."""


def read_model_config(settings: Any, *, where: str = "the settings of the model") -> ModelConfig:
    """Make the config of the kind that the settings name."""
    return from_dict(ModelConfig, settings, where=where)  # type: ignore[type-abstract]  # a member is made
