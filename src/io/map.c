/* SPDX-License-Identifier: MIT */
/* Mapping files. */
#include "io/map.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "io/file.h"

static void unmap(void *size, void *memory) { munmap(memory, (size_t)(uintptr_t)size); }

static tn_status map(const char *operation, const char *path, int fd, tn__mapping *mapping)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return tn__fail_errno(operation, "read", path, errno);
    if (!S_ISREG(info.st_mode) || info.st_size <= 0)
        return TN_ERR_UNSUPPORTED;
    size_t size = (size_t)info.st_size;
    void *memory = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return TN_ERR_UNSUPPORTED; /* some file systems have none */
    tn__device *cpu = tn__device_get((tn_device){.kind = TN_DEVICE_CPU});
    tn__storage *storage = cpu ? tn__storage_wrap(cpu, memory, size, unmap, (void *)(uintptr_t)size) : NULL;
    if (!storage) {
        munmap(memory, size);
        return tn__error_status(tn__error_last());
    }
    *mapping = (tn__mapping){storage, memory, size};
    return TN_OK;
}

tn_status tn__file_map(const char *operation, const char *path, tn__mapping *mapping)
{
    *mapping = (tn__mapping){0};
    if (!path)
        return tn__fail(TN_ERR_VALUE, operation, "expected the path of a file, got NULL");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return tn__fail_errno(operation, "read", path, errno);
    tn_status status = map(operation, path, fd, mapping);
    close(fd);
    return status;
}

void tn__mapping_end(tn__mapping *mapping)
{
    if (mapping->storage)
        tn__storage_release(mapping->storage);
    *mapping = (tn__mapping){0};
}
