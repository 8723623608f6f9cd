/* SPDX-License-Identifier: MIT */
/* A small HTTP server on 127.0.0.1 for the tests of downloads: one file, on a thread. */
#ifndef TN_TESTS_DATA_SERVER_H
#define TN_TESTS_DATA_SERVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct server {
    const uint8_t *data;  /* what /file is */
    size_t size;
    bool ranges;          /* honours Range */
    size_t cut;           /* hangs up after so many bytes of a body; 0: never */
    int requests;         /* answered so far */
    size_t last_start;    /* of the last request's range */
    int listener, port;
    pthread_t thread;
} server;

/* Everything but /file is 404. False if no socket can be had. */
bool server_start(server *s);
void server_stop(server *s);

#endif
