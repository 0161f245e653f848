/* The gate of the library. How numbers are computed, read and written depends on state that belongs
 * to a thread: its locale (a decimal comma) and its floating-point environment (rounding, traps,
 * flushing of subnormal numbers). Inside the library both are C's defaults, whatever the program
 * has set, so that no result and no file depends on the program; outside they are the program's.
 *
 * Each call of the public headers begins with one of BASE_ENTER, BASE_ENTER_VOID, BASE_ENTER_OR and
 * BASE_INSIDE (tests/scripts/test_given.sh), and a thread of the library with BASE_INSIDE
 * (base_thread_start). Each call of a program's function is a BASE_OUT. */
#ifndef BASE_INSIDE_H
#define BASE_INSIDE_H

#include <fenv.h>
#include <locale.h>
#include <stdbool.h>

#include "base/errors.h"

/* What a thread had before. */
typedef struct base_surroundings {
    locale_t locale; /* 0: unchanged */
    locale_t own;    /* the one that is in use meanwhile; 0: none to give back */
    fenv_t floats;
    unsigned control; /* of floats: rounding, traps, flushing */
    bool inside;
} base_surroundings;

base_surroundings base_go_inside(void);
base_surroundings base_go_outside(void);
void base_go_back(base_surroundings *before);

#define BASE_SURROUNDED(enter)                                                                     \
    __attribute__((cleanup(base_go_back), unused)) base_surroundings base_before = enter()

/* To the end of the block: the library's surroundings, or, for a callback, a program's: its global
 * locale, and default floats still. What the callback changes of the floats is undone. */
#define BASE_INSIDE BASE_SURROUNDED(base_go_inside)
#define BASE_OUTSIDE BASE_SURROUNDED(base_go_outside)

/* The result of a program's function, called outside:
 *     answer = BASE_OUT(options->step(options->user, &step)); */
#define BASE_OUT(call)                                                                             \
    __extension__({                                                                                \
        BASE_OUTSIDE;                                                                              \
        call;                                                                                      \
    })

/* The first line of a call: BASE_INSIDE, and a look at the pointers that a caller must give. Where
 * one is NULL, a call with a status refuses it by name (SIFR_USAGE), one without a result does
 * nothing, and another returns `none`.
 *     BASE_ENTER(error, engine, batch, result); */
#define BASE_ENTER(error, ...)                                                                     \
    BASE_INSIDE;                                                                                   \
    BASE_TRY(BASE_GIVEN(error, __VA_ARGS__))
#define BASE_ENTER_VOID(...)                                                                       \
    BASE_INSIDE;                                                                                   \
    if (BASE_GIVEN(NULL, __VA_ARGS__) != SIFR_OK) return
#define BASE_ENTER_OR(none, ...)                                                                   \
    BASE_INSIDE;                                                                                   \
    if (BASE_GIVEN(NULL, __VA_ARGS__) != SIFR_OK) return none

#endif
