"""Train a small convolutional network on Fashion-MNIST and report its accuracy on the test images.

Runs offline on the bundled subset; takes the full set where the machine has it. Ctrl-C stops after
the current step and leaves a checkpoint that `--resume` continues from.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import shlex
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import fashion_mnist_data as fashion_mnist
from stop_request import INTERRUPTED, StopRequest  # before what takes long to import
from tg_frontend import Context, GlobalCounters, Tensor, TinyJit, dtypes, nn
from tg_frontend.nn.optim import Adam
from tg_frontend.nn.state import (
    get_parameters,
    get_state_dict,
    load_state_dict,
    safe_load,
    safe_load_metadata,
    safe_save,
)
from tg_ir import events
from tg_ir.errors import TgError
from tqdm import tqdm  # type: ignore[import-untyped]  # ships no type information

PEAK_LEARNING_RATE = 0.01
WARM_UP = 0.2  # part of the training in which the learning rate rises
EVALUATION_BATCH = 500
PIXEL_MEAN = 0.286  # of the training images, pixels from 0 to 1
PIXEL_DEVIATION = 0.353
MIB = 1 << 20
DEFAULT_CHECKPOINT = "fashion_mnist_checkpoint.safetensors"


class ConvNet:
    """Two blocks of convolution, batch norm, ReLU and pooling, then a linear layer."""

    def __init__(self) -> None:
        """Make the layers."""
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm(32)
        self.linear = nn.Linear(32 * 7 * 7, fashion_mnist.CLASSES)

    def __call__(self, images: Tensor) -> Tensor:
        """Shape `(batch, 1, 28, 28)` of pixels from 0 to 255 -> logits of shape `(batch, 10)`."""
        x = (images.float() / 255 - PIXEL_MEAN) / PIXEL_DEVIATION
        x = self.norm1(self.conv1(x)).relu().max_pool2d()
        x = self.norm2(self.conv2(x)).relu().max_pool2d()
        return self.linear(x.flatten(1))


@dataclass
class Measurements:
    """What the table at the end shows.

    Attributes:
        compiled: kernels compiled, and `compile_s` the seconds that took.
        step_s: seconds of each training step after the first three, which prepare.
        kernels_per_step: kernels that one training step launches.
    """

    compiled: int = 0
    compile_s: float = 0.0
    step_s: list[float] = field(default_factory=list)
    kernels_per_step: int = 0

    def note(self, event: events.Event) -> None:
        """Take a compilation into account."""
        if isinstance(event, events.KernelCompiled):
            self.compiled += 1
            self.compile_s += event.time_s

    def table(self) -> str:
        """Aligned lines of name and value."""
        steps = sorted(self.step_s)
        typical = f"{steps[len(steps) // 2] * 1e3:.2f} ms" if steps else "not measured"
        rows = (
            ("kernels per step", str(self.kernels_per_step)),
            ("kernels compiled", f"{self.compiled} (others came from the cache)"),
            ("compile time", f"{self.compile_s:.2f} s"),
            ("time per step", f"{typical} (median)"),
            ("peak memory", f"{GlobalCounters.mem_peak / MIB:.0f} MiB"),
        )
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


class Training:
    """A network, its optimiser and the images, and how far it has come.

    Attributes:
        steps_done: training steps since the beginning, also before a resume.
    """

    def __init__(self, data: fashion_mnist.Dataset, options: argparse.Namespace) -> None:
        """Put the images on the device and make a new network."""
        Tensor.manual_seed(options.seed)
        self.data = data
        self.options = options
        self.steps_done = 0
        self.steps_per_epoch = len(data.train) // options.batch_size
        self.total_steps = self.steps_per_epoch * options.epochs
        self.measurements = Measurements()
        self.network = ConvNet()
        self.optimizer = Adam(get_parameters(self.network), lr=PEAK_LEARNING_RATE)
        self._train_images = _images(data.train)
        self._train_labels = Tensor(data.train.labels, dtype=dtypes.uint8)
        self._test_images = _images(data.test)
        self._step = TinyJit(self._run_step)
        self._predict = TinyJit(self._run_predict)

    # ---- the programs

    def _run_step(self, chosen: Tensor, learning_rate: Tensor) -> Tensor:
        self.optimizer.lr.assign(learning_rate)
        self.optimizer.zero_grad()
        logits = self.network(self._train_images[chosen])
        loss = logits.sparse_categorical_crossentropy(self._train_labels[chosen].int())
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def _run_predict(self, chosen: Tensor) -> Tensor:
        return self.network(self._test_images[chosen]).argmax(axis=1)

    # ---- training

    def run_epoch(self, epoch: int, stop: StopRequest) -> None:
        """Train on what is left of an epoch, until the end or until `stop` is made."""
        order = list(range(len(self.data.train)))
        random.Random(f"{self.options.seed} {epoch}").shuffle(order)
        size = self.options.batch_size
        first = self.steps_done - epoch * self.steps_per_epoch
        bar = tqdm(
            range(first, self.steps_per_epoch),
            desc=f"epoch {epoch + 1}/{self.options.epochs}",
            unit="step",
        )
        with Tensor.train():
            for number in bar:
                loss, seconds = self._timed_step(order[number * size : (number + 1) * size])
                bar.set_postfix_str(f"loss {loss:.3f}, {size / seconds:,.0f} images/s")
                if stop.made:
                    bar.close()
                    return

    def _timed_step(self, chosen: list[int]) -> tuple[float, float]:
        started = time.perf_counter()
        launched = GlobalCounters.kernel_count
        rate = Tensor([self._learning_rate()], dtype=dtypes.float32)
        loss = self._step(Tensor(chosen, dtype=dtypes.int32), rate).item()
        seconds = time.perf_counter() - started
        self.steps_done += 1
        if self._step.cnt > 3:
            self.measurements.step_s.append(seconds)
            self.measurements.kernels_per_step = GlobalCounters.kernel_count - launched
        return float(loss), seconds

    def _learning_rate(self) -> float:
        """Rises in a line, then falls along a cosine, to a hundredth at either end."""
        done = self.steps_done / self.total_steps
        if done < WARM_UP:
            part = done / WARM_UP
        else:
            part = 0.5 * (1 + math.cos(math.pi * (done - WARM_UP) / (1 - WARM_UP)))
        return PEAK_LEARNING_RATE * float(max(part, 0.01))

    # ---- evaluation

    def accuracy(self) -> float:
        """The part of the test images that the network names rightly."""
        labels = self.data.test.labels
        right = 0
        for begin in range(0, len(labels), EVALUATION_BATCH):
            wanted = labels[begin : begin + EVALUATION_BATCH]
            # the last batch is filled up, so that all have one shape
            chosen = [min(begin + k, len(labels) - 1) for k in range(EVALUATION_BATCH)]
            named = self._predict(Tensor(chosen, dtype=dtypes.int32)).tolist()
            right += sum(name == label for name, label in zip(named, wanted, strict=False))
        return right / len(labels)

    # ---- checkpoints

    def save(self, path: Path) -> None:
        """Write network, optimiser and position to a file."""
        metadata = {
            "steps_done": str(self.steps_done),
            "batch_size": str(self.options.batch_size),
            "seed": str(self.options.seed),
            "epochs": str(self.options.epochs),
        }
        safe_save(self._state(), path, metadata)

    def resume(self, path: Path) -> None:
        """Continue from a file that `save` wrote.

        Raises:
            ValueError: it was written with other options, or is no checkpoint.
        """
        metadata = safe_load_metadata(path)
        for name in ("batch_size", "seed", "epochs"):
            if metadata.get(name) != str(getattr(self.options, name)):
                flag = name.replace("_", "-")
                raise ValueError(
                    f"{path} was written with --{flag} {metadata.get(name)}; resume with the same"
                )
        load_state_dict(self._state(), safe_load(path))
        self.steps_done = int(metadata["steps_done"])

    def _state(self) -> dict[str, Tensor]:
        return get_state_dict({"network": self.network, "optimizer": self._optimizer_state()})

    def _optimizer_state(self) -> dict[str, object]:
        adam = self.optimizer
        return {"m": adam.m, "v": adam.v, "b1_t": adam.b1_t, "b2_t": adam.b2_t}


def _images(split: fashion_mnist.Split) -> Tensor:
    side = fashion_mnist.IMAGE_SIDE
    return Tensor(split.images, dtype=dtypes.uint8).reshape(len(split), 1, side, side)


def train(training: Training, stop: StopRequest) -> float | None:
    """Train to the end; return the accuracy on the test images, None if `stop` was made."""
    measurements = training.measurements
    accuracy = training.accuracy() if training.steps_done >= training.total_steps else 0.0
    # who listens to events sees each launch, which costs time, so only while kernels are compiled
    listening: events.Subscription | None = events.subscribe(measurements.note)
    for epoch in range(training.steps_done // training.steps_per_epoch, training.options.epochs):
        training.run_epoch(epoch, stop)
        if stop.made:
            return None
        accuracy = training.accuracy()
        print(f"epoch {epoch + 1}: {accuracy * 100:.1f} % of the test images", flush=True)
        if listening is not None:
            listening.close()
            listening = None
    return accuracy


def main() -> int:
    """Read the options, train, report; the exit status."""
    options = _parse_options()
    try:
        _check_writable(options.checkpoint)
        data = fashion_mnist.load(options.data)
        if not 1 <= options.batch_size <= len(data.train):
            raise ValueError(f"--batch-size is 1 to {len(data.train)}, got {options.batch_size}")
        with Context(DEV=options.dev) if options.dev else Context():
            return _run(data, options)
    except (TgError, ValueError, OSError) as error:
        print(f"train_fashion_mnist: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped at once; no checkpoint was written", file=sys.stderr)
        return INTERRUPTED


def _run(data: fashion_mnist.Dataset, options: argparse.Namespace) -> int:
    (Tensor([1.0]) * 2).realize()  # a device or renderer that does not work is told before all else
    print(f"{len(data.train)} training and {len(data.test)} test images from {data.folder}")
    training = Training(data, options)
    if options.resume is not None:
        training.resume(options.resume)
        print(f"resumed after {training.steps_done} of {training.total_steps} steps")
    stop = StopRequest()
    with stop.watched():
        accuracy = train(training, stop)
        if accuracy is None or options.checkpoint_given:
            training.save(options.checkpoint)
    if accuracy is None:
        print(
            f"stopped after {training.steps_done} of {training.total_steps} steps; "
            f"checkpoint: {options.checkpoint.resolve()}\n"
            f"resume: {_resume_command(options.checkpoint)}"
        )
        return INTERRUPTED
    print(training.measurements.table())
    print(f"test accuracy: {accuracy * 100:.1f} %")
    return 0


def _check_writable(path: Path) -> None:
    """Check before the training that the checkpoint can be written after it.

    Raises:
        ValueError: its folder does not exist or takes no files.
    """
    folder = path.resolve().parent
    if not folder.is_dir():
        raise ValueError(f"--checkpoint: folder {folder} does not exist; make it first")
    if path.is_dir() or not os.access(folder, os.W_OK):
        raise ValueError(f"--checkpoint: cannot write {path.resolve()}; name another file")


def _resume_command(checkpoint: Path) -> str:
    """This command again, by the same Python, from the checkpoint."""
    kept = []
    skipped = False  # the value of --resume stands behind it, or after "="
    for argument in sys.argv:
        if not skipped and argument.partition("=")[0] != "--resume":
            kept.append(argument)
        skipped = argument == "--resume"
    return shlex.join([sys.executable, *kept, f"--resume={checkpoint}"])


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dev", help="device, as in the setting DEV (default: the first found)")
    parser.add_argument("--epochs", type=int, default=5, help="passes over the images (default 5)")
    parser.add_argument("--batch-size", type=int, default=100, help="images a step (default 100)")
    parser.add_argument("--seed", type=int, default=0, help="of weights and order (default 0)")
    parser.add_argument(
        "--data",
        type=Path,
        help="folder with the four files of Fashion-MNIST (default: "
        f"{fashion_mnist.FULL_SET} where it is complete, else the images beside this program)",
    )
    parser.add_argument(
        "--checkpoint",
        type=Path,
        help="where to save, also at the end; without it, "
        f"only Ctrl-C saves, to {DEFAULT_CHECKPOINT}",
    )
    parser.add_argument("--resume", type=Path, help="checkpoint to continue from")
    options = parser.parse_args()
    if options.epochs < 1:
        parser.error(f"--epochs is 1 or more, got {options.epochs}")
    options.checkpoint_given = options.checkpoint is not None
    if options.checkpoint is None:
        options.checkpoint = Path(DEFAULT_CHECKPOINT)
    return options


if __name__ == "__main__":
    sys.exit(main())
