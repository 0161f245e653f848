/* Classifiers of texts, pairs and words, and files of scores of tokens. */
#include <string.h>

#include "py_common.h"

static void release(void *handle) {
    sifr_classifier_free(handle);
}

/* classifier(model, adapter, precision, device, threads, seq_length, text_column, pair_column) */
static PyObject *classifier_open(PyObject *module, PyObject *args) {
    py_state *state = PyModule_GetState(module);
    sifr_classifier_options o = {.size = sizeof o};
    sifr_classifier *classifier = NULL;
    PyObject *model, *out = NULL;
    long long threads, length;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "O&zzzLLzz", PyUnicode_FSConverter, &model, &o.adapter,
                          &o.precision, &o.device, &threads, &length, &o.text_column,
                          &o.pair_column))
        return NULL;
    o.model = PyBytes_AsString(model);
    o.threads = threads, o.seq_length = length;
    sifr_context *context = py_context(state);
    if (context && py_enter(NULL, &call) == 0) {
        sifr_status status = sifr_classifier_open(context, &o, &classifier, &error);
        py_leave(&call);
        out = status == SIFR_OK ? py_handle_new(state->classifier_type, classifier, release, NULL)
                                : py_raise(state, &error);
    }
    Py_DECREF(model);
    return out;
}

/* labels, whether words get classes, what scores are (sifr_class_scores) */
static PyObject *classifier_facts(PyObject *self, PyObject *none) {
    (void)none;
    if (py_take(self) < 0) return NULL;
    const sifr_classifier *c = py_get(self);
    PyObject *labels = PyList_New(0);
    for (int64_t i = 0; labels && i < sifr_classifier_count(c); i++) {
        PyObject *label = py_text(sifr_classifier_label(c, i));
        if (!label || PyList_Append(labels, label) < 0) Py_CLEAR(labels);
        Py_XDECREF(label);
    }
    PyObject *out = Py_BuildValue("(NNi)", labels, PyBool_FromLong(sifr_classifier_tags(c)),
                                  (int)sifr_classifier_scores(c));
    py_give(self);
    return out;
}

/* add(text, pair or None) */
static PyObject *classifier_add(PyObject *self, PyObject *args) {
    const char *text, *pair;
    Py_ssize_t size, pair_size;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "s#z#", &text, &size, &pair, &pair_size) ||
        py_enter(self, &call) < 0)
        return NULL;
    sifr_status status = sifr_classifier_add(py_get(self), text, (size_t)size, pair,
                                             pair ? (size_t)pair_size : 0, &error);
    py_leave(&call);
    return py_none_or_raise(py_state_of(self), status, &error);
}

/* The texts of a tuple; free with PyMem_Free. They live as long as the tuple. */
static const char **take_texts(PyObject *tuple, size_t *count) {
    Py_ssize_t size = PyTuple_Size(tuple);
    const char **texts = size < 0 ? NULL : PyMem_Calloc((size_t)size + 1, sizeof *texts);
    if (!texts) return (const char **)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < size; i++) {
        Py_ssize_t bytes;
        texts[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(tuple, i), &bytes);
        if (texts[i] && (size_t)bytes == strlen(texts[i])) continue;
        if (texts[i]) PyErr_SetString(PyExc_ValueError, "a text with a NUL in it");
        PyMem_Free(texts);
        return NULL;
    }
    *count = (size_t)size;
    return texts;
}

typedef sifr_status take_all(sifr_classifier *classifier, const char *const *texts, size_t count,
                             sifr_error *error);

static PyObject *give(PyObject *self, PyObject *args, take_all *take) {
    PyObject *tuple, *out = NULL;
    size_t count = 0;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "O!", &PyTuple_Type, &tuple)) return NULL;
    const char **texts = take_texts(tuple, &count);
    if (texts && py_enter(self, &call) == 0) {
        sifr_status status = take(py_get(self), texts, count, &error);
        py_leave(&call);
        out = py_none_or_raise(py_state_of(self), status, &error);
    }
    PyMem_Free(texts);
    return out;
}

/* add_words(tuple of the words of a text) */
static PyObject *classifier_add_words(PyObject *self, PyObject *args) {
    return give(self, args, sifr_classifier_add_words);
}

/* read(tuple of paths) */
static PyObject *classifier_read(PyObject *self, PyObject *args) {
    return give(self, args, sifr_classifier_read);
}

typedef struct running {
    py_call call;
    PyObject *rows;
    int64_t classes;
    bool failed; /* with an exception */
} running;

static PyObject *numbers_of(const double *scores, int64_t count) {
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (int64_t i = 0; list && i < count; i++) {
        PyObject *score = PyFloat_FromDouble(scores[i]);
        if (!score || PyList_SetItem(list, (Py_ssize_t)i, score) < 0) Py_CLEAR(list);
    }
    return list;
}

