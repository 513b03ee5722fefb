"""The settings of a block's token mixer: self-attention, or what stands in its place between norm and residual (Eq. 2).

| kind        | a patch mixes with                                            | cost in N   | class token          |
|-------------|---------------------------------------------------------------|-------------|----------------------|
| attention   | every token (Eq. 5-8)                                         | N^2         | one of the tokens    |
| axial       | its row in even blocks, its column in odd ones (App. D.6)     | N sqrt(N)   | apart: it sees all   |
| window      | its window of w x w, shifted by w/2 in odd blocks             | N w^2       | apart: it sees all   |
| sparse      | in half of the heads a stretch of s tokens, in the others     | N sqrt(N)   | apart: it sees all   |
|             | every s-th token; s is the length of a row                    |             |                      |
| linear      | every token, by phi(q) (phi(k)^T v) with phi = elu + 1        | N D_h       | one of the tokens    |
| pooling     | the mean of its 3x3 neighbours, minus itself                  | N           | none: pool the mean  |
| identity    | nothing: patches meet in the head alone                       | 0           | none: pool the mean  |
| mlp         | every patch, by two dense layers over the N patches           | N^2         | none: pool the mean  |
| convolution | its 3x3 neighbours, each channel by itself                    | N           | none: pool the mean  |

"Apart" means that tokens before the patches attend to all tokens with the block's own q, k and v, and that no patch
attends to them: that costs N for each.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from vitrail.base.errors import ConfigError, did_you_mean
from vitrail.base.settings import Tagged
from vitrail.model.checks import check_positive

MixerName = Literal["attention", "axial", "window", "sparse", "linear", "pooling", "identity", "mlp", "convolution"]
_STACKED = {"qkv.weight": 3, "out.weight": 1}


@dataclass(frozen=True, kw_only=True)
class MixerConfig(Tagged):
    """The settings of a mixer: a family of frozen dataclasses, one for each kind."""

    has_maps: ClassVar[bool] = True
    """Whether a block has attention maps A."""
    sees_prefix: ClassVar[bool] = True
    """Whether a class token, or another token before the patches, learns of the patches."""
    any_patches: ClassVar[bool] = False
    """Whether some patches may be missing: a mixer that needs the whole grid has a place for each."""
    any_grid: ClassVar[bool] = True
    """Whether the weights serve images of every size."""
    rotates: ClassVar[bool] = True
    """Whether queries and keys can be turned by rotary positions."""
    matrices: ClassVar[Mapping[str, int]] = _STACKED
    """Kernels that are matrices, with how many are stacked in each."""
    last: ClassVar[tuple[str, ...]] = ("out.weight", "out.bias")
    """The weights that come last; none where there are no weights."""


@dataclass(frozen=True, kw_only=True)
class FullAttention(MixerConfig, kind="attention"):
    """Multi-head self-attention over all tokens: the paper's (Eq. 5-8)."""

    any_patches = True


@dataclass(frozen=True, kw_only=True)
class AxialAttention(MixerConfig, kind="axial"):
    """Attention along rows in even blocks and along columns in odd ones: two blocks are one of Axial-ViT (App. D.6)."""


@dataclass(frozen=True, kw_only=True)
class WindowAttention(MixerConfig, kind="window"):
    """Attention within square windows, shifted by half a window in odd blocks."""

    size: int = 7
    """Rows and columns of a window; windows at the border of the grid may be smaller."""

    def __post_init__(self) -> None:
        """Refuse windows without a patch."""
        check_positive(**{"mixer.size": self.size})


@dataclass(frozen=True, kw_only=True)
class SparseAttention(MixerConfig, kind="sparse"):
    """Strided attention: half of the heads see a stretch of tokens in raster order, half see every s-th token.

    Child et al. (2019) let the stretch end at each token; here the sequence is cut into stretches, for a grid has no
    direction.
    """

    stride: int | None = None
    """Tokens of a stretch, and the step s; None stands for the length of a row."""

    def __post_init__(self) -> None:
        """Refuse stretches without a token."""
        check_positive(**{"mixer.stride": 1 if self.stride is None else self.stride})


@dataclass(frozen=True, kw_only=True)
class LinearAttention(MixerConfig, kind="linear"):
    """Attention whose cost is linear in the number of tokens: phi(q) (phi(k)^T v) / (phi(q) sum phi(k))."""

    any_patches = True
    rotates = False


@dataclass(frozen=True, kw_only=True)
class Pooling(MixerConfig, kind="pooling"):
    """The mean of the neighbours, minus the patch itself (PoolFormer); no weights."""

    size: int = 3
    """Rows and columns of the neighbourhood, an odd number."""
    has_maps, sees_prefix, rotates = False, False, False
    matrices: ClassVar[Mapping[str, int]] = {}
    last = ()

    def __post_init__(self) -> None:
        """Refuse a neighbourhood without a middle."""
        _check_odd(self.size)


@dataclass(frozen=True, kw_only=True)
class Identity(MixerConfig, kind="identity"):
    """The normalised token itself (MetaFormer's baseline); no weights."""

    has_maps, sees_prefix, rotates, any_patches = False, False, False, True
    matrices: ClassVar[Mapping[str, int]] = {}
    last = ()


@dataclass(frozen=True, kw_only=True)
class TokenMlp(MixerConfig, kind="mlp"):
    """Two dense layers with a GELU between over the patches of each channel (MLP-Mixer)."""

    hidden: int | None = None
    """Width of the hidden layer; None stands for half of the model's, as in MLP-Mixer."""
    has_maps, sees_prefix, rotates, any_grid = False, False, False, False
    matrices: ClassVar[Mapping[str, int]] = {"hidden.weight": 1, "out.weight": 1}

    def __post_init__(self) -> None:
        """Refuse a layer without units."""
        check_positive(**{"mixer.hidden": 1 if self.hidden is None else self.hidden})


@dataclass(frozen=True, kw_only=True)
class DepthwiseConvolution(MixerConfig, kind="convolution"):
    """A convolution of each channel by itself, with zeros around the grid."""

    size: int = 3
    """Rows and columns of the kernel, an odd number."""
    has_maps, sees_prefix, rotates = False, False, False
    matrices: ClassVar[Mapping[str, int]] = {}
    last = ("depthwise.weight", "depthwise.bias")

    def __post_init__(self) -> None:
        """Refuse a kernel without a middle."""
        _check_odd(self.size)


def as_mixer(mixer: str | MixerConfig) -> MixerConfig:
    """Read a name as the mixer with its usual settings."""
    if isinstance(mixer, MixerConfig):
        return mixer
    kinds = MixerConfig.members
    if not isinstance(mixer, str) or mixer not in kinds:
        names = ", ".join(kinds)
        raise ConfigError(f"mixer is {mixer!r}, but must be one of {names}.{did_you_mean(str(mixer), kinds)}")
    config: MixerConfig = kinds[mixer]()
    return config


def _check_odd(size: int) -> None:
    check_positive(**{"mixer.size": size})
    if size % 2 == 0:
        raise ConfigError(
            f"mixer.size is {size}, but must be odd, for a patch in the middle; choose {size - 1} or {size + 1}."
        )
