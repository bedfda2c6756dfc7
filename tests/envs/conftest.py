"""Environments are an extra: without Gymnasium their tests are not collected."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("gymnasium") and find_spec("PIL") else ["test_*.py"]