/* (row, words or None, [the best class and the scores of each]) */
static PyObject *describe(const running *r, const sifr_classified *row) {
    PyObject *found = PyList_New(0), *words = row->words ? PyList_New(0) : Py_NewRef(Py_None);
    for (int64_t i = 0; found && i < row->count; i++) {
        PyObject *one = Py_BuildValue("(LN)", (long long)row->best[i],
                                      numbers_of(row->scores + i * r->classes, r->classes));
        if (!one || PyList_Append(found, one) < 0) Py_CLEAR(found);
        Py_XDECREF(one);
    }
    for (int64_t i = 0; row->words && words && i < row->word_count; i++) {
        PyObject *word = py_text(row->words[i]);
        if (!word || PyList_Append(words, word) < 0) Py_CLEAR(words);
        Py_XDECREF(word);
    }
    return Py_BuildValue("(LNN)", (long long)row->row, words, found);
}

static sifr_status take_row(void *user, const sifr_classified *row, sifr_error *error) {
    running *r = user;
    (void)error;
    py_callback_begins(&r->call);
    PyObject *described = PyErr_CheckSignals() < 0 ? NULL : describe(r, row);
    r->failed = !described || PyList_Append(r->rows, described) < 0;
    Py_XDECREF(described);
    py_callback_ends(&r->call);
    return r->failed ? SIFR_FAILED : SIFR_OK;
}

/* run(): a list of rows as described */
static PyObject *classifier_run(PyObject *self, PyObject *none) {
    sifr_error error = {0};
    running r = {.failed = false};
    (void)none;
    if (!(r.rows = PyList_New(0))) return NULL;
    if (py_enter(self, &r.call) == 0) {
        r.classes = sifr_classifier_count(py_get(self));
        sifr_status status = sifr_classifier_run(py_get(self), take_row, &r, &error);
        py_leave(&r.call);
        if (status == SIFR_OK) return r.rows;
        if (!r.failed) py_raise(py_state_of(self), &error);
    }
    Py_DECREF(r.rows);
    return NULL;
}

/* --- scores of tokens --- */

typedef struct scoring {
    py_call call;
    bool interrupted;
} scoring;

/* Signals are looked at now and then: there are many tokens. */
static sifr_status see_token(void *user, const sifr_token_score *score, sifr_error *error) {
    scoring *s = user;
    (void)error;
    if (score->row % 16) return SIFR_OK;
    py_callback_begins(&s->call);
    s->interrupted = PyErr_CheckSignals() < 0;
    py_callback_ends(&s->call);
    return s->interrupted ? SIFR_FAILED : SIFR_OK;
}

/* score(config, model, output, adapter, precision, device, threads, top_k, temperature or None,
 * batch_size): rows, tokens, what it ran in */
static PyObject *score(PyObject *module, PyObject *args) {
    py_state *state = PyModule_GetState(module);
    scoring s = {.interrupted = false};
    sifr_score_options o = {.size = sizeof o, .user = &s, .token = see_token};
    sifr_scored scored = {.size = sizeof scored};
    PyObject *config, *model, *output, *given, *out = NULL;
    long long threads, top, batch;
    double temperature = 1;
    sifr_error error = {0};
    if (!PyArg_ParseTuple(args, "OO&O&zzzLLOL", &config, PyUnicode_FSConverter, &model,
                          PyUnicode_FSConverter, &output, &o.adapter, &o.precision, &o.device,
                          &threads, &top, &given, &batch))
        return NULL;
    if (given != Py_None) temperature = PyFloat_AsDouble(given);
    o.temperature = given == Py_None ? NULL : &temperature;
    o.threads = threads, o.top_k = top, o.batch_size = batch;
    o.model = PyBytes_AsString(model), o.output = PyBytes_AsString(output);
    sifr_context *context = PyErr_Occurred() ? NULL : py_context(state);
    if (context && py_expect(config, state->config_type, "a config") &&
        py_enter(config, &s.call) == 0) {
        o.config = py_get(config);
        sifr_status status = sifr_score(context, &o, &scored, &error);
        py_leave(&s.call);
        if (status == SIFR_OK)
            out = Py_BuildValue("(LLN)", (long long)scored.rows, (long long)scored.tokens,
                                py_text(scored.ran_in));
        else if (!s.interrupted)
            py_raise(state, &error);
    }
    Py_DECREF(model);
    Py_DECREF(output);
    return out;
}

int py_add_classifier(PyObject *module, py_state *state) {
    static PyMethodDef methods[] = {{"facts", classifier_facts, METH_NOARGS, NULL},
                                    {"add", classifier_add, METH_VARARGS, NULL},
                                    {"add_words", classifier_add_words, METH_VARARGS, NULL},
                                    {"read", classifier_read, METH_VARARGS, NULL},
                                    {"run", classifier_run, METH_NOARGS, NULL},
                                    PY_CLOSE,
                                    {NULL, NULL, 0, NULL}};
    static PyMethodDef functions[] = {{"classifier", classifier_open, METH_VARARGS, NULL},
                                      {"score", score, METH_VARARGS, NULL},
                                      {NULL, NULL, 0, NULL}};
    if (py_add_handle(module, "sifr._sifr.Classifier", methods, NULL, &state->classifier_type) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
