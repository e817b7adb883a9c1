"""A file becomes upright RGB pictures, here and nowhere else."""

from .frames import Frames
from .images import open_image
from .limits import MediaLimits, media_limits, set_media_limits
from .videos import sample_frames, sample_steps

__all__ = ["Frames", "MediaLimits", "media_limits", "open_image", "sample_frames", "sample_steps", "set_media_limits"]
