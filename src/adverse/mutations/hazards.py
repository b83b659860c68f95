"""Hazards that more than one mutation stands for; what only one does is said at the mutation itself.

Import them by name: the words of a hazard decide no pixel, and so are no part of a mutation's code.
"""

from __future__ import annotations

from adverse.marks import Hazard

TOO_BRIGHT = Hazard("light source", "intensity", "more", "there is more light than the exposure is made for")
COLOURED_LIGHT = Hazard(
    "light source", "spectrum", "other than", "the light has another colour than the system knows"
)
LOW_CONTRAST = Hazard("medium", "transparency", "less", "scattered light takes contrast from everything")
IN_FOG = Hazard("medium", "particles", "more", "mist or fog hangs between the scene and the camera")
OUT_OF_FOCUS = Hazard(
    "observer", "focus", "other than", "the lens is focused at another distance than the scene's"
)
ICE_ON_LENS = Hazard("observer", "cleanliness of the lens", "as well as", "ice lies on the lens")
COMPRESSED = Hazard("observer", "compression", "more", "the image is compressed harder than intended")
CAMERA_MOVES = Hazard("observer", "motion", "more", "the camera moves while the shutter is open")
SENSOR_NOISE = Hazard("observer", "electronic noise", "more", "the sensor adds more noise than it should")
