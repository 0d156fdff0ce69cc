"""Write every golden file anew; read the difference before it is committed.

`PYTHONPATH=tests python -m golden.renew`
"""

from golden.cases import FOLDER, golden_texts

SUFFIXES = {".txt", ".md", ".json", ".jsonl"}


def renew() -> None:
    """Replace the golden files by what the program writes now."""
    for path in FOLDER.iterdir():
        if path.suffix in SUFFIXES:
            path.unlink()
    for name, text in golden_texts():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    renew()
