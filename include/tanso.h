/* SPDX-License-Identifier: MIT */
/* Tanso: tensors in C. This header includes every public header; see docs/ for the guide. */
#ifndef TANSO_H
#define TANSO_H

#include <tanso/activations.h>
#include <tanso/array.h>
#include <tanso/complex.h>
#include <tanso/conv.h>
#include <tanso/extensions.h>
#include <tanso/fft.h>
#include <tanso/linalg.h>
#include <tanso/autograd.h>
#include <tanso/base.h>
#include <tanso/classifier.h>
#include <tanso/comm.h>
#include <tanso/connections.h>
#include <tanso/data.h>
#include <tanso/dataset.h>
#include <tanso/device.h>
#include <tanso/distributions.h>
#include <tanso/engine.h>
#include <tanso/exchange.h>
#include <tanso/hooks.h>
#include <tanso/index.h>
#include <tanso/io.h>
#include <tanso/kernel.h>
#include <tanso/losses.h>
#include <tanso/manipulate.h>
#include <tanso/metrics.h>
#include <tanso/models.h>
#include <tanso/nn.h>
#include <tanso/normalization.h>
#include <tanso/optim.h>
#include <tanso/polynomial.h>
#include <tanso/pool.h>
#include <tanso/product.h>
#include <tanso/random.h>
#include <tanso/recurrent.h>
#include <tanso/report.h>
#include <tanso/sampler.h>
#include <tanso/signal.h>
#include <tanso/sort.h>
#include <tanso/special.h>
#include <tanso/statistics.h>
#include <tanso/stream.h>
#include <tanso/table.h>
#include <tanso/train.h>
#include <tanso/trainer.h>
#include <tanso/vectorize.h>
#include <tanso/ufunc.h>

#endif
