/* A batch of arrays: copies of the caller's, as a step reads them. */
#include <stdlib.h>
#include <string.h>

#include "py_common.h"

void py_drop_inputs(py_inputs *in) {
    for (int i = 0; i < PY_WHOLE_INPUTS; i++) free(in->whole[i]);
    free(in->targets);
}

/* One of the type codes in `codes`, in this machine's order of bytes. */
static bool has_type(const Py_buffer *view, const char *codes) {
    const char *format = view->format ? view->format : "B";
    if (*format == '@' || *format == '=' || *format == '<') format++;
    return format[0] && !format[1] && strchr(codes, format[0]);
}

int py_buffer(py_state *state, const char *name, PyObject *object, int flags, Py_buffer *view) {
    PyObject *kind, *value, *trace;
    if (PyObject_GetBuffer(object, view, flags) == 0) return 0;
    PyErr_Fetch(&kind, &value, &trace);
    PyErr_NormalizeException(&kind, &value, &trace);
    PyObject *text = value ? PyObject_Str(value) : NULL;
    PyObject *bytes = text ? PyUnicode_AsEncodedString(text, "utf-8", "replace") : NULL;
    const char *said = bytes ? PyBytes_AsString(bytes) : NULL;
    py_usage(state, "%s: no array that sifr can read or write: %s", name,
             said ? said : "no buffer");
    Py_XDECREF(bytes);
    Py_XDECREF(text);
    Py_XDECREF(kind);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return -1;
}

int py_floats(py_state *state, const char *name, PyObject *object, bool written, Py_buffer *view) {
    int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (written ? PyBUF_WRITABLE : 0);
    if (py_buffer(state, name, object, flags, view) < 0) return -1;
    if (has_type(view, "f")) return 0;
    py_usage(state, "%s: the buffer has elements of type '%s'; give float32", name,
             view->format ? view->format : "B");
    PyBuffer_Release(view);
    return -1;
}

/* What an array of a batch has: so many elements, in rows of `last` where it is not flat; `single`:
 * or each by itself. */
typedef struct wanted {
    const char *name, *codes, *types;
    int64_t elements, last;
    bool single;
} wanted;

static bool is_row(const wanted *w, int64_t last) {
    return last == w->last || (w->single && last == 1);
}

/* A copy of the elements of an array, in order; NULL with an exception. */
static void *copy_array(PyObject *array, const wanted *w, Py_ssize_t *item, py_state *state) {
    Py_buffer view;
    if (py_buffer(state, w->name, array, PyBUF_RECORDS_RO, &view) < 0) return NULL;
    void *out = NULL;
    *item = view.itemsize;
    bool fits = view.itemsize > 0 && view.len / view.itemsize == w->elements &&
                (view.ndim == 1 || (view.ndim > 1 && is_row(w, view.shape[view.ndim - 1])));
    if (!has_type(&view, w->codes) || (view.itemsize != 4 && view.itemsize != 8)) {
        py_usage(state, "%s: has elements of type '%s'; give %s", w->name,
                 view.format ? view.format : "B", w->types);
    } else if (!fits) {
        py_usage(state, "%s: has %zd elements in %d dimensions; a batch has %lld, in rows of %lld",
                 w->name, view.itemsize > 0 ? view.len / view.itemsize : 0, view.ndim,
                 (long long)w->elements, (long long)w->last);
    } else if (!(out = malloc((size_t)view.len + 1))) {
        PyErr_NoMemory();
    } else if (PyBuffer_ToContiguous(out, &view, view.len, 'C') < 0) {
        free(out);
        out = NULL;
    }
    PyBuffer_Release(&view);
    return out;
}

/* Ids of 32 bits, which those of 64 have to fit. */
static int32_t *take_ids(PyObject *array, const char *name, int64_t elements, int64_t last,
                         py_state *state) {
    Py_ssize_t item;
    const wanted w = {name, "ilq", "int32 or int64", elements, last, false};
    void *copy = copy_array(array, &w, &item, state);
    if (!copy || item == 4) return copy;
    const int64_t *wide = copy;
    int32_t *ids = copy; /* each is written where nothing is read any more */
    for (int64_t i = 0; i < elements; i++) {
        int64_t id = wide[i];
        if (id < INT32_MIN || id > INT32_MAX) {
            py_usage(state, "%s: %lld is beyond 32 bits", name, (long long)id);
            free(copy);
            return NULL;
        }
        memcpy(&ids[i], &(int32_t){(int32_t)id}, sizeof *ids);
    }
    return ids;
}

/* Numbers of FP32; those of 64 bits are rounded. */
static float *take_targets(PyObject *array, const py_batch_shape *shape, py_state *state) {
    const wanted w = {"targets",
                      "fd",
                      "float32 or float64",
                      shape->sequences * shape->tokens * shape->targets,
                      shape->targets == 1 ? shape->tokens : shape->targets,
                      shape->targets == 1};
    Py_ssize_t item;
    if (!shape->targets) {
        py_usage(state, "targets: this model reads none; leave them out");
        return NULL;
    }
    void *copy = copy_array(array, &w, &item, state);
    if (!copy || item == 4) return copy;
    const double *wide = copy;
    for (int64_t i = 0; i < w.elements; i++) {
        float target = (float)wide[i];
        memcpy((char *)copy + 4 * i, &target, 4);
    }
    return copy;
}

int py_take_batch(PyObject *arrays, const py_batch_shape *shape, py_inputs *in, sifr_batch *out,
                  py_state *state) {
    static const char *const names[] = {"tokens", "labels", "token_types", "segments", "positions"};
    int64_t elements = shape->sequences * shape->tokens;
    for (int i = 0; i < PY_WHOLE_INPUTS; i++) {
        PyObject *array = PyTuple_GetItem(arrays, i);
        if (!array) return -1;
        if (array == Py_None) continue;
        in->whole[i] = take_ids(array, names[i], elements, shape->tokens, state);
        if (!in->whole[i]) return -1;
    }
    PyObject *targets = PyTuple_GetItem(arrays, PY_WHOLE_INPUTS);
    if (!targets) return -1;
    if (targets != Py_None && !(in->targets = take_targets(targets, shape, state))) return -1;
    *out = (sifr_batch){.tokens = in->whole[0],
                        .labels = in->whole[1],
                        .token_types = in->whole[2],
                        .segments = in->whole[3],
                        .positions = in->whole[4],
                        .targets = in->targets};
    return 0;
}
