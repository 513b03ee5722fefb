"""The settings of a Vision Transformer: one frozen dataclass, checked when it is made."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from vitrail.base.errors import ConfigError, GridError
from vitrail.model.backbone import BackboneConfig
from vitrail.model.checks import (
    check_choice,
    check_count,
    check_divides,
    check_positive,
    check_probability,
    check_size,
)
from vitrail.model.contract import ModelConfig, Move
from vitrail.model.gelu import Gelu
from vitrail.model.mixer_settings import FullAttention, MixerConfig
from vitrail.model.patches import Size, fitting, patch_grid, size_text
from vitrail.model.positions import Placement, PositionKind, ResizeWay
from vitrail.model.rotary import RotaryConfig

Pool = Literal["class-token", "mean", "attention", "class-and-mean", "distilled"]
MlpKind = Literal["gelu", "swiglu"]


@dataclass(frozen=True, kw_only=True)
class ViTConfig(ModelConfig, kind="vit"):
    """A Vision Transformer or a hybrid: the sizes of Table 1 and every choice of the paper."""

    noun = "Vision Transformer"
    fixed = (
        *("dim", "depth", "num_heads", "mlp_dim", "mlp", "channels", "backbone", "registers", "distillation_token"),
        *("positions", "position_placement", "norm_embedded", "norm_encoded", "mixer"),
    )
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
    """What the head sees: the class token, the mean over patch tokens, attention pooling (MAP), the class token beside
    the mean (DINOv2), or the class token beside the distillation token (DeiT)."""
    pool_prefix: bool | None = None
    """Whether the mean or the attention sees the tokens before the patches too; None stands for: attention does."""
    class_token: bool | None = None
    """Whether a class token is prepended; None stands for: only when it is pooled."""
    pool_heads: int | None = None
    """Heads of attention pooling; None stands for as many as a block has."""
    distillation_token: bool = False
    """Whether a second token for the head follows the class token (DeiT)."""
    registers: int = 0
    """Learned tokens between those and the patches that no head sees (DINOv2 with registers)."""
    norm_embedded: bool = False
    """Apply a LayerNorm before the first block (CLIP)."""
    norm_encoded: bool = True
    """Apply a LayerNorm after the last block (Eq. 4)."""
    norm_pooled: bool = False
    """Apply the last LayerNorm after the mean over tokens (timm) and not before it (reference release)."""
    representation_size: int | None = None
    """Width of the tanh layer of the pre-training head; None leaves it out."""
    projection_size: int | None = None
    """Width of the space that images share with text, into which a matrix maps what is pooled (CLIP); None has none."""
    positions: PositionKind = "learned-1d"
    """Kind of positions (App. D.4)."""
    position_placement: Placement = "input"
    """Where positions are added (App. D.4)."""
    position_resize: ResizeWay = "google"
    """Whose interpolation a new grid gets."""
    rotary: RotaryConfig | None = None
    """Rotary positions, beside or in place of those that are added (DINOv3, EVA-02); None has none."""
    trim: bool = False
    """Leave out pixels at the right and the bottom that fill no patch, as a convolution does; else they are refused."""
    mlp: MlpKind = "gelu"
    """The MLP of a block: two layers with a GELU between, or SwiGLU, whose hidden layer a third one gates."""
    mixer: MixerConfig = field(default_factory=FullAttention)
    """How the patches of a block mix: attention, axial, window, sparse, linear, pooling, identity, mlp, convolution."""
    layer_scale: float | None = None
    """Initial value of a learned factor on each channel of every branch (DeiT III, DINOv2); None has none."""
    gelu: Gelu = "tanh"
    """`tanh` as in the reference release, `erf` as in timm, Hugging Face and torchvision, `quick` as in CLIP."""
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
            object.__setattr__(self, "class_token", self.pool in ("class-token", "class-and-mean", "distilled"))
        check_choice("pool", self.pool, get_args(Pool))
        check_choice("positions", self.positions, get_args(PositionKind))
        check_choice("position_placement", self.position_placement, get_args(Placement))
        check_choice("position_resize", self.position_resize, get_args(ResizeWay))
        check_choice("gelu", self.gelu, get_args(Gelu))
        check_choice("mlp", self.mlp, get_args(MlpKind))
        check_positive(
            dim=self.dim, depth=self.depth, num_heads=self.num_heads, mlp_dim=self.mlp_dim, channels=self.channels
        )
        check_size("image_size", self.image_size)
        check_size("patch_size", self.patch_size)
        check_count("num_classes", self.num_classes)
        check_count("registers", self.registers)
        for name in ("representation_size", "projection_size"):
            if (width := getattr(self, name)) is not None:
                check_positive(**{name: width})
        check_probability(
            dropout=self.dropout, attention_dropout=self.attention_dropout, stochastic_depth=self.stochastic_depth
        )
        check_divides("num_heads", self.num_heads, "dim", self.dim)
        check_positive(pool_heads=self.pool_heads or self.num_heads)
        check_divides("pool_heads", self.pool_heads or self.num_heads, "dim", self.dim)
        self._check_combinations()
        _ = self.grid

    def _check_combinations(self) -> None:
        """Refuse settings that are fine one by one but not together."""
        if self.pool in ("class-token", "class-and-mean", "distilled") and not self.class_token:
            raise ConfigError(
                f"{self.pool} pooling needs a class token, but class_token is False; "
                "set class_token=True or choose pool='mean' or 'attention'."
            )
        if self.pool == "distilled" and not self.distillation_token:
            raise ConfigError(
                "distilled pooling needs a distillation token, but distillation_token is False; "
                "set distillation_token=True or choose pool='class-token'."
            )
        if self.distillation_token and not self.class_token:
            raise ConfigError("a distillation token follows a class token, but class_token is False; set it to True.")
        if self.norm_pooled and not self.norm_encoded:
            raise ConfigError("norm_pooled moves the last LayerNorm, but norm_encoded is False; set it to True.")
        if self.norm_pooled and self.pool != "mean":
            raise ConfigError(
                f"norm_pooled moves the last LayerNorm after the mean over tokens, but pool is {self.pool!r}; "
                "set pool='mean' or norm_pooled=False."
            )
        if self.representation_size and self.projection_size:
            raise ConfigError(
                "representation_size and projection_size are both given, but a head has at most one of the two layers; "
                "leave one out."
            )
        self._check_positions()
        self._check_mixer()

    def _check_mixer(self) -> None:
        """Refuse what the mixer of the blocks has no place for."""
        mixer = self.mixer.kind
        if self.num_prefix and not self.mixer.sees_prefix:
            raise ConfigError(
                f"the mixer {mixer!r} shows the patches to no class token, distillation token or register; "
                "set pool='mean' or pool='attention', without such tokens."
            )
        if self.positions == "relative" and mixer != "attention":
            raise ConfigError(
                f"relative positions belong to attention over all tokens, but mixer is {mixer!r}; "
                "choose other positions."
            )
        if self.rotary is not None and not self.mixer.rotates:
            raise ConfigError(f"rotary positions turn queries and keys, which the mixer {mixer!r} does not compare.")
        if mixer == "sparse" and self.num_heads < 2:
            raise ConfigError("the mixer 'sparse' has two kinds of heads, but num_heads is 1; choose at least 2.")
        if self.attention_dropout and mixer in ("linear", "pooling", "identity", "mlp", "convolution"):
            raise ConfigError(
                f"attention_dropout is {self.attention_dropout}, but the mixer {mixer!r} has no weights to drop; "
                "set it to 0."
            )

    def _check_positions(self) -> None:
        """Refuse positions that do not go with the width, with each other, or with further tokens."""
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

        inside = self.positions == "relative" or self.position_placement != "input"
        if inside and (self.registers or self.distillation_token or self.rotary):
            raise ConfigError(
                f"positions {self.positions!r} placed at {self.position_placement!r} know the class token and patches "
                "only; with registers, a distillation token or rotary positions choose others, at the input."
            )
        if self.rotary is not None and self.dim // self.num_heads % 4:
            raise ConfigError(
                f"rotary positions split a head into 4 equal parts, but it has {self.dim // self.num_heads} values; "
                f"choose another num_heads than {self.num_heads}."
            )

    @property
    def grid(self) -> Size:
        """Rows and columns of patches."""
        if self.backbone is None:
            size = fitting(self.image_size, self.patch_size) if self.trim else self.image_size
            return patch_grid(size, self.patch_size)
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
    def cell_size(self) -> Size:
        """Height and width of a patch in pixels of the image."""
        stride = 1 if self.backbone is None else self.backbone.stride
        return self.patch_size[0] * stride, self.patch_size[1] * stride

    @property
    def feature_grid(self) -> Size | None:
        """Rows and columns of a hybrid's feature map."""
        return None if self.backbone is None else self.backbone.feature_size(self.image_size)

    @property
    def num_prefix(self) -> int:
        """How many tokens come before the patches."""
        return bool(self.class_token) + self.distillation_token + self.registers

    @property
    def num_tokens(self) -> int:
        """Length of the sequence: N patches and the tokens before them."""
        return self.grid[0] * self.grid[1] + self.num_prefix

    @property
    def first_pooled(self) -> int:
        """The first token that the mean or the attention sees."""
        sees_prefix = self.pool == "attention" if self.pool_prefix is None else self.pool_prefix
        return 0 if sees_prefix else self.num_prefix

    @property
    def pooled_width(self) -> int:
        """How many numbers pooling gives."""
        return 2 * self.dim if self.pool in ("class-and-mean", "distilled") else self.dim

    @property
    def attention_shape(self) -> Size:
        """Blocks with attention maps, and heads of each."""
        return (self.depth, self.num_heads) if self.mixer.has_maps else (0, 0)

    @property
    def feature_width(self) -> int:
        """How many numbers the last linear layer sees."""
        return self.representation_size or self.projection_size or self.pooled_width

    @property
    def text_width(self) -> int | None:
        """Width of CLIP's projection into the space of texts."""
        return self.projection_size

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
        """Return the model for another task, without the last layer of pre-training before the head."""
        bare = replace(self, dropout=0.0, attention_dropout=0.0, stochastic_depth=0.0)
        bare = replace(bare, representation_size=None, projection_size=None)
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
        from vitrail.model.moves import move_vit  # which reads these settings

        assert isinstance(old, ViTConfig)  # noqa: S101 - one file tells of one kind
        return move_vit(self, old, names)

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
            projection_size=self.projection_size and 16,
            registers=min(self.registers, 2),
            backbone=backbone,
        )

    def check_patches(self, *, drop: float, sizes: Sequence[Size]) -> None:
        """Refuse to drop patches or change the grid where positions are inside the encoder, which has one grid."""
        if (drop or sizes) and (self.positions == "relative" or self.position_placement != "input"):
            raise ConfigError(
                f"positions {self.positions!r} placed at {self.position_placement!r} belong to one full grid; to drop "
                "patches or to train at other sizes, choose positions that are added at the input."
            )
        if drop and not self.mixer.any_patches:
            raise ConfigError(f"the mixer {self.mixer.kind!r} needs every patch of its grid; leave drop_patches at 0.")
        if not self.mixer.any_grid and any(size != self.image_size for size in sizes):
            raise ConfigError(
                f"the mixer {self.mixer.kind!r} has a weight for each patch of {size_text(self.image_size)} pixels; "
                "train at that size alone, or choose another mixer."
            )
        for size in sizes:
            _ = replace(self, image_size=size)

    def check_tokens(self, image_size: Size) -> Size:
        """Return the grid, or refuse what sees hidden pixels all the same, or has weights that no patch reaches."""
        if self.backbone is not None:
            raise ConfigError(
                "the convolutions of a hybrid see hidden patches from those beside them; choose a model without one."
            )
        for name, idle in (
            ("pool", self.pool == "attention"),
            ("norm_pooled", self.norm_pooled),
            ("representation_size", self.representation_size is not None),
            ("projection_size", self.projection_size is not None),
        ):
            if idle:
                raise ConfigError(
                    f"{name} is {getattr(self, name)!r}, whose weights learn nothing where patches are predicted; "
                    "choose pool='mean' or 'class-token', and no layer between it and the head."
                )
        return patch_grid(image_size, self.patch_size)
