"""MuJoCo: one batch under collisions, free bodies, varied bodies and strikes."""
