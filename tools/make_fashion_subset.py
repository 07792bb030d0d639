"""Write the bundled subset of Fashion-MNIST from the full set.

Takes the first images of each class, in the order of the original files, so that the result is
the same on every machine and every class is equally frequent. Standard library only.
"""

from __future__ import annotations

import argparse
import gzip
import struct
from pathlib import Path

FULL_SET = Path("/usr/share/datasets/fashion-mnist")  # where Debian's dataset-fashion-mnist puts it
SUBSET = Path(__file__).resolve().parent.parent / "examples" / "data" / "fashion-mnist"
CLASSES = 10
PER_CLASS = {"train": 1200, "t10k": 200}
IMAGES_MAGIC = 0x803  # idx format: unsigned bytes, three dimensions
LABELS_MAGIC = 0x801  # idx format: unsigned bytes, one dimension


def read_images(path: Path) -> tuple[list[bytes], int, int]:
    """Read an idx3 file.

    Returns:
        One `bytes` of `rows * columns` pixels an image, then rows and columns.

    Raises:
        ValueError: the file is not an idx3 file, or it is shorter than its header says.
    """
    data = gzip.decompress(path.read_bytes())
    magic, count, rows, columns = struct.unpack_from(">IIII", data)
    size = rows * columns
    if magic != IMAGES_MAGIC or len(data) != 16 + count * size:
        raise ValueError(f"{path}: expected an idx3 file of {count} images, got {len(data)} bytes")
    return [data[at : at + size] for at in range(16, len(data), size)], rows, columns


def read_labels(path: Path) -> bytes:
    """Read an idx1 file: one byte a label.

    Raises:
        ValueError: the file is not an idx1 file, or it is shorter than its header says.
    """
    data = gzip.decompress(path.read_bytes())
    magic, count = struct.unpack_from(">II", data)
    if magic != LABELS_MAGIC or len(data) != 8 + count:
        raise ValueError(f"{path}: expected an idx1 file of {count} labels, got {len(data)} bytes")
    return data[8:]


def choose(labels: bytes, per_class: int) -> list[int]:
    """Positions of the first `per_class` labels of each class, in ascending order."""
    left = [per_class] * CLASSES
    chosen = []
    for position, label in enumerate(labels):
        if left[label] > 0:
            left[label] -= 1
            chosen.append(position)
    return chosen


def write_gzip(path: Path, data: bytes) -> None:
    """Write `data` compressed, without a time stamp, so that equal data gives equal bytes."""
    path.write_bytes(gzip.compress(data, compresslevel=9, mtime=0))
    print(f"{path}: {path.stat().st_size} bytes")


def make_split(source: Path, target: Path, split: str, per_class: int) -> None:
    """Copy `per_class` images of each class of one split (`train` or `t10k`)."""
    images_name = f"{split}-images-idx3-ubyte.gz"
    labels_name = f"{split}-labels-idx1-ubyte.gz"
    images, rows, columns = read_images(source / images_name)
    labels = read_labels(source / labels_name)
    chosen = choose(labels, per_class)
    header = struct.pack(">IIII", IMAGES_MAGIC, len(chosen), rows, columns)
    write_gzip(target / images_name, header + b"".join(images[i] for i in chosen))
    header = struct.pack(">II", LABELS_MAGIC, len(chosen))
    write_gzip(target / labels_name, header + bytes(labels[i] for i in chosen))


def main() -> None:
    """Command line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, default=FULL_SET, help="folder of the full set")
    parser.add_argument("--target", type=Path, default=SUBSET, help="folder to write to")
    arguments = parser.parse_args()
    arguments.target.mkdir(parents=True, exist_ok=True)
    for split, per_class in PER_CLASS.items():
        make_split(arguments.source, arguments.target, split, per_class)


if __name__ == "__main__":
    main()
