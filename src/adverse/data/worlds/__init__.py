"""Small rendered worlds with exact truth: an orchard and a street, for studies with nothing downloaded.

A scene is a ground plane and convex solids under one sun; a ray caster turns it into a stereo pair, metric
depth, class labels and instances. It is synthetic: results prove the machinery, not a product's safety.

    solids, noise, casting, textures, shading, sensor     how a picture is made
    people, trees, things, cars, houses                   what is in it
    driving, orchard, street                              how a log goes
    rendering, writing                                    from a scene to files
"""
