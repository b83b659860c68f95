"""The doors to other tools: results in their formats, and our parts under their protocols."""
