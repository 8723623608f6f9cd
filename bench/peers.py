#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times NumPy, PyTorch and, on a GPU, CuPy and JAX, where they are installed, on the rows of bench/run: a line of JSON
each, as the programs in C print them. The same shapes, dtypes and repetitions; times are of calls that return new
arrays. A library's users may write a row in several ways (compiled, as a graph): each is a line of its own."""
import argparse
import importlib
import json
import os
import sys
import tempfile
import time

import language_peers

REPETITIONS = 400
REST = 1.0  # seconds before a matrix product, which heats the chip: a hot one is slower; as products.c rests


def measure(call, finish, budget, shortest=5e-3, warm=3):
    for _ in range(warm):
        call()
    finish()
    began = time.perf_counter()
    call()
    finish()
    once = time.perf_counter() - began
    calls = int(shortest / max(once, 1e-9)) + 1 if once < shortest else 1
    seconds, began = [], time.perf_counter()
    while len(seconds) < REPETITIONS and (len(seconds) < 3 or time.perf_counter() - began < budget):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        finish()
        seconds.append((time.perf_counter() - start) / calls)
    seconds.sort()
    return seconds[0], seconds[len(seconds) // 2]


def nothing():
    pass


TALL = (65536, 256)


def array_rows(xp, normal, softmax, layer_norm, copy, gpu):
    """Rows that read alike in NumPy, CuPy and PyTorch: name, function that makes the operands, function of them."""
    n, square = (10**8, 8192) if gpu else (2 * 10**7, 4096)
    products = {"matmul-mnist": (100, 784, 1000), "matmul-1000": (1000,) * 3}
    products.update({"matmul-4096": (4096,) * 3, "matmul-10000": (10000,) * 3} if gpu else {"matmul-2000": (2000,) * 3})
    for name, (m, k, p) in products.items():
        yield name, lambda m=m, k=k, p=p: (normal(m, k), normal(k, p)), lambda a, b: a @ b
    yield "copy", lambda: (normal(n),), copy
    yield "exp", lambda: (normal(n),), lambda x: xp.exp(-0.5 * x**2)
    yield "negative", lambda: (normal(n),), lambda x: -x
    yield "sum", lambda: (normal(10**8),), lambda x: x.sum()
    yield "softmax", lambda: (normal(square, square),), softmax
    yield "layer-norm", lambda: (normal(square, square), normal(square), normal(square)), layer_norm
    yield "sum-axis-0", lambda: (normal(square, square),), lambda x: x.sum(0)
    yield "sum-axis-1", lambda: (normal(square, square),), lambda x: x.sum(1)
    yield "transpose", lambda: (normal(square, square),), lambda x: copy(x.T)
    if gpu:
        yield "softmax-1000", lambda: (normal(65536, 1000),), softmax
        yield "softmax-50257", lambda: (normal(2048, 50257),), softmax
        yield "sum-short", lambda: (normal(8388608, 10),), lambda x: x.sum(1)
        yield "sum-long", lambda: (normal(16, 5000000),), lambda x: x.sum(1)
        yield "sum-tall", lambda: (normal(5000000, 16),), lambda x: x.sum(0)
        yield "argmax", lambda: (normal(10**8),), lambda x: x.argmax()
        yield "chain-20", lambda: (normal(square, square), normal(square),
                                   normal(square, 1)), lambda x, y, z: chain_20(xp, x, y, z)
    if xp.__name__ != "torch": # whose functions have other names
        many = 10**8 if gpu else 10**7
        if gpu:
            yield "variance", lambda: (normal(square, square),), lambda x: x.var()
            yield "variance-axis-0", lambda: (normal(*TALL),), lambda x: x.var(0)
            yield "cumsum-rows", lambda: (normal(*TALL),), lambda x: x.cumsum(1)
            yield "sort-rows", lambda: (normal(*TALL),), lambda x: xp.sort(x, 1)
        yield "sort", lambda: (normal(many),), xp.sort
        yield "argsort", lambda: (normal(many),), xp.argsort
        yield "cumsum", lambda: (normal(many),), xp.cumsum
        yield "histogram", lambda: (normal(many),), lambda x: xp.histogram(x, bins=100, range=(-6, 6))
        yield "unique", lambda: (xp.floor(100 * normal(many)),), xp.unique
    yield "add-1e5", lambda: (normal(10**5), normal(10**5), normal(10**5)), lambda x, y, z: xp.add(x, y, out=z)
    yield "normals", lambda: (), lambda: normal(10**8 if gpu else 10**7)


def chain_20(xp, x, row, column):
    for _ in range(5):
        x = xp.sqrt(xp.abs(x * row + column))
    return x


def chain(length, multiply, exp, x, y):
    for _ in range(length // 2):
        x = exp(multiply(x, y))
    return x


class NumPy:
    """NumPy, and CuPy, which writes the same."""

    def __init__(self, name="numpy", device=None):
        self.np = np = importlib.import_module(name)
        self.name, self.gpu = name, name == "cupy"
        self.version = np.__version__
        self.finish = np.cuda.runtime.deviceSynchronize if self.gpu else nothing
        self.generator = np.random.default_rng(0)

    def normal(self, *shape):
        return self.generator.standard_normal(shape, dtype=self.np.float32)

    def softmax(self, x):
        e = self.np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    def layer_norm(self, x, gamma, beta):
        d = x - x.mean(-1, keepdims=True)
        return d / self.np.sqrt((d * d).mean(-1, keepdims=True) + self.np.float32(1e-5)) * gamma + beta

    def arrays(self):
        yield from array_rows(self.np, self.normal, self.softmax, self.layer_norm,
                              lambda x: self.np.ascontiguousarray(x) if not x.flags.c_contiguous else x.copy(),
                              self.gpu)
        yield "record-node", lambda: (self.normal(16), -self.normal(16) ** 2), lambda x, y: chain(100, self.np.multiply,
                                                                                                  self.np.exp, x, y)

        if not self.gpu:
            yield from self.files()

    def files(self):
        np = self.np
        with tempfile.TemporaryDirectory(prefix="bench-files-") as folder:
            at = lambda name: os.path.join(folder, name)
            x = self.normal(2 * 10**7)
            np.save(at("x.npy"), x)
            np.savez(at("x.npz"), x=x)
            np.savez_compressed(at("c.npz"), x=np.floor(100 * x))
            np.savetxt(at("x.csv"), x[:2 * 10**6].reshape(-1, 10), delimiter=",", fmt="%.9g")
            yield "npy-load", lambda: (), lambda: np.load(at("x.npy"))
            yield "npy-map", lambda: (), lambda: np.load(at("x.npy"), mmap_mode="r")
            yield "npy-map-sum", lambda: (), lambda: np.load(at("x.npy"), mmap_mode="r").sum()
            yield "npz-load", lambda: (), lambda: np.load(at("x.npz"))["x"]
            yield "npz-load-deflated", lambda: (), lambda: np.load(at("c.npz"))["x"]
            yield "csv-load", lambda: (), lambda: np.loadtxt(at("x.csv"), delimiter=",", dtype=np.float32)

    def train(self, samples, inputs, hidden, relu, batch, rate, epochs, drop_last):
        np = self.np
        x, t = self.normal(samples, inputs), np.asarray(self.generator.integers(0, 10, samples))
        w1, w2 = self.normal(inputs, hidden) / np.float32(inputs**0.5), self.normal(hidden,
                                                                                    10) / np.float32(hidden**0.5)
        b1, b2 = np.zeros(hidden, np.float32), np.zeros(10, np.float32)
        rows = np.arange(batch)

        def epoch():
            for _ in range(epochs):
                order = np.random.permutation(samples)
                for i in range(0, samples - (batch - 1 if drop_last else 0), batch):
                    part = order[i:i + batch]
                    xs, ts = x[part], t[part]
                    z = xs @ w1 + b1
                    h = np.maximum(z, 0) if relu else 1 / (1 + np.exp(-z))
                    y = h @ w2 + b2
                    p = np.exp(y - y.max(1, keepdims=True))
                    p /= p.sum(1, keepdims=True)
                    p[rows[:len(part)], ts] -= 1
                    p /= len(part)
                    g = p @ w2.T
                    g *= (z > 0) if relu else h * (1 - h)
                    w2[...] -= rate * (h.T @ p)
                    b2[...] -= rate * p.sum(0)
                    w1[...] -= rate * (xs.T @ g)
                    b1[...] -= rate * g.sum(0)

        return epoch


class Torch:
    def __init__(self, device="cpu"):
        self.torch = torch = importlib.import_module("torch")
        self.name, self.version = "pytorch", torch.__version__
        self.device, self.gpu = device, device.startswith("cuda")
        self.finish = torch.cuda.synchronize if self.gpu else nothing

    def normal(self, *shape):
        return self.torch.randn(*shape, device=self.device)

    def arrays_of_16_bits(self):
        torch, functional = self.torch, self.torch.nn.functional
        half = lambda *shape: self.normal(*shape).bfloat16()
        square = lambda: (half(8192, 8192),)
        yield "softmax-bf16", square, lambda x: torch.softmax(x, -1)
        yield "softmax-axis-0-bf16", square, lambda x: torch.softmax(x, 0)
        yield ("layer-norm-bf16", lambda: square() + (half(8192), half(8192)),
               lambda x, g, b: functional.layer_norm(x, (8192,), g, b))
        yield "sum-axis-0-bf16", square, lambda x: x.sum(0)
        yield "sum-axis-1-bf16", square, lambda x: x.sum(1)
        yield "gelu-bf16", square, functional.gelu
        yield ("loss-bf16", lambda: (half(4096, 50257), (1000 * self.normal(4096).abs()).long()),
               functional.cross_entropy)

    def arrays(self):
        torch = self.torch
        functional = torch.nn.functional
        torch.set_grad_enabled(False)
        yield from array_rows(torch, self.normal, lambda x: torch.softmax(x, -1),
                              lambda x, g, b: functional.layer_norm(x, (x.shape[-1],), g, b),
                              lambda x: x.contiguous() if not x.is_contiguous() else x.clone(), self.gpu)
        if self.gpu:
            tall = lambda: (self.normal(*TALL),)
            yield "variance", lambda: (self.normal(8192, 8192),), lambda x: x.var(correction=0)
            yield "variance-axis-0", tall, lambda x: x.var(0, correction=0)
            yield ("batch-norm", lambda: tall() + (self.normal(256), self.normal(256)),
                   lambda x, g, b: functional.batch_norm(x, None, None, g, b, training=True))
            yield "softmax-axis-0", tall, lambda x: torch.softmax(x, 0)
            yield from self.arrays_of_16_bits()
            yield "cumsum-rows", tall, lambda x: x.cumsum(1)
            yield "sort-rows", tall, lambda x: x.sort(1)[0]
            yield "largest-10", lambda: (self.normal(65536, 1000),), lambda x: x.topk(10)[0]
            many = lambda: (self.normal(10**8),)
            yield "sort", many, lambda x: x.sort()[0]
            yield "argsort", many, lambda x: x.argsort()
            yield "cumsum", many, lambda x: x.cumsum(0)
            yield "histogram", many, lambda x: x.histc(100, -6, 6)
            yield "unique", lambda: ((100 * self.normal(10**8)).floor(),), torch.unique
        yield "record-node", lambda: (self.normal(16), -self.normal(16) ** 2), lambda x, y: chain(100, torch.mul,
                                                                                                  torch.exp, x, y)

    def train(self, samples, inputs, hidden, relu, batch, rate, epochs, drop_last):
        torch, nn = self.torch, self.torch.nn
        torch.set_grad_enabled(True)
        x = torch.randn(samples, inputs, device=self.device)
        t = torch.randint(0, 10, (samples,), device=self.device)
        net = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU() if relu else nn.Sigmoid(),
                            nn.Linear(hidden, 10)).to(self.device)
        optimizer = torch.optim.SGD(net.parameters(), lr=rate)

        def epoch():
            for _ in range(epochs):
                order = torch.randperm(samples, device=self.device)
                for i in range(0, samples - (batch - 1 if drop_last else 0), batch):
                    part = order[i:i + batch]
                    optimizer.zero_grad(set_to_none=True)
                    nn.functional.cross_entropy(net(x[part]), t[part]).backward()
                    optimizer.step()

        return epoch


class TorchSteps:
    """The networks of steps.c and language.c, each as its loss, a function without arguments, and its parameters."""

    def __init__(self, torch, device):
        self.torch, self.device = torch, device

    def block(self, batch, time, width, heads):
        torch, nn, f = self.torch, self.torch.nn, self.torch.nn.functional
        x = torch.randn(batch, time, width, device=self.device)
        layers = nn.ModuleList([nn.LayerNorm(width), *(nn.Linear(width, width) for _ in range(4)), nn.LayerNorm(width),
                                nn.Linear(width, 4 * width), nn.Linear(4 * width, width)]).to(self.device)
        norm1, query, key, value, out, norm2, up, down = layers

        def loss():
            h = norm1(x)
            parts = (layer(h).view(batch, time, heads, -1).transpose(1, 2) for layer in (query, key, value))
            mixed = f.scaled_dot_product_attention(*parts).transpose(1, 2).reshape(batch, time, width)
            y = x + out(mixed)
            return (y + down(f.gelu(up(norm2(y))))).square().mean()

        return loss, layers.parameters()

    def recurrent(self, batch, time, width):
        torch, nn = self.torch, self.torch.nn
        x = torch.randn(time, batch, width, device=self.device)
        layers = nn.ModuleList([nn.Linear(width, width), nn.Linear(width, width, bias=False)]).to(self.device)

        def loss():
            h = torch.tanh(layers[0](x[0]))
            for i in range(1, time):
                h = torch.tanh(layers[0](x[i]) + layers[1](h))
            return h.square().mean()

        return loss, layers.parameters()

    def wide(self, batch, width):
        torch, nn = self.torch, self.torch.nn
        x = torch.randn(batch, width, device=self.device)
        t = torch.randint(0, 10, (batch,), device=self.device)
        net = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, 4 * width), nn.ReLU(),
                            nn.Linear(4 * width, 10)).to(self.device)
        return lambda: nn.functional.cross_entropy(net(x), t), net.parameters()

    def words(self, batch, time, width):
        torch, nn = self.torch, self.torch.nn
        x = torch.randint(0, 30000, (batch, time), device=self.device)
        t = torch.randint(0, 10, (batch,), device=self.device)
        layers = nn.ModuleList([nn.Embedding(30000, width), nn.Linear(width, 10)]).to(self.device)
        return lambda: nn.functional.cross_entropy(layers[1](layers[0](x).mean(1)), t), layers.parameters()

    def rows(self, gpu, wrap, **adam):
        """Each row with what makes its step; `wrap` makes something else of a step, if it is to."""

        def make(network, tf32):
            self.torch.set_grad_enabled(True)
            self.torch.backends.cuda.matmul.allow_tf32 = self.torch.backends.cudnn.allow_tf32 = tf32
            loss, parameters = network()
            optimizer = self.torch.optim.Adam(parameters, lr=0.0001, **adam)

            def step():
                optimizer.zero_grad(set_to_none=True)
                loss().backward()
                optimizer.step()

            return (wrap(step),)

        networks = {"block-256": (self.block, (8, 128, 256, 4)), "recurrent": (self.recurrent, (64, 20, 256))}
        if gpu:
            networks.update({"block-768": (self.block, (16, 512, 768, 12)), "wide": (self.wide, (4096, 1024)),
                             "words": (self.words, (4096, 16, 256))})
        networks = {row: (lambda network=network, shape=shape: network(*shape), False)
                    for row, (network, shape) in networks.items()}
        networks.update(language_peers.networks(self.torch, self.device, gpu))
        for row, (network, tf32) in networks.items():
            yield row, lambda network=network, tf32=tf32: make(network, tf32), lambda step: step(), 1


