"""The settings of a Vision Transformer: one frozen dataclass, checked when it is made."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from vitrail.base.errors import GridError
from vitrail.model.backbone import BackboneConfig
from vitrail.model.family import ModelConfig, Move
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
        from vitrail.model.config_checks import check_vit  # which reads these settings

        if self.class_token is None:
            object.__setattr__(self, "class_token", self.pool in ("class-token", "class-and-mean", "distilled"))
        check_vit(self)

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

        assert isinstance(old, ViTConfig)  # noqa: S101 - one file is of one kind
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
        from vitrail.model.config_checks import check_vit_patches

        check_vit_patches(self, drop=drop, sizes=sizes)

    def check_tokens(self, image_size: Size) -> Size:
        """Return the grid, or refuse what sees hidden pixels all the same, or has weights that no patch reaches."""
        from vitrail.model.config_checks import check_vit_tokens

        check_vit_tokens(self)
        return patch_grid(image_size, self.patch_size)
