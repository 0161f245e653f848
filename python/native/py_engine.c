/* A loop of the caller's: an engine that trains the model of a config. Batches are copied; weights
 * are read and written in the caller's buffers. */
#include <stdio.h>
#include <stdlib.h>

#include "py_common.h"

/* A loop and its engine: one object, as they live and are used together. */
typedef struct pair {
    sifr_loop *loop;
    sifr_engine *engine;
    int64_t sequences, tokens; /* of a step of this rank: sequences of so many tokens */
    int64_t micro;             /* sequences of a micro batch */
    int64_t targets;           /* numbers for each token beside its label */
    py_loss loss;              /* of the caller's */
} pair;

static void release(void *handle) {
    pair *p = handle;
    sifr_loop_close(p->loop);
    py_loss_drop(&p->loss);
    free(p);
}

/* The config is the caller's own: of an engine with a loss it has that for this call alone. */
static sifr_status open_loop(pair *p, sifr_context *context, sifr_config *config, sifr_ranks *ranks,
                             sifr_error *error) {
    sifr_loop_figures figures = {.size = sizeof figures};
    sifr_status status = SIFR_OK;
    if (p->loss.function) status = sifr_config_set_loss(config, py_loss_compute, &p->loss, error);
    if (status == SIFR_OK) status = sifr_loop_open(context, config, ranks, &p->loop, error);
    if (p->loss.function) (void)!sifr_config_set_loss(config, NULL, NULL, NULL);
    if (status != SIFR_OK) return status;
    sifr_loop_get(p->loop, &figures);
    p->engine = sifr_loop_engine(p->loop);
    p->micro = figures.micro_batch_size;
    p->sequences = p->micro * figures.gradient_accumulation_steps;
    p->tokens = figures.seq_length;
    p->targets = figures.targets;
    return SIFR_OK;
}

static PyObject *make(py_state *state, PyObject *config, PyObject *ranks, PyObject *loss) {
    sifr_error error = {0};
    py_call call;
    sifr_context *context = py_context(state);
    pair *p = calloc(1, sizeof *p);
    PyObject *out = NULL, *keeps = ranks == Py_None ? NULL : PyTuple_Pack(1, ranks);
    if (!p) PyErr_NoMemory();
    if (p) p->loss.state = state;
    if (p && loss != Py_None) p->loss.function = Py_NewRef(loss);
    if (p && context && (keeps || ranks == Py_None) && py_enter(config, &call) == 0) {
        sifr_status status =
            open_loop(p, context, py_get(config), keeps ? py_get(ranks) : NULL, &error);
        py_leave(&call);
        if (status != SIFR_OK) py_raise(state, &error);
        if (status == SIFR_OK) out = py_handle_new(state->engine_type, p, release, keeps);
        if (status == SIFR_OK) p = NULL;
    }
    if (p) py_loss_drop(&p->loss);
    free(p);
    Py_XDECREF(keeps);
    return out;
}

/* engine(config, ranks or None, loss or None) */
static PyObject *engine_open(PyObject *module, PyObject *args) {
    py_state *state = PyModule_GetState(module);
    PyObject *config, *ranks, *loss = Py_None;
    if (!PyArg_ParseTuple(args, "OO|O", &config, &ranks, &loss) ||
        !py_expect(config, state->config_type, "a config") ||
        (ranks != Py_None && !py_expect(ranks, state->ranks_type, "ranks")) ||
        (ranks != Py_None && py_take(ranks) < 0))
        return NULL;
    PyObject *out = make(state, config, ranks, loss);
    if (ranks != Py_None) py_give(ranks);
    return out;
}

sifr_engine *py_engine_of(PyObject *engine) {
    return ((pair *)py_get(engine))->engine;
}

sifr_loop *py_loop_of(PyObject *engine) {
    return ((pair *)py_get(engine))->loop;
}

int64_t py_sequences_of(PyObject *engine) {
    return ((pair *)py_get(engine))->sequences;
}

py_loss *py_loss_of(PyObject *engine, py_call *call) {
    pair *p = py_get(engine);
    p->loss.engine = engine;
    p->loss.call = call;
    return &p->loss;
}

