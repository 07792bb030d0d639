"""The examples run as a newcomer runs them: as programs, with real images."""

from __future__ import annotations

import gzip
import re
import shlex
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tg_frontend.nn.state import safe_load

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
BUNDLED = EXAMPLES / "data" / "fashion-mnist"
FILES = {"train": 600, "t10k": 200}  # images that the small folder takes of each split
IMAGE_BYTES = 28 * 28


Finished = subprocess.CompletedProcess[str]


def run_example(name: str, *options: object, folder: Path = ROOT) -> Finished:
    command = [sys.executable, str(EXAMPLES / name), *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


@pytest.fixture(scope="module")
def few_images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the first images of the bundled set."""
    folder = tmp_path_factory.mktemp("few-images")
    for split, count in FILES.items():
        images = gzip.decompress((BUNDLED / f"{split}-images-idx3-ubyte.gz").read_bytes())
        labels = gzip.decompress((BUNDLED / f"{split}-labels-idx1-ubyte.gz").read_bytes())
        header = struct.pack(">IIII", 0x803, count, 28, 28)
        (folder / f"{split}-images-idx3-ubyte.gz").write_bytes(
            gzip.compress(header + images[16 : 16 + count * IMAGE_BYTES])
        )
        (folder / f"{split}-labels-idx1-ubyte.gz").write_bytes(
            gzip.compress(struct.pack(">II", 0x801, count) + labels[8 : 8 + count])
        )
    return folder


def test_quick_start() -> None:
    result = run_example("quick_start.py")
    assert result.returncode == 0, result.stderr
    share = re.search(r"([\d.]+) % of the points are named rightly", result.stdout)
    assert share is not None and float(share[1]) > 95


def test_training_reports_accuracy_and_costs(few_images: Path) -> None:
    result = run_example(
        *("train_fashion_mnist.py", "--data", few_images, "--epochs", 3, "--batch-size", 50)
    )
    assert result.returncode == 0, result.stderr
    last = result.stdout.splitlines()[-1]
    accuracy = re.fullmatch(r"test accuracy: (\d+\.\d) %", last)
    assert accuracy is not None, last
    assert float(accuracy[1]) > 60  # of ten classes, from 600 images
    for name in ("kernels per step", "compile time", "time per step", "peak memory"):
        assert re.search(rf"^{name} +\d", result.stdout, re.MULTILINE), result.stdout
    assert "loss" in result.stderr and "images/s" in result.stderr


def test_one_seed_gives_one_result(few_images: Path) -> None:
    options = ("--data", few_images, "--epochs", 1, "--batch-size", 100, "--seed")
    runs = [run_example("train_fashion_mnist.py", *options, seed) for seed in (3, 3)]
    assert runs[0].stdout.splitlines()[-1] == runs[1].stdout.splitlines()[-1]


def test_interrupted_training_leaves_a_checkpoint_and_resumes(
    few_images: Path, tmp_path: Path
) -> None:
    options = ("--data", str(few_images), "--batch-size=50", "--epochs=40")
    command = [sys.executable, str(EXAMPLES / "train_fashion_mnist.py"), *options]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        while "epoch 1" not in process.stdout.readline():
            assert process.poll() is None
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    checkpoint = tmp_path / "fashion_mnist_checkpoint.safetensors"
    assert str(checkpoint) in output
    assert "network.conv1.weight" in safe_load(checkpoint)
    stopped = re.search(r"stopped after (\d+) of 480 steps", output)
    assert stopped is not None
    assert "stopping after this step; Ctrl-C again to stop at once" in errors
    resume = re.search(r"^resume: (.+)$", output, re.MULTILINE)
    assert resume is not None
    command = shlex.split(resume[1])
    assert command[0] == sys.executable
    assert command[-1] == "--resume=fashion_mnist_checkpoint.safetensors"
    more = (f"--resume={checkpoint}", "--checkpoint=end.safetensors")
    resumed = run_example("train_fashion_mnist.py", *options, *more, folder=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert f"resumed after {stopped[1]} of 480 steps" in resumed.stdout
    assert (tmp_path / "end.safetensors").exists()


def test_the_second_interrupt_stops_at_once() -> None:
    source = (
        "import sys, signal\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "import stop_request\n"
        "stop = stop_request.StopRequest()\n"
        "with stop.watched():\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "    assert stop.made\n"
        "    try:\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "    except KeyboardInterrupt:\n"
        "        print('at once', flush=True)\n"
        "signal.raise_signal(signal.SIGINT)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", source, str(EXAMPLES)], capture_output=True, text=True, check=False
    )
    assert result.returncode == -signal.SIGINT
    assert result.stdout == "at once\n"
    assert "stopping after this step" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--data", "/nowhere"), "train-images-idx3-ubyte.gz does not exist; a data folder"),
        (("--dev", "TOASTER"), "no runtime offers device 'TOASTER'; installed: CPU"),
        (("--dev", "CPU:FOO"), "no installed package offers renderer 'FOO'; CPU takes: LLVM"),
        (("--batch-size", "0"), "--batch-size is 1 to"),
        (("--resume", "nothing.safetensors"), "nothing.safetensors"),
        (("--checkpoint", "/nowhere/x.safetensors"), "folder /nowhere does not exist; make it"),
        (("--checkpoint", "/"), "cannot write /; name another file"),
    ],
    ids=["data", "device", "renderer", "batch size", "resume", "checkpoint folder", "checkpoint"],
)
def test_bad_options_are_one_line(options: tuple[str, str], message: str) -> None:
    result = run_example("train_fashion_mnist.py", *options)
    assert result.returncode == 1
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert "epoch" not in result.stderr  # no bar has started


def test_resuming_with_other_options_is_refused(few_images: Path, tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    options = ("--data", few_images, "--epochs", 1, "--checkpoint", path, "--batch-size")
    assert run_example("train_fashion_mnist.py", *options, 100).returncode == 0
    result = run_example("train_fashion_mnist.py", *options, 200, "--resume", path)
    assert result.returncode == 1
    assert "was written with --batch-size 100; resume with the same" in result.stderr
