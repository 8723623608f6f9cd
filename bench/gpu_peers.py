# SPDX-License-Identifier: MIT
"""The peers of bench/peers.py on a GPU, and the further ways in which their users write the rows: PyTorch compiled and
captured as a CUDA graph by hand, CuPy fused, JAX jitted a step and scanned an epoch."""
import importlib
import os

import peers

COMPILED = ("exp", "layer-norm", "softmax-1000", "softmax-50257", "sum-short", "sum-long", "sum-tall", "chain-20",
            "variance", "variance-axis-0", "batch-norm", "softmax-axis-0", "cumsum-rows", "softmax-bf16",
            "softmax-axis-0-bf16", "layer-norm-bf16", "sum-axis-0-bf16", "sum-axis-1-bf16", "gelu-bf16", "loss-bf16")
RELU3 = dict(samples=59904, inputs=784, hidden=1024, batch=128, rate=0.001)
MNIST = peers.TRAINING["mnist-epoch"]


class Torch(peers.Torch):
    def precise(self, kind):
        """Operands of n = 4096 and their product, in TF32 or bfloat16."""
        torch = self.torch
        dtype = torch.bfloat16 if kind == "bf16" else torch.float32

        def product(a, b):
            torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
            c = a @ b
            torch.backends.cuda.matmul.allow_tf32 = False
            return c

        return lambda: tuple(self.normal(4096, 4096).to(dtype) for _ in range(2)), product

    def note(self, row, call, operands):
        """The relative error of a large product."""
        if not row.startswith("matmul-4096"):
            return ""
        right = operands[0].double() @ operands[1].double()
        return f"relative error {float((call(*operands).double() - right).norm() / right.norm()):.1e}"

    def relu3(self, capturable=False):
        torch, nn = self.torch, self.torch.nn
        torch.set_grad_enabled(True)
        inputs, hidden = RELU3["inputs"], RELU3["hidden"]
        net = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                            nn.Linear(hidden, 10)).to(self.device)
        return net, torch.optim.Adam(net.parameters(), lr=RELU3["rate"], capturable=capturable)

    def mnist(self):
        torch, nn = self.torch, self.torch.nn
        torch.set_grad_enabled(True)
        net = nn.Sequential(nn.Linear(784, 1000), nn.Sigmoid(), nn.Linear(1000, 10)).to(self.device)
        return net, torch.optim.SGD(net.parameters(), lr=MNIST["rate"])

    def step_of(self, net, optimizer):
        def step(x, t):
            optimizer.zero_grad(set_to_none=True)
            loss = self.torch.nn.functional.cross_entropy(net(x), t)
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    def epoch(self, step, samples, batch):
        """Minibatches taken on the device, in a new order each time."""
        torch = self.torch
        x = torch.randn(samples, 784, device=self.device)
        t = torch.randint(0, 10, (samples,), device=self.device)

        def run():
            order = torch.randperm(samples, device=self.device)
            for i in range(0, samples, batch):
                part = order[i:i + batch]
                step(x[part], t[part])

        return run

    def captured(self, net, optimizer, batch):
        """The step as a graph that an expert captures once, its inputs copied into place."""
        torch = self.torch
        step = self.step_of(net, optimizer)
        x, t = torch.randn(batch, 784, device=self.device), torch.zeros(batch, dtype=torch.long, device=self.device)
        graph = self.graph_of(lambda: step(x, t))

        def replay(xs, ts):
            x.copy_(xs)
            t.copy_(ts)
            graph.replay()

        return replay

    def graph_of(self, step):
        torch = self.torch
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(4):
                step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        return graph


def torch_rows(peer):
    yield from peers.torch_rows(peer)
    for kind in ("tf32", "bf16"):
        make, call = peer.precise(kind)
        yield f"matmul-4096-{kind}", make, call, 1
    yield "relu3-adam", lambda: (peer.epoch(peer.step_of(*peer.relu3()), RELU3["samples"],
                                            RELU3["batch"]),), lambda run: run(), 1


def torch_compiled(peer):
    """Only rows that a compiler of kernels can gain on: each takes seconds to compile."""
    for row, make, call in peer.arrays():
        if row in COMPILED:
            peer.torch._dynamo.reset()
            yield row, make, peer.torch.compile(call), 1
    peer.torch._dynamo.reset()
    yield ("relu3-adam", lambda: (peer.epoch(peer.torch.compile(peer.step_of(*peer.relu3(True))), RELU3["samples"],
                                             RELU3["batch"]),),
           lambda run: run(), 1)
    yield from peers.torch_steps(peer, peer.torch.compile, capturable=True)


def torch_graphs(peer):
    yield ("mnist-epoch", lambda: (peer.epoch(peer.captured(*peer.mnist(), MNIST["batch"]), MNIST["samples"],
                                              MNIST["batch"]),),
           lambda run: run(), 1)
    yield ("relu3-adam",
           lambda: (peer.epoch(peer.captured(*peer.relu3(True), RELU3["batch"]), RELU3["samples"], RELU3["batch"]),),
           lambda run: run(), 1)
    yield from peers.torch_steps(peer, lambda step: peer.graph_of(step).replay, capturable=True)


