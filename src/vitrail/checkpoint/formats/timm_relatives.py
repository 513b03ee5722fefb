"""Releases with timm's names that are not in timm's list: DeiT III and MAE's fine-tuned models, as Meta published them.

They are rows of the table of architectures, by the names that their own programs have. Without them a file of theirs
would be taken for the one model of timm's list that has the same tensors: DeiT III's for one with rotary positions,
MAE's for one with another epsilon.
"""

from collections.abc import Mapping
from typing import Any

_FINE_TUNED = {
    "vit_base_patch16": ("768 3072/3072 16x16", 12, 12),
    "vit_large_patch16": ("1024 4096/4096 16x16", 24, 16),
    "vit_huge_patch14": ("1280 5120/5120 14x14", 32, 16),
}
_CROP = 224 / 256


def relatives(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return the further rows, given timm's."""
    further: dict[str, Mapping[str, Any]] = {}
    for name, row in rows.items():
        size, _, pixels = name.removeprefix("deit3_").rpartition("_")
        if name.startswith("deit3_"):  # the same model with `gamma_1` for `ls1.gamma`
            own = f"deit_{size}_LS" + ("" if pixels == "224" else f"_{pixels}")
            further[own] = {**row, "parts": row["parts"].replace(" ls ", " gamma ")}
    for name, (sizes, depth, heads) in _FINE_TUNED.items():
        further[name] = {
            "parts": f"{sizes} bias class positions fc-norm qkv-bias out-bias mlp-bias",
            "depth": depth,
            "heads": heads,
            "gelu": "erf",
            "norm_eps": 1e-6,
            "pool": "avg",
            "tags": {"": ["imagenet", "bicubic", _CROP, "center", [224, 224]]},
        }
    return further
