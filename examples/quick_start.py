"""A network of two layers learns on which side of a circle a point lies: a short whole program."""

from __future__ import annotations

from tg_frontend import Tensor, TinyJit, nn

POINTS = 512
STEPS = 150


class Network:
    """Two linear layers with a ReLU between them."""

    def __init__(self) -> None:
        """Make the layers."""
        self.hidden = nn.Linear(2, 32)
        self.out = nn.Linear(32, 2)

    def __call__(self, x: Tensor) -> Tensor:
        """Shape `(batch, 2)` -> logits of shape `(batch, 2)`."""
        return self.out(self.hidden(x).relu())


def main() -> None:
    """Train and report."""
    Tensor.manual_seed(1)
    points = Tensor.uniform(POINTS, 2, low=-1.0, high=1.0)
    inside = (points.square().sum(axis=1) < 0.5).int()
    Tensor.realize(points, inside)
    network = Network()
    optimizer = nn.optim.Adam(nn.state.get_parameters(network), lr=0.02)

    @TinyJit
    def step() -> Tensor:
        optimizer.zero_grad()
        loss = network(points).sparse_categorical_crossentropy(inside)
        loss.backward()
        optimizer.step()
        return loss.detach()

    with Tensor.train():
        for number in range(STEPS):
            loss = step().item()
            if number % 50 == 0:
                print(f"step {number:3}: loss {loss:.3f}")
    right = (network(points).argmax(axis=1) == inside).mean().item()
    print(f"{right * 100:.1f} % of the points are named rightly")


if __name__ == "__main__":
    main()
