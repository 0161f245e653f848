/* A loop of the caller's: an engine that trains the model of a config. Batches are copied; weights
 * are read and written in the caller's buffers. */
#include <stdlib.h>
#include <string.h>

#include "py_common.h"

/* A loop and its engine: one object, as they live and are used together. */
typedef struct pair {
    sifr_loop *loop;
    sifr_engine *engine;
    int64_t sequences, tokens; /* of a step of this rank: sequences of so many tokens */
    int64_t micro;             /* sequences of a micro batch */
} pair;

static void release(void *handle) {
    pair *p = handle;
    sifr_loop_close(p->loop);
    free(p);
}

static sifr_status open_loop(pair *p, sifr_context *context, const sifr_config *config,
                             sifr_ranks *ranks, sifr_error *error) {
    sifr_loop_figures figures = {.size = sizeof figures};
    sifr_status status = sifr_loop_open(context, config, ranks, &p->loop, error);
    if (status != SIFR_OK) return status;
    sifr_loop_get(p->loop, &figures);
    p->engine = sifr_loop_engine(p->loop);
    p->micro = figures.micro_batch_size;
    p->sequences = p->micro * figures.gradient_accumulation_steps;
    p->tokens = figures.seq_length;
    return SIFR_OK;
}

static PyObject *make(py_state *state, PyObject *config, PyObject *ranks) {
    sifr_error error = {0};
    py_call call;
    sifr_context *context = py_context(state);
    pair *p = calloc(1, sizeof *p);
    PyObject *out = NULL, *keeps = ranks == Py_None ? NULL : PyTuple_Pack(1, ranks);
    if (!p) PyErr_NoMemory();
    if (p && context && (keeps || ranks == Py_None) && py_enter(config, &call) == 0) {
        sifr_status status =
            open_loop(p, context, py_get(config), keeps ? py_get(ranks) : NULL, &error);
        py_leave(&call);
        if (status != SIFR_OK) py_raise(state, &error);
        if (status == SIFR_OK) out = py_handle_new(state->engine_type, p, release, keeps);
        if (status == SIFR_OK) p = NULL;
    }
    free(p);
    Py_XDECREF(keeps);
    return out;
}

/* engine(config, ranks or None) */
static PyObject *engine_open(PyObject *module, PyObject *args) {
    py_state *state = PyModule_GetState(module);
    PyObject *config, *ranks;
    if (!PyArg_ParseTuple(args, "OO", &config, &ranks) ||
        !py_expect(config, state->config_type, "a config") ||
        (ranks != Py_None && !py_expect(ranks, state->ranks_type, "ranks")) ||
        (ranks != Py_None && py_take(ranks) < 0))
        return NULL;
    PyObject *out = make(state, config, ranks);
    if (ranks != Py_None) py_give(ranks);
    return out;
}

/* --- batches --- */

enum { INPUTS = 5 }; /* of whole numbers */

typedef struct inputs {
    int32_t *whole[INPUTS];
} inputs;

static void drop_inputs(inputs *in) {
    for (int i = 0; i < INPUTS; i++) free(in->whole[i]);
}

/* One of the type codes in `codes`, in this machine's order of bytes. */
static bool has_type(const Py_buffer *view, const char *codes) {
    const char *format = view->format ? view->format : "B";
    if (*format == '@' || *format == '=' || *format == '<') format++;
    return format[0] && !format[1] && strchr(codes, format[0]);
}

/* A copy of the ids of an array, in order; NULL with an exception. */
static void *copy_array(PyObject *array, const char *name, int64_t elements, int64_t last,
                        Py_ssize_t *item, py_state *state) {
    Py_buffer view;
    if (PyObject_GetBuffer(array, &view, PyBUF_RECORDS_RO) < 0) return NULL;
    void *out = NULL;
    *item = view.itemsize;
    bool fits = view.itemsize > 0 && view.len / view.itemsize == elements &&
                (view.ndim == 1 || (view.ndim > 1 && view.shape[view.ndim - 1] == last));
    if (!has_type(&view, "ilq") || (view.itemsize != 4 && view.itemsize != 8)) {
        py_usage(state, "%s: has elements of type '%s'; give int32 or int64", name,
                 view.format ? view.format : "B");
    } else if (!fits) {
        py_usage(state, "%s: has %zd elements in %d dimensions; a batch has %lld, in rows of %lld",
                 name, view.itemsize > 0 ? view.len / view.itemsize : 0, view.ndim,
                 (long long)elements, (long long)last);
    } else if (!(out = malloc((size_t)view.len + 1))) {
        PyErr_NoMemory();
    } else if (PyBuffer_ToContiguous(out, &view, view.len, 'C') < 0) {
        free(out);
        out = NULL;
    }
    PyBuffer_Release(&view);
    return out;
}

