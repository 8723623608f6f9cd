/* SPDX-License-Identifier: MIT */
/* Opening cuDNN: once a process, when a convolution is first compiled. */
#include <pthread.h>

#include "backends/cuda/convolution/cudnn.h"

#define MAJOR 9 /* whose numbers cudnn.h has */

#define DNN(name) {#name, offsetof(tn__cudnn, name)}
static const tn__cuda_entry entries[] = {
    DNN(cudnnGetVersion),          DNN(cudnnCreate),
    DNN(cudnnSetStream),           DNN(cudnnBackendCreateDescriptor),
    DNN(cudnnBackendFinalize),     DNN(cudnnBackendDestroyDescriptor),
    DNN(cudnnBackendSetAttribute), DNN(cudnnBackendGetAttribute),
    DNN(cudnnBackendExecute)};
static tn__cudnn dnn;
static bool there;

static void open_dnn(void)
{
    there = tn__cuda_open_part(TN__CUDA_DNN_PART, MAJOR, MAJOR, entries, (int)(sizeof entries / sizeof *entries), &dnn);
}

const tn__cudnn *tn__cuda_dnn_library(const tn__cuda_device *device)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (device->libraries->dnn || !device->libraries->has_others)
        return device->libraries->dnn;
    pthread_once(&once, open_dnn);
    return there ? &dnn : NULL;
}
