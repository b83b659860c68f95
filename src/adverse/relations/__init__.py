"""Metamorphic relations: what must hold between the answers to a frame and to its changed versions."""
