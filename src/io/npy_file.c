/* SPDX-License-Identifier: MIT */
/* .npy files: read into memory of their own, mapped, written. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "io/formats.h"
#include "io/map.h"
#include "io/wrap.h"

/* ---- reading ---- */

#define PIECE ((size_t)256 << 20)

static tn_status read_all(const char *operation, const char *path, int fd, void *to, size_t bytes)
{
    for (uint8_t *at = to; bytes > 0;) {
        ssize_t got = read(fd, at, bytes < PIECE ? bytes : PIECE);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tn__fail_errno(operation, "read", path, errno);
        if (got == 0)
            return tn__fail(TN_ERR_FORMAT, operation, "'%s' is cut short: %zu bytes are missing at its end", path,
                            bytes);
        at += got;
        bytes -= (size_t)got;
    }
    return TN_OK;
}

static tn_status read_header(const char *operation, const char *path, int fd, uint64_t size, tn__npy_header *header)
{
    uint8_t prefix[TN__NPY_PREFIX];
    size_t first = size < sizeof prefix ? (size_t)size : sizeof prefix, bytes = 0;
    tn_status status = read_all(operation, path, fd, prefix, first);
    if (status == TN_OK)
        status = tn__npy_header_size(operation, path, prefix, first, &bytes);
    if (status == TN_OK && (bytes > size || bytes < first))
        status =
            tn__fail(TN_ERR_FORMAT, operation, "'%s' is cut short: expected an .npy header of %zu bytes, found %llu",
                     path, bytes, (unsigned long long)size);
    if (status != TN_OK)
        return status;
    uint8_t *text = tn__alloc(bytes);
    if (!text)
        return tn__fail_memory(operation, bytes);
    for (size_t i = 0; i < first; i++)
        text[i] = prefix[i];
    status = read_all(operation, path, fd, text + first, bytes - first);
    if (status == TN_OK)
        status = tn__npy_header_parse(operation, path, text, bytes, header);
    tn__free(text);
    return status;
}

static tn_status wrong_size(const char *operation, const char *path, const tn__npy_header *header, uint64_t size)
{
    return tn__fail(TN_ERR_FORMAT, operation,
                    "'%s': expected %llu bytes of elements by its header, found %llu; save it again", path,
                    (unsigned long long)header->data_bytes, (unsigned long long)(size - header->header_bytes));
}

/* The elements go from the file straight into the array. */
static tn_status read_regular(const char *operation, const char *path, int fd, uint64_t size, tn__values *values)
{
    tn__npy_header header;
    tn_status status = read_header(operation, path, fd, size, &header);
    if (status != TN_OK)
        return status;
    if (size - header.header_bytes != header.data_bytes)
        return wrong_size(operation, path, &header, size);
    status = tn__values_new(operation, values, header.dtype, header.shape);
    if (status == TN_OK)
        status = read_all(operation, path, fd, tn__values_data(values), (size_t)header.data_bytes);
    return status == TN_OK ? tn__npy_arrange(operation, &header, values) : status;
}

static tn_status read_npy(const char *operation, const char *path, tn__values *values)
{
    struct stat info;
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return path ? tn__fail_errno(operation, "read", path, errno)
                    : tn__fail(TN_ERR_VALUE, operation, "expected the path of a file, got NULL");
    bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0;
    tn_status status = regular ? read_regular(operation, path, fd, (uint64_t)info.st_size, values) : TN_OK;
    close(fd);
    /* the size of pipes and the like shows only at their end */
    return regular ? status : tn__values_read(operation, path, tn__npy_parse, values);
}

tn_array *tn_load_npy(const char *path)
{
    tn__call call = tn__enter();
    tn__values values = {0};
    tn_status status = read_npy("load_npy", path, &values);
    return tn__values_leave(call, status, &values);
}

/* ---- mapping ---- */

/* Elements that may stay where they lie in the file. */
static bool can_stay(const tn__npy_header *header)
{
    return !header->swapped && header->dtype != TN_BOOL && header->header_bytes % tn_dtype_size(header->dtype) == 0 &&
           header->data_bytes > 0;
}

static tn__node *mapped_node(const tn__npy_header *header, const tn__mapping *mapping)
{
    tn__lent lent = {.memory = (void *)(mapping->data + header->header_bytes),
                     .shape = header->shape,
                     .dtype = header->dtype,
                     .device = mapping->storage->device->id};
    int64_t stride[TN_MAX_NDIM], step = 1;
    for (int d = 0; d < header->shape.ndim; d++) {
        stride[d] = step;
        step *= header->shape.dim[d];
    }
    lent.strides = header->fortran_order ? stride : NULL;
    return tn__wrap_in("map_npy", mapping->storage, &lent);
}

/* NULL: read the file instead. */
static tn__node *map_npy(const char *operation, const char *path, const tn__mapping *mapping)
{
    tn__npy_header header;
    size_t bytes;
    tn_status status = tn__npy_header_size(operation, path, mapping->data, mapping->size, &bytes);
    if (status == TN_OK && bytes > mapping->size)
        status =
            tn__fail(TN_ERR_FORMAT, operation, "'%s' is cut short: expected an .npy header of %zu bytes, found %zu",
                     path, bytes, mapping->size);
    if (status == TN_OK)
        status = tn__npy_header_parse(operation, path, mapping->data, bytes, &header);
    if (status == TN_OK && mapping->size - bytes != header.data_bytes)
        status = wrong_size(operation, path, &header, mapping->size);
    if (status != TN_OK)
        return tn__failed();
    return can_stay(&header) ? mapped_node(&header, mapping) : NULL;
}

tn_array *tn_map_npy(const char *path)
{
    tn__call call = tn__enter();
    tn__mapping mapping;
    tn_status status = tn__file_map("map_npy", path, &mapping);
    if (status != TN_OK && status != TN_ERR_UNSUPPORTED)
        return tn__leave_error(call);
    tn__node *node = status == TN_OK ? map_npy("map_npy", path, &mapping) : NULL;
    tn__mapping_end(&mapping);
    if (node)
        return tn__leave_array(call, node);
    tn__values values = {0};
    status = read_npy("map_npy", path, &values);
    return tn__values_leave(call, status, &values);
}

/* ---- writing ---- */

static tn_status fill_npy(tn__writer *writer, void *user)
{
    const tn__host_view *view = user;
    uint8_t header[TN__NPY_HEADER_ROOM];
    size_t length = tn__npy_header_make("save_npy", view->dtype, view->shape, header);
    if (length == 0)
        return tn__error_status(tn__error_last());
    tn__write(writer, header, length);
    return tn__write(writer, view->data, view->bytes);
}

tn_status tn_save_npy(const tn_array *x, const char *path)
{
    TN__NO_PLACE();
    tn__host_view view;
    tn_status status = tn__host_view_of("save_npy", x, &view);
    if (status == TN_OK)
        status = tn__file_write_atomic("save_npy", path, fill_npy, &view);
    tn__host_view_end(&view);
    return status;
}
