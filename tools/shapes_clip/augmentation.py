"""Small changes to images that keep every fact about them true."""

from __future__ import annotations

import torch

from tools.shapes_clip.model import normalised


def augmented(images: torch.Tensor) -> torch.Tensor:
    """Images (bytes) with random shift, scale, brightness and noise, as input of the model. Some are not shifted."""
    n, device = len(images), images.device

    def uniform(low: float, high: float) -> torch.Tensor:
        return torch.empty((n, 1, 1, 1), device=device).uniform_(low, high)

    planes = images.permute(0, 3, 1, 2).float()
    scale, shift = uniform(0.94, 1.06).flatten(), torch.empty((n, 2), device=device).uniform_(-0.06, 0.06)
    frame = torch.zeros((n, 2, 3), device=device)
    frame[:, 0, 0] = frame[:, 1, 1] = scale
    frame[:, :, 2] = shift
    grid = torch.nn.functional.affine_grid(frame, list(planes.shape), align_corners=False)
    moved = torch.nn.functional.grid_sample(planes, grid, mode="bilinear", padding_mode="border", align_corners=False)
    planes = torch.where(uniform(0, 1) < 0.6, moved, planes)
    planes = (planes - 128) * uniform(0.85, 1.12) + 128 + uniform(-14, 14)
    planes = planes + torch.randn_like(planes) * uniform(-6, 8).clamp(min=0)
    return normalised(planes.clamp(0, 255).permute(0, 2, 3, 1))
