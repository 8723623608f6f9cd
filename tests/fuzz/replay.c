/* SPDX-License-Identifier: MIT */
/* Stands in for libFuzzer where there is none: feeds every file of the folders named to the fuzzer, once. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whether the file could be read; its bytes are copied to a block of exactly their size, so that a sanitizer
 * sees the first byte read too far. */
static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return 0;
    }
    long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    uint8_t *data = size >= 0 ? malloc(size > 0 ? (size_t)size : 1) : NULL;
    rewind(file);
    int done = data && fread(data, 1, (size_t)size, file) == (size_t)size;
    fclose(file);
    if (done)
        LLVMFuzzerTestOneInput(data, (size_t)size);
    else
        fprintf(stderr, "%s: cannot be read\n", path);
    free(data);
    return done;
}

int main(int argc, char **argv)
{
    int files = 0, failed = 0;
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        if (!folder) {
            perror(argv[i]);
            return 1;
        }
        for (struct dirent *entry; (entry = readdir(folder));) {
            if (entry->d_name[0] == '.')
                continue;
            char path[4096];
            snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name);
            files++;
            failed += !replay_file(path);
        }
        closedir(folder);
    }
    printf("%d inputs, %d unreadable\n", files, failed);
    return failed || files == 0;
}