/* Ids of 32 bits, which those of 64 have to fit. */
static int32_t *take_ids(PyObject *array, const char *name, int64_t elements, int64_t last,
                         py_state *state) {
    Py_ssize_t item;
    void *copy = copy_array(array, name, elements, last, &item, state);
    if (!copy || item == 4) return copy;
    const int64_t *wide = copy;
    int32_t *ids = copy; /* each is written where nothing is read any more */
    for (int64_t i = 0; i < elements; i++) {
        int64_t id = wide[i];
        if (id < INT32_MIN || id > INT32_MAX) {
            py_usage(state, "%s: %lld is beyond 32 bits", name, (long long)id);
            free(copy);
            return NULL;
        }
        memcpy(&ids[i], &(int32_t){(int32_t)id}, sizeof *ids);
    }
    return ids;
}

/* The arrays of a tuple: tokens, labels, token types, segments, positions; None: left out. -1 with
 * an exception; free the inputs either way. */
static int take_batch(PyObject *arrays, const pair *p, int64_t sequences, inputs *in,
                      sifr_batch *out, py_state *state) {
    static const char *const names[] = {"tokens", "labels", "token_types", "segments", "positions"};
    int64_t elements = sequences * p->tokens;
    for (int i = 0; i < INPUTS; i++) {
        PyObject *array = PyTuple_GetItem(arrays, i);
        if (!array) return -1;
        if (array == Py_None) continue;
        in->whole[i] = take_ids(array, names[i], elements, p->tokens, state);
        if (!in->whole[i]) return -1;
    }
    *out = (sifr_batch){.tokens = in->whole[0],
                        .labels = in->whole[1],
                        .token_types = in->whole[2],
                        .segments = in->whole[3],
                        .positions = in->whole[4]};
    return 0;
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
    inputs in = {{NULL}};
    sifr_batch batch;
    sifr_step_result result;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "O!O", &PyTuple_Type, &arrays, &given)) return NULL;
    double rate = given == Py_None ? 0 : PyFloat_AsDouble(given);
    if (PyErr_Occurred() || py_take(self) < 0) return NULL;
    pair *p = py_get(self);
    if (take_batch(arrays, p, p->sequences, &in, &batch, state) == 0 &&
        py_enter(NULL, &call) == 0) {
        sifr_status status = given == Py_None
                                 ? sifr_loop_step(p->loop, &batch, &result, &error)
                                 : sifr_engine_step(p->engine, &batch, rate, &result, &error);
        py_leave(&call);
        out = status == SIFR_OK ? describe(&result) : py_raise(state, &error);
    }
    py_give(self);
    drop_inputs(&in);
    return out;
}

/* evaluate(arrays): the sum of losses, and how many */
static PyObject *engine_evaluate(PyObject *self, PyObject *args) {
    py_state *state = py_state_of(self);
    PyObject *arrays, *out = NULL;
    inputs in = {{NULL}};
    sifr_batch batch;
    double sum = 0;
    int64_t labelled = 0;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "O!", &PyTuple_Type, &arrays) || py_take(self) < 0) return NULL;
    pair *p = py_get(self);
    if (take_batch(arrays, p, p->micro, &in, &batch, state) == 0 && py_enter(NULL, &call) == 0) {
        sifr_status status = sifr_engine_evaluate(p->engine, &batch, &sum, &labelled, &error);
        py_leave(&call);
        out = status == SIFR_OK ? Py_BuildValue("(dL)", sum, (long long)labelled)
                                : py_raise(state, &error);
    }
    py_give(self);
    drop_inputs(&in);
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

