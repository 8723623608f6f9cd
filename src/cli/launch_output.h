/* SPDX-License-Identifier: MIT */
/* Output of a process, line by line, each with its rank before it. */
#ifndef TN_CLI_LAUNCH_OUTPUT_H
#define TN_CLI_LAUNCH_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct tn__line_reader {
    int fd, to, rank; /* fd: the end that is read; 0: not open */
    char line[4096];  /* a longer one is cut in two */
    size_t used;
} tn__line_reader;

/* A pipe for a rank's output `to` a descriptor of this process; *end is that which the rank writes into. False with
 * errno. */
bool tn__line_reader_open(tn__line_reader *reader, int rank, int to, int *end);
bool tn__line_reader_is_open(const tn__line_reader *reader);
/* Passes on what has come by now; closes at the end of the output. */
void tn__line_reader_take(tn__line_reader *reader);
/* Passes on what is left. */
void tn__line_reader_close(tn__line_reader *reader);

#endif
