/* SPDX-License-Identifier: MIT */
/*
 * Kernels on the processor at hand: between the driver (driver.c), which launches them, what runs a block's threads
 * (block.c), and the kernels themselves (device.h, which is C++). A block's threads are fibers of one thread: one runs
 * until it has to wait for others.
 */
#ifndef TN_TESTS_EMULATOR_BLOCK_H
#define TN_TESTS_EMULATOR_BLOCK_H

#include <stdbool.h>
#include <stddef.h>

typedef struct emulated_extent {
    unsigned x, y, z;
} emulated_extent;

typedef struct emulated_block {
    emulated_extent index, threads, blocks;
} emulated_block;

typedef enum emulated_state {
    EMULATED_NEW,
    EMULATED_READY,
    EMULATED_WAITS_LANES,
    EMULATED_WAITS_ALL,
    EMULATED_DONE
} emulated_state;

/* Those of a block are an array: a warp is 32 of them. */
typedef struct emulated_thread {
    emulated_extent thread;
    unsigned lane;
    const emulated_block *block;
    char shown[32]; /* to the other lanes */
    /* block.c's */
    emulated_state state;
    unsigned waits_for; /* WAITS_LANES: these */
    struct emulated_fiber *fiber;
} emulated_thread;

/* What kernels ask for. */
typedef struct emulated_host {
    int (*all_meet)(int vote); /* whether one of the threads voted for it */
    void (*lanes_meet)(unsigned lanes);
} emulated_host;

typedef struct emulated_kernel {
    char name[64];
    emulated_thread **now; /* the thread that runs */
    const emulated_host **host;
    const size_t *sizes; /* of the arguments; 0 after the last one */
    void (*apply)(void *const *arguments);
    unsigned char *dynamic; /* shared memory that a launch asks for */
    size_t dynamic_size;
} emulated_kernel;

typedef struct emulated_launch {
    unsigned blocks, threads, dynamic; /* bytes of shared memory */
} emulated_launch;

/* Runs all blocks, one after another. Aborts, with a message, where threads wait for others that never come. */
void emulated_run(const emulated_kernel *kernel, const emulated_launch *launch, void *const *arguments);

#endif
