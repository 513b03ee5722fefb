"""Named tensor types: the legend of axes that every signature uses.

| axis           | what it counts                                             |
|----------------|------------------------------------------------------------|
| batch          | images                                                     |
| channel        | colour channels of an image, or channels of a feature map  |
| height, width  | pixels of an image, or cells of a feature map              |
| new_...        | the same after a change of size, or of channels            |
| patch          | patches, N = rows * columns of the grid, in raster order   |
| pixels         | values of one flattened patch: channel, then row, column   |
| token          | patches, with the class token in front when there is one   |
| kept           | the leading tokens that are computed                       |
| kept_patch     | the patches of each image that are not left out            |
| dim            | the model's width D                                        |
| head, head_dim | attention heads, and D_h = D / heads                       |
| query, key     | tokens that attend, and are attended                       |

The names are checked in tests only; at run time they are documentation.
"""

from jaxtyping import Float, Int, UInt8
from torch import Tensor

Pixels = UInt8[Tensor, "channel height width"]
NewPixels = UInt8[Tensor, "new_channel new_height new_width"]
PixelBatch = UInt8[Tensor, "batch channel height width"]
Images = Float[Tensor, "batch channel height width"]
FeatureMap = Float[Tensor, "batch features rows columns"]
PatchPixels = Float[Tensor, "batch patch pixels"]
Patches = Float[Tensor, "batch patch dim"]
Tokens = Float[Tensor, "batch token dim"]
KeptPatches = Int[Tensor, "batch kept_patch"]
KeptTokens = Float[Tensor, "batch kept dim"]
Queries = Float[Tensor, "batch head query head_dim"]
Keys = Float[Tensor, "batch head key head_dim"]
AttentionMap = Float[Tensor, "batch head query key"]
PoolWeights = Float[Tensor, "batch token"]
PositionTable = Float[Tensor, "token dim"]
Pooled = Float[Tensor, "batch dim"]
Representation = Float[Tensor, "batch representation"]
Logits = Float[Tensor, "batch class"]
Kernel = Float[Tensor, "output input height width"]
