#include <unistd.h>

#include "py_common.h"

py_state *py_state_of(PyObject *object) {
    return PyType_GetModuleState(Py_TYPE(object));
}

/* What another process made stays: its threads are not here to end. */
static void let_go(py_handle *h) {
    void *handle = h->handle;
    h->handle = NULL;
    if (!handle || h->owner != getpid()) return;
    PyThreadState *thread = PyEval_SaveThread(); /* a log line may come from another thread */
    h->release(handle);
    PyEval_RestoreThread(thread);
}

static void let_keeps_go(py_handle *h) {
    for (Py_ssize_t i = 0; h->keeps && i < PyTuple_Size(h->keeps); i++)
        ((py_handle *)PyTuple_GetItem(h->keeps, i))->users--;
    Py_CLEAR(h->keeps);
}

static void deallocate(PyObject *self) {
    py_handle *h = (py_handle *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    let_go(h);
    PyErr_Restore(kind, value, trace);
    let_keeps_go(h);
    PyObject_Free(self);
    Py_DECREF(type);
}

int py_add_handle(PyObject *module, const char *name, PyMethodDef *methods, py_buffer_of *buffer,
                  PyObject **out) {
    PyType_Slot slots[] = {{Py_tp_dealloc, deallocate},
                           {Py_tp_methods, methods},
                           {buffer ? Py_bf_getbuffer : 0, buffer},
                           {0, NULL}};
    PyType_Spec spec = {name, sizeof(py_handle), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    *out = PyType_FromModuleAndSpec(module, &spec, NULL);
    return *out ? PyModule_AddType(module, (PyTypeObject *)*out) : -1;
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
    self->users = 0;
    for (Py_ssize_t i = 0; keeps && i < PyTuple_Size(keeps); i++)
        ((py_handle *)PyTuple_GetItem(keeps, i))->users++;
    self->owner = getpid();
    self->busy = false;
    return (PyObject *)self;
}

void *py_get(PyObject *self) {
    return ((py_handle *)self)->handle;
}

static int check(PyObject *self, bool closes) {
    const py_handle *h = (const py_handle *)self;
    const char *problem = NULL;
    if (!h->handle)
        problem = "it was closed";
    else if (h->owner != getpid())
        problem = "it was made before a fork, by another process; make one in this process";
    else if (closes && h->users)
        problem =
            "what was made of it (an array, data, a chat) is still there; close that first, or "
            "delete it";
    else if (h->busy)
        problem = "it is in use, by another thread or by the call whose callback this is; call it "
                  "after that";
    if (!problem) return 0;
    PyObject *name = PyType_GetName(Py_TYPE(self));
    if (name) py_usage(py_state_of(self), "%U: %s", name, problem);
    Py_XDECREF(name);
    return -1;
}

/* The handles that `self` keeps, one by one; NULL behind the last. */
static PyObject *kept(PyObject *self, Py_ssize_t i) {
    PyObject *keeps = ((py_handle *)self)->keeps;
    return keeps && i < PyTuple_Size(keeps) ? PyTuple_GetItem(keeps, i) : NULL;
}

int py_take(PyObject *self) {
    PyObject *other;
    if (check(self, false) < 0) return -1;
    for (Py_ssize_t i = 0; (other = kept(self, i)); i++)
        if (check(other, false) < 0) return -1;
    for (Py_ssize_t i = 0; (other = kept(self, i)); i++) ((py_handle *)other)->busy = true;
    ((py_handle *)self)->busy = true;
    Py_INCREF(self);
    return 0;
}

void py_give(PyObject *self) {
    PyObject *other;
    for (Py_ssize_t i = 0; (other = kept(self, i)); i++) ((py_handle *)other)->busy = false;
    ((py_handle *)self)->busy = false;
    Py_DECREF(self);
}

int py_enter(PyObject *self, py_call *call) {
    if (self && py_take(self) < 0) return -1;
    call->of = self;
    call->thread = PyEval_SaveThread();
    return 0;
}

void py_return(py_call *call) {
    PyEval_RestoreThread(call->thread);
}

void py_done(py_call *call) {
    if (call->of) py_give(call->of);
}

void py_leave(py_call *call) {
    py_return(call);
    py_done(call);
}

void py_callback_begins(py_call *call) {
    PyEval_RestoreThread(call->thread);
}

void py_callback_ends(py_call *call) {
    call->thread = PyEval_SaveThread();
}

PyObject *py_handle_close(PyObject *self, PyObject *none) {
    py_handle *h = (py_handle *)self;
    (void)none;
    if (!h->handle) Py_RETURN_NONE;
    if (h->owner == getpid() && check(self, true) < 0) return NULL;
    let_go(h);
    let_keeps_go(h);
    Py_RETURN_NONE;
}
