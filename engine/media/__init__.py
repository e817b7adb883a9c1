"""A file becomes upright RGB pictures, here and nowhere else."""

from .images import open_image
from .videos import sample_frames

__all__ = ["open_image", "sample_frames"]
