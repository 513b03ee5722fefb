"""The settings of the convolutional network in front of a hybrid."""

from dataclasses import dataclass
from typing import get_args

from vitrail.base.errors import ConfigError
from vitrail.model.checks import check_choice, check_divides, check_positive
from vitrail.model.convolution import Standardisation
from vitrail.model.patches import Size


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
