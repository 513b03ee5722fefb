"""The settings of a Vision Transformer: one frozen dataclass, checked when it is made."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

from torch import Tensor

from vitrail.base.errors import ConfigError, GridError
from vitrail.model.checks import (
    check_choice,
    check_count,
    check_divides,
    check_positive,
    check_probability,
    check_size,
)
from vitrail.model.contract import ModelConfig, Move
from vitrail.model.convolution import Standardisation
from vitrail.model.gelu import Gelu
from vitrail.model.patches import Size, patch_grid, resize_patch_kernel, size_text
from vitrail.model.positions import Placement, PositionKind, ResizeWay, resize_for_grid

Pool = Literal["class-token", "mean", "attention"]


@dataclass(frozen=True, kw_only=True)
class BackboneConfig:
    """The convolutional network in front of a hybrid (Sec. 3.1): the reference release's post-activation ResNet."""

    blocks: tuple[int, ...]
    """Units in each stage; (3, 4, 9) is the R50 whose stage 4 moved into stage 3, () the root alone."""
    width: int = 64
    """Channels of the root; stage s has 4 * width * 2^(s-1)."""
    norm_groups: int = 32
    """Groups of every group norm."""
    norm_eps: float = 1e-6
    """Epsilon of every group norm (timm: 1e-5)."""
    standardisation: Standardisation = "std-plus-eps"
    """How kernels are standardised: by std + eps (reference release) or by sqrt(var + eps) (timm, BiT)."""
    standardisation_eps: float = 1e-5
    """The epsilon of that formula."""

    def __post_init__(self) -> None:
        """Refuse what cannot be built."""
        check_choice("standardisation", self.standardisation, get_args(Standardisation))
        check_positive(width=self.width, norm_groups=self.norm_groups)
        if any(units < 1 for units in self.blocks):
            raise ConfigError(f"every stage of a backbone needs at least one unit, but blocks is {self.blocks}.")
        check_divides("norm_groups", self.norm_groups, "width", self.width)

    @property
    def stride(self) -> int:
        """Pixels of the image for each cell of the feature map."""
        return 4 * 2 ** max(len(self.blocks) - 1, 0)

    @property
    def channels(self) -> int:
        """Channels of the feature map."""
        return 4 * self.width * 2 ** (len(self.blocks) - 1) if self.blocks else self.width

    def feature_size(self, image_size: Size) -> Size:
        """Rows and columns of the feature map: SAME padding rounds up."""
        return -(-image_size[0] // self.stride), -(-image_size[1] // self.stride)


@dataclass(frozen=True, kw_only=True)
class ViTConfig(ModelConfig, kind="vit"):
    """A Vision Transformer or a hybrid: the sizes of Table 1 and every choice of the paper."""

    noun = "Vision Transformer"
    fixed = ("dim", "depth", "num_heads", "mlp_dim", "channels", "backbone", "positions", "position_placement")
    dim: int
    """Width D of every token."""
    depth: int
    """Number L of encoder blocks."""
    num_heads: int
    """Attention heads k in each block."""
    mlp_dim: int
    """Hidden width of each MLP."""
    patch_size: Size
    """Height and width P of a patch, in pixels, or in cells of the feature map of a hybrid."""
    backbone: BackboneConfig | None = None
    """The convolutional network of a hybrid; None embeds pixels."""
    pool: Pool = "class-token"
    """The input of the head: the class token, the mean over patch tokens, or attention pooling (MAP)."""
    class_token: bool | None = None
    """Whether a class token is prepended; None means: only when it is pooled."""
    norm_pooled: bool = False
    """Apply the last LayerNorm after the mean over tokens (timm) and not before it (reference release)."""
    representation_size: int | None = None
    """Width of the tanh layer of the pre-training head; None leaves it out."""
    positions: PositionKind = "learned-1d"
    """Kind of positions (App. D.4)."""
    position_placement: Placement = "input"
    """Where positions are added (App. D.4)."""
    position_resize: ResizeWay = "google"
    """The library whose interpolation a new grid uses."""
    gelu: Gelu = "tanh"
    """`tanh` as in the reference release, `erf` as in timm, Hugging Face and torchvision."""
    norm_eps: float = 1e-6
    """Epsilon of every LayerNorm."""
    dropout: float = 0.0
    """Probability after every dense layer but qkv, and after adding positions."""
    attention_dropout: float = 0.0
    """Probability on the attention weights."""
    stochastic_depth: float = 0.0
    """Probability of skipping the last block's branches; it grows linearly from 0 at the first."""

    def __post_init__(self) -> None:
        """Fill in the class token and refuse what cannot be built."""
        if self.class_token is None:
            object.__setattr__(self, "class_token", self.pool == "class-token")
        check_choice("pool", self.pool, get_args(Pool))
        check_choice("positions", self.positions, get_args(PositionKind))
        check_choice("position_placement", self.position_placement, get_args(Placement))
        check_choice("position_resize", self.position_resize, get_args(ResizeWay))
        check_choice("gelu", self.gelu, get_args(Gelu))
        check_positive(
            dim=self.dim, depth=self.depth, num_heads=self.num_heads, mlp_dim=self.mlp_dim, channels=self.channels
        )
        check_size("image_size", self.image_size)
        check_size("patch_size", self.patch_size)
        check_count("num_classes", self.num_classes)
        if self.representation_size is not None:
            check_positive(representation_size=self.representation_size)
        check_probability(
            dropout=self.dropout, attention_dropout=self.attention_dropout, stochastic_depth=self.stochastic_depth
        )
        check_divides("num_heads", self.num_heads, "dim", self.dim)
        self._check_combinations()
        _ = self.grid

    def _check_combinations(self) -> None:
        """Refuse settings that are valid one by one but not together."""
        if self.pool == "class-token" and not self.class_token:
            raise ConfigError(
                "class-token pooling needs a class token, but class_token is False; "
                "set class_token=True or choose pool='mean' or 'attention'."
            )
        if self.norm_pooled and self.pool != "mean":
            raise ConfigError(
                f"norm_pooled moves the last LayerNorm after the mean over tokens, but pool is {self.pool!r}; "
                "set pool='mean' or norm_pooled=False."
            )
        divisor = {"learned-2d": 2, "sincos-2d": 4}.get(self.positions, 1)
        if self.dim % divisor:
            raise ConfigError(
                f"positions={self.positions!r} splits dim into {divisor} equal parts, but dim is {self.dim}; "
                f"choose a dim that {divisor} divides, or positions='learned-1d'."
            )
        if self.position_placement != "input" and self.positions in ("none", "relative"):
            raise ConfigError(
                f"positions={self.positions!r} are not added to tokens, so they take no placement "
                f"{self.position_placement!r} (Table 8 has no such cell); leave position_placement at 'input'."
            )

    @property
    def grid(self) -> Size:
        """Rows and columns of patches."""
        if self.backbone is None:
            return patch_grid(self.image_size, self.patch_size)
        feature_size = self.backbone.feature_size(self.image_size)
        try:
            return patch_grid(feature_size, self.patch_size)
        except GridError:
            raise GridError(
                f"an image of {size_text(self.image_size)} gives a feature map of {size_text(feature_size)}, which "
                f"patches of {size_text(self.patch_size)} cells do not divide; choose an image size that is a "
                f"multiple of {size_text(tuple(side * self.backbone.stride for side in self.patch_size))}."
            ) from None

    @property
    def feature_grid(self) -> Size | None:
        """Rows and columns of a hybrid's feature map."""
        return None if self.backbone is None else self.backbone.feature_size(self.image_size)

    @property
    def num_prefix(self) -> int:
        """How many tokens stand before those of the patches."""
        return int(bool(self.class_token))

    @property
    def attention_shape(self) -> Size:
        """Blocks with attention maps, and heads of each."""
        return self.depth, self.num_heads

    @property
    def num_tokens(self) -> int:
        """Length of the sequence: N patches and the class token."""
        return self.grid[0] * self.grid[1] + self.num_prefix

    @property
    def feature_width(self) -> int:
        """How many numbers the last linear layer sees."""
        return self.representation_size or self.dim

    @property
    def summary(self) -> str:
        """The model in a few words."""
        return f"{self.dim}x{self.depth}, patch {size_text(self.patch_size)}"

    @property
    def slug(self) -> str:
        """The model as part of a folder's name."""
        return f"vit-{self.dim}x{self.depth}-{self.patch_size[0]}"

    @property
    def num_blocks(self) -> int:
        """Count the encoder blocks, and the units of a hybrid's stages."""
        return self.depth + (sum(self.backbone.blocks) if self.backbone else 0)

    @property
    def sequence(self) -> int:
        """How many tokens an image becomes."""
        return self.num_tokens

    @property
    def draws(self) -> bool:
        """Whether a training pass draws random numbers."""
        return bool(self.dropout or self.attention_dropout or self.stochastic_depth)

    def adapted(self, *, num_classes: int, image_size: Size | None = None) -> "ViTConfig":
        """Return the model for another task, without the tanh layer of pre-training."""
        bare = replace(self, representation_size=None, dropout=0.0, attention_dropout=0.0, stochastic_depth=0.0)
        return replace(bare, num_classes=num_classes, head_bias=0.0, image_size=image_size or self.image_size)

    def for_pretraining(self, *, dropout: float) -> "ViTConfig":
        """Return the model with the head and dropout of Table 3."""
        return replace(self, representation_size=self.dim, dropout=dropout)

    def regularised_like(self, other: ModelConfig) -> "ViTConfig":
        """Return the model with the head and the dropout of another; a representation layer is as wide as the model."""
        if not isinstance(other, ViTConfig):
            return replace(self, head_bias=other.head_bias)
        return replace(
            self,
            head_bias=other.head_bias,
            dropout=other.dropout,
            attention_dropout=other.attention_dropout,
            stochastic_depth=other.stochastic_depth,
            representation_size=other.representation_size and self.dim,
        )

    def move(self, old: ModelConfig, names: Iterable[str]) -> Move:
        """Resize the patch kernel for another patch size and positions for another grid; leave a tanh layer behind."""
        assert isinstance(old, ViTConfig)  # noqa: S101 - both configs are of one kind
        resized: dict[str, Callable[[Tensor], Tensor]] = {}
        notes: list[str] = []
        if self.patch_size != old.patch_size:
            resized["embedding.projection.weight"] = partial(
                resize_patch_kernel, old=old.patch_size, new=self.patch_size
            )
            sizes = f"from {size_text(old.patch_size)} to {size_text(self.patch_size)}"
            notes.append(f"the patch kernel was resized {sizes}.")
        if self.grid != old.grid:
            tables = {name: resize_for_grid(name, old.grid, self.grid, way=self.position_resize) for name in names}
            resized |= {name: resize for name, resize in tables.items() if resize is not None}
            if any(tables.values()) or self.positions == "sincos-2d":
                notes.append(f"positions were resized from a grid of {size_text(old.grid)} to {size_text(self.grid)}.")
        bare = old.representation_size is not None and self.representation_size is None
        if bare:
            notes.append(f"the representation layer of {old.representation_size} units was removed.")
        return Move(
            resized=resized,
            dropped=("head.representation.",) if bare else (),
            new_head=bare or self.num_classes != old.num_classes,
            notes=tuple(notes),
        )

    def shrunk(self, image_size: Size) -> "ViTConfig":
        """Return a tiny model of the same kind."""
        backbone = self.backbone and BackboneConfig(blocks=(1,) * len(self.backbone.blocks), width=8, norm_groups=8)
        return replace(
            self,
            dim=16,
            depth=2,
            num_heads=2,
            mlp_dim=32,
            image_size=image_size,
            patch_size=(1, 1) if backbone else (8, 8),
            representation_size=self.representation_size and 16,
            backbone=backbone,
        )

    def check_patches(self, *, drop: float, sizes: Sequence[Size]) -> None:
        """Refuse to drop patches or change the grid where positions are inside the encoder, which has one grid."""
        if (drop or sizes) and (self.positions == "relative" or self.position_placement != "input"):
            raise ConfigError(
                f"positions {self.positions!r} placed at {self.position_placement!r} belong to one full grid; to drop "
                "patches or to train at other sizes, choose positions that are added at the input."
            )
        for size in sizes:
            _ = replace(self, image_size=size)
