"""How far attention reaches: the mean distance between a patch and what it attends to (Fig. 7 right, App. D.7)."""

import torch
from jaxtyping import Float
from torch import Tensor

from vitrail.base.shapes import AttentionMap
from vitrail.model.patches import Size

PatchDistances = Float[Tensor, "patch other"]
HeadMeans = Float[Tensor, "batch head"]


def patch_distances(grid: Size, cell: Size) -> PatchDistances:
    """Return the distance between the centres of every two patches, in pixels of the image."""
    rows, columns = torch.meshgrid(torch.arange(grid[0]), torch.arange(grid[1]), indexing="ij")
    centres = torch.stack([rows.flatten() * cell[0], columns.flatten() * cell[1]], dim=1).float()
    return torch.cdist(centres, centres, compute_mode="donot_use_mm_for_euclid_dist")


def attention_distance(attention: AttentionMap, distances: PatchDistances) -> HeadMeans:
    """Return sum_k A_qk d_qk / sum_k A_qk, as a mean over the queries q, for each image and head.

    Queries and keys are the patches; the tokens before them have no place, so their rows and columns are left out. One
    head at a time is in memory beside A.
    """
    patches = len(distances)
    between = attention[:, :, -patches:, -patches:]
    heads = [
        (torch.einsum("bqk,qk->bq", head, distances.to(head)) / head.sum(dim=2)).mean(dim=1)
        for head in between.unbind(dim=1)
    ]
    return torch.stack(heads, dim=1)
