#!/usr/bin/env bash
# Makes a virtual environment with Vitrail and its peers: benchmarks/peers.sh FOLDER
# timm and torchvision go in without their dependencies, which would replace torch by its CUDA build; programs that
# use them import peers_shim (beside this file) first.
set -euo pipefail
folder=${1:?usage: benchmarks/peers.sh FOLDER}
here=$(cd "$(dirname "$0")" && pwd)
python3 -m venv "$folder"
"$folder/bin/pip" install -q -c "$here/../constraints.txt" -e "$here/.." einops huggingface_hub pillow psutil pyyaml simplejpeg transformers==5.22.2
"$folder/bin/pip" install -q --no-deps accelerate==1.15.0 torchvision==0.28.0 timm==1.0.30 vit-pytorch==1.26.11
cp "$here/peers_shim.py" "$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
"$folder/bin/python" -c 'import peers_shim, timm, torchvision, vit_pytorch, transformers, vitrail; print("peers ready")'
