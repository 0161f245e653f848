/* What the library tells piece by piece, as a list or a dict of Python's. */
#include "py_common.h"

void py_take_line(void *user, const char *text) {
    py_lines *l = user;
    py_callback_begins(&l->call);
    PyObject *line = l->failed ? NULL : py_text(text);
    if (!line || PyList_Append(l->list, line) < 0) l->failed = true;
    Py_XDECREF(line);
    py_callback_ends(&l->call);
}

void py_put_score(PyObject **scores, const char *name, double value) {
    PyObject *number = *scores ? PyFloat_FromDouble(value) : NULL;
    if (!number || PyDict_SetItemString(*scores, name, number) < 0) Py_CLEAR(*scores);
    Py_XDECREF(number);
}
