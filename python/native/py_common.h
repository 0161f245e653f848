/* What the files of the extension share: handles of the library as Python objects, and how a call
 * enters the library and comes back.
 *
 * Every object is used by one thread at a time, in the process that made it; else a call raises
 * UsageError. A call leaves the interpreter's lock to other threads. */
#ifndef PY_COMMON_H
#define PY_COMMON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <sifr/sifr.h>
#include <stdbool.h>
#include <sys/types.h>

typedef struct py_handle {
    PyObject_HEAD void *handle; /* NULL: closed */
    void (*release)(void *handle);
    PyObject *keeps; /* a tuple of handles that it was made of; a call takes them, too */
    int users;       /* handles that keep it */
    pid_t owner;     /* the process that made it */
    bool busy;
} py_handle;

/* A call that is in the library. */
typedef struct py_call {
    PyObject *of; /* NULL: of no handle */
    PyThreadState *thread;
} py_call;

typedef struct py_state {
    PyObject *errors[SIFR_LOST_RANK + 1]; /* by status; SIFR_OK has none */
    PyObject *log;                        /* called with a level of `logging` and a line */
    sifr_context *context;                /* of the process `owner` */
    pid_t owner;
    PyObject *config_type, *ranks_type, *tokenizer_type, *decoder_type, *template_type,
        *generator_type, *chat_type, *engine_type, *view_type, *data_type, *classifier_type;
} py_state;

/* --- py_handle.c --- */

py_state *py_state_of(PyObject *object); /* of an object of a type of this module */

/* A new object around `handle`, which is released with it; NULL with an exception, and then it is
 * released at once. `keeps` may be NULL; a new reference stays the caller's. */
PyObject *py_handle_new(PyObject *type, void *handle, void (*release)(void *), PyObject *keeps);

/* Begins a call with the handle (NULL: with none). -1 with UsageError where it is closed, in use,
 * or of another process. py_leave ends it. */
int py_enter(PyObject *self, py_call *call);
void py_leave(py_call *call);
/* The same in two: between them what the library returned, and keeps until its next call, is there.
 */
void py_return(py_call *call);
void py_done(py_call *call);

/* The same for a further handle of the call: taken before py_enter, given back after py_leave. */
int py_take(PyObject *self);
void py_give(PyObject *self);

/* Around what a callback does in Python, on the thread that made the call. */
void py_callback_begins(py_call *call);
void py_callback_ends(py_call *call);

void *py_get(PyObject *self); /* after py_enter */

/* The method that all types have. */
PyObject *py_handle_close(PyObject *self, PyObject *none);
#define PY_CLOSE                                                                                   \
    { "close", py_handle_close, METH_NOARGS, "Gives back what it holds." }

/* --- py_error.c --- */

PyObject *py_raise(py_state *state, const sifr_error *error); /* NULL */
PyObject *py_usage(py_state *state, const char *format, ...); /* NULL */
/* None, or an exception where the status is one of failure. */
PyObject *py_none_or_raise(py_state *state, sifr_status status, const sifr_error *error);
/* The library's text, which is given back. */
PyObject *py_take_text(char *text);
/* Text from the library: what is no UTF-8 becomes U+FFFD. */
PyObject *py_text(const char *text);
PyObject *py_text_sized(const char *text, size_t size);
PyObject *py_ids(const int32_t *ids, size_t count); /* a list */

/* --- py_collect.c --- */

typedef struct py_lines {
    py_call call; /* that tells them */
    PyObject *list;
    bool failed; /* with an exception */
} py_lines;
void py_take_line(void *user, const char *text); /* `user` is a py_lines */
/* Into a dict, which becomes NULL, with an exception, where it cannot be. */
void py_put_score(PyObject **scores, const char *name, double value);

/* --- py_context.c --- */

/* The context of this process, made at the first call. NULL with an exception. */
sifr_context *py_context(py_state *state);

/* --- py_view.c --- */

