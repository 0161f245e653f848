/* The data of a config, for loops of the caller's. Batches come out as copies. */
#include <stdlib.h>

#include "py_common.h"

typedef struct source {
    sifr_data *data;
    sifr_data_figures figures;
} source;

static void release(void *handle) {
    source *s = handle;
    sifr_data_close(s->data);
    free(s);
}

/* The engine of a call, unless the data keep it: then it is taken with them. */
static bool is_other(PyObject *self, PyObject *engine) {
    PyObject *keeps = ((py_handle *)self)->keeps;
    return !keeps || PyTuple_GetItem(keeps, 0) != engine;
}

static PyObject *make(py_state *state, PyObject *config, const sifr_data_options *options,
                      PyObject *engine) {
    sifr_context *context = py_context(state);
    sifr_error error = {0};
    py_call call;
    PyObject *keeps = engine == Py_None ? NULL : PyTuple_Pack(1, engine);
    source *s = calloc(1, sizeof *s);
    if (!s) PyErr_NoMemory();
    if (!s || !context || PyErr_Occurred() || py_enter(config, &call) < 0) {
        free(s);
        Py_XDECREF(keeps);
        return NULL;
    }
    sifr_status status = sifr_data_open(context, py_get(config), options, &s->data, &error);
    s->figures.size = sizeof s->figures;
    if (status == SIFR_OK) sifr_data_get(s->data, &s->figures);
    py_leave(&call);
    PyObject *out = status == SIFR_OK ? py_handle_new(state->data_type, s, release, keeps)
                                      : py_raise(state, &error);
    if (status != SIFR_OK) free(s);
    Py_XDECREF(keeps);
    return out;
}

/* data(config, ranks, evaluation, cache or None, engine or None) */
static PyObject *data_open(PyObject *module, PyObject *args) {
    py_state *state = PyModule_GetState(module);
    sifr_data_options options = {.size = sizeof options};
    PyObject *config, *cache, *engine, *path = NULL;
    long long ranks;
    int evaluation;
    if (!PyArg_ParseTuple(args, "OLpOO", &config, &ranks, &evaluation, &cache, &engine) ||
        !py_expect(config, state->config_type, "a config") ||
        (engine != Py_None && !py_expect(engine, state->engine_type, "an engine")) ||
        (cache != Py_None && !PyUnicode_FSConverter(cache, &path)))
        return NULL;
    options.ranks = ranks;
    options.evaluation = evaluation != 0;
    options.cache = path ? PyBytes_AsString(path) : NULL;
    PyObject *out = NULL;
    if (engine == Py_None || py_take(engine) == 0) {
        if (engine != Py_None) options.loop = py_loop_of(engine);
        out = make(state, config, &options, engine);
        if (engine != Py_None) py_give(engine);
    }
    Py_XDECREF(path);
    return out;
}

static PyObject *copy(const void *values, int64_t count) {
    if (!values) Py_RETURN_NONE;
    return PyBytes_FromStringAndSize(values, (Py_ssize_t)(4 * count));
}

/* Bytes of tokens, labels, token types, segments, positions and targets; None for what the model
 * does not read. */
static PyObject *describe(const source *s, const sifr_batch *b, int64_t sequences) {
    int64_t count = sequences * s->figures.seq_length;
    return Py_BuildValue("(NNNNNN)", copy(b->tokens, count), copy(b->labels, count),
                         copy(b->token_types, count), copy(b->segments, count),
                         copy(b->positions, count), copy(b->targets, count * s->figures.targets));
}

/* step(engine, step): the batch of this rank */
static PyObject *data_step(PyObject *self, PyObject *args) {
    py_state *state = py_state_of(self);
    PyObject *engine, *out = NULL;
    long long step;
    sifr_batch batch;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "OL", &engine, &step) ||
        !py_expect(engine, state->engine_type, "an engine"))
        return NULL;
    bool other = is_other(self, engine);
    if (other && py_take(engine) < 0) return NULL;
    if (py_enter(self, &call) == 0) {
        source *s = py_get(self);
        sifr_status status = sifr_data_step(s->data, py_engine_of(engine), step, &batch, &error);
        py_return(&call);
        out = status == SIFR_OK ? describe(s, &batch, py_sequences_of(engine))
                                : py_raise(state, &error);
        py_done(&call);
    }
    if (other) py_give(engine);
    return out;
}

