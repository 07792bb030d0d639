"""Fashion-MNIST from gzipped idx files: the bundled subset, or the full set where it is here."""

from __future__ import annotations

import gzip
import struct
from dataclasses import dataclass
from pathlib import Path

BUNDLED = Path(__file__).resolve().parent / "data" / "fashion-mnist"
FULL_SET = Path("/usr/share/datasets/fashion-mnist")  # Debian's dataset-fashion-mnist
FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
IMAGE_SIDE = 28
CLASSES = 10
_IMAGES_MAGIC = 0x803  # idx format: unsigned bytes, three dimensions
_LABELS_MAGIC = 0x801  # idx format: unsigned bytes, one dimension


class DatasetError(ValueError):
    """A folder that lacks a file, or a file that is not what its name says."""


@dataclass(frozen=True)
class Split:
    """Images and their labels.

    Attributes:
        images: one byte a pixel, 28 rows of 28 each image, one image after another.
        labels: one byte a label, 0 to 9.
    """

    images: bytes
    labels: bytes

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Dataset:
    """Both splits, and the folder they come from."""

    train: Split
    test: Split
    folder: Path


def load(folder: Path | None = None) -> Dataset:
    """Read both splits.

    Args:
        folder: where the four files lie; None takes the full set if this machine has it, else the
            bundled subset.

    Raises:
        DatasetError: a file is missing or damaged.
    """
    if folder is None:
        complete = all((FULL_SET / name).is_file() for name in FILES)
        folder = FULL_SET if complete else BUNDLED
    train_images, train_labels, test_images, test_labels = (folder / name for name in FILES)
    train = _read_split(train_images, train_labels)
    return Dataset(train, _read_split(test_images, test_labels), folder)


def _read_split(images_path: Path, labels_path: Path) -> Split:
    images = _read_idx(images_path, _IMAGES_MAGIC, (IMAGE_SIDE, IMAGE_SIDE))
    labels = _read_idx(labels_path, _LABELS_MAGIC, ())
    if len(images) != len(labels) * IMAGE_SIDE * IMAGE_SIDE:
        raise DatasetError(
            f"{images_path} holds {len(images) // IMAGE_SIDE**2} images, "
            f"{labels_path} {len(labels)} labels"
        )
    if labels and max(labels) >= CLASSES:
        raise DatasetError(f"{labels_path}: label {max(labels)}; expected 0 to {CLASSES - 1}")
    return Split(images, labels)


def _read_idx(path: Path, magic: int, item_shape: tuple[int, ...]) -> bytes:
    """The items of an idx file of unsigned bytes, without its header."""
    try:
        data = gzip.decompress(path.read_bytes())
    except FileNotFoundError:
        needed = ", ".join(FILES)
        raise DatasetError(f"{path} does not exist; a data folder holds {needed}") from None
    except (OSError, EOFError) as error:
        raise DatasetError(f"{path} cannot be read: {error}") from None
    layout = struct.Struct(f">{2 + len(item_shape)}I")
    if len(data) < layout.size:
        raise DatasetError(f"{path}: {len(data)} bytes are too few for an idx file")
    found_magic, count, *found_shape = layout.unpack_from(data)
    size = count
    for extent in item_shape:
        size *= extent
    if found_magic != magic or tuple(found_shape) != item_shape or len(data) != layout.size + size:
        raise DatasetError(f"{path} is no idx file of items of shape {item_shape}")
    return data[layout.size :]