/* Begins a call that may ask the caller for losses. */
static int enter(PyObject *self, py_call *call) {
    (void)py_loss_of(self, call);
    return py_enter(NULL, call);
}

/* The other ranks of a call end it, too. What the library says of it is known: it is what this rank
 * failed in. */
static void end_call(const pair *p, sifr_engine_call what, const char *message) {
    py_call call;
    if (py_enter(NULL, &call) < 0) return;
    (void)!sifr_engine_fail(p->engine, what, message, NULL);
    py_leave(&call);
}

/* The same for an exception, which stays. */
static void end_raised(const pair *p, sifr_engine_call what) {
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    PyErr_NormalizeException(&kind, &value, &trace);
    PyObject *text = value ? PyObject_Str(value) : NULL;
    PyObject *bytes = text ? PyUnicode_AsEncodedString(text, "utf-8", "replace") : NULL;
    const char *message = bytes ? PyBytes_AsString(bytes) : NULL;
    PyErr_Clear();
    end_call(p, what, message ? message : "an exception");
    Py_XDECREF(bytes);
    Py_XDECREF(text);
    PyErr_Restore(kind, value, trace);
}

/* fail(call, message): in place of a call that this rank cannot make */
static PyObject *engine_fail(PyObject *self, PyObject *args) {
    int what;
    const char *message;
    if (!PyArg_ParseTuple(args, "is", &what, &message) || py_take(self) < 0) return NULL;
    end_call(py_get(self), (sifr_engine_call)what, message);
    py_give(self);
    Py_RETURN_NONE;
}

/* The batch of the call. -1 with an exception, and then the call has ended on all ranks. */
static int take_batch(PyObject *arrays, const pair *p, sifr_engine_call what, py_inputs *in,
                      sifr_batch *out, py_state *state) {
    const py_batch_shape shape = {.sequences = what == SIFR_CALL_STEP ? p->sequences : p->micro,
                                  .tokens = p->tokens,
                                  .targets = p->targets};
    if (py_take_batch(arrays, &shape, in, out, state) == 0) return 0;
    end_raised(p, what);
    return -1;
}

/* What the caller's loss raised; else what the library says. */
static PyObject *raise(pair *p, py_state *state, const sifr_error *error) {
    return py_loss_raises(&p->loss) ? NULL : py_raise(state, error);
}

static PyObject *describe(const sifr_step_result *r) {
    PyObject *losses = PyList_New(r->micro_batches);
    for (int i = 0; losses && i < r->micro_batches; i++) {
        PyObject *loss = PyFloat_FromDouble(r->micro_losses[i]);
        if (!loss || PyList_SetItem(losses, i, loss) < 0) Py_CLEAR(losses);
    }
    return Py_BuildValue("(dLddNN)", r->loss, (long long)r->labelled, r->gradient_norm,
                         r->loss_scale, PyBool_FromLong(r->updated), losses);
}

/* step(arrays, learning rate or None: that of the config's schedule) */
static PyObject *engine_step(PyObject *self, PyObject *args) {
    py_state *state = py_state_of(self);
    PyObject *arrays, *given, *out = NULL;
    py_inputs in = {.targets = NULL};
    sifr_batch batch;
    sifr_step_result result;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "O!O", &PyTuple_Type, &arrays, &given)) return NULL;
    double rate = given == Py_None ? 0 : PyFloat_AsDouble(given);
    if (PyErr_Occurred() || py_take(self) < 0) return NULL;
    pair *p = py_get(self);
    if (take_batch(arrays, p, SIFR_CALL_STEP, &in, &batch, state) == 0 && enter(self, &call) == 0) {
        sifr_status status = given == Py_None
                                 ? sifr_loop_step(p->loop, &batch, &result, &error)
                                 : sifr_engine_step(p->engine, &batch, rate, &result, &error);
        py_leave(&call);
        out = status == SIFR_OK ? describe(&result) : raise(p, state, &error);
    }
    py_give(self);
    py_drop_inputs(&in);
    return out;
}

