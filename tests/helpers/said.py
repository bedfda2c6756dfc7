"""What a command said besides its progress, which depends on how busy the machine is."""


def without_progress(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("... "))
