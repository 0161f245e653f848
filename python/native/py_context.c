#include <unistd.h>

#include "py_common.h"

static int level_of(sifr_log_level level) { /* as `logging` numbers them */
    return level == SIFR_LOG_DEBUG ? 10 : level == SIFR_LOG_INFO ? 20 : 30;
}

/* Ctrl-C that fell into a handler of the caller's comes again where the library asks for signals,
 * or when its call is over. What else `logging` raises has nobody to go to. */
static void note_raised(const py_state *state) {
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
        PyErr_Clear();
        PyErr_SetInterrupt();
    } else {
        PyErr_WriteUnraisable(state->log);
    }
}

/* May come from a thread of the library. */
static void write_line(void *user, sifr_log_level level, const char *line) {
    const py_state *state = user;
    PyGILState_STATE held = PyGILState_Ensure();
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    PyObject *text = py_text(line);
    PyObject *done = text ? PyObject_CallFunction(state->log, "iO", level_of(level), text) : NULL;
    if (!done) note_raised(state);
    Py_XDECREF(done);
    Py_XDECREF(text);
    PyErr_Restore(kind, value, trace);
    PyGILState_Release(held);
}

/* After a fork the child makes one of its own: the lock of the other may be held for ever. */
sifr_context *py_context(py_state *state) {
    sifr_context_options options = {.size = sizeof options, .log = {write_line, state}};
    sifr_error error = {0};
    if (state->context && state->owner == getpid()) return state->context;
    if (sifr_context_create(&options, &state->context, &error) != SIFR_OK) {
        state->context = NULL;
        py_raise(state, &error);
        return NULL;
    }
    state->owner = getpid();
    return state->context;
}
