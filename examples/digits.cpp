// SPDX-License-Identifier: MIT
// The handwritten digits from C++20: keyword arguments as in C, owners that free what they hold, errors as exceptions.
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <tanso.h>

template <auto Free> struct drop {
    template <class T> void operator()(T *x) const { Free(x); }
};
using layer = std::unique_ptr<tn_layer, drop<tn_layer_free>>;
using optimizer = std::unique_ptr<tn_optimizer, drop<tn_optimizer_free>>;
using loader = std::unique_ptr<tn_loader, drop<tn_loader_free>>;
using dataset = std::unique_ptr<tn_dataset, drop<tn_dataset_free>>;
using meter = std::unique_ptr<tn_meter, drop<tn_meter_free>>;

// Throws the thread's first error, if there is one.
static void check()
{
    if (tn_ok())
        return;
    std::runtime_error error(tn_error());
    tn_clear_error();
    throw error;
}

static void train()
{
    const tn_device device = tn_device_best();
    const tn_init he = {.kind = TN_INIT_HE_NORMAL, .gain = 1};
    tn_seed(0);
    layer net(tn_sequential(tn_linear(64, .weight = he), tn_relu_layer(), tn_linear(10)));
    tn_layer_to(net.get(), device);
    optimizer adam(tn_adam(net.get(), .lr = 0.003, .weight_decay = 1e-4));
    loader batches(tn_loader_new(tn_digits(TN_TRAIN), .batch = 32, .shuffle = true, .seed = 1, .device = device));
    dataset test(tn_digits(TN_TEST));
    meter mean(tn_meter_new(device));

    for (int epoch = 1; epoch <= 8; epoch++) {
        for (tn_batch b; tn_loader_next(batches.get(), &b);)
            TN_SCOPE {
                tn_array *loss = tn_softmax_cross_entropy(tn_forward(net.get(), b.x), b.t);
                tn_backward(loss);
                tn_step(adam.get());
                tn_meter_add(mean.get(), loss, static_cast<double>(b.size));
            }
        check();
        double accuracy = 0;
        if (tn_evaluate(net.get(), test.get(), 0, device, nullptr, &accuracy) == TN_OK)
            std::printf("epoch %d, loss: %.4f, accuracy: %.1f%%\n", epoch, tn_meter_take(mean.get()), 100 * accuracy);
        check();
    }
}

int main()
{
    try {
        train();
    } catch (const std::exception &e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
