/* Configs of other programs as sifr's. */
#include "py_common.h"

static PyObject *import_file(py_state *state, const char *path, const char *from) {
    py_lines l = {.failed = false};
    char *text = NULL;
    sifr_error error = {0};
    sifr_imported_config made = {.size = sizeof made};
    const sifr_import_config_options options = {
        .size = sizeof options, .path = path, .from = from, .line = py_take_line, .user = &l};
    sifr_context *context = py_context(state);
    if (!context || !(l.list = PyList_New(0))) return NULL;
    if (py_enter(NULL, &l.call) < 0) {
        Py_DECREF(l.list);
        return NULL;
    }
    sifr_status status = sifr_import_config(context, &options, &text, &made, &error);
    py_leave(&l.call);
    PyObject *config = NULL;
    if (status != SIFR_OK)
        py_raise(state, &error);
    else
        config = py_take_text(text);
    if (config && !l.failed) return Py_BuildValue("(NN)", config, l.list);
    Py_XDECREF(config);
    Py_DECREF(l.list);
    return NULL;
}

/* import_config(path, from or None): the config as JSON, and the lines that say where keys went */
PyObject *py_import(PyObject *module, PyObject *args) {
    PyObject *path;
    const char *from;
    if (!PyArg_ParseTuple(args, "O&z", PyUnicode_FSConverter, &path, &from)) return NULL;
    PyObject *out = import_file(PyModule_GetState(module), PyBytes_AsString(path), from);
    Py_DECREF(path);
    return out;
}
