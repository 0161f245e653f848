#include "formats/torch/torch_file.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/heap.h"
#include "formats/torch/torch_file_internal.h"

enum { RECORD_LENGTH = 512 }; /* of an entry's name */

/* --- records --- */

sifr_status formats_torch_check_form(const uint8_t *data, size_t size, const char *name,
                                     sifr_error *error) {
    static const uint8_t older[] = {0x80, 2, 0x8a, 10, 0x6c, 0xfc, 0x9c, 0x46, 0xf9};
    static const char pointer[] = "version https://git-lfs";
    if (size >= sizeof older && memcmp(data, older, sizeof older) == 0)
        return base_fail(error, SIFR_FAILED,
                         "%s: has PyTorch's form from before version 1.6, which is not supported; "
                         "where the file is trusted, save it again in Python: "
                         "torch.save(torch.load(FILE, weights_only=True), FILE)",
                         name);
    if (size >= sizeof pointer && memcmp(data, pointer, sizeof pointer - 1) == 0)
        return base_fail(error, SIFR_FAILED,
                         "%s: a pointer of Git LFS, not the file itself; fetch it: git lfs pull",
                         name);
    return SIFR_OK;
}

/* The only data.pkl one folder deep. */
static const formats_zip_entry *find_pickle(torch_reader *r) {
    static const char end[] = "/data.pkl";
    const formats_zip_entry *found = NULL;
    for (size_t i = 0; i < r->zip.count; i++) {
        const formats_zip_entry *e = &r->zip.entries[i];
        if (e->length < sizeof end) continue;
        size_t folder = e->length - (sizeof end - 2);
        if (memcmp(e->name + folder - 1, end, sizeof end - 1) != 0) continue;
        if (memchr(e->name, '/', folder - 1)) continue;
        if (found) return NULL;
        found = e;
        r->folder = e->name;
        r->folder_length = folder;
    }
    return found;
}

static const formats_zip_entry *find_record(const torch_reader *r, const char *kind,
                                            formats_pickle_text key) {
    char path[RECORD_LENGTH];
    size_t length = strlen(kind);
    if (r->folder_length + length + key.length > sizeof path) return NULL;
    memcpy(path, r->folder, r->folder_length);
    memcpy(path + r->folder_length, kind, length);
    memcpy(path + r->folder_length + length, key.at, key.length);
    return formats_zip_find(&r->zip, path, r->folder_length + length + key.length);
}

sifr_status formats_torch_find_pickle(torch_reader *r, const formats_zip_entry **out,
                                      sifr_error *error) {
    *out = find_pickle(r);
    if (!*out)
        return base_fail(error, SIFR_FAILED,
                         "%s: a zip archive without one data.pkl: not a file of torch.save",
                         r->name);
    const formats_zip_entry *order =
        find_record(r, "byteorder", (formats_pickle_text){.at = "", .length = 0});
    if (order && (order->size != 6 || memcmp(order->data, "little", 6) != 0))
        return base_fail(error, SIFR_FAILED,
                         "%s: its byte order is not little-endian, which is not supported",
                         r->name);
    return SIFR_OK;
}

static sifr_status read_records(torch_reader *r, sifr_error *error) {
    const formats_zip_entry *pickle;
    BASE_TRY(formats_torch_find_pickle(r, &pickle, error));
    return formats_pickle_parse(pickle->data, (size_t)pickle->size, r->name, &r->pickle, error);
}

/* --- tensors --- */

static sifr_status bad_tensor(const torch_reader *r, const formats_torch_view *view,
                              const char *what, sifr_error *error) {
    return base_fail(error, SIFR_FAILED, "%s: tensor %.*s: %s", r->name,
                     (int)base_min_i64((int64_t)view->name.length, 200), view->name.at, what);
}

