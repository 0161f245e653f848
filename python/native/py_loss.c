/* A loss of the caller's: call(logits, labels, gradient or None) gives the sum of the losses. It
 * gets views of the engine's memory, which are good during the call alone; each keeps the engine,
 * so that one that stays is no danger, and is told of. A run's engine is gone with the run, so
 * there they have copies. */
#include <stdio.h>
#include <string.h>

#include "py_common.h"

enum { LOGITS, LABELS, GRADIENT, VIEWS };

/* References of frames that ended in a cycle are none that the caller keeps. */
static bool is_kept(PyObject *views[VIEWS]) {
    for (int turn = 0; turn < 2; turn++) {
        bool kept = false;
        for (int i = 0; i < VIEWS; i++) kept |= views[i] != Py_None && Py_REFCNT(views[i]) > 1;
        if (!kept) return false;
        if (turn == 0) PyGC_Collect();
    }
    return true;
}

/* -1 with an exception. */
static int take_sum(py_loss *loss, PyObject *views[VIEWS], double *out) {
    PyObject *sum = PyObject_CallFunctionObjArgs(loss->function, views[LOGITS], views[LABELS],
                                                 views[GRADIENT], NULL);
    if (!sum) return -1;
    if (sum == Py_None)
        PyErr_SetString(PyExc_TypeError, "loss: returned None; return the sum of the losses");
    else
        *out = PyFloat_AsDouble(sum);
    Py_DECREF(sum);
    if (PyErr_Occurred()) return -1;
    if (!is_kept(views)) return 0;
    py_usage(
        loss->state,
        "loss: an array that it was given is kept beyond the call, when the engine writes over "
        "it; keep a copy");
    return -1;
}

static PyObject *show(const py_loss *loss, const py_matrix *matrix) {
    if (!matrix->values) return Py_NewRef(Py_None);
    return loss->engine ? py_view_new(loss->engine, matrix) : py_view_copy(loss->state, matrix);
}

static int call(py_loss *loss, sifr_loss_chunk *chunk) {
    const py_matrix matrices[VIEWS] = {
        {(void *)chunk->logits, chunk->rows, chunk->words, false, false},
        {(void *)chunk->labels, chunk->rows, 0, true, false},
        {chunk->gradient, chunk->rows, chunk->words, false, true}};
    PyObject *views[VIEWS] = {NULL};
    int status = 0;
    for (int i = 0; i < VIEWS && status == 0; i++) {
        views[i] = show(loss, &matrices[i]);
        if (!views[i]) status = -1;
    }
    if (status == 0) status = take_sum(loss, views, &chunk->loss);
    if (status == 0 && chunk->gradient && !loss->engine)
        memcpy(chunk->gradient, py_view_values(views[GRADIENT]),
               (size_t)py_matrix_bytes(&matrices[GRADIENT]));
    for (int i = 0; i < VIEWS; i++) Py_XDECREF(views[i]);
    return status;
}

/* Keeps the exception for the end of the call, and tells the other ranks of it. */
static void note_raised(py_loss *loss, sifr_error *error) {
    PyErr_Fetch(&loss->kind, &loss->value, &loss->trace);
    PyErr_NormalizeException(&loss->kind, &loss->value, &loss->trace);
    PyObject *text = PyObject_Repr(loss->value);
    PyObject *bytes = text ? PyUnicode_AsEncodedString(text, "utf-8", "replace") : NULL;
    const char *said = bytes ? PyBytes_AsString(bytes) : NULL;
    snprintf(error->message, sizeof error->message, "%s", said ? said : "an exception");
    PyErr_Clear();
    Py_XDECREF(bytes);
    Py_XDECREF(text);
}

sifr_status py_loss_compute(void *user, sifr_loss_chunk *chunk, sifr_error *error) {
    py_loss *loss = user;
    py_callback_begins(loss->call);
    int failed = call(loss, chunk);
    if (failed) note_raised(loss, error);
    py_callback_ends(loss->call);
    return failed ? SIFR_FAILED : SIFR_OK;
}

bool py_loss_raises(py_loss *loss) {
    if (!loss->kind) return false;
    PyErr_Restore(loss->kind, loss->value, loss->trace);
    loss->kind = loss->value = loss->trace = NULL;
    return true;
}

void py_loss_drop(py_loss *loss) {
    if (!loss->function) return;
    PyGILState_STATE held = PyGILState_Ensure(); /* handles are released without it */
    Py_CLEAR(loss->function);
    PyGILState_Release(held);
}
