/* sifr._sifr: the library's C interface, for the package's own Python files, which check what users
 * give and say what it means. */
#include <unistd.h>

#include "py_common.h"

static PyObject *get_version(PyObject *module, PyObject *none) {
    (void)module, (void)none;
    return py_text(sifr_version());
}

/* The package's exceptions and what writes its log are in Python. */
static int import_python(py_state *state) {
    static const char *const names[] = {[SIFR_FAILED] = "Error",
                                        [SIFR_USAGE] = "UsageError",
                                        [SIFR_NO_MEMORY] = "NoMemoryError",
                                        [SIFR_LOST_RANK] = "LostRankError"};
    PyObject *base = PyImport_ImportModule("sifr._base");
    if (!base) return -1;
    state->log = PyObject_GetAttrString(base, "write_log");
    bool found = state->log != NULL;
    for (int i = SIFR_FAILED; found && i <= SIFR_LOST_RANK; i++) {
        state->errors[i] = PyObject_GetAttrString(base, names[i]);
        found = state->errors[i] != NULL;
    }
    Py_DECREF(base);
    return found ? 0 : -1;
}

static int fill(PyObject *module) {
    py_state *state = PyModule_GetState(module);
    if (import_python(state) < 0 || py_add_config(module, state) < 0 ||
        py_add_ranks(module, state) < 0 || py_add_tokenizer(module, state) < 0 ||
        py_add_generator(module, state) < 0 || py_add_engine(module, state) < 0 ||
        py_add_view(module, state) < 0 || py_add_data(module, state) < 0 ||
        py_add_classifier(module, state) < 0)
        return -1;
    return 0;
}

static PyObject **objects_of(py_state *state, int i) {
    PyObject **all[] = {&state->log,
                        &state->errors[SIFR_FAILED],
                        &state->errors[SIFR_USAGE],
                        &state->errors[SIFR_NO_MEMORY],
                        &state->errors[SIFR_LOST_RANK],
                        &state->config_type,
                        &state->ranks_type,
                        &state->tokenizer_type,
                        &state->decoder_type,
                        &state->template_type,
                        &state->generator_type,
                        &state->chat_type,
                        &state->engine_type,
                        &state->view_type};
    return i < (int)(sizeof all / sizeof *all) ? all[i] : NULL;
}

static int traverse(PyObject *module, visitproc visit, void *arg) {
    PyObject **object;
    for (int i = 0; (object = objects_of(PyModule_GetState(module), i)); i++) Py_VISIT(*object);
    return 0;
}

static int clear(PyObject *module) {
    PyObject **object;
    for (int i = 0; (object = objects_of(PyModule_GetState(module), i)); i++) Py_CLEAR(*object);
    return 0;
}

/* After all handles: their types hold the module. */
static void release(void *module) {
    py_state *state = PyModule_GetState(module);
    clear(module);
    if (state->owner == getpid()) sifr_context_free(state->context);
}

PyMODINIT_FUNC PyInit__sifr(void);
PyMODINIT_FUNC PyInit__sifr(void) {
    static PyMethodDef functions[] = {{"version", get_version, METH_NOARGS, NULL},
                                      {"train", py_train, METH_VARARGS, NULL},
                                      {"plan", py_plan, METH_VARARGS, NULL},
                                      {"export", py_export, METH_VARARGS, NULL},
                                      {"import_config", py_import, METH_VARARGS, NULL},
                                      {NULL, NULL, 0, NULL}};
    static PyModuleDef_Slot slots[] = {{Py_mod_exec, fill}, {0, NULL}};
    static PyModuleDef module = {PyModuleDef_HEAD_INIT,      .m_name = "sifr._sifr",
                                 .m_size = sizeof(py_state), .m_methods = functions,
                                 .m_slots = slots,           .m_traverse = traverse,
                                 .m_clear = clear,           .m_free = release};
    return PyModuleDef_Init(&module);
}