/* logits: a buffer for them, or NULL. */
static PyObject *evaluate(PyObject *self, PyObject *arrays, const Py_buffer *logits) {
    py_state *state = py_state_of(self);
    sifr_engine_call what = logits ? SIFR_CALL_EVALUATE_LOGITS : SIFR_CALL_EVALUATE;
    py_inputs in = {.targets = NULL};
    PyObject *out = NULL;
    sifr_batch batch;
    double sum = 0;
    int64_t labelled = 0;
    sifr_error error = {0};
    py_call call;
    if (py_take(self) < 0) return NULL;
    pair *p = py_get(self);
    if (take_batch(arrays, p, what, &in, &batch, state) == 0 && enter(self, &call) == 0) {
        sifr_status status =
            logits ? sifr_engine_evaluate_logits(p->engine, &batch, logits->buf,
                                                 (size_t)(logits->len / 4), &sum, &labelled, &error)
                   : sifr_engine_evaluate(p->engine, &batch, &sum, &labelled, &error);
        py_leave(&call);
        out = status == SIFR_OK ? Py_BuildValue("(dL)", sum, (long long)labelled)
                                : raise(p, state, &error);
    }
    py_give(self);
    py_drop_inputs(&in);
    return out;
}

/* evaluate(arrays): the sum of losses, and how many */
static PyObject *engine_evaluate(PyObject *self, PyObject *args) {
    PyObject *arrays;
    if (!PyArg_ParseTuple(args, "O!", &PyTuple_Type, &arrays)) return NULL;
    return evaluate(self, arrays, NULL);
}

/* evaluate_logits(arrays, buffer): as evaluate, with the logits of each token in the buffer */
static PyObject *engine_evaluate_logits(PyObject *self, PyObject *args) {
    PyObject *arrays, *buffer;
    Py_buffer view;
    if (!PyArg_ParseTuple(args, "O!O", &PyTuple_Type, &arrays, &buffer) ||
        py_floats(py_state_of(self), "logits", buffer, true, &view) < 0)
        return NULL;
    PyObject *out = evaluate(self, arrays, &view);
    PyBuffer_Release(&view);
    return out;
}

/* --- weights --- */

typedef enum move { READ, WRITE, AVERAGE } move;

static sifr_status move_values(sifr_engine *engine, move what, const char *name, long long first,
                               float *values, size_t count, sifr_error *error) {
    if (what == WRITE) return sifr_engine_write_piece(engine, name, first, values, count, error);
    if (what == READ) return sifr_engine_read_piece(engine, name, first, values, count, error);
    return sifr_engine_read_average(engine, name, values, count, error);
}

/* In place of a read that this rank has no buffer for, so that the others' ends. Keeps what was
 * raised. */
static void read_nothing(PyObject *self, const char *name) {
    PyObject *kind, *value, *trace;
    py_call call;
    PyErr_Fetch(&kind, &value, &trace);
    if (py_enter(self, &call) == 0) {
        const pair *p = py_get(self);
        (void)!sifr_engine_read_piece(p->engine, name, 0, NULL, 0, NULL);
        py_leave(&call);
    }
    PyErr_Restore(kind, value, trace);
}

/* move(what, name, first, buffer): values of fp32 between a weight and the caller's buffer */
static PyObject *engine_move(PyObject *self, PyObject *args) {
    py_state *state = py_state_of(self);
    int what;
    const char *name;
    long long first;
    PyObject *buffer;
    Py_buffer view;
    char said[256];
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "isLO", &what, &name, &first, &buffer)) return NULL;
    snprintf(said, sizeof said, "weight %s", name);
    if (py_floats(state, said, buffer, what != WRITE, &view) < 0) {
        if (what != WRITE) read_nothing(self, name);
        return NULL;
    }
    PyObject *out = NULL;
    if (py_enter(self, &call) == 0) {
        const pair *p = py_get(self);
        sifr_status status = move_values(p->engine, (move)what, name, first, view.buf,
                                         (size_t)(view.len / 4), &error);
        py_leave(&call);
        out = py_none_or_raise(state, status, &error);
    }
    PyBuffer_Release(&view);
    return out;
}

