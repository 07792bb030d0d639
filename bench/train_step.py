"""The train step whose compile time is compared: the network of examples/train_fashion_mnist.py.

The names of the frontend are those of tinygrad, so one text serves both; only the import differs.
"""

from __future__ import annotations

STEP = """
from {module} import Context, Tensor, TinyJit, nn

class Model:
    def __init__(self):
        self.conv1, self.norm1 = nn.Conv2d(1, 32, 3, padding=1, bias=False), nn.BatchNorm(32)
        self.conv2, self.norm2 = nn.Conv2d(32, 64, 3, padding=1, bias=False), nn.BatchNorm(64)
        self.conv3, self.norm3 = nn.Conv2d(64, 64, 3, padding=1, bias=False), nn.BatchNorm(64)
        self.head = nn.Linear(64 * 9, 10)

    def __call__(self, x):
        x = self.norm1(self.conv1(x)).relu().max_pool2d(2)
        x = self.norm2(self.conv2(x)).relu().max_pool2d(2)
        x = self.norm3(self.conv3(x)).relu().max_pool2d(2)
        return self.head(x.flatten(1))

model = Model()
optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=1e-3)
images = Tensor.rand(64, 1, 28, 28).contiguous().realize()
labels = Tensor.randint(64, high=10).contiguous().realize()

@TinyJit
def step():
    with {training}:
        optimizer.zero_grad()
        loss = model(images).sparse_categorical_crossentropy(labels).backward()
        optimizer.step()
        return loss.realize()

for _ in range({calls}):
    loss = step()
print(loss.item())
"""


def script(module: str, calls: int = 3) -> str:
    """The text of a program that builds the network and runs `calls` steps with `module`."""
    training = "Context(TRAINING=1)" if module == "tinygrad" else "Tensor.train()"
    return STEP.format(module=module, calls=calls, training=training)