/* The numbers of a sequence of Python's; NULL with an exception. */
static int64_t *take_numbers(PyObject *list, Py_ssize_t *count) {
    *count = PySequence_Size(list);
    int64_t *out = *count < 0 ? NULL : malloc(((size_t)*count + 1) * sizeof *out);
    if (!out && *count >= 0) PyErr_NoMemory();
    for (Py_ssize_t i = 0; out && i < *count; i++) {
        PyObject *item = PySequence_GetItem(list, i);
        out[i] = item ? PyLong_AsLongLong(item) : -1;
        Py_XDECREF(item);
        if (!PyErr_Occurred()) continue;
        free(out);
        return NULL;
    }
    return out;
}

/* read(numbers of sequences) */
static PyObject *data_read(PyObject *self, PyObject *args) {
    PyObject *list, *out = NULL;
    Py_ssize_t count;
    sifr_batch batch;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "O", &list)) return NULL;
    int64_t *windows = take_numbers(list, &count);
    if (windows && py_enter(self, &call) == 0) {
        source *s = py_get(self);
        sifr_status status = sifr_data_read(s->data, windows, count, &batch, &error);
        py_return(&call);
        out = status == SIFR_OK ? describe(s, &batch, count) : py_raise(py_state_of(self), &error);
        py_done(&call);
    }
    free(windows);
    return out;
}

static PyObject *scores_of(const sifr_data_evaluation *e) {
    PyObject *scores = PyDict_New();
    for (int i = 0; i < e->score_count; i++)
        py_put_score(&scores, e->scores[i].name, e->scores[i].value);
    return scores;
}

/* A signal ends it on all ranks; its exception comes out on this one. */
static int ask(void *user) {
    py_call *call = user;
    py_callback_begins(call);
    int stop = PyErr_Occurred() || PyErr_CheckSignals() < 0;
    py_callback_ends(call);
    return stop;
}

/* evaluate(engine, windows): windows, tokens, loss, seconds, scores, whether it was stopped */
static PyObject *data_evaluate(PyObject *self, PyObject *args) {
    py_state *state = py_state_of(self);
    PyObject *engine, *out = NULL;
    long long windows;
    sifr_data_evaluation e = {.size = sizeof e};
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "OL", &engine, &windows) ||
        !py_expect(engine, state->engine_type, "an engine"))
        return NULL;
    bool other = is_other(self, engine);
    if (other && py_take(engine) < 0) return NULL;
    if (py_enter(self, &call) == 0) {
        py_loss *loss = py_loss_of(engine, &call);
        sifr_status status = sifr_data_evaluate(
            ((source *)py_get(self))->data, py_engine_of(engine), windows, ask, &call, &e, &error);
        py_leave(&call);
        if (status != SIFR_OK && !py_loss_raises(loss) && !PyErr_Occurred())
            py_raise(state, &error);
        if (status == SIFR_OK && !PyErr_Occurred())
            out = Py_BuildValue("(LLddNN)", (long long)e.windows, (long long)e.tokens, e.loss,
                                e.seconds, scores_of(&e), PyBool_FromLong(e.stopped));
    }
    if (other) py_give(engine);
    return out;
}

/* windows, tokens, documents, tokens of a sequence, vocabulary, sequences of a step of all ranks,
 * steps of the run, hash, targets of a token */
static PyObject *data_facts(PyObject *self, PyObject *none) {
    (void)none;
    if (py_take(self) < 0) return NULL;
    const sifr_data_figures *f = &((source *)py_get(self))->figures;
    PyObject *out = Py_BuildValue(
        "(LLLLLLLKL)", (long long)f->windows, (long long)f->tokens, (long long)f->documents,
        (long long)f->seq_length, (long long)f->vocab_size, (long long)f->batch_size,
        (long long)f->total_steps, (unsigned long long)f->hash, (long long)f->targets);
    py_give(self);
    return out;
}

int py_add_data(PyObject *module, py_state *state) {
    static PyMethodDef methods[] = {{"step", data_step, METH_VARARGS, NULL},
                                    {"read", data_read, METH_VARARGS, NULL},
                                    {"evaluate", data_evaluate, METH_VARARGS, NULL},
                                    {"facts", data_facts, METH_NOARGS, NULL},
                                    PY_CLOSE,
                                    {NULL, NULL, 0, NULL}};
    static PyMethodDef functions[] = {{"data", data_open, METH_VARARGS, NULL},
                                      {NULL, NULL, 0, NULL}};
    if (py_add_handle(module, "sifr._sifr.Data", methods, NULL, &state->data_type) < 0) return -1;
    return PyModule_AddFunctions(module, functions);
}