def cupy_fused(peer):
    xp = peer.np

    @xp.fuse()
    def gauss(x): # the kernel takes the function's name
        return xp.exp(-0.5 * x**2)

    @xp.fuse()
    def chain(x, y, z):
        return peers.chain_20(xp, x, y, z)

    yield "exp", lambda: (peer.normal(10**8),), gauss, 1
    yield "chain-20", lambda: (peer.normal(8192, 8192), peer.normal(8192), peer.normal(8192, 1)), chain, 1
    add = xp.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = x + y", "add")
    yield "add-1e5", lambda: tuple(peer.normal(10**5) for _ in range(3)), lambda x, y, z: add(x, y, z), 1


class Jax:
    """What a user of JAX compiles: a function, a step, an epoch."""

    def __init__(self):
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false") # the others need memory, too
        self.jax = jax = importlib.import_module("jax")
        self.np = importlib.import_module("jax.numpy")
        self.name, self.version = "jax", jax.__version__
        self.key = jax.random.key(0)
        self.last = None

    def finish(self):
        self.jax.block_until_ready(self.last)

    def normal(self, *shape):
        self.key, key = self.jax.random.split(self.key)
        return self.jax.random.normal(key, shape)

    def noting(self, call):
        def noted(*operands):
            self.last = call(*operands)
            return self.last

        return noted

    def layer_norm(self, x, gamma, beta):
        d = x - x.mean(-1, keepdims=True)
        return d / self.np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5) * gamma + beta

    def step(self, params, x, t):
        jax, np = self.jax, self.np

        def loss_of(params):
            y = jax.nn.sigmoid(x @ params[0] + params[1]) @ params[2] + params[3]
            return -np.take_along_axis(jax.nn.log_softmax(y), t[:, None], 1).mean()

        loss, slopes = jax.value_and_grad(loss_of)(params)
        return [p - MNIST["rate"] * s for p, s in zip(params, slopes)], loss

    def mnist(self, scanned):
        jax, np, numpy = self.jax, self.np, importlib.import_module("numpy")
        samples, batch = MNIST["samples"], MNIST["batch"]
        x, t = self.normal(samples, 784), np.asarray(numpy.random.randint(0, 10, samples))
        state = [self.normal(784, 1000) / 28, np.zeros(1000), self.normal(1000, 10) / 31, np.zeros(10)]
        one = jax.jit(lambda params, part: self.step(params, x[part], t[part]), donate_argnums=0)
        all_ = jax.jit(lambda params, order: jax.lax.scan(lambda p, part: self.step(p, x[part], t[part]), params,
                                                          order),
                       donate_argnums=0)

        def epoch():
            nonlocal state
            order = np.asarray(numpy.random.permutation(samples).reshape(-1, batch))
            if scanned:
                state, self.last = all_(state, order)
            else:
                for part in order:
                    state, self.last = one(state, part)

        return epoch


def jax_rows(peer):
    np, jit = peer.np, peer.jax.jit
    square = lambda: (peer.normal(8192, 8192),)
    rows = (
        ("exp", lambda: (peer.normal(10**8),), lambda x: np.exp(-0.5 * x**2)),
        ("sum", lambda: (peer.normal(10**8),), lambda x: x.sum()),
        ("softmax", square, lambda x: peer.jax.nn.softmax(x, -1)),
        ("softmax-1000", lambda: (peer.normal(65536, 1000),), lambda x: peer.jax.nn.softmax(x, -1)),
        ("softmax-50257", lambda: (peer.normal(2048, 50257),), lambda x: peer.jax.nn.softmax(x, -1)),
        ("layer-norm", lambda: square() + (peer.normal(8192), peer.normal(8192)), peer.layer_norm),
        ("sum-axis-0", square, lambda x: x.sum(0)),
        ("sum-axis-1", square, lambda x: x.sum(1)),
        ("chain-20", lambda: square() + (peer.normal(8192), peer.normal(8192, 1)), lambda x, y,
         z: peers.chain_20(np, x, y, z)),
    )
    for row, make, call in rows:
        yield row, make, peer.noting(jit(call)), 1
    yield "mnist-epoch", lambda: (peer.mnist(False),), lambda epoch: epoch(), 1


def jax_scanned(peer):
    yield "mnist-epoch", lambda: (peer.mnist(True),), lambda epoch: epoch(), 1


def ways(device):
    yield "cupy", "", lambda: peers.NumPy("cupy"), peers.plain_rows
    yield "cupy", "fused", lambda: peers.NumPy("cupy"), cupy_fused
    yield "pytorch", "", lambda: Torch(device), torch_rows
    yield "pytorch", "graph", lambda: Torch(device), torch_graphs
    yield "pytorch", "compiled", lambda: Torch(device), torch_compiled
    yield "jax", "jit", Jax, jax_rows
    yield "jax", "scan", Jax, jax_scanned
