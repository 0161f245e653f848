#include <stdarg.h>
#include <string.h>

#include "py_common.h"

PyObject *py_raise(py_state *state, const sifr_error *error) {
    int status = (int)error->status;
    if (status <= SIFR_OK || status > SIFR_LOST_RANK) status = SIFR_FAILED;
    PyObject *text = py_text(error->message);
    if (!text) return NULL;
    PyErr_SetObject(state->errors[status], text);
    Py_DECREF(text);
    return NULL;
}

PyObject *py_usage(py_state *state, const char *format, ...) {
    va_list values;
    va_start(values, format);
    PyErr_FormatV(state->errors[SIFR_USAGE], format, values);
    va_end(values);
    return NULL;
}

PyObject *py_none_or_raise(py_state *state, sifr_status status, const sifr_error *error) {
    if (status != SIFR_OK) return py_raise(state, error);
    Py_RETURN_NONE;
}

PyObject *py_text(const char *text) {
    return py_text_sized(text, strlen(text));
}

PyObject *py_text_sized(const char *text, size_t size) {
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, "replace");
}

PyObject *py_take_text(char *text) {
    PyObject *out = py_text(text);
    sifr_text_free(text);
    return out;
}

PyObject *py_ids(const int32_t *ids, size_t count) {
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *id = PyLong_FromLong(ids[i]);
        if (!id || PyList_SetItem(list, (Py_ssize_t)i, id) < 0) Py_CLEAR(list);
    }
    return list;
}
