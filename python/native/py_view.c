/* Memory of the library as an object with a buffer: it keeps the handle whose memory it is. */
#include <stdlib.h>
#include <string.h>

#include "py_common.h"

typedef struct window {
    void *values;
    const char *format;
    bool writable;
    int dimensions;
    Py_ssize_t shape[2], strides[2];
} window;

static void release(void *handle) {
    free(handle);
}

static int get_buffer(PyObject *self, Py_buffer *view, int flags) {
    const window *w = py_get(self);
    if (!w) {
        PyErr_SetString(PyExc_BufferError, "the view was closed");
        return -1;
    }
    Py_ssize_t bytes = w->shape[0] * w->strides[0];
    if (PyBuffer_FillInfo(view, self, w->values, bytes, !w->writable, flags) < 0) return -1;
    view->itemsize = 4;
    view->ndim = w->dimensions;
    if (view->format) view->format = (char *)w->format;
    if (view->shape) view->shape = (Py_ssize_t *)w->shape;
    if (view->strides) view->strides = (Py_ssize_t *)w->strides;
    return 0;
}

static window *describe(const py_matrix *matrix, Py_ssize_t own) {
    bool flat = matrix->columns == 0;
    window *w = malloc(sizeof *w + (size_t)own);
    if (!w) return NULL;
    *w = (window){.values = own ? w + 1 : matrix->values,
                  .format = matrix->whole ? "i" : "f",
                  .writable = matrix->writable,
                  .dimensions = flat ? 1 : 2,
                  .shape = {matrix->rows, matrix->columns},
                  .strides = {flat ? 4 : 4 * matrix->columns, 4}};
    if (own) memcpy(w->values, matrix->values, (size_t)own);
    return w;
}

PyObject *py_view_new(PyObject *of, const py_matrix *matrix) {
    window *w = describe(matrix, 0);
    PyObject *keeps = w ? PyTuple_Pack(1, of) : PyErr_NoMemory();
    if (!keeps) {
        free(w);
        return NULL;
    }
    PyObject *out = py_handle_new(py_state_of(of)->view_type, w, release, keeps);
    Py_DECREF(keeps);
    return out;
}

Py_ssize_t py_matrix_bytes(const py_matrix *matrix) {
    return 4 * matrix->rows * (matrix->columns ? matrix->columns : 1);
}

PyObject *py_view_copy(py_state *state, const py_matrix *matrix) {
    window *w = describe(matrix, py_matrix_bytes(matrix));
    return w ? py_handle_new(state->view_type, w, release, NULL) : PyErr_NoMemory();
}

const void *py_view_values(PyObject *view) {
    return ((const window *)py_get(view))->values;
}

int py_add_view(PyObject *module, py_state *state) {
    static PyMethodDef methods[] = {{NULL, NULL, 0, NULL}}; /* arrays of it may outlive a close */
    return py_add_handle(module, "sifr._sifr.View", methods, get_buffer, &state->view_type);
}