TRAINING = {
    "mnist-epoch": dict(samples=60000, inputs=784, hidden=1000, relu=False, batch=100, rate=0.01, epochs=1,
                        drop_last=False),
    "digits": dict(samples=1438, inputs=64, hidden=30, relu=True, batch=32, rate=0.03, epochs=30, drop_last=False),
}


def emit(by, version, row, way="", **more):
    print(json.dumps({"row": row, "by": by, "version": version, "way": way, **more}), flush=True)


def plain_rows(peer):
    """A library's rows as its users would write them first: name, what makes the operands, the call, calls in a
    call."""
    for row, make, call in peer.arrays():
        yield row, make, call, 100 if row == "record-node" else 1
    for row, shape in TRAINING.items():
        yield row, lambda shape=shape: (peer.train(**shape),), lambda epoch: epoch(), 1


def time_rows(peer, way, rows, only, budget):
    for row, make, call, per in rows:
        if only and only not in row:
            continue
        try:
            operands = make()
            if row.startswith("matmul"):
                peer.finish()
                time.sleep(REST)
            best, median = measure(lambda: call(*operands), peer.finish, budget, warm=1 if row in TRAINING else 3)
            more = {"note": peer.note(row, call, operands)} if hasattr(peer, "note") else {}
            emit(peer.name, peer.version, row, way, best=best / per, median=median / per, unit="s", **more)
            del operands
        except Exception as problem:  # a way that breaks leaves the others' rows whole
            emit(peer.name, peer.version, row, way, broken=str(problem).split("\n")[0][:200])


def torch_steps(peer, wrap=lambda step: step, **adam):
    yield from TorchSteps(peer.torch, peer.device).rows(peer.gpu, wrap, **adam)


def torch_rows(peer):
    yield from plain_rows(peer)
    yield from torch_steps(peer)


def cpu_ways():
    yield "numpy", "", lambda: NumPy(), plain_rows
    yield "pytorch", "", lambda: Torch(), torch_rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu, or cuda:N")
    parser.add_argument("--only", help="rows with this in their name")
    parser.add_argument("--by", help="this library alone")
    parser.add_argument("--seconds", type=float, default=1.5, help="for each row")
    options = parser.parse_args()
    ways = cpu_ways()
    if options.device.startswith("cuda"):
        import gpu_peers
        ways = gpu_peers.ways(options.device)
    for name, way, make, rows in ways:
        if options.by and options.by != name:
            continue
        try:
            peer = make()
        except ImportError as problem:
            print(json.dumps({"by": name, "missing": str(problem)}), flush=True)
            continue
        time_rows(peer, way, rows(peer), options.only, options.seconds)


if __name__ == "__main__":
    sys.exit(main())
