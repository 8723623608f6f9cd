/* SPDX-License-Identifier: MIT */
/*
 * libcuda.so.1 and libnvrtc (cuda/library.h) of a GPU of the generation TANSO_TEXTS_GPU (80, 90, 100) whose kernels do
 * nothing; each text that it would run is kept as $TANSO_TEXTS_FOLDER/<hash>.cu. See tests/kernel_texts.
 */
#include "cuda/library.h"

#include "core/hash.h"

#include <unistd.h>

/* The machine code of that compiler is the text. Several processes may meet the same one: each writes a file of its
 * own. */
static CUresult keep(CUmodule *module, const void *image)
{
    const char *folder = getenv("TANSO_TEXTS_FOLDER"), *text = image;
    char path[4096], written[4120];
    uint64_t hash = tn__hash(text, strlen(text), 0);
    snprintf(path, sizeof path, "%s/%016llx.cu", folder ? folder : ".", (unsigned long long)hash);
    snprintf(written, sizeof written, "%s.%ld", path, (long)getpid());
    if (folder && access(path, F_OK) != 0) {
        FILE *file = fopen(written, "w");
        if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0 || rename(written, path) != 0) {
            perror(written);
            abort();
        }
    }
    return fake_module(module, image);
}

__attribute__((constructor)) static void prepare(void)
{
    const char *generation = getenv("TANSO_TEXTS_GPU");
    library_prepare();
    library_choose(generation ? atoi(generation) : 90);
    libraries.driver.cuModuleLoadData = keep;
}
