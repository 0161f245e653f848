#include <unistd.h>

#include "py_common.h"

py_state *py_state_of(PyObject *object) {
    return PyType_GetModuleState(Py_TYPE(object));
}

int py_add_type(PyObject *module, PyType_Spec *spec, PyObject **out) {
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (!type) return -1;
    *out = type;
    return PyModule_AddType(module, (PyTypeObject *)type);
}

PyObject *py_expect(PyObject *object, PyObject *type, const char *what) {
    int is = PyObject_IsInstance(object, type);
    if (is > 0) return object;
    if (is == 0) PyErr_Format(PyExc_TypeError, "%s is wanted, not %R", what, object);
    return NULL;
}

PyObject *py_handle_new(PyObject *type, void *handle, void (*release)(void *), PyObject *keeps) {
    py_handle *self = PyObject_New(py_handle, (PyTypeObject *)type);
    if (!self) {
        release(handle);
        return NULL;
    }
    self->handle = handle;
    self->release = release;
    Py_XINCREF(keeps);
    self->keeps = keeps;
    self->owner = getpid();
    self->busy = false;
    return (PyObject *)self;
}

void *py_get(PyObject *self) {
    return ((py_handle *)self)->handle;
}

static int check(PyObject *self, const py_handle *h) {
    const char *problem = NULL;
    if (!h->handle)
        problem = "it was closed";
    else if (h->owner != getpid())
        problem = "it was made before a fork, by another process; make one in this process";
    else if (h->busy)
        problem = "it is in use, by another thread or by the call whose callback this is";
    if (!problem) return 0;
    py_usage(py_state_of(self), "%R: %s", (PyObject *)Py_TYPE(self), problem);
    return -1;
}

int py_take(PyObject *self) {
    py_handle *h = (py_handle *)self;
    if (check(self, h) < 0) return -1;
    h->busy = true;
    Py_INCREF(self);
    return 0;
}

void py_give(PyObject *self) {
    ((py_handle *)self)->busy = false;
    Py_DECREF(self);
}

int py_enter(PyObject *self, py_call *call) {
    if (self && py_take(self) < 0) return -1;
    call->of = self;
    fegetenv(&call->floats);
    call->thread = PyEval_SaveThread();
    fesetenv(FE_DFL_ENV);
    return 0;
}

void py_leave(py_call *call) {
    fesetenv(&call->floats);
    PyEval_RestoreThread(call->thread);
    if (call->of) py_give(call->of);
}

void py_callback_begins(py_call *call, fenv_t *library) {
    fegetenv(library);
    fesetenv(&call->floats);
    PyEval_RestoreThread(call->thread);
}

void py_callback_ends(py_call *call, const fenv_t *library) {
    call->thread = PyEval_SaveThread();
    fesetenv(library);
}

/* What another process made stays: its threads are not here to end. */
static void release(py_handle *h) {
    void *handle = h->handle;
    h->handle = NULL;
    if (!handle || h->owner != getpid()) return;
    PyThreadState *thread = PyEval_SaveThread(); /* a log line may come from another thread */
    h->release(handle);
    PyEval_RestoreThread(thread);
}

void py_handle_dealloc(PyObject *self) {
    py_handle *h = (py_handle *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    release(h);
    PyErr_Restore(kind, value, trace);
    Py_CLEAR(h->keeps);
    PyObject_Free(self);
    Py_DECREF(type);
}

PyObject *py_handle_close(PyObject *self, PyObject *none) {
    py_handle *h = (py_handle *)self;
    (void)none;
    if (!h->handle) Py_RETURN_NONE;
    if (h->owner == getpid() && check(self, h) < 0) return NULL;
    release(h);
    Py_CLEAR(h->keeps);
    Py_RETURN_NONE;
}