/* A list of (name, shape, trained). */
static PyObject *engine_weights(PyObject *self, PyObject *none) {
    (void)none;
    if (py_take(self) < 0) return NULL;
    const pair *p = py_get(self);
    sifr_weight_facts w = {.size = sizeof w};
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && sifr_engine_weight_at(p->engine, i, &w); i++) {
        PyObject *shape = PyTuple_New(w.rank);
        for (int d = 0; shape && d < w.rank; d++) {
            PyObject *number = PyLong_FromLongLong(w.shape[d]);
            if (!number || PyTuple_SetItem(shape, d, number) < 0) Py_CLEAR(shape);
        }
        PyObject *row = Py_BuildValue("(sNN)", w.name, shape, PyBool_FromLong(w.trained));
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    py_give(self);
    return list;
}

/* view(name, elements) */
static PyObject *engine_view(PyObject *self, PyObject *args) {
    py_state *state = py_state_of(self);
    const char *name;
    Py_ssize_t elements;
    sifr_error error = {0};
    if (!PyArg_ParseTuple(args, "sn", &name, &elements) || py_take(self) < 0) return NULL;
    const pair *p = py_get(self);
    const float *values = NULL;
    sifr_status status = sifr_engine_view_weight(p->engine, name, &values, &error);
    py_give(self);
    if (status != SIFR_OK) return py_raise(state, &error);
    return py_view_new(self, &(py_matrix){.values = (void *)values, .rows = elements});
}

/* --- the rest --- */

static PyObject *engine_initialise(PyObject *self, PyObject *args) {
    unsigned long long seed;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "K", &seed) || py_enter(self, &call) < 0) return NULL;
    sifr_status status = sifr_engine_initialise(((pair *)py_get(self))->engine, seed, &error);
    py_leave(&call);
    return py_none_or_raise(py_state_of(self), status, &error);
}

static PyObject *engine_set_betas(PyObject *self, PyObject *args) {
    double beta1, beta2;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "dd", &beta1, &beta2) || py_enter(self, &call) < 0) return NULL;
    sifr_status status =
        sifr_engine_set_betas(((pair *)py_get(self))->engine, beta1, beta2, &error);
    py_leave(&call);
    return py_none_or_raise(py_state_of(self), status, &error);
}

static PyObject *engine_save(PyObject *self, PyObject *args) {
    PyObject *path;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path)) return NULL;
    if (py_enter(self, &call) < 0) {
        Py_DECREF(path);
        return NULL;
    }
    const pair *p = py_get(self);
    sifr_status status = sifr_loop_save_model(p->loop, PyBytes_AsString(path), &error);
    py_leave(&call);
    Py_DECREF(path);
    return py_none_or_raise(py_state_of(self), status, &error);
}

static PyObject *engine_set_steps(PyObject *self, PyObject *args) {
    long long total;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "L", &total) || py_enter(self, &call) < 0) return NULL;
    sifr_status status = sifr_loop_set_steps(((pair *)py_get(self))->loop, total, &error);
    py_leave(&call);
    return py_none_or_raise(py_state_of(self), status, &error);
}

static PyObject *engine_rate(PyObject *self, PyObject *none) {
    double rate = 0;
    sifr_error error = {0};
    py_call call;
    (void)none;
    if (py_enter(self, &call) < 0) return NULL;
    sifr_status status = sifr_loop_rate(((pair *)py_get(self))->loop, &rate, &error);
    py_leave(&call);
    return status == SIFR_OK ? PyFloat_FromDouble(rate) : py_raise(py_state_of(self), &error);
}

/* save_checkpoint(output, state as JSON, how many to keep) */
static PyObject *engine_save_checkpoint(PyObject *self, PyObject *args) {
    py_state *state = py_state_of(self);
    sifr_checkpoint_options options = {.size = sizeof options};
    PyObject *output;
    long long keep;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "O&sL", PyUnicode_FSConverter, &output, &options.state, &keep))
        return NULL;
    sifr_context *context = py_context(state);
    if (!context || py_enter(self, &call) < 0) {
        Py_DECREF(output);
        return NULL;
    }
    const pair *p = py_get(self);
    options.loop = p->loop;
    options.keep = keep;
    sifr_status status =
        sifr_checkpoint_save(context, p->engine, PyBytes_AsString(output), &options, &error);
    py_leave(&call);
    Py_DECREF(output);
    return py_none_or_raise(state, status, &error);
}