/* Whether the view lies in its storage. */
static bool view_fits(const formats_torch_view *view) {
    int64_t last = view->offset, part, bytes;
    for (int i = 0; i < view->rank; i++) {
        if (!base_mul_i64(view->shape[i] - 1, view->stride[i], &part) ||
            !base_add_i64(last, part, &last))
            return false;
    }
    return base_add_i64(last, 1, &last) &&
           base_mul_i64(last, base_dtype_bytes(view->dtype), &bytes) &&
           (uint64_t)bytes <= view->storage_bytes;
}

/* Whether the dimensions, from order[rank - 1] to order[0], have the strides of a block without
 * gaps. */
static bool is_block(const formats_torch_view *view, const int *order) {
    int64_t expected = 1;
    for (int i = view->rank - 1; i >= 0; i--) {
        int d = order[i];
        if (view->shape[d] == 1) continue;
        if (view->stride[d] != expected) return false;
        expected *= view->shape[d]; /* at most the elements of the storage */
    }
    return true;
}

typedef enum view_order { ROW_MAJOR, PERMUTED, STRIDED } view_order;

static view_order order_of(const formats_torch_view *view) {
    int order[FORMATS_RANK_LIMIT];
    for (int i = 0; i < view->rank; i++) order[i] = i;
    if (is_block(view, order)) return ROW_MAJOR;
    for (int i = 1; i < view->rank; i++) {
        for (int k = i; k > 0 && view->stride[order[k - 1]] < view->stride[order[k]]; k--) {
            int other = order[k];
            order[k] = order[k - 1];
            order[k - 1] = other;
        }
    }
    return is_block(view, order) ? PERMUTED : STRIDED;
}

sifr_status formats_torch_read_view(const torch_reader *r, const formats_torch_view *view,
                                    formats_tensor *t, uint64_t *copy, sifr_error *error) {
    formats_tensor_spec spec = {.name = "", .dtype = view->dtype, .rank = view->rank};
    *copy = 0;
    memcpy(spec.shape, view->shape, sizeof spec.shape);
    *t = (formats_tensor){.dtype = view->dtype, .rank = view->rank};
    memcpy(t->shape, view->shape, sizeof t->shape);
    if (formats_tensor_bytes(&spec, &t->bytes, NULL) != SIFR_OK)
        return bad_tensor(r, view, "its shape and dtype give no size that fits", error);
    t->elements = (int64_t)t->bytes / base_dtype_bytes(view->dtype);
    const formats_zip_entry *storage = find_record(r, "data/", view->storage);
    if (!storage || storage->size != view->storage_bytes)
        return bad_tensor(r, view, "its storage is missing or has another size: damaged", error);
    t->data = storage->data;
    if (t->elements == 0) return SIFR_OK;
    if (!view_fits(view)) return bad_tensor(r, view, "lies outside of its storage", error);
    t->data = storage->data + (uint64_t)view->offset * (uint64_t)base_dtype_bytes(view->dtype);
    view_order order = order_of(view);
    if (order == STRIDED)
        return bad_tensor(r, view,
                          "a view with gaps or repeated elements, which is not supported; save "
                          "it after .contiguous()",
                          error);
    if (order == PERMUTED) *copy = t->bytes;
    return SIFR_OK;
}

/* The elements in row-major order, to `to`. */
static void copy_view(const formats_torch_view *view, const formats_tensor *t, uint8_t *to) {
    int64_t at[FORMATS_RANK_LIMIT] = {0}, from = 0;
    size_t size = (size_t)base_dtype_bytes(t->dtype);
    const uint8_t *data = t->data;
    for (int64_t i = 0; i < t->elements; i++, to += size) {
        memcpy(to, data + (size_t)from * size, size);
        for (int d = t->rank - 1; d >= 0; d--) {
            from += view->stride[d];
            if (++at[d] < t->shape[d]) break;
            from -= t->shape[d] * view->stride[d];
            at[d] = 0;
        }
    }
}