/* 4-byte values of the library's: FP32, or whole numbers. columns 0: a vector of `rows`. */
typedef struct py_matrix {
    void *values;
    Py_ssize_t rows, columns;
    bool whole, writable;
} py_matrix;
/* An object with the matrix as its buffer, which keeps the handle whose memory it is. */
PyObject *py_view_new(PyObject *of, const py_matrix *matrix);
/* One with a copy, which outlives what the matrix is in. */
PyObject *py_view_copy(py_state *state, const py_matrix *matrix);
const void *py_view_values(PyObject *view);
Py_ssize_t py_matrix_bytes(const py_matrix *matrix);

/* --- py_loss.c --- */

typedef struct py_loss {
    PyObject *function; /* NULL: none */
    py_state *state;
    PyObject *engine;               /* whose call this is; NULL: a run's, which gives copies */
    py_call *call;                  /* that is in the library */
    PyObject *kind, *value, *trace; /* what the function raised */
} py_loss;
sifr_loss_function py_loss_compute; /* `user` is a py_loss */
bool py_loss_raises(py_loss *loss); /* what the function raised; false: nothing */
void py_loss_drop(py_loss *loss);

/* --- py_batch.c --- */

enum { PY_WHOLE_INPUTS = 5 };

/* Copies of a batch's arrays. */
typedef struct py_inputs {
    int32_t *whole[PY_WHOLE_INPUTS];
    float *targets;
} py_inputs;
typedef struct py_batch_shape {
    int64_t sequences, tokens; /* so many sequences of so many tokens */
    int64_t targets;           /* numbers for each token beside its label */
} py_batch_shape;
/* The arrays of a tuple: tokens, labels, token types, segments, positions, targets; None: left out.
 * -1 with an exception; drop the inputs either way. */
int py_take_batch(PyObject *arrays, const py_batch_shape *shape, py_inputs *in, sifr_batch *out,
                  py_state *state);
void py_drop_inputs(py_inputs *in);
/* A buffer; -1 with UsageError, which names it. */
int py_buffer(py_state *state, const char *name, PyObject *object, int flags, Py_buffer *view);
/* That of contiguous values of fp32, perhaps to be written. */
int py_floats(py_state *state, const char *name, PyObject *object, bool written, Py_buffer *view);

/* --- py_engine.c: of an engine that is taken --- */

sifr_engine *py_engine_of(PyObject *engine);
sifr_loop *py_loop_of(PyObject *engine);
int64_t py_sequences_of(PyObject *engine); /* of a step of this rank */
/* Its loss, for a call that may ask for it. */
py_loss *py_loss_of(PyObject *engine, py_call *call);

/* --- a file each: adds its types or functions to the module; -1 with an exception --- */

int py_add_config(PyObject *module, py_state *state);
int py_add_ranks(PyObject *module, py_state *state);
int py_add_tokenizer(PyObject *module, py_state *state);
int py_add_generator(PyObject *module, py_state *state);
int py_add_engine(PyObject *module, py_state *state);
int py_add_view(PyObject *module, py_state *state);
int py_add_data(PyObject *module, py_state *state);
int py_add_classifier(PyObject *module, py_state *state);
PyObject *py_train(PyObject *module, PyObject *args);
PyObject *py_plan(PyObject *module, PyObject *args);
PyObject *py_export(PyObject *module, PyObject *args);
PyObject *py_import(PyObject *module, PyObject *args);

typedef int py_buffer_of(PyObject *self, Py_buffer *view, int flags);

/* Makes the type of a handle, keeps it in *out. It cannot be called: functions make its objects.
 * `buffer`: of one that has a buffer, else NULL. */
int py_add_handle(PyObject *module, const char *name, PyMethodDef *methods, py_buffer_of *buffer,
                  PyObject **out);

/* The object if it is of this type, else NULL with TypeError. */
PyObject *py_expect(PyObject *object, PyObject *type, const char *what);

#endif
