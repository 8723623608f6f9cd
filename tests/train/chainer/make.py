#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make.py FOLDER: writes the files of this folder anew, with Chainer 7.8.1 (pip install chainer "numpy<1.24").

A run over 10 samples in minibatches of 3, not shuffled: its log, snapshots and models as Chainer saves them, and what
each optimizer's state looks like after 3 updates, with the parameters after 2 more. Weights are square, so that nobody
can tell from their shapes which way round they are.
"""
import json
import os
import sys

import chainer
import chainer.links as L
import numpy as np
from chainer import training
from chainer.training import extensions

FEATURES = 4
UPDATES, MORE = 3, 2

random = np.random.RandomState(5)
x = random.uniform(-1, 1, (10, FEATURES)).astype(np.float32)
t = (np.arange(10) * 7 % FEATURES).astype(np.int32)


def predictor():
    link = L.Linear(FEATURES, FEATURES)
    link.W.data[...] = np.random.RandomState(1).uniform(-1, 1, link.W.shape)
    link.b.data[...] = np.random.RandomState(2).uniform(-1, 1, link.b.shape)
    return link


def iterator(data, batch, repeat):
    return chainer.iterators.SerialIterator(data, batch, repeat=repeat, shuffle=False)


def run(folder):
    data = chainer.datasets.TupleDataset(x, t)
    model = L.Classifier(predictor())
    np.savez(os.path.join(folder, "data.npz"), x=x, t=t, W=model.predictor.W.data, b=model.predictor.b.data)
    optimizer = chainer.optimizers.SGD(lr=0.1).setup(model)
    updater = training.StandardUpdater(iterator(data, 3, True), optimizer)
    trainer = training.Trainer(updater, (2, "epoch"), out=folder)
    trainer.extend(extensions.Evaluator(iterator(data, 5, False), model))
    trainer.extend(extensions.observe_lr())
    trainer.extend(extensions.ParameterStatistics(model, prefix="stat", trigger=(1, "epoch")))
    trainer.extend(extensions.ExponentialShift("lr", 1.0), trigger=(1, "epoch"))
    trainer.extend(extensions.LogReport(), call_before_training=True)
    trainer.extend(extensions.snapshot(), trigger=(1, "epoch"))
    trainer.extend(extensions.snapshot_object(model, "model_{.updater.epoch}"), trigger=(1, "epoch"))
    trainer.run()
    with open(os.path.join(folder, "log")) as file:
        log = json.load(file)
    for entry in log:
        entry["elapsed_time"] = 0
    with open(os.path.join(folder, "log"), "w") as file:
        json.dump(log, file, indent=1)


OPTIMIZERS = {
    "sgd": chainer.optimizers.SGD(lr=0.1),
    "momentum_sgd": chainer.optimizers.MomentumSGD(lr=0.1),
    "corrected_momentum_sgd": chainer.optimizers.CorrectedMomentumSGD(lr=0.1),
    "adagrad": chainer.optimizers.AdaGrad(lr=0.1),
    "adadelta": chainer.optimizers.AdaDelta(),
    "rmsprop": chainer.optimizers.RMSprop(lr=0.1),
    "rmsprop_graves": chainer.optimizers.RMSpropGraves(lr=0.1),
    "smorms3": chainer.optimizers.SMORMS3(lr=0.1),
    "adam": chainer.optimizers.Adam(alpha=0.1),
    "adamw": chainer.optimizers.AdamW(alpha=0.1, weight_decay_rate=0.01),
    "amsgrad": chainer.optimizers.AMSGrad(alpha=0.1),
    "adabound": chainer.optimizers.AdaBound(alpha=0.1, final_lr=0.5),
    "amsbound": chainer.optimizers.AMSBound(alpha=0.1, final_lr=0.5),
    "msvag": chainer.optimizers.MSVAG(lr=0.1),
}


def optimizers(folder):
    kept = {"x": x, "t": t}
    for name, optimizer in OPTIMIZERS.items():
        model = L.Classifier(predictor())
        optimizer.setup(model)
        for _ in range(UPDATES):
            optimizer.update(model, x, t)
        saver = chainer.serializers.DictionarySerializer()
        saver["optimizer:" + name].save(optimizer)
        saver["model:" + name].save(model)
        kept.update({key: value.copy() for key, value in saver.target.items()})  # updates write into these
        for _ in range(MORE):
            optimizer.update(model, x, t)
        saver = chainer.serializers.DictionarySerializer()
        saver["after:" + name].save(model)
        kept.update(saver.target)
    np.savez_compressed(os.path.join(folder, "optimizers.npz"), **kept)


if __name__ == "__main__":
    run(sys.argv[1])
    optimizers(sys.argv[1])