static sifr_status copy_permuted(const torch_reader *r, const uint64_t *copies,
                                 formats_torch_file *out, sifr_error *error) {
    uint64_t total = 0, at = 0;
    for (size_t i = 0; i < out->count; i++) {
        /* Many views of one storage would take any amount of memory. */
        if (copies[i] > r->size - total)
            return bad_tensor(r, &r->pickle.views[i],
                              "the transposed tensors take more bytes than the file; save them "
                              "after .contiguous()",
                              error);
        total += copies[i];
    }
    BASE_TRY(base_alloc((size_t)total, 1, &out->copies, error));
    for (size_t i = 0; i < out->count; i++) {
        if (!copies[i]) continue;
        copy_view(&r->pickle.views[i], &out->tensors[i], out->copies + at);
        out->tensors[i].data = out->copies + at;
        at += copies[i];
    }
    return SIFR_OK;
}

static int compare_tensors(const void *a, const void *b) {
    return strcmp(((const formats_tensor *)a)->name, ((const formats_tensor *)b)->name);
}

static sifr_status name_tensors(const torch_reader *r, formats_torch_file *out, sifr_error *error) {
    size_t bytes = 0, at = 0;
    for (size_t i = 0; i < out->count; i++) bytes += r->pickle.views[i].name.length + 1;
    BASE_TRY(base_alloc(bytes, 1, &out->names, error));
    for (size_t i = 0; i < out->count; i++) {
        formats_pickle_text name = r->pickle.views[i].name;
        memcpy(out->names + at, name.at, name.length);
        out->tensors[i].name = out->names + at;
        at += name.length + 1;
    }
    if (out->count) qsort(out->tensors, out->count, sizeof *out->tensors, compare_tensors);
    for (size_t i = 1; i < out->count; i++) {
        if (compare_tensors(&out->tensors[i - 1], &out->tensors[i]) == 0)
            return base_fail(error, SIFR_FAILED, "%s: two tensors have the name %.200s", r->name,
                             out->tensors[i].name);
    }
    return SIFR_OK;
}

static sifr_status read_tensors(const torch_reader *r, formats_torch_file *out, sifr_error *error) {
    uint64_t *copies;
    size_t count = r->pickle.count;
    BASE_TRY(base_alloc(count, sizeof *copies, &copies, error));
    sifr_status status = base_alloc(count, sizeof *out->tensors, &out->tensors, error);
    for (size_t i = 0; status == SIFR_OK && i < count; i++, out->count++)
        status =
            formats_torch_read_view(r, &r->pickle.views[i], &out->tensors[i], &copies[i], error);
    if (status == SIFR_OK) status = copy_permuted(r, copies, out, error);
    if (status == SIFR_OK) status = name_tensors(r, out, error);
    free(copies);
    return status;
}

sifr_status formats_torch_parse(const void *data, size_t size, const char *name,
                                formats_torch_file *out, sifr_error *error) {
    torch_reader reader = {.name = name, .size = size};
    *out = (formats_torch_file){0};
    sifr_status status = formats_torch_check_form(data, size, name, error);
    if (status == SIFR_OK) status = formats_zip_parse(data, size, name, &reader.zip, error);
    if (status == SIFR_OK) status = read_records(&reader, error);
    if (status == SIFR_OK) status = read_tensors(&reader, out, error);
    formats_pickle_free(&reader.pickle);
    formats_zip_free(&reader.zip);
    if (status != SIFR_OK) formats_torch_close(out);
    return status;
}

sifr_status formats_torch_open(const char *path, formats_torch_file *out, sifr_error *error) {
    base_map map;
    *out = (formats_torch_file){0};
    BASE_TRY(base_map_file(path, &map, error));
    sifr_status status = formats_torch_parse(map.data, map.size, path, out, error);
    if (status != SIFR_OK) {
        base_unmap(&map);
        return status;
    }
    out->map = map;
    return SIFR_OK;
}

void formats_torch_close(formats_torch_file *file) {
    free(file->tensors);
    free(file->names);
    free(file->copies);
    base_unmap(&file->map);
    *file = (formats_torch_file){0};
}
