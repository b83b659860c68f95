"""Visual change: how much worse a person sees a changed image. Pure functions of two images."""

from adverse.visual.change import BACKENDS, Backend, Reference, VisualChange, visual_change
from adverse.visual.ssim import ssim
from adverse.visual.vif import vif
from adverse.visual.vifp import vifp
from adverse.visual.vsnr import vsnr

__all__ = ["BACKENDS", "Backend", "Reference", "VisualChange", "ssim", "vif", "vifp", "visual_change", "vsnr"]