/* move(what, name, first, buffer): values of fp32 between a weight and the caller's buffer */
static PyObject *engine_move(PyObject *self, PyObject *args) {
    py_state *state = py_state_of(self);
    int what;
    const char *name;
    long long first;
    PyObject *buffer;
    Py_buffer view;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "isLO", &what, &name, &first, &buffer)) return NULL;
    int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (what == WRITE ? 0 : PyBUF_WRITABLE);
    if (PyObject_GetBuffer(buffer, &view, flags) < 0) return NULL;
    PyObject *out = NULL;
    if (!has_type(&view, "f")) {
        py_usage(state, "weight %s: the buffer has elements of type '%s'; give float32", name,
                 view.format ? view.format : "B");
    } else if (py_enter(self, &call) == 0) {
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

/* --- views: an object with a buffer, which keeps the engine --- */

typedef struct window {
    const float *values;
    Py_ssize_t elements;
} window;

static void release_window(void *handle) {
    free(handle);
}

static int view_buffer(PyObject *self, Py_buffer *view, int flags) {
    const window *w = py_get(self);
    if (!w) {
        PyErr_SetString(PyExc_BufferError, "the view was closed");
        return -1;
    }
    if (PyBuffer_FillInfo(view, self, (void *)w->values, w->elements * 4, 1, flags) < 0) return -1;
    view->itemsize = 4;
    if (view->format) view->format = (char *)"f";
    if (view->shape) view->shape = (Py_ssize_t *)&w->elements;
    if (view->strides) view->strides = &view->itemsize;
    return 0;
}

/* view(name, elements) */
static PyObject *engine_view(PyObject *self, PyObject *args) {
    py_state *state = py_state_of(self);
    const char *name;
    Py_ssize_t elements;
    sifr_error error = {0};
    if (!PyArg_ParseTuple(args, "sn", &name, &elements) || py_take(self) < 0) return NULL;
    const pair *p = py_get(self);
    window *w = calloc(1, sizeof *w);
    sifr_status status =
        w ? sifr_engine_view_weight(p->engine, name, &w->values, &error) : SIFR_NO_MEMORY;
    py_give(self);
    PyObject *keeps = status == SIFR_OK ? PyTuple_Pack(1, self) : NULL, *out = NULL;
    if (w) w->elements = elements;
    if (keeps) out = py_handle_new(state->view_type, w, release_window, keeps);
    if (!keeps) free(w);
    if (!w) PyErr_NoMemory();
    if (w && status != SIFR_OK) py_raise(state, &error);
    Py_XDECREF(keeps);
    return out;
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
 * micro batch, tokens of a sequence */
static PyObject *engine_facts(PyObject *self, PyObject *none) {
    sifr_loop_figures f = {.size = sizeof f};
    (void)none;
    if (py_take(self) < 0) return NULL;
    const pair *p = py_get(self);
    sifr_loop_get(p->loop, &f);
    PyObject *out =
        Py_BuildValue("(LLdLLLLLL)", (long long)sifr_engine_steps(p->engine),
                      (long long)sifr_engine_updates(p->engine), sifr_engine_loss_scale(p->engine),
                      (long long)sifr_engine_planned_bytes(p->engine), (long long)f.parameters,
                      (long long)f.trained_parameters, (long long)p->sequences, (long long)p->micro,
                      (long long)p->tokens);
    py_give(self);
    return out;
}

int py_add_engine(PyObject *module, py_state *state) {
    static PyMethodDef methods[] = {{"step", engine_step, METH_VARARGS, NULL},
                                    {"evaluate", engine_evaluate, METH_VARARGS, NULL},
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
    static PyMethodDef of_view[] = {PY_CLOSE, {NULL, NULL, 0, NULL}};
    static PyMethodDef functions[] = {{"engine", engine_open, METH_VARARGS, NULL},
                                      {NULL, NULL, 0, NULL}};
    if (py_add_handle(module, "sifr._sifr.Engine", methods, NULL, &state->engine_type) < 0 ||
        py_add_handle(module, "sifr._sifr.View", of_view, view_buffer, &state->view_type) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