/* load_checkpoint(output): the state as JSON, or None where there is no checkpoint */
static PyObject *engine_load_checkpoint(PyObject *self, PyObject *args) {
    py_state *state = py_state_of(self);
    sifr_checkpoint_options options = {.size = sizeof options};
    PyObject *output;
    char *text = NULL;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &output)) return NULL;
    sifr_context *context = py_context(state);
    if (!context || py_enter(self, &call) < 0) {
        Py_DECREF(output);
        return NULL;
    }
    const pair *p = py_get(self);
    options.loop = p->loop;
    sifr_status status =
        sifr_checkpoint_load(context, p->engine, PyBytes_AsString(output), &options, &text, &error);
    py_leave(&call);
    Py_DECREF(output);
    if (status != SIFR_OK || !text) return py_none_or_raise(state, status, &error);
    return py_take_text(text);
}

/* steps, updates, loss scale, planned bytes, parameters, trained ones, sequences of a step and of a
 * micro batch, tokens of a sequence, targets of a token, logits of a token */
static PyObject *engine_facts(PyObject *self, PyObject *none) {
    sifr_loop_figures f = {.size = sizeof f};
    (void)none;
    if (py_take(self) < 0) return NULL;
    const pair *p = py_get(self);
    sifr_loop_get(p->loop, &f);
    PyObject *out = Py_BuildValue(
        "(LLdLLLLLLLL)", (long long)sifr_engine_steps(p->engine),
        (long long)sifr_engine_updates(p->engine), sifr_engine_loss_scale(p->engine),
        (long long)sifr_engine_planned_bytes(p->engine), (long long)f.parameters,
        (long long)f.trained_parameters, (long long)p->sequences, (long long)p->micro,
        (long long)p->tokens, (long long)p->targets, (long long)sifr_engine_logits(p->engine));
    py_give(self);
    return out;
}

/* micro_batch(index): its number in the global batch; -1: there is none */
static PyObject *engine_micro_batch(PyObject *self, PyObject *args) {
    long long index;
    if (!PyArg_ParseTuple(args, "L", &index) || py_take(self) < 0) return NULL;
    const pair *p = py_get(self);
    PyObject *out = PyLong_FromLongLong(sifr_loop_micro_batch(p->loop, index));
    py_give(self);
    return out;
}

/* order(seed, epoch, count, place) */
static PyObject *data_order(PyObject *module, PyObject *args) {
    unsigned long long seed;
    long long epoch, count, place;
    (void)module;
    if (!PyArg_ParseTuple(args, "KLLL", &seed, &epoch, &count, &place)) return NULL;
    return PyLong_FromLongLong(sifr_data_order(seed, epoch, count, place));
}

int py_add_engine(PyObject *module, py_state *state) {
    static PyMethodDef methods[] = {{"step", engine_step, METH_VARARGS, NULL},
                                    {"evaluate", engine_evaluate, METH_VARARGS, NULL},
                                    {"fail", engine_fail, METH_VARARGS, NULL},
                                    {"evaluate_logits", engine_evaluate_logits, METH_VARARGS, NULL},
                                    {"micro_batch", engine_micro_batch, METH_VARARGS, NULL},
                                    {"move", engine_move, METH_VARARGS, NULL},
                                    {"weights", engine_weights, METH_NOARGS, NULL},
                                    {"view", engine_view, METH_VARARGS, NULL},
                                    {"initialise", engine_initialise, METH_VARARGS, NULL},
                                    {"set_betas", engine_set_betas, METH_VARARGS, NULL},
                                    {"save", engine_save, METH_VARARGS, NULL},
                                    {"save_checkpoint", engine_save_checkpoint, METH_VARARGS, NULL},
                                    {"load_checkpoint", engine_load_checkpoint, METH_VARARGS, NULL},
                                    {"set_steps", engine_set_steps, METH_VARARGS, NULL},
                                    {"rate", engine_rate, METH_NOARGS, NULL},
                                    {"facts", engine_facts, METH_NOARGS, NULL},
                                    PY_CLOSE,
                                    {NULL, NULL, 0, NULL}};
    static PyMethodDef functions[] = {{"engine", engine_open, METH_VARARGS, NULL},
                                      {"order", data_order, METH_VARARGS, NULL},
                                      {NULL, NULL, 0, NULL}};
    if (py_add_handle(module, "sifr._sifr.Engine", methods, NULL, &state->engine_type) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
