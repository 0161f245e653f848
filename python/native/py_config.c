#include "py_common.h"

static void release(void *handle) {
    sifr_config_free(handle);
}

static PyObject *config_new(PyObject *module, PyObject *none) {
    py_state *state = PyModule_GetState(module);
    sifr_config *config;
    sifr_error error = {0};
    (void)none;
    if (sifr_config_create(&config, &error) != SIFR_OK) return py_raise(state, &error);
    return py_handle_new(state->config_type, config, release, NULL);
}

static PyObject *config_copy(PyObject *self, PyObject *none) {
    py_state *state = py_state_of(self);
    sifr_config *copy = NULL;
    sifr_error error = {0};
    py_call call;
    (void)none;
    if (py_enter(self, &call) < 0) return NULL;
    sifr_status status = sifr_config_copy(py_get(self), &copy, &error);
    py_leave(&call);
    if (status != SIFR_OK) return py_raise(state, &error);
    return py_handle_new(state->config_type, copy, release, NULL);
}

static PyObject *config_load(PyObject *self, PyObject *args) {
    PyObject *path;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path)) return NULL;
    if (py_enter(self, &call) < 0) {
        Py_DECREF(path);
        return NULL;
    }
    sifr_status status = sifr_config_load(py_get(self), PyBytes_AsString(path), &error);
    py_leave(&call);
    Py_DECREF(path);
    return py_none_or_raise(py_state_of(self), status, &error);
}

static PyObject *config_parse(PyObject *self, PyObject *args) {
    const char *text, *name;
    Py_ssize_t size;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "s#s", &text, &size, &name) || py_enter(self, &call) < 0)
        return NULL;
    sifr_status status = sifr_config_parse(py_get(self), text, (size_t)size, name, &error);
    py_leave(&call);
    return py_none_or_raise(py_state_of(self), status, &error);
}

static PyObject *config_set(PyObject *self, PyObject *args) {
    const char *name, *value;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "sz", &name, &value) || py_enter(self, &call) < 0) return NULL;
    sifr_status status = sifr_config_set(py_get(self), name, value, &error);
    py_leave(&call);
    return py_none_or_raise(py_state_of(self), status, &error);
}

static PyObject *config_clear(PyObject *self, PyObject *args) {
    const char *name;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "s", &name) || py_enter(self, &call) < 0) return NULL;
    sifr_status status = sifr_config_clear(py_get(self), name, &error);
    py_leave(&call);
    return py_none_or_raise(py_state_of(self), status, &error);
}

static PyObject *config_resolve(PyObject *self, PyObject *args) {
    long long ranks;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "L", &ranks) || py_enter(self, &call) < 0) return NULL;
    sifr_status status = sifr_config_resolve(py_get(self), ranks, &error);
    py_leave(&call);
    return py_none_or_raise(py_state_of(self), status, &error);
}

static PyObject *config_value(PyObject *self, PyObject *args) {
    const char *name;
    char *text = NULL;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "s", &name) || py_enter(self, &call) < 0) return NULL;
    sifr_status status = sifr_config_value(py_get(self), name, &text, &error);
    py_leave(&call);
    return status == SIFR_OK ? py_take_text(text) : py_raise(py_state_of(self), &error);
}

static PyObject *config_json(PyObject *self, PyObject *none) {
    char *text = NULL;
    sifr_error error = {0};
    py_call call;
    (void)none;
    if (py_enter(self, &call) < 0) return NULL;
    sifr_status status = sifr_config_json(py_get(self), &text, &error);
    py_leave(&call);
    return status == SIFR_OK ? py_take_text(text) : py_raise(py_state_of(self), &error);
}

static PyObject *config_explain(PyObject *self, PyObject *args) {
    long long ranks;
    int all;
    sifr_error error = {0};
    py_lines l = {.failed = false};
    if (!PyArg_ParseTuple(args, "Lp", &ranks, &all) || !(l.list = PyList_New(0))) return NULL;
    if (py_enter(self, &l.call) < 0) {
        Py_DECREF(l.list);
        return NULL;
    }
    sifr_status status =
        sifr_config_explain(py_get(self), ranks, all != 0, py_take_line, &l, &error);
    py_leave(&l.call);
    if (status == SIFR_OK && !l.failed) return l.list;
    Py_DECREF(l.list);
    return l.failed ? NULL : py_raise(py_state_of(self), &error);
}

/* A tuple for each flag: name, path, argument or None, default as JSON or None, line, many. */
static PyObject *config_flags(PyObject *module, PyObject *none) {
    PyObject *list = PyList_New(0);
    (void)module, (void)none;
    sifr_config_flag flag = {.size = sizeof flag};
    for (size_t i = 0; list && sifr_config_flag_at(i, &flag); i++) {
        PyObject *row = Py_BuildValue("(sszzsN)", flag.name, flag.path, flag.argument,
                                      flag.fallback, flag.doc, PyBool_FromLong(flag.many));
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

int py_add_config(PyObject *module, py_state *state) {
    static PyMethodDef methods[] = {{"copy", config_copy, METH_NOARGS, NULL},
                                    {"load", config_load, METH_VARARGS, NULL},
                                    {"parse", config_parse, METH_VARARGS, NULL},
                                    {"set", config_set, METH_VARARGS, NULL},
                                    {"clear", config_clear, METH_VARARGS, NULL},
                                    {"resolve", config_resolve, METH_VARARGS, NULL},
                                    {"value", config_value, METH_VARARGS, NULL},
                                    {"json", config_json, METH_NOARGS, NULL},
                                    {"explain", config_explain, METH_VARARGS, NULL},
                                    PY_CLOSE,
                                    {NULL, NULL, 0, NULL}};
    static PyMethodDef functions[] = {{"config", config_new, METH_NOARGS, NULL},
                                      {"flags", config_flags, METH_NOARGS, NULL},
                                      {NULL, NULL, 0, NULL}};
    if (py_add_handle(module, "sifr._sifr.Config", methods, NULL, &state->config_type) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
