#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Values and gradients that PyTorch computed, for tests/nn/test_torch.c.

    gen_torch.py FOLDER         writes torch.npz there: a copy of the file beside this script, when building
    gen_torch.py --make         makes that file anew; needs torch

A case "name" has floating inputs name.0, name.1, ..., integer inputs name.i0, ..., the output name.y, and for the
gradient name.g of the output the inputs' gradients name.d0, ... What only Chainer has is written out here from its
documented formula.
"""
import pathlib
import shutil
import sys

KEPT = pathlib.Path(__file__).with_name("torch_values.npz")


def make():
    import numpy as np
    import torch
    import torch.nn.functional as F

    torch.manual_seed(11)
    torch.set_default_dtype(torch.float64)
    rng = np.random.default_rng(5)
    values = {}

    def floats(*shape, low=-3.0, high=3.0):
        """Multiples of 1/64 that are no multiples of 1/2: kinks are kept away from."""
        x = np.round(rng.uniform(low, high, shape) * 64) / 64
        return x + np.where(np.mod(x, 0.5) == 0, 1 / 64, 0)

    def case(name, function, inputs, integers=()):
        xs = [torch.tensor(x, requires_grad=True) for x in inputs]
        y = function(*xs, *[torch.tensor(i) for i in integers])
        g = torch.tensor(np.round(rng.uniform(-2, 2, tuple(y.shape)) * 16) / 16)
        grads = torch.autograd.grad(y, xs, g, allow_unused=True)
        for i, (x, d) in enumerate(zip(xs, grads)):
            values[f"{name}.{i}"] = x.detach().numpy()
            values[f"{name}.d{i}"] = np.zeros(x.shape) if d is None else d.numpy()
        for i, x in enumerate(integers):
            values[f"{name}.i{i}"] = np.asarray(x, dtype=np.int64)
        values[f"{name}.y"] = y.detach().numpy()
        values[f"{name}.g"] = g.numpy()

    # ---- activations ----
    for name, function in {
        "elu": lambda x: F.elu(x, 1.3), "celu": lambda x: F.celu(x, 0.7), "selu": F.selu, "silu": F.silu,
        "swish": lambda x: x * torch.sigmoid(1.7 * x), "mish": F.mish,
        "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "softplus_beta": lambda x: F.softplus(x, 2.5, 100),
        "log_sigmoid": F.logsigmoid, "softsign": F.softsign, "clipped_relu": lambda x: torch.clamp(x, 0, 2.2),
        "relu6": lambda x: F.relu6(4 * x), "hard_tanh": lambda x: F.hardtanh(x, -1.25, 0.75),
        "hard_sigmoid": lambda x: F.hardsigmoid(2 * x), "hard_sigmoid_chainer":
        lambda x: torch.clamp(0.2 * x + 0.5, 0, 1), "hard_swish": lambda x: F.hardswish(2 * x),
        "hard_shrink": lambda x: F.hardshrink(x, 0.8), "soft_shrink": lambda x: F.softshrink(x, 0.8),
        "tanh_shrink": F.tanhshrink, "threshold": lambda x: F.threshold(x, 0.1, 20.0),
        "glu": lambda x: F.glu(x, 1), "softmin": lambda x: F.softmin(x, 1),
        "crelu": lambda x: torch.cat([F.relu(x), F.relu(-x)], 1),
        "maxout": lambda x: x.reshape(3, 2, 3, 5).max(2).values,
    }.items():
        case(name, function, [floats(3, 6, 5)])
    case("prelu", F.prelu, [floats(2, 3, 4), floats(3)])
    case("prelu_one", F.prelu, [floats(2, 3, 4), floats(1)])

    # ---- losses over elements ----
    x, t = floats(3, 5), floats(3, 5)
    case("mean_absolute_error", F.l1_loss, [x, t])
    case("mean_squared_error_sum", lambda a, b: F.mse_loss(a, b, reduction="sum"), [x, t])
    case("huber_loss", lambda a, b: F.huber_loss(a, b, delta=1.2), [x, t])
    case("huber_loss_none", lambda a, b: F.huber_loss(a, b, reduction="none", delta=0.6), [x, t])
    case("smooth_l1_loss", lambda a, b: F.smooth_l1_loss(a, b, beta=0.7), [x, t])
    case("gaussian_nll", lambda x, m, v: F.gaussian_nll_loss(m, x, torch.exp(v), full=True),
         [x, t, floats(3, 5, low=-1, high=1)])
    case("bernoulli_nll", lambda x, y: F.binary_cross_entropy_with_logits(y, x, reduction="sum"),
         [floats(3, 5, low=0, high=1), t])
    case("poisson_nll", F.poisson_nll_loss, [x, floats(3, 5, low=0, high=4)])
    case("gaussian_kl_divergence", lambda m, v: torch.distributions.kl_divergence(
        torch.distributions.Normal(m, torch.exp(v / 2)), torch.distributions.Normal(0.0, 1.0)).sum(), [x, t])
    logq, p = F.log_softmax(torch.tensor(x), 1).numpy(), F.softmax(torch.tensor(t), 1).numpy()
    case("kl_divergence", F.kl_div, [logq, p])
    case("kl_divergence_log", lambda q, p: F.kl_div(q, p, reduction="batchmean", log_target=True), [logq, np.log(p)])
    sign = np.where(rng.random((3, 5)) < 0.5, -1.0, 1.0)
    case("soft_margin_loss", F.soft_margin_loss, [x], [sign.astype(np.int64)])
    case("hinge_embedding_loss", lambda x, y: F.hinge_embedding_loss(x, y, 1.3), [x], [sign.astype(np.int64)])
    case("margin_ranking_loss", lambda a, b, y: F.margin_ranking_loss(a, b, y, 0.4), [x, t], [sign.astype(np.int64)])
    w, pw = floats(5, low=0.1, high=2), floats(5, low=0.1, high=2)
    values["sigmoid.w"], values["sigmoid.pw"] = w, pw
    case("sigmoid_cross_entropy_weights", lambda x: F.binary_cross_entropy_with_logits(
        x, torch.tensor(np.round(p)), weight=torch.tensor(w), pos_weight=torch.tensor(pw)), [x])
    values["sigmoid.t"] = np.round(p)
    labels01 = rng.integers(-1, 2, (3, 5))
    labels01[0, 0] = -1
    case("sigmoid_cross_entropy_ignored", lambda x, t: (F.softplus(x) - x * t)[t != -1].mean(), [x], [labels01])

    # ---- losses over rows ----
    rows, labels = floats(4, 3), np.array([2, 0, 1, 2])
    hinge = lambda x, t: F.relu(1 + torch.where(F.one_hot(t, 3) == 1, -x, x))
    case("hinge_loss", lambda x, t: hinge(x, t).sum() / 4, [rows], [labels])
    case("hinge_loss_squared", lambda x, t: hinge(x, t) ** 2, [rows], [labels])
    case("multi_margin_loss", lambda x, t: F.multi_margin_loss(x, t, p=1, margin=0.7), [rows], [labels])
    case("multi_margin_loss_2", lambda x, t: F.multi_margin_loss(x, t, p=2, reduction="none"), [rows], [labels])
    logp = F.log_softmax(torch.tensor(floats(2, 3, 4)), 1).numpy()
    spots = np.array([[0, 1, 2, 1], [1, 1, 0, 2]])
    classes = floats(3, low=0.2, high=2)
    values["nll.w"] = classes
    case("nll_loss", lambda x, t: F.nll_loss(x, t, torch.tensor(classes), ignore_index=1), [logp], [spots])
    soft = F.softmax(torch.tensor(floats(2, 3, 4)), 1).numpy()
    case("soft_cross_entropy", lambda x, t: F.cross_entropy(x, t, torch.tensor(classes), label_smoothing=0.1),
         [floats(2, 3, 4), soft])
    a, b, c = floats(4, 3), floats(4, 3), floats(4, 3)
    like = np.array([1, 0, 1, 0])
    square = lambda a, b: ((a - b) ** 2).sum(1)
    case("contrastive_loss", lambda a, b, y: (y * square(a, b) + (1 - y) * F.relu(
        4.5 - square(a, b).sqrt()) ** 2).mean() / 2, [a, b], [like])
    case("cosine_embedding_loss", lambda a, b, y: F.cosine_embedding_loss(a, b, y, 0.1), [a, b], [2 * like - 1])
    case("cosine_similarity", lambda a, b: F.cosine_similarity(a, b, 0), [a, b])
    for order in (1, 2, 3):
        case(f"pairwise_distance_{order}", lambda a, b: F.pairwise_distance(a, b, order), [a, b])
    case("triplet_loss", lambda a, b, c: F.triplet_margin_loss(a, b, c, margin=2.0, swap=True), [a, b, c])
    case("triplet_loss_chainer", lambda a, b, c: F.relu(square(a, b) - square(a, c) + 0.2).mean(), [a, b, c])
    centred = lambda x: x - x.mean(0)
    cov = lambda a, b: centred(a).T @ centred(b) / a.shape[0]
    case("cross_covariance", lambda a, b: (cov(a, b) ** 2).sum() / 2, [a, floats(4, 2)])
    case("decov", lambda a: ((cov(a, a) - torch.diag(torch.diag(cov(a, a)))) ** 2).sum() / 2, [a])

    # ---- sampled ----
    words, negatives = floats(6, 3), rng.integers(0, 6, (4, 2))
    target = np.array([5, -1, 0, 3])

    def negative(x, w, t, s):
        own = (x * w[t.clamp(min=0)]).sum(1)
        others = (x[:, None] * w[s]).sum(2)
        return ((F.softplus(-own) + F.softplus(others).sum(1)) * (t != -1)).mean()

    def black_out(x, w, t, s):
        scores = torch.cat([(x * w[t]).sum(1)[:, None], (x[:, None] * w[s]).sum(2)], 1)
        logp = F.log_softmax(scores, 1)
        return -(logp[:, 0] + torch.log(1 - torch.exp(logp[:, 1:])).sum(1)).mean()

    case("negative_sampling", negative, [rows / 2, words / 2], [target, negatives])
    case("black_out", black_out, [rows / 2, words / 2], [np.array([5, 1, 0, 3]), negatives])

    # ---- sequences ----
    steps = floats(7, 3, 4)
    targets = np.array([[1, 2, 2], [3, 1, 0], [2, 2, 2]])
    full = torch.tensor([7, 7, 7])
    case("ctc_loss", lambda x, t: F.ctc_loss(F.log_softmax(x, 2), t[:, :2], full, torch.tensor([2, 2, 2]),
                                             reduction="none"), [steps], [targets])
    case("ctc_loss_lengths", lambda x, t, i, l: F.ctc_loss(F.log_softmax(x, 2), t, i, l), [steps],
         [targets, np.array([7, 4, 6]), np.array([3, 2, 1])])
    # (PyTorch's gradient of the loss alone is that of scores: its softmax has to be behind it)
    case("ctc_loss_log", lambda x, t: F.ctc_loss(F.log_softmax(x, 2), t - 1, full, torch.tensor([1, 1, 1]), blank=3,
                                                 reduction="sum"), [steps], [np.array([[1], [3], [2]])])
    cost, ways = floats(3, 3, low=-1, high=1), floats(4, 2, 3)
    tags = np.array([[0, 1], [2, 2], [1, 0], [1, 1]])

    def crf(cost, x, t, lengths):
        import itertools
        losses = []
        for n, length in enumerate(lengths.tolist()):
            score = lambda path: sum(x[i, n, k] for i, k in enumerate(path)) + sum(
                cost[a, b] for a, b in zip(path, path[1:]))
            paths = itertools.product(range(3), repeat=length)
            every = torch.stack([score(path) for path in paths])
            losses.append(torch.logsumexp(every, 0) - score(t[:length, n].tolist()))
        return torch.stack(losses)

    case("crf_loss", lambda c, x, t, n: crf(c, x, t, n).mean(), [cost, ways], [tags, np.array([4, 2])])
    case("crf_loss_none", lambda c, x, t: crf(c, x, t, torch.tensor([4, 4])), [cost, ways], [tags])

    # ---- normalization ----
    maps, gains, shifts = floats(3, 4, 2, 3), floats(4), floats(4)
    wide = lambda v: v.reshape(4, 1, 1)
    case("batch_norm", lambda x, g, b: F.batch_norm(x, None, None, g, b, True, eps=1e-4), [maps, gains, shifts])
    case("batch_norm_last", lambda x: F.batch_norm(x.reshape(-1, 3), None, None, training=True).reshape(x.shape),
         [maps])
    case("fixed_batch_norm", lambda x, *v: (x - wide(v[2])) / (wide(v[3]) + 1e-5).sqrt() * wide(v[0]) + wide(v[1]),
         [maps, gains, shifts, floats(4), floats(4, low=0.2, high=2)])
    case("group_norm", lambda x, g, b: F.group_norm(x, 2, g, b), [maps, gains, shifts])
    case("instance_norm", F.instance_norm, [maps])
    case("layer_norm_two", lambda x, g, b: F.layer_norm(x, (2, 3), g, b), [maps, floats(2, 3), floats(2, 3)])
    case("rms_norm", lambda x, g: F.rms_norm(x, (2, 3), g, eps=1e-3), [maps, floats(2, 3)])
    for order in (1, 2, 3):
        case(f"normalize_{order}", lambda x: F.normalize(x, order, 1), [maps])
    case("weight_norm", lambda v, g: torch._weight_norm(v, g, 0), [floats(4, 3, 2), floats(4).reshape(4, 1, 1)])

    for name, momentum in (("running", 0.3), ("cumulative", None)):
        layer = torch.nn.BatchNorm1d(3, momentum=momentum, eps=2e-5)
        values[f"{name}.x"] = floats(4, 5, 3)
        for x in values[f"{name}.x"][:3]:
            layer(torch.tensor(x))
        values[f"{name}.mean"], values[f"{name}.var"] = layer.running_mean.numpy(), layer.running_var.numpy()
        values[f"{name}.out"] = layer.eval()(torch.tensor(values[f"{name}.x"][3])).detach().numpy()
    x, mean, var = floats(5, 3), floats(3, low=-0.5, high=0.5), floats(3, low=0.5, high=2)
    deviation, running = np.sqrt(x.var(0) + 1e-5), np.sqrt(var + 1e-5)
    r, d = np.clip(deviation / running, 1 / 1.5, 1.5), np.clip((x.mean(0) - mean) / running, -0.4, 0.4)
    values["renorm.mean"], values["renorm.var"] = mean, var
    case("renorm", lambda x: F.batch_norm(x, None, None, training=True) * torch.tensor(r) + torch.tensor(d), [x])

    # ---- recurrent: weights under PyTorch's names, so that layers load them from here ----
    def recurrent(name, network, steps, rows, features, lengths=None, states=True):
        units, h_c = network.hidden_size, isinstance(network, torch.nn.LSTM)
        count = network.num_layers * (2 if network.bidirectional else 1)
        for key, value in network.state_dict().items():
            values[f"{name}.{key}"] = value.numpy().copy()
        x = torch.tensor(floats(steps, rows, features, low=-1, high=1), requires_grad=True)
        first = [torch.tensor(floats(count, rows, units, low=-1, high=1), requires_grad=True) for _ in range(1 + h_c)]
        given = None if not states else tuple(first) if h_c else first[0]
        if lengths is None:
            y, last = network(x, given)
        else:
            packed = torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor(lengths), enforce_sorted=False)
            y, last = network(packed, given)
            y, _ = torch.nn.utils.rnn.pad_packed_sequence(y, total_length=steps)
            values[f"{name}.lengths"] = np.array(lengths)
        outs = [y, *last] if h_c else [y, last]
        seeds = [torch.tensor(floats(*out.shape)) for out in outs]
        sum((out * seed).sum() for out, seed in zip(outs, seeds)).backward()
        values[f"{name}.x"], values[f"{name}.dx"] = x.detach().numpy(), x.grad.numpy()
        for key, out, seed in zip("yhc", outs, seeds):
            values[f"{name}.{key}"], values[f"{name}.g{key}"] = out.detach().numpy(), seed.numpy()
        for key, state in zip("hc", first if states else []):
            values[f"{name}.{key}0"], values[f"{name}.d{key}0"] = state.detach().numpy(), state.grad.numpy()
        for key, value in network.named_parameters():
            values[f"{name}.d.{key}"] = value.grad.numpy()

    recurrent("lstm", torch.nn.LSTM(3, 4, 2, bidirectional=True), 5, 3, 3, lengths=[5, 1, 3])
    recurrent("lstm_plain", torch.nn.LSTM(2, 3), 4, 1, 2, states=False)
    recurrent("gru", torch.nn.GRU(3, 4, 2), 5, 3, 3)
    recurrent("gru_lengths", torch.nn.GRU(2, 3, 1, bidirectional=True), 4, 3, 2, lengths=[2, 4, 1], states=False)
    recurrent("rnn", torch.nn.RNN(3, 2, 2, bidirectional=True), 3, 2, 3)
    recurrent("rnn_relu", torch.nn.RNN(3, 2, 1, nonlinearity="relu", bias=False), 3, 2, 3)
    sig, tanh = torch.sigmoid, torch.tanh

    def lstm_step(gates, c, p=torch.zeros(3, 3)):
        i, f, g, o = gates.split(3, 1)
        c2 = sig(f + p[1] * c) * c + sig(i + p[0] * c) * tanh(g)
        return torch.cat([sig(o + p[2] * c2) * tanh(c2), c2], 1)

    def gru_step(gx, gh, h):
        (a, b, c), (d, e, f) = gx.split(3, 1), gh.split(3, 1)
        z = sig(b + e)
        return (1 - z) * tanh(c + sig(a + d) * f) + z * h

    case("lstm_step", lstm_step, [floats(2, 12), floats(2, 3)])
    case("lstm_peephole_step", lstm_step, [floats(2, 12), floats(2, 3), floats(3, 3)])
    case("gru_step", gru_step, [floats(2, 9), floats(2, 9), floats(2, 3)])

    def mgu(x, w, u, bi, bh):
        h, ys = torch.zeros(2, 2), []
        for step in x:
            gx = step @ w + bi + bh
            f = sig(gx[:, :2] + h @ u[:, :2])
            h = (1 - f) * h + f * tanh(gx[:, 2:] + (f * h) @ u[:, 2:])
            ys.append(h)
        return torch.stack(ys)

    case("mgu", mgu, [floats(3, 2, 3), floats(3, 4), floats(2, 4), floats(4), floats(4)])

    # ---- connections ----
    attend = F.scaled_dot_product_attention
    q, k, v = floats(2, 3, 5, 4), floats(2, 3, 6, 4), floats(2, 3, 6, 2)
    case("attention", lambda q, k, v: attend(q, k, v), [q, k, v])
    case("attention_causal", lambda q, k, v: attend(q, k, v, is_causal=True, scale=0.3), [q, k, v])
    looks = rng.integers(0, 2, (5, 6))
    looks[:, 0] = 1
    case("attention_mask", lambda q, k, v, m: attend(q, k, v, m != 0), [q, k, v], [looks])
    case("attention_added", lambda q, k, v, m: attend(q, k, v, m), [q, k, v, floats(5, 6)])
    heads = torch.nn.MultiheadAttention(6, 3, batch_first=True)
    torch.nn.init.normal_(heads.in_proj_bias)
    torch.nn.init.normal_(heads.out_proj.bias)
    for key, value in heads.state_dict().items():
        values[f"multihead.{key}"] = value.numpy().copy()
    query, other = torch.tensor(floats(2, 4, 6)), torch.tensor(floats(2, 5, 6))
    values["multihead.q"], values["multihead.k"] = query.numpy(), other.numpy()
    for key, (y, w) in (("self", heads(query, query, query)), ("cross", heads(query, other, other))):
        values[f"multihead.{key}_y"], values[f"multihead.{key}_w"] = y.detach().numpy(), w.detach().numpy()
    case("linear", lambda x, w, b: F.linear(x, w.T, b), [floats(2, 3, 4), floats(4, 2), floats(2)])
    case("bilinear", lambda a, b, w, c: F.bilinear(a, b, w.permute(2, 0, 1), c),
         [floats(3, 2), floats(3, 4), floats(2, 4, 5), floats(5)])
    table, bags = floats(6, 3), np.array([[0, 5, 2], [5, 1, 5]])
    for mode in ("mean", "sum", "max"):
        case(f"bag_{mode}", lambda w, x: F.embedding_bag(x, w, mode=mode), [table], [bags])
    case("bag_padding", lambda w, x: F.embedding_bag(x, w, mode="mean", padding_idx=5), [table], [bags])
    case("bag_weights", lambda w, s, x: F.embedding_bag(x, w, mode="sum", per_sample_weights=s),
         [table, floats(2, 3)], [bags])

    # ---- distributions ----
    D = torch.distributions
    loc, scale, x = floats(3, 1), floats(4, low=0.3, high=2), floats(3, 4)
    positive, chance = floats(3, 4, low=0.1, high=4), floats(3, 4, low=0.1, high=0.9)

    def distribution(name, make, a, b, x, cdf=True, icdf=True):
        both = [a] if b is None else [a, b]
        case(f"{name}_log_prob", lambda x, *p: make(*p).log_prob(x), [x, *both])
        if cdf:
            case(f"{name}_cdf", lambda x, *p: make(*p).cdf(x), [x, *both])
        if icdf:
            case(f"{name}_icdf", lambda x, *p: make(*p).icdf(x), [chance, *both])
        case(f"{name}_entropy", lambda *p: make(*p).entropy(), both)

    distribution("normal", D.Normal, loc, scale, x, icdf=False)
    distribution("log_normal", D.LogNormal, loc, scale, positive, icdf=False)
    distribution("uniform", lambda a, b: D.Uniform(a, b, validate_args=False), loc, scale + 3, loc + chance)
    distribution("laplace", D.Laplace, loc, scale, x)
    distribution("cauchy", D.Cauchy, loc, scale, x)
    distribution("gumbel", D.Gumbel, loc, scale, x)
    distribution("exponential", D.Exponential, scale, None, positive)
    distribution("pareto", D.Pareto, floats(3, 1, low=0.3, high=1), scale, positive + 1)
    distribution("geometric", D.Geometric, chance, None, np.round(positive), False, False)
    distribution("bernoulli", lambda a: D.Bernoulli(logits=a), x, None, np.round(chance), False, False)
    case("categorical_log_prob", lambda a, t: D.Categorical(logits=a).log_prob(t), [x], [np.array([3, 0, 2])])
    case("categorical_entropy", lambda a: D.Categorical(logits=a).entropy(), [x])
    kl = D.kl_divergence
    loc2, scale2 = floats(3, 4), floats(3, 4, low=0.3, high=2)
    case("normal_kl", lambda a, b, c, d: kl(D.Normal(a, b), D.Normal(c, d)), [loc, scale, loc2, scale2])
    case("uniform_kl", lambda a, b, c, d: kl(D.Uniform(a, b), D.Uniform(c, d)), [loc, loc + scale, loc - 1, loc + 3])
    case("laplace_kl", lambda a, b, c, d: kl(D.Laplace(a, b), D.Laplace(c, d)), [loc, scale, loc2, scale2])
    case("exponential_kl", lambda a, c: kl(D.Exponential(a), D.Exponential(c)), [scale, scale2])
    case("geometric_kl", lambda a, c: kl(D.Geometric(a), D.Geometric(c)), [chance, chance[::-1].copy()])
    case("bernoulli_kl", lambda a, c: kl(D.Bernoulli(logits=a), D.Bernoulli(logits=c)), [x, loc2])
    case("categorical_kl", lambda a, c: kl(D.Categorical(logits=a), D.Categorical(logits=c)), [x, loc2])

    # ---- samples at given places ----
    flat, cube = floats(2, 3, 4, 5), floats(1, 2, 3, 4, 2)
    places = floats(2, 3, 2, 2, low=-1.6, high=1.6)
    sampled = F.grid_sample
    for corners in (False, True):
        end = "_corners" if corners else ""
        for pad in ("zeros", "border", "reflection"):
            case(f"grid_linear_{pad}{end}", lambda x, g: sampled(x, g, "bilinear", pad, corners), [flat, places])
        case(f"grid_cubic{end}", lambda x, g: sampled(x, g, "bicubic", "border", corners), [flat, places])
        case(f"affine_grid{end}", lambda t: F.affine_grid(t, [2, 1, 3, 4], corners), [floats(2, 2, 3)])
    case("grid_nearest", lambda x, g: sampled(x, g, "nearest", "zeros", False), [flat, places])
    case("grid_cubic_zeros", lambda x, g: sampled(x, g, "bicubic", "zeros", False), [flat, places])
    case("grid_three", lambda x, g: sampled(x, g, "bilinear", "zeros", False),
         [cube, floats(1, 2, 1, 3, 3, low=-1.2, high=1.2)])
    case("affine_three", lambda t: F.affine_grid(t, [2, 1, 2, 3, 4], False), [floats(2, 3, 4)])

    # ---- transformers ----
    values["encoder.x"] = floats(2, 4, 6, low=-1, high=1)
    for name, first, activation in (("encoder", False, "relu"), ("encoder_first", True, "gelu")):
        layer = torch.nn.TransformerEncoderLayer(6, 2, 5, 0, activation, batch_first=True, norm_first=first)
        for key, value in layer.named_parameters():
            torch.nn.init.uniform_(value, -0.7, 0.7)
            values[f"{name}.{key}"] = value.detach().numpy().copy()
        values[f"{name}.y"] = layer(torch.tensor(values["encoder.x"])).detach().numpy()

    # ---- distributions of the gamma function ----
    shape, rate, shapes = floats(3, 4, low=0.4, high=5), floats(4, low=0.3, high=2), floats(3, 4, low=0.4, high=5)
    shares = np.abs(floats(3, 4, low=0.2, high=2))
    shares /= shares.sum(1, keepdims=True)
    distribution("gamma", D.Gamma, shape, rate, positive, False, False)
    distribution("chisquare", D.Chi2, shape, None, positive, False, False)
    distribution("beta", D.Beta, shape, rate, chance, False, False)
    distribution("student_t", D.StudentT, shape, None, x, False, False)
    case("dirichlet_log_prob", lambda x, a: D.Dirichlet(a, validate_args=False).log_prob(x), [shares, shape])
    case("dirichlet_entropy", lambda a: D.Dirichlet(a).entropy(), [shape])
    case("poisson_log_prob", lambda x, a: D.Poisson(a).log_prob(x.round()), [np.round(positive), shape])
    case("gamma_kl", lambda a, b, c, d: kl(D.Gamma(a, b), D.Gamma(c, d)), [shape, rate, shapes, scale2])
    case("chisquare_kl", lambda a, c: kl(D.Gamma(a / 2, torch.full_like(a, 0.5)), D.Gamma(c / 2,
         torch.full_like(c, 0.5))), [shape, shapes])
    case("beta_kl", lambda a, b, c, d: kl(D.Beta(a, b), D.Beta(c, d)), [shape, rate, shapes, scale2])
    case("dirichlet_kl", lambda a, c: kl(D.Dirichlet(a), D.Dirichlet(c)), [shape, shapes])
    case("poisson_kl", lambda a, c: kl(D.Poisson(a), D.Poisson(c)), [shape, shapes])

    many = D.MultivariateNormal

    def factor(*shape):
        """Well away from singular; above the diagonal 0."""
        return np.tril(floats(*shape, low=-1, high=1)) + 1.5 * np.eye(shape[-1])

    def of_factor(a, b):
        return many(a, scale_tril=torch.tril(b), validate_args=False)

    vectors, one, several = floats(2, 3), factor(3, 3), factor(2, 3, 3)
    case("multivariate_normal_log_prob", lambda x, a, b: of_factor(a, b).log_prob(x), [floats(2, 3), vectors, several])
    case("multivariate_normal_entropy", lambda a, b: of_factor(a, b).entropy(), [vectors, several])
    case("multivariate_normal_variance", lambda a, b: of_factor(a, b).variance, [vectors, several])
    case("multivariate_normal_kl", lambda a, b, c, d: kl(of_factor(a, b), of_factor(c, d)),
         [vectors, several, floats(3), one])

    # ---- what came later ----
    case("linear_interpolate", lambda p, a, b: torch.lerp(b, a, p), [floats(3, 1), floats(3, 4), floats(4)])
    case("sum_to", lambda x: x.sum_to_size(3, 1), [floats(2, 3, 4)])
    case("as_strided", lambda x: x.as_strided((2, 3, 2), (7, 2, 3), 1), [floats(4, 5)])
    values["alpha_dropout.y"] = torch.unique(F.alpha_dropout(torch.ones(1000), 0.3, True)).numpy()
    table = floats(6, 3)
    table[4] = 0  # the padding's row, which Tanso does not read
    case("embedding", lambda w, x: F.embedding(x, w), [table], [bags])
    case("embedding_padding", lambda w, x: F.embedding(x, w, padding_idx=4), [table],
         [np.array([[4, 5, 2], [0, 4, 5]])])

    np.savez_compressed(KEPT, **values)


if sys.argv[1] == "--make":
    make()
else:
    shutil.copyfile(KEPT, pathlib.Path(sys.argv[1]) / "torch.npz")
