#include <stdlib.h>
#include <string.h>

#include "py_common.h"

static void release(void *handle) {
    sifr_ranks_close(handle);
}

static PyObject *ranks_started(PyObject *module, PyObject *none) {
    (void)module, (void)none;
    return PyLong_FromLong(sifr_ranks_started());
}

static PyObject *ranks_open(PyObject *module, PyObject *none) {
    py_state *state = PyModule_GetState(module);
    sifr_context *context = py_context(state);
    sifr_ranks *ranks = NULL;
    sifr_error error = {0};
    py_call call;
    (void)none;
    if (!context || py_enter(NULL, &call) < 0) return NULL;
    sifr_status status = sifr_ranks_open(context, NULL, &ranks, &error);
    py_leave(&call);
    if (status != SIFR_OK) return py_raise(state, &error);
    return py_handle_new(state->ranks_type, ranks, release, NULL);
}

/* Of all ranks, and of those of this host: the number of this one, and how many. */
static PyObject *ranks_place(PyObject *self, PyObject *none) {
    py_call call;
    (void)none;
    if (py_enter(self, &call) < 0) return NULL;
    int rank = sifr_ranks_rank(py_get(self)), size = sifr_ranks_size(py_get(self));
    int host_rank = sifr_ranks_host_rank(py_get(self)), hosts = sifr_ranks_host_size(py_get(self));
    py_leave(&call);
    return Py_BuildValue("(iiii)", rank, size, host_rank, hosts);
}

/* Of all ranks: this one's status and message; raises where any rank's is one of failure. */
static PyObject *ranks_agree(PyObject *self, PyObject *args) {
    int status;
    const char *message;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "is", &status, &message)) return NULL;
    if (status < SIFR_OK || status > SIFR_LOST_RANK) status = SIFR_FAILED;
    error.status = (sifr_status)status;
    strncat(error.message, message, sizeof error.message - 1);
    if (py_enter(self, &call) < 0) return NULL;
    sifr_status agreed = sifr_ranks_agree(py_get(self), (sifr_status)status, &error);
    py_leave(&call);
    return py_none_or_raise(py_state_of(self), agreed, &error);
}

static sifr_status gather(sifr_ranks *ranks, const char *mine, Py_ssize_t bytes, char **all,
                          sifr_error *error) {
    *all = malloc((size_t)bytes * (size_t)sifr_ranks_size(ranks) + 1);
    if (*all) return sifr_ranks_gather(ranks, mine, bytes, *all, error);
    error->status = SIFR_NO_MEMORY;
    strncat(error->message, "no memory for what the ranks gather", sizeof error->message - 1);
    return sifr_ranks_agree(ranks, SIFR_NO_MEMORY, error);
}

/* gather(bytes): those of all ranks, in their order; each rank gives as many */
static PyObject *ranks_gather(PyObject *self, PyObject *args) {
    const char *mine;
    Py_ssize_t size;
    sifr_error error = {0};
    py_call call;
    char *all = NULL;
    if (!PyArg_ParseTuple(args, "y#", &mine, &size) || py_enter(self, &call) < 0) return NULL;
    int ranks = sifr_ranks_size(py_get(self));
    sifr_status status = gather(py_get(self), mine, size, &all, &error);
    py_leave(&call);
    PyObject *out = status == SIFR_OK ? PyBytes_FromStringAndSize(all, size * ranks)
                                      : py_raise(py_state_of(self), &error);
    free(all);
    return out;
}

int py_add_ranks(PyObject *module, py_state *state) {
    static PyMethodDef methods[] = {{"place", ranks_place, METH_NOARGS, NULL},
                                    {"agree", ranks_agree, METH_VARARGS, NULL},
                                    {"gather", ranks_gather, METH_VARARGS, NULL},
                                    PY_CLOSE,
                                    {NULL, NULL, 0, NULL}};
    static PyMethodDef functions[] = {{"ranks_started", ranks_started, METH_NOARGS, NULL},
                                      {"ranks_open", ranks_open, METH_NOARGS, NULL},
                                      {NULL, NULL, 0, NULL}};
    if (py_add_handle(module, "sifr._sifr.Ranks", methods, NULL, &state->ranks_type) < 0) return -1;
    return PyModule_AddFunctions(module, functions);
}
