"""Import before timm or torchvision: declares the two operators of torchvision's library, which a CPU cannot load."""

import torch

_library = torch.library.Library("torchvision", "DEF")
for _operator in ("nms", "qnms"):
    _library.define(f"{_operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
